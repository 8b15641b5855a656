"""Opening a table of any kind: one function, and the protocol of what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from margent.errors import TableError
from margent.tables.address import is_address, require_path
from margent.tables.options import TEXT_KINDS, ReadOptions, kind_of_path
from margent.tables.spark_session import is_spark_frame, spark_name

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

_DEFAULT = ReadOptions()


class TableSource(Protocol):
    """A private table whose container and header have been checked; rows come in batches, never all at once.

    Shapes: ``columns`` are the table's own, in its order. A batch has the columns that the schema reads, in
    the schema's order, and at most 65,536 rows. From text every column is raw bytes (``binary``), null where
    a malformed record leaves it absent. From typed containers columns keep their type, except that extension types
    become what they store, run-end encoded columns are decoded, and bytes and views become large strings.
    Privacy: private rows.
    """

    @property
    def kind(self) -> str:
        """The kind of file (a key of `margent.tables.options.FILE_SUFFIXES`; of a database Parquet) or frame."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns, in its own order."""
        ...

    @property
    def declared(self) -> pa.Schema | None:
        """The column types that a typed file or a database declares, a part of its header; None for text and frames."""
        ...

    @property
    def from_query(self) -> bool:
        """Whether a row is what the operator says: of a query or view of a database, or of its row-level security."""
        ...

    @property
    def filtered(self) -> bool:
        """Whether a condition on the row itself (``where=``) left rows of a database's table out."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over all rows: every pass gives the same rows in the same order.

        Raises: TableError with fixed text when the table cannot be read to its end, or has changed.
        """
        ...

    def close(self) -> None:
        """Give back files and temporary copies."""
        ...

    def __enter__(self) -> TableSource:
        """Return the table itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the table."""
        ...


def open_table(table: str | Path | object, schema: Schema, options: ReadOptions = _DEFAULT) -> TableSource:
    """The table at a path, in a database, of Spark, or an object with the Arrow stream interface, that fits the schema.

    Only the container and the header are looked at: what is refused here depends on no row. Columns are
    matched by name; their order is free.

    Privacy: none spent, no row read.
    Raises: TableError when there is no such file or it cannot be read as what it is called; SchemaError
        listing every difference between header and schema; UsageError when an object is no table.
    """
    if is_spark_frame(table) or spark_name(table) is not None:
        from margent.tables.spark import open_spark

        return open_spark(table, schema)
    if not isinstance(table, str | Path):
        from margent.tables.streams import open_object

        return open_object(table, schema, options)
    if is_address(table):
        from margent.tables.database import open_address

        return open_address(str(table), schema, options)
    path = Path(table)
    try:
        return _open_file(path, schema, options)
    except OSError as error:
        reason = error.strerror or "input/output error"
    # Outside the handler: the system's error names the file, whose folders' names may hold cells.
    raise TableError(f"{path}: cannot be opened: {reason}")


def _open_file(path: Path, schema: Schema, options: ReadOptions) -> TableSource:
    require_path(path)
    if path.is_dir():
        from margent.tables.folders import open_folder

        return open_folder(path, schema, options)
    kind = kind_of_path(path, options)
    if kind in TEXT_KINDS:
        from margent.tables.text import open_text

        return open_text(path, kind, schema, options)
    from margent.tables.columnar import open_columnar

    return open_columnar(path, kind, schema)
