"""A database's address as one text, and conditions on rows: what is read, what is refused, what is never repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.cli import run
from margent.errors import UsageError
from margent.tables.address import (
    hides,
    is_address,
    quoted,
    read_address,
    repeatable,
    shown,
    table_name,
    table_named,
)
from margent.tables.row_filter import RowFilter
from margent.tables.spark_session import spark_name

SECRET = "hunter2canary"


@pytest.mark.parametrize(
    ("text", "place", "table", "where", "query"),
    [
        ("duckdb:a b.duckdb?table=t", "a b.duckdb", ("t",), None, None),
        ("duckdb:/x/a%3Fb.db?table=s.t&where=a = 'x%26y'", "/x/a?b.db", ("s", "t"), "a = 'x&y'", None),
        ("DuckDB:f?query=SELECT a + 1 AS b FROM t", "f", None, None, "SELECT a + 1 AS b FROM t"),
        ("postgresql:?service=ward&table=t", "postgresql://?service=ward", ("t",), None, None),
        ("postgresql://?service=w&table=t", "postgresql://?service=w", ("t",), None, None),
        ("postgres://h/d?table=a.b&sslmode=require", "postgresql://h/d?sslmode=require", ("a", "b"), None, None),
        ('postgresql:///d?table="a.b"."c""d"', "postgresql:///d", ("a.b", 'c"d'), None, None),
        ("postgresql://u@[::1]:5/d?query=select 1", "postgresql://u@[::1]:5/d", None, None, "select 1"),
    ],
)
def test_an_address_is_read(text: str, place: str, table: Any, where: Any, query: Any) -> None:
    found = read_address(text)
    assert (found.place, found.table, found.where, found.query) == (place, table, where, query)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ann:{SECRET}@db/d?table=t",
        f"postgresql://ann:{SECRET}@at@db/d?table=t",
        f"postgresql://ann:{SECRET}/x@db/d?table=t",
        f"postgresql://ann:@db/d?{SECRET}=x&table=t",
        f"postgresql:?service=w&password={SECRET}&table=t",
        f"postgresql:?service=w&PASSWORD={SECRET}&table=t",
        f"postgresql:?service=w&table=t&sslpassword={SECRET}",
    ],
)
def test_a_password_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError, match="must not hold a password") as caught:
        read_address(text)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [f"s3a://AKIA:{SECRET}@bucket/people", f"delta:s3a://AKIA:a/b{SECRET}@bucket/p", f"hdfs://me:{SECRET}@host:8020/p"],
)
def test_a_secret_in_the_name_of_a_spark_table_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError, match="must not hold a key or a password") as caught:
        spark_name(f"spark:{address}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "s3a://bucket/people",
        "abfss://box@account.dfs.core.windows.net/p",
        "hdfs://host:8020/a@b",
        "table:people",
        "a:b@c",
    ],
)
def test_ports_containers_and_paths_are_no_secrets(address: str) -> None:
    assert spark_name(f"spark:{address}") == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("duckdb:f", "say either table=NAME"),
        ("duckdb:f?table=t&query=q", "say either table=NAME"),
        ("duckdb:f?query=q&where=a=1", "say either table=NAME"),
        ("duckdb:?table=t", "must name a file"),
        (f"duckdb:f?table=t&{SECRET}=x", "is not known"),
        (f"duckdb:f?table=t&{SECRET}", "is not known"),
        ("duckdb:f?service=w&table=t", "is not known"),
        (f"postgresql://h/d?table=t&options={SECRET}", "is not known"),
        ("postgresql:h/d?table=t", "goes on with //"),
        ("duckdb:f?table=t&table=u", "twice"),
        (f"duckdb:f?table=t&where=a = '100% {SECRET}'", "write %25"),
        (f"duckdb:f?table=t&where={SECRET}%FF", "not UTF-8"),
        (f"duckdb:f?table=t&where={SECRET}%00", "NUL"),
        ("duckdb:f?table=", "NAME or SCHEMA.NAME"),
        ("duckdb:f?table=a.b.c", "NAME or SCHEMA.NAME"),
        ('duckdb:f?table="a', "NAME or SCHEMA.NAME"),
        ('duckdb:f?table=a"b"', "NAME or SCHEMA.NAME"),
        ("duckdb:f?table=a.", "NAME or SCHEMA.NAME"),
        ("mysql://h/d?table=t", "no address"),
    ],
)
def test_what_is_no_address_is_refused_with_the_forms(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_address(text)
    assert SECRET not in str(caught.value)


def test_an_address_shows_neither_server_nor_condition_nor_query() -> None:
    for text in (
        f"postgresql://{SECRET}@{SECRET}/{SECRET}?table=s.t&where=a = '{SECRET}'",
        f"duckdb:f?query=SELECT '{SECRET}'",
    ):
        assert SECRET not in repr(read_address(text)) + shown(text) + read_address(text).label


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("duckdb:f?table=t", False),
        ("postgresql:?service=ward&table=s.t", False),
        ("people.csv", False),
        ("spark:table:t", False),
        (f"duckdb:f?table=t&where=a = '{SECRET}'", True),
        (f"DuckDB:f?query=SELECT '{SECRET}'", True),
        (f"postgresql:?service=ward&table=s.t&where=a = {SECRET}", True),
        (f"postgres://{SECRET}/d?table=t", True),
        (f"postgresql:?service=ward&user={SECRET}&table=t", True),
        (f"postgresql://u:{SECRET}@h/d?table=t", True),
        (f"duckdb:f?{SECRET}", True),
    ],
)
def test_no_message_of_a_command_repeats_what_an_address_hides(
    text: str, hidden: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hides(text) == hidden
    assert (repeatable(f"see {text}", [text]) == "see TABLE") == hidden
    assert not hidden or SECRET not in repeatable(f"see {text!r}", [text])
    # Where a path or a number belongs an address is named like any other word.
    for wrong in (
        ["schema", "check", text],
        ["schema", "check", f"{text}.json", "s.json"],
        ["plan", "s.json", f"--epsilon={text}"],
        ["synthesize", text, "--schema", text, "-o", text],
        [text],
    ):
        assert run(wrong) in (2, 3)
        said = capsys.readouterr()
        assert SECRET not in said.out + said.err


def test_paths_and_names_that_only_begin_alike_are_no_addresses() -> None:
    for text in ("people.csv", "duckdb", "./duckdb:x", "C:\\people.csv", "postgresql.csv"):
        assert not is_address(text)
        assert table_named(text) == Path(text)
    assert table_named("postgresql://h/d?table=t") == "postgresql://h/d?table=t"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1), min_size=1, max_size=2))
def test_any_name_can_be_written_and_is_read_back(parts: list[str]) -> None:
    assert table_name(".".join(map(quoted, parts))) == tuple(parts)


# --- conditions

COLUMNS = {"a": "INTEGER", "b": "VARCHAR", "odd \"name'": "DOUBLE"}
CELLS: list[tuple[Any, ...]] = [
    (a, b, c) for a in (None, -1, 0, 3) for b in (None, "", "x", "it's", "OR 1=1") for c in (None, 0.5, 2.0)
]

constants = {
    "a": st.sampled_from([-1, 0, 3, 7]),
    "b": st.sampled_from(["", "x", "it's", "OR 1=1", "'; DROP TABLE t; --"]),
    "odd \"name'": st.sampled_from([0.5, 2.0, 1e-3]),
}


def spelled(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def known(value: bool | None, negate: bool) -> bool | None:
    return value if value is None or not negate else not value


@st.composite
def comparisons(draw: Any) -> tuple[str, Any]:
    """A comparison as text, and what it is of a row, in logic of three values."""
    place = draw(st.integers(0, 2))
    column = list(COLUMNS)[place]
    name = quoted(column) if place == 2 or draw(st.booleans()) else draw(st.sampled_from([column, column.upper()]))
    kind, negate = draw(st.sampled_from(["is", "in", "between", "="])), draw(st.booleans())
    no = "not " if negate else ""
    one = draw(constants[column])
    if kind == "is":
        return f"{name} Is {no}Null", lambda row: (row[place] is None) != negate
    if kind == "in":
        listed = [one, *draw(st.lists(constants[column], max_size=2))]
        text = f"{name} {no}IN ({','.join(map(spelled, listed))})"
        return text, lambda row: None if row[place] is None else known(row[place] in listed, negate)
    if kind == "between":
        other = draw(constants[column])
        text = f"{name} {no}between {spelled(one)} and {spelled(other)}"
        return text, lambda row: None if row[place] is None else known(one <= row[place] <= other, negate)
    sign, holds = draw(
        st.sampled_from(
            [
                ("=", lambda x, y: x == y),
                ("<>", lambda x, y: x != y),
                ("!=", lambda x, y: x != y),
                ("<", lambda x, y: x < y),
                ("<=", lambda x, y: x <= y),
                (">", lambda x, y: x > y),
                (">=", lambda x, y: x >= y),
            ]
        )
    )
    return f"{name}{sign} {spelled(one)}", lambda row: None if row[place] is None else holds(row[place], one)


def joined(parts: list[tuple[str, Any]], word: str, decides: bool) -> tuple[str, Any]:
    def value(row: Any) -> bool | None:
        found = [part(row) for _, part in parts]
        return decides if decides in found else None if None in found else not decides

    return "(" + f" {word} ".join(text for text, _ in parts) + ")", value


def negated(part: tuple[str, Any]) -> tuple[str, Any]:
    return f"NOT {part[0]}", lambda row: known(part[1](row), True)


conditions = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: joined(parts, "and", False)),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: joined(parts, "OR", True)),
        inner.map(negated),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def connection() -> Any:
    with duckdb.connect() as made:
        made.execute('CREATE TABLE t (n INTEGER, a INTEGER, b VARCHAR, "odd ""name\'" DOUBLE)')
        made.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(CELLS)])
        yield made


@settings(max_examples=300, deadline=None)
@given(condition=conditions)
def test_a_condition_keeps_the_rows_it_says_of_every_table(condition: tuple[str, Any], connection: Any) -> None:
    text, holds = condition
    sql = RowFilter.read(text).as_sql(
        list(COLUMNS), lambda word, column: f"CAST('{word.replace(chr(39), 2 * chr(39))}' AS {COLUMNS[column]})"
    )
    found = [n for (n,) in connection.execute(f"SELECT n FROM t WHERE {sql} ORDER BY n").fetchall()]
    assert found == [n for n, row in enumerate(CELLS) if holds(row) is True]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a =",
        "a = b",
        "a = 1 b = 2",
        "a = (select 1)",
        "a > (select avg(a) from t)",
        "a in (select a from t)",
        "a in ()",
        "length(b) = 2",
        "a = 1; drop table t",
        "a = 1 -- x",
        "a = 1 /* x */",
        "a = $1",
        "a + 1 = 2",
        "a = 1 or 1 = 1",
        "not",
        "(a = 1",
        "a = 1)",
        "a not = 1",
        "a is 1",
        "a between 1",
        "a like 'x'",
        "a = null",
        "rowid = 1",
        "nowhere = 1",
        "'a' = 1",
        "a = 'x",
        "a::text = 'x'",
        "exists (select 1)",
        "a = 1 union select 2",
        "(" * 40 + "a = 1" + ")" * 40,
        "not " * 5000 + "a = 1",
    ],
)
def test_whatever_could_look_beyond_the_row_is_no_condition(text: str) -> None:
    with pytest.raises(UsageError, match="where="):
        RowFilter.read(text).as_sql(list(COLUMNS), lambda word, column: "?")


def test_a_name_that_fits_two_columns_in_other_letters_is_refused() -> None:
    columns = ["A", "a"]
    assert RowFilter.read("a = 1").as_sql(columns, lambda word, column: word) == '("a" = 1)'
    with pytest.raises(UsageError, match="does not have"):
        RowFilter.read('"aA" = 1').as_sql(["aa", "AA"], lambda word, column: word)
    assert RowFilter.read("NAME = 'it''s'").as_sql(["name"], lambda word, column: f"[{word}]") == '("name" = [it\'s])'
