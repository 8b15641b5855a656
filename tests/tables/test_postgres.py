"""PostgreSQL: types and names, one snapshot in one order; against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from table_schemas import DECLARED, HOSTILE, names_only, read_rows, rows_of
from tests.postgres_server import Server, remade

from margent.counts.source import StreamedCounts
from margent.errors import SchemaError, TableError
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.tables.address import quoted
from margent.tables.database import BROKEN
from margent.tables.declared import declared_columns
from margent.tables.options import ReadOptions
from margent.tables.source import open_table

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
