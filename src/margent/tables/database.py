"""Tables in databases: what one told of itself is held against the schema, and its rows are read in every pass.

A plain table's rows are asked for again in every pass, in one snapshot and one order. Other rows (of a query, a view,
a table in pieces or on another server) are read once, in the first pass, and copied to a temporary file: nothing says
that they come in the same order again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from margent.errors import TableError, UsageError
from margent.tables.address import Address, quoted, read_address
from margent.tables.header import check_columns
from margent.tables.opened import OpenTable
from margent.tables.options import ReadOptions
from margent.tables.streams import Spool, require_spool

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

BROKEN = (
    "the database's rows could not be read to their end (the server or the connection went away, or the query failed "
    "while it ran). What was charged so far stays spent. See the database's own log, then start a new run"
)
VIEWED = "a query or a view"
"""What the question whether rows are row-wise calls them, where nothing more special is known."""

Answer = TypeVar("Answer")


def _nothing() -> None:
    """A snapshot is the server's to keep."""


@dataclass(frozen=True)
class Column:
    """A column of a database: the SQL that reads it, and the Arrow type that its declaration amounts to.

    What is read may be plainer than what is declared: decimals come as text, digit for digit.

    Privacy: none: declarations only.
    """

    name: str
    sql: str
    declared: pa.DataType
    nullable: bool = True


def select(chosen: Sequence[Column], source: str, condition: str) -> str:
    """The SQL that reads these columns of a source (NULL where there are none), for the rows of a condition.

    Privacy: none: names and the operator's own words.
    """
    listed = ", ".join(f"{each.sql} AS {quoted(each.name)}" for each in chosen) or "NULL"
    return f"SELECT {listed} FROM {source}{condition}"  # noqa: S608 (see quoted)


class Stream(Protocol):
    """Batches one after the other, and what holds them."""

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch; StopIteration at the end."""
        ...

    def close(self) -> None:
        """Give back what holds the stream, wherever it stands."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """An open connection and what it told of the rows that are meant; none of them has been looked at.

    ``described`` gives the Arrow schema of some columns as they are read, ``reader`` takes their rows. A query's and a
    view's rows are ``derived``, and so are those that row-level security leaves; ``called`` says which they are. Other
    rows are ``steady`` where every pass gets them in the same order. ``filtered``: those that meet a condition.
    ``require_same`` raises TableError where what was opened is no longer there.

    Privacy: private rows behind `reader`; all else are declarations.
    """

    columns: tuple[Column, ...]
    described: Callable[[Sequence[Column]], pa.Schema] = field(repr=False)
    reader: Callable[[Sequence[Column]], Stream] = field(repr=False)
    close: Callable[[], None] = field(repr=False)
    derived: bool
    steady: bool
    filtered: bool = False
    called: str = VIEWED
    require_same: Callable[[], None] = field(default=_nothing, repr=False)

    @property
    def declared(self) -> pa.Schema:
        """Names, types and whether cells may be missing, as they are declared."""
        import pyarrow as pa

        return pa.schema([pa.field(each.name, each.declared, each.nullable) for each in self.columns])

    def taken(self, wanted: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        """One pass over the rows.

        Raises: TableError with fixed text whatever the database reports: its messages may hold cells.
        """
        self.require_same()
        reader = _unspoken(lambda: self.reader(wanted))
        with closing(reader):
            while (batch := _unspoken(lambda: _next(reader))) is not None:
                yield batch
        self.require_same()


def _next(reader: Stream) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


def _unspoken(ask: Callable[[], Answer]) -> Answer:
    """What was asked for, or an error of fixed text that carries nothing of the database's own."""
    try:
        return ask()
    except Exception:  # noqa: S110 (its text may hold a cell, so nothing of it goes on)
        pass
    raise TableError(BROKEN)


def open_address(text: str, schema: Schema, options: ReadOptions) -> OpenTable:
    """The rows that a database's address names, with the columns of the schema; its catalog alone is looked at.

    Privacy: none spent, no row read.
    Raises: UsageError when the address is off, its package is absent, or it names a query and nobody said that it is
        row-wise; TableError when the database cannot be reached or has no such table; SchemaError when columns differ.
    """
    rows = connected(read_address(text), options)
    try:
        return _open(rows, schema, options)
    except BaseException:
        rows.close()
        raise


def address_columns(text: str, options: ReadOptions) -> tuple[tuple[str, ...], pa.Schema]:
    """Names and declared types of the columns that a database's address names.

    Privacy: none spent; catalog and declarations only.
    Raises: as `open_address`.
    """
    rows = connected(read_address(text), options)
    with closing(rows):
        return tuple(rows.declared.names), rows.declared


def connected(address: Address, options: ReadOptions) -> Rows:
    """A connection to the address's database that has told its columns.

    Privacy: none spent, no row read.
    Raises: as `open_address`.
    """
    if address.query is not None:
        _require_row_wise(options, "a query")
    if address.engine == "duckdb":
        from margent.tables.duckdb_rows import connect_duckdb

        rows = connect_duckdb(address, options)
    else:
        from margent.tables.postgres_rows import connect_postgres

        rows = connect_postgres(address)
    try:
        if rows.derived:
            _require_row_wise(options, rows.called)
    except UsageError:
        rows.close()
        raise
    return rows


def _open(rows: Rows, schema: Schema, options: ReadOptions) -> OpenTable:
    declared = rows.declared
    check_columns(declared.names, schema, declared=declared)
    wanted = tuple(schema.columns_read)
    by_name = {each.name: each for each in rows.columns}
    chosen = [by_name[name] for name in wanted]
    promised = rows.described(chosen)
    if rows.steady:
        return _table(rows, wanted, lambda: rows.taken(chosen), rows.close)
    require_spool(options)
    spool = Spool(options.spool_folder)

    def read() -> Iterator[pa.RecordBatch]:
        return spool.passed(lambda: _streamed(rows, chosen, promised), promised, wanted)

    def close() -> None:
        spool.close()
        rows.close()

    return _table(rows, wanted, read, close)


def _table(
    rows: Rows, wanted: tuple[str, ...], read: Callable[[], Iterator[pa.RecordBatch]], close: Callable[[], None]
) -> OpenTable:
    names, declared = tuple(rows.declared.names), rows.declared
    return OpenTable("parquet", names, wanted, read, close, declared, from_query=rows.derived, filtered=rows.filtered)


def _streamed(rows: Rows, chosen: Sequence[Column], promised: pa.Schema) -> pa.RecordBatchReader:
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(promised, rows.taken(chosen))


def _require_row_wise(options: ReadOptions, what: str) -> None:
    if not options.query_is_row_wise:
        raise UsageError(
            f"the rows would be those of {what}, and what is protected is then a row of its result: that means "
            "something only if each row comes from one record, or from the records of one person. If it does, say so "
            "with --query-is-row-wise (query_is_row_wise=True); the release will tell. No join that gives one record "
            "several rows, no sum, window or rank over the records of several persons, no condition or policy that "
            "looks at the records of others; a part of a table's rows needs no query: table=T&where=CONDITION"
        )
