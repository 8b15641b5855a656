"""Queries and views of PostgreSQL: read only, computed once, no row before the first pass; against a real server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from table_schemas import CANARY, DECLARED, names_only, read_rows, rows_of
from tests.postgres_server import Server, remade

from margent.errors import TableError, UsageError
from margent.tables.source import open_table


def test_views_are_queries(postgres: Server) -> None:
    remade(postgres, "base", "a int", "(1)", "(2)")
    postgres.run(
        "CREATE VIEW base_view AS SELECT * FROM base WHERE a > 1",
        "CREATE MATERIALIZED VIEW base_kept AS SELECT * FROM base WHERE a > 1",
    )
    for name in ("base_view", "base_kept"):
        with pytest.raises(UsageError, match="--query-is-row-wise"):
            open_table(postgres.table(name), names_only("a"))
        with open_table(postgres.table(name), names_only("a"), DECLARED) as source:
            assert source.from_query
            assert rows_of(source) == rows_of(source) == [(2,)]


def test_a_query_is_computed_once(postgres: Server) -> None:
    remade(postgres, "drawn", "a int", *(f"({n})" for n in range(500)))
    query = f"{postgres.place}?query=SELECT a, random() AS r FROM drawn ORDER BY random(); -- and a comment"
    with pytest.raises(UsageError, match="--query-is-row-wise"):
        open_table(query, names_only("a", "r"))
    with open_table(query.replace(" -- and a comment", ""), names_only("a", "r"), DECLARED) as source:
        assert rows_of(source) == rows_of(source)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE victim",
        "DELETE FROM victim RETURNING a",
        "SELECT 1 AS a; DROP TABLE victim",
        "WITH gone AS (DELETE FROM victim RETURNING a) SELECT a FROM gone",
        "SELECT a FROM victim) AS x; DROP TABLE victim; --",
        "COPY victim TO '/tmp/x'",
        "COMMIT",
        "SELECT nothing FROM nowhere",
        "",
    ],
)
def test_a_query_that_does_more_than_read_is_refused(postgres: Server, query: str) -> None:
    remade(postgres, "victim", "a int", "(1)")
    with pytest.raises(TableError) as caught:
        open_table(f"{postgres.place}?query={query}", names_only("a"), DECLARED)
    assert "postgres@" not in str(caught.value)
    assert postgres.run("SELECT count(*) FROM victim") == [(1,)]


def test_no_cell_of_a_query_that_fails_is_in_the_message(postgres: Server) -> None:
    remade(postgres, "failing", "a text", f"('{CANARY}')")
    query = f"{postgres.place}?query=SELECT a::int AS a FROM failing"
    with open_table(query, names_only("a"), DECLARED) as source:
        for _ in range(2):
            with pytest.raises(TableError) as caught:
                rows_of(source)
            assert CANARY not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"


def test_a_constant_that_is_no_value_of_its_column_is_refused(postgres: Server) -> None:
    address = remade(postgres, "constants", "a int, t text", f"(1, '{CANARY}')", "(2, 'it''s\\')")
    with pytest.raises(UsageError, match="no value of column 'a'") as caught:
        open_table(f"{address}&where=a = '{CANARY}'", names_only("a", "t"))
    assert CANARY not in str(caught.value)
    assert read_rows(f"{address}&where=t = 'it''s\\'", "a", "t") == [(2, "it's\\")]


def test_no_statement_reads_rows_before_the_first_pass(postgres: Server) -> None:
    """The server's own log: catalog, settings, preparation, plans, and statements that are kept empty."""
    address = remade(postgres, "looked_at", "a int", "(1)", "(2)")
    counted = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'looked_at'"
    before = postgres.run("SELECT pg_stat_force_next_flush()", counted)[0][0] or 0
    for asked in (f"{address}&where=a >= 2", f"{postgres.place}?query=SELECT a FROM looked_at"):
        start = len(postgres.log())
        with open_table(asked, names_only("a"), DECLARED) as source:
            statements = [line for line in postgres.log()[start:].splitlines() if "looked_at" in line]
            assert statements
            for line in statements:
                assert "WHERE false" in line or "pg_catalog.pg_class" in line or "parameters:" in line or not ran(line)
            assert not [line for line in statements if "COPY" in line and "WHERE false" not in line]
            assert rows_of(source)
        assert "COPY" in postgres.log()[start:], "and the pass is in the log"
    assert postgres.run("SELECT pg_stat_force_next_flush()", counted)[0][0] == before + 2 + 2


def ran(line: str) -> bool:
    """Whether a line of the log is of a statement that was run, not only prepared or planned."""
    return ("execute " in line or "statement: " in line) and ": EXPLAIN (FORMAT JSON, COSTS OFF) SELECT" not in line


def test_opening_reads_no_row(postgres: Server) -> None:
    address = remade(postgres, "untouched", "a int", *(f"({n})" for n in range(100)))
    counted = "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'untouched'"
    before = postgres.run("SELECT pg_stat_force_next_flush()", counted)
    open_table(f"{address}&where=a >= 2", names_only("a")).close()
    open_table(f"{postgres.place}?query=SELECT max(a) AS a FROM untouched", names_only("a"), DECLARED).close()
    assert postgres.run("SELECT pg_stat_force_next_flush()", counted) == before


def test_what_the_user_may_not_read_is_refused_before_the_charge(postgres: Server) -> None:
    remade(postgres, "closed", "a int, b int", "(1, 2)")
    postgres.run(
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'guest') THEN "
        f"CREATE ROLE guest LOGIN PASSWORD '{postgres.password}'; END IF; END $$",
        "GRANT SELECT (a) ON closed TO guest",
    )
    entry = Path(os.environ["PGPASSFILE"])
    entry.write_text(entry.read_text() + f"127.0.0.1:{postgres.port}:*:guest:{postgres.password}\n")
    address = f"postgresql://guest@127.0.0.1:{postgres.port}/postgres?table=public.closed"
    with open_table(address, names_only("a", dropped=("b",))) as source:
        assert rows_of(source) == [(1,)]
    with pytest.raises(TableError, match="may not read"):
        open_table(address, names_only("a", "b"))
