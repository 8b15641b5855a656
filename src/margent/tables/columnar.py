"""Parquet, Feather and Arrow files: types are declared in the container; only columns needed are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margent.errors import Fault, SchemaError, TableError
from margent.machine import block_rows
from margent.tables.header import check_columns
from margent.tables.opened import OpenTable
from margent.tables.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema


@dataclass(frozen=True)
class _Part:
    """One file and its declared columns."""

    snapshot: Snapshot
    declared: pa.Schema


def open_parquet(path: Path, schema: Schema) -> OpenTable:
    """A Parquet file, or a folder of them in the order of their names, with the columns of the schema.

    Privacy: none spent; footers only are looked at, and of these the declared columns.
    Raises: TableError when a file cannot be read as Parquet, SchemaError when the columns differ.
    """
    files = _files(path) if path.is_dir() else [path]
    parts = [_parquet_part(file) for file in files]
    first = parts[0].declared
    check_columns(first.names, schema, declared=first)
    wanted = tuple(schema.columns_read)
    _check_alike(parts, wanted)
    listed = [field.name for field in schema.fields if field.role == "model" and field.listed is not None]

    def read() -> Iterator[pa.RecordBatch]:
        for part in parts:
            part.snapshot.check()
            yield from _parquet_batches(part.snapshot.path, wanted, listed)
            part.snapshot.check()

    return OpenTable("parquet", tuple(first.names), wanted, read, declared=first)


def open_ipc(path: Path, kind: str, schema: Schema) -> OpenTable:
    """A Feather (version 2) or Arrow file, or one with an Arrow stream, with the columns of the schema.

    Privacy: none spent; the declared columns only are looked at.
    Raises: TableError when the file cannot be read as Arrow, SchemaError when the columns differ.
    """
    snapshot = Snapshot.of(path)
    declared = _ipc_schema(path, kind)
    check_columns(declared.names, schema, declared=declared)
    wanted = tuple(schema.columns_read)
    places = sorted(declared.names.index(name) for name in wanted)

    def read() -> Iterator[pa.RecordBatch]:
        snapshot.check()
        yield from _ipc_batches(path, places)
        snapshot.check()

    return OpenTable(kind, tuple(declared.names), wanted, read, declared=declared)


def declared_types(path: Path, kind: str) -> Any:
    """The Arrow schema that a Parquet file, a folder of them (its first file) or an Arrow file declares.

    Privacy: none spent; the container's own description only.
    Raises: TableError when it cannot be read.
    """
    if kind != "parquet":
        return _ipc_schema(path, kind)
    return _parquet_part(_files(path)[0] if path.is_dir() else path).declared


def _files(folder: Path) -> list[Path]:
    entries = sorted(entry for entry in folder.iterdir() if entry.name[0] not in "._")
    files = [entry for entry in entries if entry.suffix.lower() in {".parquet", ".pq"} and entry.is_file()]
    if any(entry.is_dir() for entry in entries):
        raise TableError(
            f"{folder}: a folder of Parquet files must be flat; it holds folders, which are not read (a partitioned "
            "table keeps columns in their names: write it again as one file, or flat, with these columns inside)"
        )
    if not files:
        raise TableError(f"{folder}: the folder holds no .parquet file")
    return files


def _parquet_part(path: Path) -> _Part:
    import pyarrow.parquet as pq

    snapshot = Snapshot.of(path)
    declared = None
    try:
        with pq.ParquetFile(path) as file:
            declared = file.schema_arrow
            _ = declared.names  # as below
    except Exception:
        declared = None
    if declared is None:
        raise TableError(f"{path}: cannot be read as Parquet; was it written to its end?")
    return _Part(snapshot, declared)


def _check_alike(parts: Sequence[_Part], wanted: Sequence[str]) -> None:
    """Every file of a folder declares the wanted columns as the first one does."""
    first = parts[0]
    faults = []
    for part in parts[1:]:
        name = part.snapshot.path.name
        if sorted(part.declared.names) != sorted(first.declared.names):
            faults.append(Fault(name, f"its columns are not those of {first.snapshot.path.name}"))
            continue
        faults += [
            Fault(f"{name}, column {column}", f"its type is not the one in {first.snapshot.path.name}")
            for column in wanted
            if part.declared.field(column).type != first.declared.field(column).type
        ]
    if faults:
        raise SchemaError(faults, "the folder of Parquet files")


def _parquet_batches(path: Path, wanted: Sequence[str], listed: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """``listed`` columns have few values: of texts in these, the file's own dictionaries are kept, not spelled out."""
    import pyarrow.parquet as pq

    # Names with dots may bring other columns along; the open table selects by name again.
    with pq.ParquetFile(path, read_dictionary=list(listed)) as file:
        yield from file.iter_batches(batch_size=block_rows(len(wanted)), columns=list(wanted))


def _ipc_schema(path: Path, kind: str) -> Any:
    import pyarrow as pa

    with path.open("rb") as raw:
        start = raw.read(4)
    if start == b"FEA1":
        raise TableError(f"{path}: Feather version 1 is not read; write it again as version 2 or as Parquet")
    declared = None
    try:
        with pa.OSFile(str(path)) as file:
            declared = _ipc_reader(file, None).schema
            _ = declared.names  # names that are no UTF-8 are found here, not where they are first used
    except Exception:
        declared = None
    if declared is None:
        raise TableError(f"{path}: cannot be read as {kind}; was it written to its end?")
    return declared


def _ipc_batches(path: Path, places: list[int]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=places)
    with pa.OSFile(str(path)) as file:
        reader = _ipc_reader(file, options)
        if isinstance(reader, pa.RecordBatchReader):
            yield from map(_sound, reader)
        else:
            for place in range(reader.num_record_batches):
                yield _sound(reader.get_batch(place))


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch if no offset or index in it points outside its buffers; Arrow trusts a file with that.

    Only the container is checked: letters that are no UTF-8 or a number that is too long are cells, and no cell
    may stop a run.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    batch.validate()
    for column in batch.columns:
        values = column
        if pa.types.is_dictionary(column.type):
            values = column.dictionary
            places = column.indices.drop_null()
            if len(places) and not 0 <= pc.min(places).as_py() <= pc.max(places).as_py() < len(column.dictionary):
                raise ValueError("an index points outside its dictionary")
        if _is_text(values.type):
            wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
            values.view(pa.large_binary() if wide else pa.binary()).validate(full=True)
    return batch


def _is_text(kind: Any) -> bool:
    """Whether values of this type lie in a buffer that offsets point into."""
    import pyarrow as pa

    is_one_of = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_one(kind) for is_one in is_one_of)


def _ipc_reader(file: Any, options: Any) -> Any:
    """A reader of the file form, or of the stream form where the file does not begin like the former."""
    import pyarrow as pa

    form = pa.ipc.open_file if file.read(6) == b"ARROW1" else pa.ipc.open_stream
    file.seek(0)
    return form(file, options=options)
