"""PostgreSQL through ADBC: one read-only transaction with one snapshot, held open for all passes.

In it a plain table's rows come in the order in which they are stored, pass for pass: a scan by one process from the
table's beginning, which is what the settings below leave the server to choose, and its plan must say that it does. All
other rows (of partitions, children, foreign tables, views and queries) are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from margent.errors import TableError, UsageError
from margent.tables.address import Address
from margent.tables.database import VIEWED, Column, Rows, select
from margent.tables.postgres_catalog import columns_of, relation_named, scans_plainly
from margent.tables.postgres_types import postgres_column
from margent.tables.row_filter import proved_condition

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 2**22
"""About how much of the rows a batch of the driver holds."""

_SETTINGS = (
    *("DateStyle TO 'ISO'", "TimeZone TO 'UTC'", "standard_conforming_strings TO on", "extra_float_digits TO 1"),
    *("lc_monetary TO 'C'", "xmloption TO content"),
)
_PLAIN_SCANS = (
    *("synchronize_seqscans TO off", "max_parallel_workers_per_gather TO 0", "enable_indexscan TO off"),
    *("enable_indexonlyscan TO off", "enable_bitmapscan TO off", "enable_tidscan TO off", "enable_seqscan TO on"),
)
_UNFILTERED = ("row_security TO off",)
"""Policies that begin to hold for the user while a run goes on end it; they never hide rows from it."""
_PATIENCE = (
    "SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name IN "
    "('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')"
)
_ENCODINGS = {"UTF8": "UTF8", "LATIN1": "UTF8", "SQL_ASCII": "SQL_ASCII"}
"""Server encodings of which every cell arrives, and what the client is to ask for."""

_REASONS = {
    "28": "the server does not accept the user or the password (see PGPASSFILE and PGSERVICE)",
    "3D": "the server has no such database",
    "42501": "the user may not read it",
    "42": "the server does not understand it: check the names and the query in psql",
    "08": "the connection broke off",
    "57": "the server is shutting down, starting up or ended the connection",
    "53": "the server has no room for one more connection",
    "25": "a query must only read",
}


def connect_postgres(address: Address) -> Rows:
    """The table, view or query of a PostgreSQL database, with its columns as they are declared.

    Privacy: none spent, no row read: the catalog, and the preparation of the statement.
    Raises: UsageError when the package is absent, TableError when the server cannot be reached or has no such table.
    """
    session = _Session(_connection(address), address.label)
    try:
        session.begin()
        return _rows(session, address)
    except BaseException:
        session.close()
        raise


@dataclass(eq=False)
class _Session:
    connection: Any = field(repr=False)
    label: str
    taken: _Taken | None = None
    closed: bool = False

    def begin(self) -> None:
        """Begin the one transaction; its snapshot is taken with the first look at the catalog."""
        self.say("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for setting in _SETTINGS:
            self.say(f"SET LOCAL {setting}")
        self.told(_PATIENCE)
        ((encoding,),) = self.told("SELECT pg_catalog.current_setting('server_encoding')")
        if encoding not in _ENCODINGS:
            raise TableError(
                f"{self.label}: the database's encoding is {encoding}, of which a cell may have no like in UTF-8 and "
                f"would stop the run; databases in {', '.join(_ENCODINGS)} are read: export the table to Parquet first"
            )
        self.say(f"SET LOCAL client_encoding TO '{_ENCODINGS[encoding]}'")

    def say(self, sql: str) -> None:
        """Run a statement that has no result."""
        with self.connection.cursor() as cursor:
            self.checked(lambda: cursor.execute(sql))

    def told(self, sql: str, values: Sequence[str] = (), *, copied: bool = True) -> list[tuple[Any, ...]]:
        """Rows of the catalog; with ``copied`` false, of a statement that COPY does not take."""
        from adbc_driver_postgresql import StatementOptions

        with self.connection.cursor() as cursor:
            if not copied:
                cursor.adbc_statement.set_options(**{StatementOptions.USE_COPY.value: "false"})
            self.checked(lambda: cursor.execute(sql, list(values) or None))
            found: list[tuple[Any, ...]] = self.checked(cursor.fetchall)
            return found

    def described(self, sql: str) -> pa.Schema:
        """The columns of a statement that is prepared and not run."""
        with self.connection.cursor() as cursor:
            return self.checked(lambda: cursor.adbc_execute_schema(sql))

    def reader(self, sql: str) -> _Taken:
        """The rows of a statement, a few megabytes at a time; a stream that was left halfway ends here."""
        from adbc_driver_postgresql import StatementOptions

        if self.taken is not None:
            self.taken.close()
        self.taken = _Taken(self.connection.cursor())
        cursor = self.taken.cursor
        cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
        cursor.execute(sql)
        self.taken.stream = cursor.fetch_record_batch()
        return self.taken

    def checked(self, look: Callable[[], Any]) -> Any:
        """What ``look`` gives before the rows are touched, or a fixed sentence: the server's own may hold a cell."""
        try:
            return look()
        except Exception as error:
            state = getattr(error, "sqlstate", None)
        raise TableError(f"{self.label}: {reason(state)}")

    def close(self) -> None:
        """End the transaction and the connection; a second call does nothing."""
        if not self.closed:
            self.closed = True
            if self.taken is not None:
                self.taken.close()
            with suppress(Exception):
                self.connection.close()


def reason(state: str | None) -> str:
    """What a server's error amounts to, by its SQLSTATE: five public characters, and nothing of its text.

    >>> reason("42501"), reason("22012")
    ('the user may not read it', 'the server cannot prepare it (SQLSTATE 22012)')
    """
    if state is None or not (state.isalnum() and state.isascii() and len(state) == 5):
        return "the server cannot be asked"
    for start in (state, state[:2]):
        if start in _REASONS:
            return _REASONS[start]
    return f"the server cannot prepare it (SQLSTATE {state})"


@dataclass(eq=False)
class _Taken:
    """A stream of batches and the cursor that holds it."""

    cursor: Any
    stream: Any = None

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch; StopIteration at the end."""
        return self.stream.read_next_batch()

    def close(self) -> None:
        """Give back both, wherever the stream stands; nothing is read from it after that."""
        stream, self.stream = self.stream, None
        with suppress(Exception):
            if stream is not None:
                stream.close()
        with suppress(Exception):
            self.cursor.close()


def _connection(address: Address) -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise UsageError(
            "postgresql: addresses need the package adbc-driver-postgresql: pip install 'margent[postgres]'"
        ) from None
    connection = None
    try:
        connection = dbapi.connect(address.place, autocommit=True)
    except Exception:
        connection = None
    if connection is None:
        # Whether it was the host, the service, the user or the password: the client's text may repeat any of them.
        raise TableError(
            f"{address.label}: cannot connect to the server; check host, port and database (or the service that "
            "PGSERVICE or service= names in ~/.pg_service.conf), the user, and the password in ~/.pgpass or "
            "PGPASSFILE; psql with the same settings says what is wrong"
        )
    return connection


def _rows(session: _Session, address: Address) -> Rows:
    nullable: dict[str, bool] = {}
    kinds: dict[str, str] = {}
    relation = None if address.table is None else relation_named(session, address.table)
    if relation is None:
        source = f"(\n{(address.query or '').rstrip().rstrip(';')}\n) AS margent_rows"
    else:
        source = relation.source
        found = columns_of(session, relation)
        nullable = {column: not required for column, required, _ in found}
        kinds = {column: type_name for column, _, type_name in found}
        for setting in (*_UNFILTERED * (not relation.derived), *_PLAIN_SCANS * relation.plain):
            session.say(f"SET LOCAL {setting}")
    described = session.described(f"SELECT * FROM {source}")  # noqa: S608 (see quoted)
    columns = tuple(postgres_column(each, nullable=nullable.get(each.name, True)) for each in described)
    condition = "" if address.where is None else f" WHERE {_condition(session, address.where, kinds)}"

    def prepared(chosen: Sequence[Column]) -> pa.Schema:
        statement = select(chosen, source, condition)
        # The server looks at permissions only when a statement begins: so it begins, and has no row to look at.
        session.told(f"SELECT * FROM ({statement}) AS margent_rows WHERE false")  # noqa: S608 (see quoted)
        return session.described(statement)

    return Rows(
        columns,
        prepared,
        lambda chosen: session.reader(select(chosen, source, condition)),
        session.close,
        derived=relation is None or relation.derived,
        steady=relation is not None and relation.plain and scans_plainly(session, source, condition),
        filtered=address.where is not None,
        called=VIEWED if relation is None else relation.called,
    )


def _condition(session: _Session, where: str, kinds: dict[str, str]) -> str:
    """The condition as SQL, once every constant has proved to be a value of its column's type."""

    def spelled(text: str) -> str:
        ((quoted_text,),) = session.told("SELECT pg_catalog.quote_literal($1)", [text])
        return str(quoted_text)

    return proved_condition(where, kinds, spelled, lambda made: session.told(f"SELECT {made} IS NULL"))
