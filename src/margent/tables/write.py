"""Writing a synthetic table as a file, a block of rows at a time; the same rows give the same bytes."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from margent.errors import TableError, UsageError
from margent.tables.arrow_file import arrow_file
from margent.tables.options import FILE_SUFFIXES, TEXT_KINDS, ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

_DEFAULT = ReadOptions()


def write_table(
    path: Path,
    kind: str,
    tables: Iterator[pa.Table],
    declared: pa.Schema | None = None,
    options: ReadOptions = _DEFAULT,
) -> None:
    """Write the tables one below the other to a file of this kind; a failure may leave part of it behind.

    Text files are UTF-8 with LF line ends; cells are quoted where they must be and nowhere else; a missing
    cell is an empty one; ``options`` gives delimiter, quote and whether there is a header. All kinds are
    written without times, names or anything else that differs from run to run.

    Shapes: every table has the columns and types of ``declared`` (by default those of the first), which also
    gives the columns where there is no table at all.
    Privacy: none: synthetic tables only come here.
    Raises: UsageError when the kind is unknown, TableError when the disk refuses.
    """
    if kind not in FILE_SUFFIXES:
        raise UsageError(f"there is no output format {kind!r}; the formats are: {', '.join(FILE_SUFFIXES)}")
    if declared is None:
        first = next(tables, None)
        if first is None:
            raise ValueError("without a table its columns must be declared")
        declared, tables = first.schema, _again(first, tables)
    write = _write_text if kind in TEXT_KINDS else _WRITERS[kind]
    try:
        write(path, kind, tables, declared, options)
    except OSError as error:
        raise TableError(f"{path}: cannot be written: {error.strerror or 'input/output error'}") from None


def _again(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _checked(table: pa.Table, declared: pa.Schema) -> pa.Table:
    if not table.schema.equals(declared):
        raise ValueError("a block of the synthetic table has other columns or types than declared")
    return table


def _write_parquet(
    path: Path, kind: str, tables: Iterator[pa.Table], declared: pa.Schema, options: ReadOptions
) -> None:
    import pyarrow.parquet as pq

    with arrow_file(path, "wb") as file, pq.ParquetWriter(file, declared, compression="zstd") as writer:
        for table in tables:
            writer.write_table(_checked(table, declared))


def _write_ipc(path: Path, kind: str, tables: Iterator[pa.Table], declared: pa.Schema, options: ReadOptions) -> None:
    import pyarrow as pa

    # Feather (version 2) is the Arrow file form, compressed by convention.
    form = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "feather" else None, unify_dictionaries=True)
    with arrow_file(path, "wb") as file, pa.ipc.new_file(file, declared, options=form) as writer:
        for table in tables:
            writer.write_table(_checked(table, declared))


_WRITERS: dict[str, Callable[[Path, str, Iterator[Any], Any, ReadOptions], None]] = {
    "parquet": _write_parquet,
    "feather": _write_ipc,
    "arrow": _write_ipc,
}


def _write_text(path: Path, kind: str, tables: Iterator[pa.Table], declared: pa.Schema, options: ReadOptions) -> None:
    delimiter = options.delimiter_of(kind)
    quote = options.quote or '"'
    with path.open("wb") as raw, _compressed(raw, kind) as file:
        if options.header:
            file.write(_header(declared.names, delimiter, quote))
        for table in tables:
            for batch in _checked(table, declared).combine_chunks().to_batches():
                if batch.num_rows:
                    file.write(_lines(batch.columns, delimiter, quote))


@contextmanager
def _compressed(raw: IO[bytes], kind: str) -> Iterator[IO[bytes]]:
    if kind.endswith(".gz"):
        # Without name and time, so that the same rows give the same bytes.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as file:
            yield cast("IO[bytes]", file)
    elif kind.endswith(".zst"):
        import pyarrow as pa

        with pa.CompressedOutputStream(raw, "zstd") as file:
            yield file
    else:
        yield raw


def _header(names: list[str], delimiter: str, quote: str) -> bytes:
    special = {delimiter, quote, "\r", "\n"}
    cells = [
        quote + name.replace(quote, 2 * quote) + quote if special & set(name) or names == [""] else name
        for name in names
    ]
    return (delimiter.join(cells) + "\n").encode()


def _lines(columns: list[pa.Array], delimiter: str, quote: str) -> memoryview:
    """The lines of a block: columns of text side by side."""
    from margent.tables.csv_lines import join_lines, lines_size

    data, starts, stops = _packed(columns)
    special = np.zeros(256, dtype=np.bool_)
    special[[ord(delimiter), ord(quote), ord("\r"), ord("\n")]] = True
    quoted = np.empty(starts.shape, dtype=np.bool_)
    out = np.empty(lines_size(data, starts, stops, special, ord(quote), quoted), dtype=np.uint8)
    join_lines(data, starts, stops, quoted, ord(delimiter), ord(quote), out)
    return out.data


def _packed(columns: list[pa.Array]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """All cells' bytes one behind the other, and where each cell starts and stops: (rows, columns)."""
    arrays = [_binary(column) for column in columns]
    rows = len(arrays[0]) if arrays else 0
    starts = np.empty((rows, len(arrays)), dtype=np.int64)
    stops = np.empty_like(starts)
    parts, base = [], 0
    for place, array in enumerate(arrays):
        valid, offsets, content = array.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + rows + 1]
        low, high = int(bounds[0]), int(bounds[-1])
        starts[:, place] = bounds[:-1] + (base - low)
        stops[:, place] = bounds[1:] + (base - low)
        if array.null_count:
            bits = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")
            missing = bits[array.offset : array.offset + rows] == 0
            stops[missing, place] = starts[missing, place]
        if content is not None:
            parts.append(np.frombuffer(content, dtype=np.uint8)[low:high])
        base += high - low
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint8), starts, stops


def _binary(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.string())
    return column.cast(pa.large_string()).cast(pa.large_binary())
