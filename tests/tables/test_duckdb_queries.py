"""Queries and views in DuckDB files: one SELECT, computed once, of this file alone, no row before the first pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from duckdb_files import file_with
from table_schemas import CANARY, DECLARED, names_only, read_rows, rows_of

from margent.errors import TableError, UsageError
from margent.tables import duckdb_rows
from margent.tables.options import ReadOptions
from margent.tables.source import open_table


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE t",
        "INSERT INTO t VALUES (1)",
        "SELECT 1 AS a; SELECT 2",
        "SELECT * FROM t; DROP TABLE t",
        "COPY t TO 'x.csv'",
        "ATTACH 'x'",
        "SET threads = 1",
        "PIVOT t ON a USING count(*)",
        "SELEC",
        "",
        ";",
        "-- a comment",
    ],
)
def test_only_one_select_is_a_query(tmp_path: Path, query: str) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)")
    with pytest.raises(UsageError, match="must be one SELECT"):
        open_table(f"duckdb:{file}?query={query}", names_only("a"), DECLARED)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM '{folder}/secret.csv'",
        "SELECT content AS a FROM read_text('{folder}/secret.csv')",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SELECT * FROM nowhere",
        "SELECT nothing FROM t",
    ],
)
def test_a_query_reaches_the_file_and_nothing_beside_it(tmp_path: Path, query: str) -> None:
    (tmp_path / "secret.csv").write_text(f"a\n{CANARY}\n")
    file = file_with(tmp_path, "CREATE TABLE t (a INT)")
    with pytest.raises(TableError, match="cannot prepare it") as caught:
        open_table(f"duckdb:{file}?query={query.format(folder=tmp_path)}", names_only("a"), DECLARED)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_query_is_computed_once_in_the_first_pass(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t AS SELECT i AS a FROM range(1000) r(i)")
    query = f"duckdb:{file}?query=SELECT a, random() AS r FROM t ORDER BY random() -- a comment; and more"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    options = ReadOptions(query_is_row_wise=True, spool_folder=scratch)
    with open_table(query, names_only("a", "r"), options) as source:
        rows = rows_of(source)
        assert rows_of(source) == rows
        assert sorted(row[0] for row in rows) == list(range(1000))
        assert source.from_query
    assert list(scratch.iterdir()) == []


def test_a_query_that_may_not_be_copied_is_refused(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)")
    with pytest.raises(UsageError, match="spool"):
        open_table(
            f"duckdb:{file}?query=SELECT * FROM t", names_only("a"), ReadOptions(query_is_row_wise=True, spool=False)
        )


def test_views_are_queries_and_tables_are_not(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)", "CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(UsageError, match="--query-is-row-wise"):
        open_table(f"duckdb:{file}?table=v", names_only("a"))
    for table, queried in (("v", True), ("t", False)):
        with open_table(f"duckdb:{file}?table={table}", names_only("a"), DECLARED) as source:
            assert source.from_query is queried
            assert rows_of(source) == []


def test_no_cell_of_a_query_that_fails_is_in_the_message(tmp_path: Path) -> None:
    file = file_with(tmp_path, f"CREATE TABLE t AS SELECT '{CANARY}' AS a")
    with open_table(f"duckdb:{file}?query=SELECT a::INT AS a FROM t", names_only("a"), DECLARED) as source:
        for _ in range(2):
            with pytest.raises(TableError) as caught:
                rows_of(source)
            assert CANARY not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"


def test_a_condition_with_a_constant_of_another_type_is_refused_before_any_row_is_read(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT, b VARCHAR)", f"INSERT INTO t VALUES (1, '{CANARY}')")
    with pytest.raises(UsageError, match="no value of column 'a'") as caught:
        open_table(f"duckdb:{file}?table=t&where=a = 'x{CANARY}'", names_only("a", "b"))
    assert CANARY not in str(caught.value)
    # Numbers are texts where the column is text: no cell is turned into a number, so that none can fail.
    assert read_rows(f"duckdb:{file}?table=t&where=b <> 5", "a", "b") == [(1, CANARY)]


def test_no_row_is_asked_for_before_the_first_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_with(tmp_path, "CREATE TABLE t AS SELECT 1 AS a", "CREATE VIEW v AS SELECT * FROM t")
    log = tmp_path / "log"
    original = duckdb_rows._connection

    def logged(path: Path, scratch: str | None) -> Any:
        connection = original(path, scratch)
        return Watched(connection, log)

    monkeypatch.setattr(duckdb_rows, "_connection", logged)
    for address in ("table=t&where=a >= 1", "table=v", "query=SELECT a FROM t"):
        log.write_text("")
        with open_table(f"duckdb:{file}?{address}", names_only("a"), DECLARED) as source:
            assert not [line for line in log.read_text().splitlines() if not may_be_asked(line)]
            assert rows_of(source) == [(1,)]
            assert "pass: " in log.read_text()


def may_be_asked(line: str) -> bool:
    """A catalog function, a constant, or a statement that is bound and not run."""
    return line.startswith("bound: ") or "duckdb_" in line or line == "run: SELECT CAST('1' AS INTEGER)"


class Watched:
    """A connection that writes down what is run, and what is bound only; a relation's rows count as a pass."""

    def __init__(self, inner: Any, log: Path) -> None:
        self.inner, self.log = inner, log

    def note(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text.replace("\n", " ") + "\n")

    def execute(self, sql: str, *rest: Any) -> Any:
        self.note(f"run: {sql}")
        return self.inner.execute(sql, *rest)

    def sql(self, sql: str) -> Any:
        self.note(f"bound: {sql}")
        return WatchedRelation(self.inner.sql(sql), self)

    def cursor(self) -> Any:
        return Watched(self.inner.cursor(), self.log)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class WatchedRelation:
    def __init__(self, inner: Any, by: Watched) -> None:
        self.inner, self.by = inner, by

    def limit(self, rows: int) -> Any:
        assert rows == 0
        return self.inner.limit(0)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in ("columns", "types"):
            self.by.note("pass: rows")
        return found
