"""Parquet, Feather and Arrow files: types are declared in the container; only columns needed are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margent.errors import TableError
from margent.tables.arrow_file import arrow_file
from margent.tables.header import check_columns
from margent.tables.opened import OpenTable
from margent.tables.parquet_rows import parquet_batches
from margent.tables.snapshot import Snapshot
from margent.tables.sound import sound

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

_SMALL = 2**20
"""Bytes of the largest Arrow file that is read by one thread."""


def open_columnar(path: Path, kind: str, schema: Schema) -> OpenTable:
    """A Parquet file, a Feather (version 2) or Arrow file, or one with an Arrow stream, with the schema's columns.

    Privacy: none spent; the footer only is looked at, and of it the declared columns.
    Raises: TableError when the file cannot be read as its kind, SchemaError when the columns differ.
    """
    snapshot = Snapshot.of(path)
    declared = declared_types(path, kind)
    check_columns(declared.names, schema, declared=declared)
    wanted, listed = tuple(schema.columns_read), listed_columns(schema)

    def read() -> Iterator[pa.RecordBatch]:
        snapshot.check()
        yield from columnar_batches(path, kind, declared, wanted, listed)
        snapshot.check()

    return OpenTable(kind, tuple(declared.names), wanted, read, declared=declared)


def declared_types(path: Path, kind: str, shown: str | None = None) -> Any:
    """The Arrow schema that a Parquet, Feather or Arrow file declares; messages call the file ``shown``.

    Privacy: none spent; the container's own description only.
    Raises: TableError when it cannot be read.
    """
    declared = None
    called = str(path) if shown is None else shown
    path.open("rb").close()  # what keeps a file from being opened at all is said in the system's words
    try:
        declared = _parquet_schema(path) if kind == "parquet" else _ipc_schema(path, called)
        _ = declared.names  # names that are no UTF-8 are found here, not where they are first used
    except TableError:
        raise
    except Exception:
        declared = None
    if declared is None:
        what = "Parquet" if kind == "parquet" else kind
        raise TableError(f"{called}: cannot be read as {what}; was it written to its end?")
    return declared


def listed_columns(schema: Schema) -> tuple[str, ...]:
    """The modeled columns whose values are a list: few, so that a file's own dictionaries of them are small.

    Privacy: none: the schema.
    """
    return tuple(field.name for field in schema.fields if field.role == "model" and field.listed is not None)


def columnar_batches(
    path: Path, kind: str, declared: pa.Schema, wanted: Sequence[str], listed: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """One pass over the rows of a file of declared columns: the wanted ones, in any order and perhaps with others.

    Shapes: of Parquet at most `block_rows` rows at a time however large its row groups are; of Arrow the file's own
    batches, each of which is held whole.
    Privacy: private rows.
    """
    if kind == "parquet":
        with arrow_file(path) as source:
            yield from parquet_batches(source, wanted, listed)
    else:
        yield from _ipc_batches(path, declared.names, wanted)


def _parquet_schema(path: Path) -> Any:
    import pyarrow.parquet as pq

    with arrow_file(path) as source, pq.ParquetFile(source) as file:
        return file.schema_arrow


def _ipc_schema(path: Path, called: str) -> Any:
    import pyarrow as pa

    with arrow_file(path) as file:
        if file.read(4) == b"FEA1":
            raise TableError(f"{called}: Feather version 1 is not read; write it again as version 2 or as Parquet")
        return _ipc_reader(file, pa.ipc.IpcReadOptions(use_threads=False)).schema


def _ipc_batches(path: Path, names: Sequence[str], wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with arrow_file(path) as file:
        fields = sorted(names.index(name) for name in wanted)
        # Arrow hands each batch to threads, which takes longer than a small one.
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=file.size() > _SMALL)
        reader = _ipc_reader(file, options)
        if isinstance(reader, pa.RecordBatchReader):
            yield from map(sound, reader)
        else:
            for place in range(reader.num_record_batches):
                yield sound(reader.get_batch(place))


def _ipc_reader(file: Any, options: Any) -> Any:
    """A reader of the file form, or of the stream form where the file does not begin like the former."""
    import pyarrow as pa

    file.seek(0)
    form = pa.ipc.open_file if file.read(6) == b"ARROW1" else pa.ipc.open_stream
    file.seek(0)
    return form(file, options=options)
