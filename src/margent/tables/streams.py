"""Tables handed over in memory through the Arrow PyCapsule stream, and streams that can be read only once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from margent.errors import TableError, UsageError
from margent.machine import block_rows
from margent.tables.fitting import fitting, plain_bytes, spelled_bytes
from margent.tables.header import check_columns
from margent.tables.opened import BATCH_ROWS, OpenTable
from margent.tables.options import ReadOptions
from margent.tables.plain import as_text, plain
from margent.tables.scratch import require_scratch
from margent.tables.snapshot import CLOSED, UNREADABLE
from margent.tables.sound import sound

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema


_TABLES = (
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("duckdb", "DuckDBPyRelation"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
)


def open_object(table: Any, schema: Schema, options: ReadOptions) -> OpenTable:
    """A frame or stream whose columns agree with the schema.

    A pandas or polars frame or an Arrow table is read in place and must not be changed meanwhile. Anything
    else with the stream interface may give other rows the second time, so its one stream is spooled.

    Privacy: none spent; declared columns only are looked at.
    Raises: UsageError when the object is no table, SchemaError when the columns differ.
    """
    family = _family(table)
    if family == "pandas":
        from margent.tables.pandas_rows import open_pandas

        return open_pandas(table, schema)
    if family == "polars" and type(table).__name__ == "LazyFrame":
        raise UsageError("a polars LazyFrame holds no rows yet: pass frame.collect()")
    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(
            f"an object of type {type(table).__name__} is not a table; pass a path, a pandas or polars "
            "DataFrame, a pyarrow Table or a DuckDB relation, or anything else with __arrow_c_stream__ "
            "(rows from a generator: pyarrow.RecordBatchReader.from_batches)"
        )
    if family in {"polars", "pyarrow"}:
        return _open_steady(table, family, schema)
    return _open_once(table, family or "pyarrow", schema, options)


def _family(table: object) -> str:
    """The package whose frame the object is, by its classes' modules: nothing is imported to find out."""
    classes = {(cls.__module__.partition(".")[0].lstrip("_"), cls.__name__) for cls in type(table).__mro__}
    for family, name in _TABLES:
        if (family, name) in classes:
            return family
    return ""


def _stream(table: Any) -> Any:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatchReader):
        return table  # as it is: what passes Arrow's C interface has lost the sizes of its buffers (see `sound`)
    reader = None
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except Exception:
        reader = None
    if reader is None:
        raise TableError(
            f"the {type(table).__name__} does not give a stream of Arrow record batches with named columns; "
            "pass a DataFrame rather than one of its columns, and cast columns of a type that Arrow's C interface "
            "lacks (128-bit integers of polars, say)"
        )
    return reader


def _open_steady(table: Any, kind: str, schema: Schema) -> OpenTable:
    """A table that gives the same rows whenever it is asked."""
    import pyarrow as pa

    held = table if isinstance(table, pa.Table | pa.RecordBatch) else _stream(table).read_all()
    check_columns(held.schema.names, schema, declared=held.schema)
    wanted = tuple(schema.columns_read)
    kept = (held if isinstance(held, pa.Table) else pa.Table.from_batches([held])).select(list(wanted))

    def read() -> Iterator[pa.RecordBatch]:
        yield from map(sound, kept.to_batches(max_chunksize=BATCH_ROWS))

    return OpenTable(kind, tuple(held.schema.names), wanted, read)


def _open_once(table: Any, kind: str, schema: Schema, options: ReadOptions) -> OpenTable:
    """A stream that is copied to a temporary file in the first pass; all passes read the copy.

    Some objects are queries that run when their stream is taken, so that a row on which they fail would show before
    anything is charged: until the first pass a DuckDB relation is asked for itself without its rows, and an object that
    tells its schema apart from its stream for that alone. Of other streams only the schema is read; no batch is pulled.
    """
    require_spool(options)
    opened, declared = _promised(table, kind)
    check_columns(declared.names, schema, declared=declared)
    wanted = tuple(schema.columns_read)
    spool = Spool(options.spool_folder)
    return OpenTable(kind, tuple(declared.names), wanted, lambda: spool.passed(opened, declared, wanted), spool.close)


def require_spool(options: ReadOptions) -> None:
    """Refuse what can be read only once where no copy may, or can, be made.

    Privacy: none: no row is read.
    Raises: UsageError where copies are not allowed, TableError where there is no folder for them.
    """
    if not options.spool:
        raise UsageError(
            "this table can be read only once and several passes are needed; allow a temporary copy (spool), "
            "or pass a file or a DataFrame"
        )
    require_scratch(options.spool_folder)


def _promised(table: Any, kind: str) -> tuple[Callable[[], pa.RecordBatchReader], pa.Schema]:
    """How to take the stream when its rows may be looked at, and the schema it will have."""
    import pyarrow as pa

    if kind == "duckdb":
        return lambda: pa.RecordBatchReader.from_stream(table), _stream(table.limit(0)).schema
    declared = None
    if not isinstance(table, pa.RecordBatchReader) and hasattr(table, "__arrow_c_schema__"):
        try:
            declared = pa.schema(table)
        except Exception:
            declared = None
    if declared is not None:
        return lambda: pa.RecordBatchReader.from_stream(table), declared
    reader = _stream(table)
    return lambda: reader, reader.schema


@dataclass(eq=False)
class Spool:
    """A temporary Arrow file without a name: no other process can open it, and it is gone with this one.

    Privacy: private rows on the operator's disk, readable by the operator only, until `close`.
    """

    folder: Path | None
    file: IO[bytes] | None = field(default=None, repr=False)
    whole: bool = False

    def fill(self, opened: Callable[[], pa.RecordBatchReader], promised: pa.Schema, wanted: tuple[str, ...]) -> None:
        """Copy the wanted columns of the whole stream that ``opened`` gives; a second call does nothing.

        Raises: TableError when an earlier call broke off (the stream's first part is gone), or the stream has another
            schema than was promised.
        """
        if self.whole:
            return
        if self.file is not None:
            raise TableError(UNREADABLE)
        import pyarrow as pa

        self.file = tempfile.TemporaryFile(dir=self.folder, prefix="margent-")  # noqa: SIM115 (see close)
        reader = opened()
        if not reader.schema.equals(promised):
            raise TableError(UNREADABLE)
        none = [pa.nulls(0, field.type) for field in reader.schema]
        empty = pa.RecordBatch.from_arrays(none, schema=reader.schema)
        declared, most = _spoolable(plain(empty, wanted)).schema, block_rows(len(wanted))
        with pa.ipc.new_file(pa.PythonFile(self.file, "w"), declared) as writer:
            for batch in reader:
                rows = sound(batch.select(list(wanted)))
                # A stream's batches may be as long as its table; each is held whole by every pass over the copy.
                for start in range(0, rows.num_rows, most):
                    for part in fitting(rows.slice(start, most), plain_bytes):
                        for few in fitting(plain(part, wanted), spelled_bytes):
                            writer.write_batch(_spoolable(few))
        self.file.flush()
        self.whole = True

    def passed(
        self, opened: Callable[[], pa.RecordBatchReader], promised: pa.Schema, wanted: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        """One pass over all rows; the first one copies them."""
        self.fill(opened, promised, wanted)
        return self.batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in the order of the stream; passes may overlap."""
        import pyarrow as pa

        if self.file is None:
            raise TableError(CLOSED)
        reader = pa.ipc.open_file(pa.PythonFile(self.file, "r"))
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)

    def close(self) -> None:
        """Delete the copy."""
        if self.file is not None:
            self.file.close()
            self.file = None


def _spoolable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with dictionaries spelled out: the file form wants the same dictionary in every batch."""
    import pyarrow as pa

    columns = [
        as_text(column.dictionary).take(column.indices) if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
