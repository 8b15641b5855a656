"""Where a table in a database is, written as one text: ``duckdb:FILE?table=T``, ``postgresql://host/db?table=S.T``.

Such a text is an argument of a command, so it ends in histories and lists of processes: a password in it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from margent.errors import TableError, UsageError
from margent.tables.spark_session import spark_name

Engine = Literal["duckdb", "postgresql"]
Name = tuple[str, ...]

_ENGINES: dict[str, Engine] = {"duckdb": "duckdb", "postgresql": "postgresql", "postgres": "postgresql"}
_ROWS = ("table", "where", "query")
SERVER_OPTIONS = (
    *("service", "host", "port", "dbname", "user", "connect_timeout", "application_name", "target_session_attrs"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "gssencmode", "krbsrvname"),
)
"""What an address may tell a PostgreSQL client beside the rows that are meant; none of it is a secret."""

_FORMS = (
    "the forms are duckdb:FILE?table=T, postgresql:?service=NAME&table=SCHEMA.TABLE and "
    "postgresql://USER@HOST:PORT/DATABASE?table=SCHEMA.TABLE, each also with &where=CONDITION, or with query=SQL "
    "instead of the table"
)
_KEEP_IT_OUT = (
    "a database's address must not hold a password: it would stay in the shell's history and be seen in the list of "
    "processes. Leave it out here, and give it in a password file (~/.pgpass or PGPASSFILE), in a service file "
    "(PGSERVICE or service=NAME) or in PGPASSWORD; if it was typed already, change it"
)


@dataclass(frozen=True)
class Address:
    """Which rows of which database: a table by the parts of its name, with or without a condition, or a query.

    ``place`` is DuckDB's file, or the URI that a PostgreSQL client is given.

    Privacy: none of it is a row; condition and query may hold what is private all the same, and are never shown.
    """

    engine: Engine
    place: str = field(repr=False)
    table: Name | None = None
    where: str | None = field(default=None, repr=False)
    query: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """What messages call it: the engine and the table, and neither server, condition nor query.

        >>> read_address('duckdb:people.duckdb?table=main."2020.people"').label
        'duckdb table "main"."2020.people"'
        """
        if self.table is None:
            return f"{self.engine} query"
        return f"{self.engine} table {quoted_name(self.table)}"

    @property
    def name(self) -> str:
        """A short name for a column or a page: the table's own."""
        return "query" if self.table is None else self.table[-1]


def is_address(table: object) -> bool:
    """Whether a table was named by a database's address; a path object never is one.

    >>> is_address("duckdb:a.duckdb?table=t"), is_address("./duckdb:a"), is_address(Path("duckdb:a"))
    (True, False, False)
    """
    return isinstance(table, str) and table.partition(":")[0].lower() in _ENGINES and ":" in table


def table_named(text: str) -> str | Path:
    """What a person typed for a table: an address or a name of Spark's as it is, anything else as a path."""
    return text if is_address(text) or spark_name(text) is not None else Path(text)


def require_path(path: Path) -> None:
    """Refuse a path that does not exist; an address that was made one is not repeated, since it may tell a secret.

    Raises: UsageError for an address, TableError naming any other path.
    """
    if path.exists():
        return
    if is_address(str(path)):
        raise UsageError("a database's address is passed as text (str), not as a Path, which takes a slash out of it")
    raise TableError(f"{path}: there is no such file")


def shown(table: object) -> str:
    """A table as a message may name it.

    Raises: UsageError where an address cannot be read.

    >>> shown("postgresql://h/d?table=t&where=age > 90"), shown(Path("people.csv"))
    ('postgresql table "t"', 'people.csv')
    """
    return read_address(table).label if isinstance(table, str) and is_address(table) else str(table)


def hides(word: str) -> bool:
    """Whether a word is an address that no message repeats: one with a condition, a query or a server in it.

    One that cannot be read is one of these.

    >>> hides("duckdb:f?table=t"), hides("duckdb:f?table=t&where=a = 1"), hides("postgresql://h/d?table=t")
    (False, True, True)
    """
    if not is_address(word):
        return False
    try:
        address = read_address(word)
    except UsageError:
        return True
    place, _, options = address.place.partition("?")
    named = place in ("postgresql:", "postgresql://") and all(
        part.startswith("service=") for part in options.split("&")
    )
    return address.query is not None or address.where is not None or not (address.engine == "duckdb" or named)


def repeatable(text: str, words: Sequence[str]) -> str:
    """A text that may repeat some words as they were typed, with TABLE in the place of those that it must not.

    >>> repeatable("duckdb:f?query=q: no such file; see f", ["f", "duckdb:f?query=q"])
    'TABLE: no such file; see f'
    """
    for word in words:
        typed = word.partition("=")[2] if word.startswith("--") else word
        if hides(typed):
            for form in (typed, str(Path(typed))):  # a path takes a slash out of it
                text = text.replace(form, "TABLE").replace(repr(form)[1:-1], "TABLE")
    return text


def read_address(text: str) -> Address:
    """The parts of an address. Percent signs escape, as in any URI: ``%26`` is an ampersand, ``%25`` a percent sign.

    Privacy: none: nothing is opened; no message repeats what may be a secret.
    Raises: UsageError saying what is off and which forms there are.

    >>> address = read_address("postgresql://ann@db.example:5433/health?table=ward.stays&where=age >= 18")
    >>> address.place, address.table, address.where
    ('postgresql://ann@db.example:5433/health', ('ward', 'stays'), 'age >= 18')
    """
    scheme, _, rest = text.partition(":")
    engine = _ENGINES.get(scheme.lower())
    if engine is None:
        raise UsageError(f"this is no address of a database; {_FORMS}")
    place, _, options = rest.partition("?")
    if engine == "postgresql" and _user_part(place).count(":"):
        raise UsageError(_KEEP_IT_OUT)
    given = _options(options, engine)
    rows = {key: _decoded(value) for key, value in given.items() if key in _ROWS}
    if "\0" in "".join((*rows.values(), unquote(place))):
        raise UsageError("a database's address holds a NUL character, which no name, condition or query can")
    table, where, query = rows.get("table"), rows.get("where"), rows.get("query")
    if (table is None) == (query is None) or (query is not None and where is not None):
        raise UsageError(
            f"say either table=NAME (and, if wanted, where=CONDITION) or query=SQL in a database's address; {_FORMS}"
        )
    if engine == "duckdb":
        place = _decoded(place)
        if not place:
            raise UsageError(f"a DuckDB address must name a file; {_FORMS}")
    else:
        kept = "&".join(f"{key}={value}" for key, value in given.items() if key not in _ROWS)
        place = _server(place) + (f"?{kept}" if kept else "")
    return Address(engine, place, None if table is None else table_name(table), where, query)


def _server(place: str) -> str:
    """The URI's part before its options."""
    if place and not place.startswith("//"):
        raise UsageError(f"a PostgreSQL address goes on with // or ? after the colon; {_FORMS}")
    return f"postgresql:{place or '//'}"


def _user_part(place: str) -> str:
    """What stands before the last @ of an address's server, where a password would be."""
    return place.removeprefix("//").rpartition("@")[0]


def _options(text: str, engine: Engine) -> dict[str, str]:
    """The options as they are written, each at most once; values stay undecoded."""
    known = _ROWS if engine == "duckdb" else (*_ROWS, *SERVER_OPTIONS)
    given: dict[str, str] = {}
    for part in text.split("&") if text else ():
        key, equals, value = part.partition("=")
        if key.strip().lower() in ("password", "passfile", "sslpassword"):
            raise UsageError(_KEEP_IT_OUT)
        if key not in known or not equals:
            # What was typed is not repeated: it may be a piece of a password or of a condition.
            raise UsageError(
                f"an option of this database's address is not known; known are {', '.join(known)}, each as NAME=VALUE "
                "(write %26 for an ampersand inside of a value)"
            )
        if key in given:
            raise UsageError(f"{key} is given twice in a database's address")
        given[key] = value
    return given


def _decoded(text: str) -> str:
    """The text with its percent signs read; one that escapes nothing is refused rather than guessed at."""
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise UsageError("write %25 for a percent sign in a database's address: there % begins an escape, as in a URI")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("the escapes of a database's address are not UTF-8") from None


_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def table_name(text: str) -> Name:
    """The parts of a table's name; dots part them, and double quotes keep a part whole, as in SQL.

    Letters stay as they are, capital or not.

    Raises: UsageError where the text is no such name.

    >>> table_name('ward.stays'), table_name('"ward.a"."x""y"'), table_name("a b; --")
    (('ward', 'stays'), ('ward.a', 'x"y'), ('a b; --',))
    """
    parts: list[str] = []
    place = 0
    while place <= len(text) and len(parts) < 2:
        found = _PART.match(text, place)
        if found is None:
            break
        parts.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        place = found.end()
        if place == len(text):
            return tuple(parts)
        if text[place] != ".":
            break
        place += 1
    raise UsageError(
        "table= takes a table's name, NAME or SCHEMA.NAME; put double quotes around a part that holds a dot or a "
        'quote: table="2020.people" (and a doubled quote for a quote)'
    )


def quoted(name: str) -> str:
    """One SQL identifier: in double quotes, with those inside doubled.

    Privacy: none: names of tables and columns.
    Raises: UsageError where the name holds a NUL character, which no identifier can.

    >>> print(quoted('a"; DROP TABLE t; --'))
    "a""; DROP TABLE t; --"
    """
    if "\0" in name:
        raise UsageError("a name of a table or column holds a NUL character, which no database takes")
    return '"' + name.replace('"', '""') + '"'


def quoted_name(name: Name) -> str:
    """A table's name as SQL: its parts quoted, with dots between."""
    return ".".join(map(quoted, name))
