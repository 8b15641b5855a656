"""PostgreSQL: one snapshot in one order, types, names, secrets, and a server that goes away; against a real server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from table_schemas import CANARY, names_only, read_rows, rows_of
from test_duckdb import HOSTILE
from tests.postgres_server import Server, server_or_skip

from margent.counts.source import StreamedCounts
from margent.errors import MargentError, SchemaError, TableError, UsageError
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.tables.address import quoted
from margent.tables.database import BROKEN
from margent.tables.declared import declared_columns
from margent.tables.options import ReadOptions
from margent.tables.source import open_table

DECLARED = ReadOptions(query_is_row_wise=True)


def remade(server: Server, name: str, columns: str, *rows: str) -> str:
    """A table of the server with these rows, and its address."""
    server.run(f"DROP TABLE IF EXISTS {name} CASCADE", f"CREATE TABLE {name} ({columns})")
    if rows:
        server.run(f"INSERT INTO {name} VALUES {', '.join(rows)}")
    return server.table(name)


TYPES: dict[str, tuple[str, str, Any, Any]] = {
    "b": ("bool", "true", pa.bool_(), True),
    "i2": ("int2", "-7", pa.int16(), -7),
    "i8": ("int8", "9000000000", pa.int64(), 9_000_000_000),
    "f4": ("float4", "1.5", pa.float32(), 1.5),
    "n": ("numeric(9, 2)", "12.30", pa.decimal128(9, 2), "12.30"),
    "small": ("numeric(6, 6)", "0.000050", pa.decimal128(6, 6), "0.000050"),
    "wide": ("numeric", "'NaN'", pa.float64(), "NaN"),
    "huge": ("numeric(60, 2)", "1", pa.float64(), "1.00"),
    "tx": ("text", "'a''b'", pa.string(), "a'b"),
    "vc": ("varchar(5)", "'abc'", pa.string(), "abc"),
    "ch": ("char(5)", "'ab'", pa.string(), "ab"),
    "by": ("bytea", "'\\x4142'", pa.binary(), "AB"),
    "js": ("json", "'{\"a\":1}'", pa.string(), '{"a":1}'),
    "jb": ("jsonb", "'{\"a\":1}'", pa.string(), '{"a": 1}'),
    "u": ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", pa.string(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "m": ("mood", "'ok'", pa.string(), "ok"),
    "mo": ("money", "12.5", pa.string(), "12.50"),
    "ine": ("inet", "'10.0.0.1'", pa.string(), "10.0.0.1/32"),
    "o": ("oid", "4000000000", pa.int64(), "4000000000"),
    "bi": ("bit(3)", "'101'", pa.string(), "101"),
    "tz": ("timetz", "'03:04:05+02'", pa.string(), "03:04:05+02"),
    "p": ("posint", "5", pa.int32(), 5),
    "c": ('"char"', "'q'", pa.string(), "q"),
}


def test_every_type_arrives_as_something_that_can_be_coded(postgres: Server) -> None:
    postgres.run(
        "DROP TYPE IF EXISTS mood CASCADE",
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "DROP DOMAIN IF EXISTS posint CASCADE",
        "CREATE DOMAIN posint AS integer CHECK (value > 0)",
    )
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, *_) in TYPES.items())
    address = remade(postgres, "typed", columns, f"({', '.join(value for _, value, _, _ in TYPES.values())})")
    nothing = f"INSERT INTO typed VALUES ({', '.join('NULL' for _ in TYPES)})"
    postgres.run(nothing)
    with open_table(address, names_only(*TYPES)) as source:
        assert source.declared is not None
        declared = dict(zip(source.declared.names, source.declared.types, strict=True))
        rows = rows_of(source)
    assert declared == {name: kind for name, (_, _, kind, _) in TYPES.items()}
    assert dict(zip(TYPES, rows[0], strict=True)) == {name: cell for name, (*_, cell) in TYPES.items()}
    assert set(rows[1]) == {None}
    query = f"{postgres.place}?query=SELECT * FROM typed"
    assert declared_columns(query, DECLARED)[1].types == list(declared.values()), "a query declares the same"
    with open_table(query, names_only(*TYPES), DECLARED) as source:
        assert rows_of(source) == rows


def test_nested_columns_are_refused_where_they_are_wanted(postgres: Server) -> None:
    address = remade(postgres, "nested", "a int, l int[], i interval", "(1, '{1,2}', '1 day')")
    with pytest.raises(SchemaError) as caught:
        open_table(address, names_only("a", "l", "i"))
    assert [fault.pointer for fault in caught.value.faults] == ["l", "i"]
    with open_table(address, names_only("a", dropped=("l", "i"))) as source:
        assert rows_of(source) == [(1,)]


def test_days_beyond_the_calendar_are_clipped_like_any_other(postgres: Server) -> None:
    days = ["'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-01-01 BC'", "'2020-01-05'", "NULL"]
    moments = ["'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'", "'2020-01-05 06:00:00'", "NULL"]
    rows = [f"({day}, {moment}, {moment})" for day, moment in zip(days, moments, strict=True)]
    address = remade(postgres, "days", "d date, m timestamp, z timestamptz", *rows)
    bounds = {"minimum": "2020-01-01", "maximum": "2020-01-31"}
    clock = {"minimum": "2020-01-01T00:00:00", "maximum": "2020-01-31T00:00:00"}
    fields = [
        {"name": "d", "type": "date", "constraints": bounds, "margent": {"bins": 3}},
        {"name": "m", "type": "datetime", "constraints": clock, "margent": {"bins": 3, "timeZone": "naive"}},
        {"name": "z", "type": "datetime", "constraints": clock, "margent": {"bins": 3, "timeZone": "UTC"}},
    ]
    schema = schema_from_json({"missingValues": [""], "fields": fields, "margent": {"unit": "row"}})
    with open_table(address, schema) as source:
        counted = StreamedCounts(source, Codec(schema)).count([("d",), ("m",), ("z",)])
    for counts in counted:
        assert counts.tolist()[:4] == [3, 0, 2, 1], "first bin, last bin, missing"


def test_moments_do_not_hang_on_the_zone_of_anybody(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    address = remade(postgres, "moments", "z timestamptz", "('2020-07-01 12:00:00+02')")
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGDATESTYLE", "German")
    with open_table(address, names_only("z")) as source:
        ((moment,),) = rows_of(source)
    assert moment.utctimetuple()[:4] == (2020, 7, 1, 10)


@pytest.mark.parametrize("name", [name for name in HOSTILE if len(name.encode()) < 60])
def test_any_name_is_a_name_and_nothing_else(postgres: Server, name: str) -> None:
    table = f"{quoted(name)}.{quoted(name)}"
    postgres.run(
        f"DROP SCHEMA IF EXISTS {quoted(name)} CASCADE",
        f"CREATE SCHEMA {quoted(name)}",
        f"CREATE TABLE {table} ({quoted(name)} text, other int)",
        f"INSERT INTO {table} VALUES ('x', 1), ('y', 2)",
    )
    address = postgres.table(table.replace("%", "%25").replace("&", "%26"))
    assert declared_columns(address, ReadOptions())[0] == (name, "other")
    where = f"&where={quoted(name).replace('%', '%25')} = 'y'"
    for more, rows in (("", [("x",), ("y",)]), (where, [("y",)])):
        with open_table(address + more, names_only(name, dropped=("other",))) as source:
            assert rows_of(source) == rows
    postgres.run(f"DROP SCHEMA {quoted(name)} CASCADE")


# --- one snapshot, one order


def test_rows_that_others_write_between_passes_do_not_count(postgres: Server) -> None:
    address = remade(postgres, "moving", "a int", *(f"({n})" for n in range(2000)))
    expected = [(n,) for n in range(2000)]
    with open_table(address, names_only("a")) as source:
        assert rows_of(source) == expected
        postgres.run("INSERT INTO moving VALUES (9999)", "UPDATE moving SET a = -a", "DELETE FROM moving WHERE a < -50")
        postgres.run("VACUUM moving", "INSERT INTO moving SELECT generate_series(1, 5000)")
        assert rows_of(source) == expected
        with pytest.raises(Exception, match="lock timeout"):
            postgres.run("SET lock_timeout = '200ms'", "DROP TABLE moving")
    assert len(read_rows(address, "a")) != 2000


def test_what_was_written_after_opening_does_not_count_in_the_first_pass_either(postgres: Server) -> None:
    address = remade(postgres, "opened", "a int", "(1)")
    with open_table(address, names_only("a")) as source:
        postgres.run("INSERT INTO opened VALUES (2)")
        assert rows_of(source) == [(1,)]


@pytest.fixture
def preferences(postgres: Server) -> Iterator[list[str]]:
    """What the user's sessions prefer, until the test is over."""
    names = {
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
    }
    postgres.run(*(f"ALTER ROLE postgres SET {name} = '{value}'" for name, value in names.items()))
    yield list(names)
    postgres.run(*(f"ALTER ROLE postgres RESET {name}" for name in names))


def test_the_order_is_the_stored_one_whatever_the_server_would_like_better(
    postgres: Server, preferences: list[str]
) -> None:
    """An index fits the condition, and the user's own settings ask for it; statistics change between the passes."""
    remade(postgres, "ordered", "a int, b int")
    postgres.run(
        "INSERT INTO ordered SELECT n, (n * 7919) % 100003 FROM generate_series(1, 100000) g(n)",
        "CREATE INDEX ON ordered (b)",
    )
    plan = " ".join(line for (line,) in postgres.run("EXPLAIN SELECT a FROM ordered WHERE b BETWEEN 10 AND 9000"))
    assert "Index Scan" in plan, "otherwise this test shows nothing"
    with open_table(postgres.table("ordered", "&where=b BETWEEN 10 AND 9000"), names_only("a", "b")) as source:
        first = rows_of(source)
        postgres.run("ANALYZE ordered")
        assert rows_of(source) == first
    assert [a for a, _ in first] == sorted(a for a, _ in first)
    assert len(first) > 5000


def test_a_scan_begins_at_the_beginning_whoever_else_is_reading(postgres: Server) -> None:
    """A server lets a scan of a large table join another one where that stands, unless it is told not to."""
    remade(postgres, "shared_scan", "a int, filler text")
    postgres.run("INSERT INTO shared_scan SELECT n, repeat('x', 200) FROM generate_series(1, 150000) g(n)")
    with postgres.reading("SELECT * FROM shared_scan"):
        start = postgres.run("SELECT a FROM shared_scan LIMIT 1")[0][0]
        assert start != 1, "otherwise this test shows nothing"
        with open_table(postgres.table("shared_scan"), names_only("a", dropped=("filler",))) as source:
            for _ in range(2):
                cells = [cell for batch in source.batches() for cell in batch.column("a").to_pylist()]
                assert cells == list(range(1, 150_001))


def test_partitions_are_one_table(postgres: Server) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS parted",
        "CREATE TABLE parted (a int, k int) PARTITION BY LIST (k)",
        "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1)",
        "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2)",
        "INSERT INTO parted SELECT n, 1 + n % 2 FROM generate_series(1, 1000) g(n)",
    )
    rows = read_rows(postgres.table("parted"), "a", "k")
    assert sorted(rows) == [(n, 1 + n % 2) for n in range(1, 1001)]


def test_a_pass_that_is_left_halfway_does_not_hinder_the_next(postgres: Server) -> None:
    address = remade(postgres, "halfway", "a int")
    postgres.run("INSERT INTO halfway SELECT generate_series(1, 300000)")
    with open_table(address, names_only("a")) as source:
        batches = source.batches()
        next(batches)
        batches.close()
        assert sum(batch.num_rows for batch in source.batches()) == 300_000
        batches = source.batches()
        next(batches)  # left open
        assert sum(batch.num_rows for batch in source.batches()) == 300_000
        with pytest.raises(TableError) as caught:
            list(batches)
        assert str(caught.value) == BROKEN


# --- queries and views


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


# --- before the charge


def test_no_statement_reads_rows_before_the_first_pass(postgres: Server) -> None:
    """The server's own log of every statement: catalog, settings, preparation, and statements that are kept empty."""
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
    """Whether a line of the log is of a statement that was run, not only prepared."""
    return "execute " in line or "statement: " in line


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


# --- servers that are not there, and secrets


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://nobody@127.0.0.1:{port}/postgres",
        "postgresql://postgres@127.0.0.1:{port}/nowhere",
        "postgresql://postgres@127.0.0.1:1/postgres",
        "postgresql://postgres@no.such.host.invalid/postgres",
        "postgresql:?service=nosuchservice",
    ],
)
def test_a_server_that_cannot_be_reached_is_told_of_in_one_sentence(postgres: Server, place: str) -> None:
    address = place.format(port=postgres.port)
    more = "&" if "?" in address else "?"
    with pytest.raises(TableError, match="cannot connect to the server") as caught:
        open_table(f"{address}{more}table=t&connect_timeout=5", names_only("a"))
    assert caught.value.__context__ is None
    for secret in ("nobody", "nowhere", "invalid", "nosuchservice", postgres.password, str(postgres.port)):
        assert secret not in str(caught.value)


def test_a_service_file_holds_what_the_address_does_not(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remade(postgres, "served", "a int", "(1)")
    services = tmp_path / "services.conf"
    services.write_text(
        f"[ward]\nhost=127.0.0.1\nport={postgres.port}\nuser=postgres\ndbname=postgres\npassword={postgres.password}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.delenv("PGPASSFILE")
    assert read_rows("postgresql:?service=ward&table=served", "a") == [(1,)]
    monkeypatch.setenv("PGSERVICE", "ward")
    assert read_rows("postgresql:?table=public.served", "a") == [(1,)]


def test_a_table_that_is_not_there_is_told_by_its_nearest_name(postgres: Server) -> None:
    remade(postgres, "lower_case", "a int")
    with pytest.raises(TableError, match=r'no such table or view; it has "public"."lower_case"'):
        open_table(postgres.table("Lower_Case"), names_only("a"))


def test_an_encoding_in_which_a_cell_could_stop_the_run_is_refused(postgres: Server) -> None:
    postgres.run("DROP DATABASE IF EXISTS old", "CREATE DATABASE old ENCODING 'WIN1252' TEMPLATE template0")
    with pytest.raises(TableError, match="encoding is WIN1252"):
        open_table(postgres.table("t").replace("/postgres?", "/old?"), names_only("a"))


def test_bytes_that_are_no_text_are_cells_like_others(postgres: Server) -> None:
    postgres.run("DROP DATABASE IF EXISTS raw", "CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0")
    raw = Server(postgres.port, postgres.password, postgres.folder, postgres.programs)
    psql = [str(postgres.programs / "psql"), "-q", "-h", "127.0.0.1", "-p", str(raw.port), "-U", "postgres", "raw"]
    script = b"SET client_encoding TO SQL_ASCII; CREATE TABLE t (a text); INSERT INTO t VALUES ('x'), ('caf\xe9');"
    subprocess.run(psql, input=script, check=True)
    address = postgres.table("t").replace("/postgres?", "/raw?")
    with open_table(address, names_only("a")) as source:
        (batch,) = source.batches()
        assert batch.column("a").cast(pa.large_binary()).to_pylist() == [b"x", b"caf\xe9"]


@pytest.fixture
def doomed() -> Iterator[Server]:
    with server_or_skip() as server:
        yield server


def test_a_server_that_is_killed_halfway_ends_in_fixed_text_with_no_cell(doomed: Server, tmp_path: Path) -> None:
    address = remade(doomed, "t", "a text")
    doomed.run(f"INSERT INTO t SELECT '{CANARY}' || n FROM generate_series(1, 1000000) g(n)")
    with open_table(address, names_only("a")) as source:
        batches = source.batches()
        next(batches)
        os.kill(int((doomed.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        for attempt in (batches, source.batches()):
            with pytest.raises(TableError) as caught:
                list(attempt)
            assert str(caught.value) == BROKEN
            assert CANARY not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"
    doomed.start()  # so that it can be stopped


def test_a_package_that_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(UsageError, match=r"pip install 'margent\[postgres\]'"):
        open_table("postgresql://h/d?table=t", names_only("a"))


def test_a_path_made_of_an_address_is_refused_without_repeating_it() -> None:
    with pytest.raises(MargentError, match="not as a Path") as caught:
        open_table(Path(f"postgresql://ann:{CANARY}@h/d?table=t"), names_only("a"))
    assert CANARY not in str(caught.value)
