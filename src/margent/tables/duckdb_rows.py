"""DuckDB files: opened read-only and cut off from everything beside them; a table's rows come in the order stored."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margent.errors import TableError, UsageError
from margent.machine import block_rows
from margent.tables.address import Address, Name, quoted, quoted_name
from margent.tables.database import Column, Rows, select
from margent.tables.gathering import gathered
from margent.tables.options import ReadOptions
from margent.tables.row_filter import proved_condition
from margent.tables.scratch import require_scratch
from margent.tables.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

_MEMORY_MIB, _COLUMN_MIB, _QUERY_MIB = 256, 2, 1024
"""What DuckDB may keep of the file's blocks: in all, and beside that for each column of the widest table, of which
every thread holds a block or more; and for a query, which goes on in the temporary folder."""
_THREADS = 2
_VECTOR_ROWS = 2048
"""Rows that DuckDB works on at a time."""
_AS_TEXT = ("BIT", "TIME WITH TIME ZONE", "TIMETZ", "BIGNUM", "VARINT")
"""Types that arrive in Arrow as another type's bytes, or without a part of what they hold."""
_WIDEST, _WHOLE = 38, ("HUGEINT", "UHUGEINT")
"""Digits of the widest decimal in Arrow, and the whole numbers that are handed over as such and may have more."""


def connect_duckdb(address: Address, options: ReadOptions) -> Rows:
    """The table, view or query of a DuckDB file, with its columns as the catalog declares them.

    The connection can read this file and nothing else: no other file, no network, no extension, no setting.

    Privacy: none spent, no row read: the catalog only, and the binding of a query.
    Raises: UsageError when the package is absent, TableError when the file cannot be opened or has no such table.
    """
    path = Path(address.place)
    files = tuple(Snapshot.of(file) for file in _files(path))
    if address.table is not None:
        session = _Session(_connection(path, None), path, files, None)
        with _closed_on_error(session):
            if not _table(session, address.table)[1]:
                return _rows(session, address)
        session.close()  # a view is a query, and needs room beside memory
    require_scratch(options.spool_folder)
    scratch = tempfile.mkdtemp(prefix="margent-", dir=options.spool_folder)
    try:
        session = _Session(_connection(path, scratch), path, files, scratch)
    except BaseException:
        _swept(scratch)
        raise
    with _closed_on_error(session):
        return _rows(session, address)
    raise AssertionError


@dataclass(frozen=True, eq=False)
class _Session:
    connection: Any
    path: Path
    files: tuple[Snapshot, ...]
    scratch: str | None

    def told(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Rows of the catalog."""
        found: list[tuple[Any, ...]] = self.connection.execute(sql, list(values)).fetchall()
        return found

    def require_same(self) -> None:
        """Raise TableError with fixed text where the file, or its log, is not the one that was opened."""
        for file in self.files:
            file.check()

    def close(self) -> None:
        """Give back the file and the temporary folder; a second call does nothing."""
        self.connection.close()
        _swept(self.scratch)


@dataclass(frozen=True, eq=False)
class _Taken:
    """A stream of batches and the cursor that it needs as long as it is read."""

    cursor: Any
    stream: Any
    blocks: Iterator[pa.RecordBatch]

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch; StopIteration at the end."""
        return next(self.blocks)

    def close(self) -> None:
        """Give back both."""
        self.stream.close()
        self.cursor.close()


@contextmanager
def _closed_on_error(session: _Session) -> Iterator[None]:
    try:
        yield
    except BaseException:
        session.close()
        raise


def _files(path: Path) -> list[Path]:
    log = path.with_name(f"{path.name}.wal")
    return [path, log] if log.exists() else [path]


def _swept(scratch: str | None) -> None:
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)


def _connection(path: Path, scratch: str | None) -> Any:
    try:
        import duckdb
    except ImportError:
        raise UsageError("duckdb: addresses need the package duckdb: pip install 'margent[duckdb]'") from None
    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "true",
        "temp_directory": scratch or "",
    }
    connection = None
    try:
        connection = duckdb.connect(str(path), read_only=True, config=config)
        _settle(connection, scratch)
    except Exception:
        connection = None
    if connection is None:
        raise TableError(
            f"{path}: cannot be opened as a DuckDB database; is it one, of no newer version than the package duckdb "
            "here, and is it open in no program for writing, and in this one not at all?"
        )
    return connection


def _settle(connection: Any, scratch: str | None) -> None:
    """Fix the settings for good; a file that this program reads twice at once has them already."""
    if connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]:
        return
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Else a batch with more than two gigabytes of text is an error, which rows would decide.
    connection.execute("SET GLOBAL arrow_large_buffer_size = true")
    connection.execute(f"SET GLOBAL memory_limit = '{_memory_mib(connection, scratch)}MiB'")
    if scratch is None:
        connection.execute(f"SET GLOBAL threads = {_THREADS}")
    connection.execute("SET GLOBAL lock_configuration = true")


def _memory_mib(connection: Any, scratch: str | None) -> int:
    """Room for blocks, by the columns of the widest table of the file: a public fact."""
    ((columns,),) = connection.execute(
        "SELECT coalesce(max(columns), 0) FROM (SELECT count(*) AS columns FROM duckdb_columns() WHERE NOT internal "
        "AND database_name = current_database() GROUP BY schema_name, table_name)"
    ).fetchall()
    return (_MEMORY_MIB if scratch is None else _QUERY_MIB) + _COLUMN_MIB * _THREADS * int(columns)


def _rows(session: _Session, address: Address) -> Rows:
    derived = address.table is None
    if address.table is not None:
        name, derived = _table(session, address.table)
        source, nullable = quoted_name(name), _nullable(session, name)
    else:
        source, nullable = f"(\n{_one_select(session, address.query or '')}\n) AS margent_rows", {}
    relation = _bound(session, f"SELECT * FROM {source}", address)  # noqa: S608 (see quoted)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    declared = _schema(relation)
    columns = tuple(_column(each, kinds.get(each.name, ""), nullable.get(each.name, True)) for each in declared)
    condition = "" if address.where is None else f" WHERE {_condition(session, address.where, kinds)}"

    def described(chosen: Sequence[Column]) -> pa.Schema:
        return _checked(lambda: _schema(session.connection.sql(select(chosen, source, condition))), address)

    def reader(chosen: Sequence[Column]) -> _Taken:
        cursor = session.connection.cursor()  # one for each pass, since passes may overlap
        relation = cursor.sql(select(chosen, source, condition))
        # The name until DuckDB 1.4.
        take = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        few = _spelled_out(chosen)
        stream = take(_VECTOR_ROWS if few else block_rows(len(chosen)))
        return _Taken(cursor, stream, gathered(stream) if few else stream)

    return Rows(
        columns,
        described,
        reader,
        session.close,
        derived=derived,
        steady=not derived,
        filtered=address.where is not None,
        require_same=session.require_same,
    )


def _spelled_out(columns: Sequence[Column]) -> bool:
    """Whether rows may take any number of bytes: a text that many share is kept once, and given with each of them.

    Lists of values (ENUM) come whole with every batch, so that batches with a long one had better be large.
    """
    import pyarrow as pa

    kinds = [each.declared for each in columns]
    long_lists = (pa.types.is_dictionary(kind) and kind.index_type != pa.uint8() for kind in kinds)
    return any(kind in (pa.string(), pa.binary()) for kind in kinds) and not any(long_lists)


def _table(session: _Session, name: Name) -> tuple[Name, bool]:
    """The table's schema and name as the catalog has them, and whether it is a view."""
    found = session.told(
        "SELECT schema_name, table_name, false FROM duckdb_tables() WHERE NOT internal "
        "AND database_name = current_database() UNION ALL "
        "SELECT schema_name, view_name, true FROM duckdb_views() WHERE NOT internal "
        "AND database_name = current_database()"
    )
    wanted = name if len(name) == 2 else ("main", *name)
    for schema, table, view in found:
        if (schema, table) == wanted:
            return wanted, bool(view)
    near = sorted(
        quoted_name((schema, table) if len(name) == 2 or schema != "main" else (table,))
        for schema, table, _ in found
        if table.casefold() == name[-1].casefold()
    )
    hint = f"; it has {', '.join(near)}" if near else ""
    raise TableError(
        f"{session.path}: there is no table or view {quoted_name(name)}{hint}: names are taken letter by letter"
    )


def _nullable(session: _Session, name: Name) -> dict[str, bool]:
    found = session.told(
        "SELECT column_name, is_nullable FROM duckdb_columns() WHERE database_name = current_database() "
        "AND schema_name = ? AND table_name = ?",
        name,
    )
    return {column: bool(nullable) for column, nullable in found}


def _one_select(session: _Session, query: str) -> str:
    """The query without its semicolon, where it is one statement that only reads.

    PIVOT over values that are not listed is none: DuckDB looks its columns up in the rows before it runs.
    """
    import duckdb

    statements = None
    try:
        statements = session.connection.extract_statements(query)
    except Exception:
        statements = None
    if statements is None or len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            "the query= of a duckdb: address must be one SELECT statement that DuckDB understands (a PIVOT must list "
            "its values)"
        )
    return query.rstrip().rstrip(";")


def _bound(session: _Session, sql: str, address: Address) -> Any:
    return _checked(lambda: session.connection.sql(sql), address)


def _checked(look: Callable[[], Any], address: Address) -> Any:
    """What ``look`` finds before the rows are touched, or one fixed sentence: DuckDB's own may repeat constants."""
    found = None
    try:
        found = look()
    except UsageError:
        raise
    except Exception:
        found = None
    if found is None:
        raise TableError(
            f"{address.label}: DuckDB cannot prepare it: check the names in it, and that it needs no other file and "
            "no extension; try it with DuckDB's own shell, opened with -readonly"
        )
    return found


def _schema(relation: Any) -> pa.Schema:
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(relation.limit(0)).schema


def _column(field: pa.Field, kind: str, nullable: bool) -> Column:
    """A column and how to read it so that no cell fails on the way: as it is, or as DuckDB's text of it."""
    import pyarrow as pa

    text = f"CAST({quoted(field.name)} AS VARCHAR)"
    if kind in _WHOLE or (pa.types.is_decimal(field.type) and field.type.precision == _WIDEST):
        declared = field.type if kind not in _WHOLE else pa.decimal128(_WIDEST, 0)
        return Column(field.name, text, declared, nullable)
    if kind.startswith(_AS_TEXT) and not pa.types.is_nested(field.type):
        return Column(field.name, text, pa.string(), nullable)
    wide = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return Column(field.name, quoted(field.name), wide.get(field.type, field.type), nullable)


def _condition(session: _Session, where: str, kinds: dict[str, str]) -> str:
    """The condition as SQL, once every constant has proved to be a value of its column's type."""

    def spelled(text: str) -> str:
        return f"'{text.replace(chr(39), 2 * chr(39))}'"

    return proved_condition(where, kinds, spelled, lambda made: session.told(f"SELECT {made}"))
