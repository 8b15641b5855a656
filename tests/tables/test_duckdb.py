"""DuckDB files: what is read, in which order, and what no name or other program can make of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from duckdb_files import file_with
from table_schemas import CANARY, HOSTILE, names_only, read_rows, rows_of

from margent.errors import MargentError, SchemaError, TableError, UsageError
from margent.tables import duckdb_rows
from margent.tables.address import quoted
from margent.tables.database import BROKEN
from margent.tables.declared import declared_columns
from margent.tables.options import ReadOptions
from margent.tables.snapshot import CHANGED
from margent.tables.source import open_table


def test_every_type_arrives_as_something_that_can_be_coded(tmp_path: Path) -> None:
    columns = {
        "b": ("BOOLEAN", "true", True),
        "u": ("UTINYINT", "200", 200),
        "h": ("HUGEINT", "-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"),
        "uh": ("UHUGEINT", "340282366920938463463374607431768211455", "340282366920938463463374607431768211455"),
        "w": ("DECIMAL(38, 2)", "1.50", "1.50"),
        "f": ("FLOAT", "'nan'", None),
        "s": ("VARCHAR", "'x'", "x"),
        "bt": ("BIT", "'0101'", "0101"),
        "tt": ("TIMETZ", "'03:04:05+02'", "03:04:05+02"),
        "id": ("UUID", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "m": ("ENUM('lo', 'hi')", "'hi'", "hi"),
        "j": ("JSON", "'{\"a\": 1}'", '{"a": 1}'),
    }
    declared = ", ".join(f"{name} {kind}" for name, (kind, _, _) in columns.items())
    values = ", ".join(value for _, value, _ in columns.values())
    file = file_with(tmp_path, f"CREATE TABLE t ({declared})", f"INSERT INTO t VALUES ({values})")
    with open_table(f"duckdb:{file}?table=t", names_only(*columns)) as source:
        (row,) = rows_of(source)
        assert source.declared is not None
        assert source.declared.field("w").type == pa.decimal128(38, 2)
        assert source.declared.field("bt").type == pa.string()
    found = dict(zip(columns, row, strict=True))
    assert found.pop("f") != found.get("f", 0)  # a number that is none
    assert found == {name: value for name, (_, _, value) in columns.items() if name != "f"}


def test_infinite_days_and_moments_are_cells_like_others(tmp_path: Path) -> None:
    file = file_with(
        tmp_path,
        "CREATE TABLE t (d DATE, m TIMESTAMP, z TIMESTAMPTZ)",
        "INSERT INTO t VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity')",
        "INSERT INTO t VALUES ('2020-01-05', '2020-01-05 06:00:00', '2020-01-05 06:00:00+00')",
    )
    from margent.counts.source import StreamedCounts
    from margent.schema.codec import Codec
    from margent.schema.read import schema_from_json

    bounds = {"minimum": "2020-01-01", "maximum": "2020-01-31"}
    moments = {"minimum": "2020-01-01T00:00:00", "maximum": "2020-01-31T00:00:00"}
    fields = [
        {"name": "d", "type": "date", "constraints": bounds, "margent": {"bins": 3}},
        {"name": "m", "type": "datetime", "constraints": moments, "margent": {"bins": 3, "timeZone": "naive"}},
        {"name": "z", "type": "datetime", "constraints": moments, "margent": {"bins": 3, "timeZone": "UTC"}},
    ]
    schema = schema_from_json({"fields": fields, "margent": {"unit": "row"}})
    with open_table(f"duckdb:{file}?table=t", schema) as source:
        counted = StreamedCounts(source, Codec(schema)).count([("d",), ("m",), ("z",)])
    for counts in counted:
        assert counts.tolist()[:3] == [2, 0, 1], "clipped to the nearest bin, as any number out of bounds"


def test_nested_columns_are_refused_where_they_are_wanted_and_no_matter_elsewhere(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t AS SELECT 1 AS a, [1, 2] AS l, {'x': 1} AS s, INTERVAL 1 DAY AS i")
    with pytest.raises(SchemaError) as caught:
        open_table(f"duckdb:{file}?table=t", names_only("a", "l", "s", "i"))
    assert [fault.pointer for fault in caught.value.faults] == ["l", "s", "i"]
    assert read_rows_dropping(f"duckdb:{file}?table=t") == [(1,)]


def read_rows_dropping(address: str) -> list[tuple[Any, ...]]:
    with open_table(address, names_only("a", dropped=("l", "s", "i"))) as source:
        return rows_of(source)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_a_name_and_nothing_else(tmp_path: Path, name: str) -> None:
    file = file_with(
        tmp_path,
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (7)",
        f"CREATE SCHEMA {quoted(name)}",
        f"CREATE TABLE {quoted(name)}.{quoted(name)} ({quoted(name)} VARCHAR, other INT)",
        f"INSERT INTO {quoted(name)}.{quoted(name)} VALUES ('x', 1), ('y', 2)",
    )
    part = quoted(name).replace("%", "%25").replace("&", "%26")
    address = f"duckdb:{file}?table={part}.{part}"
    assert declared_columns(address, ReadOptions())[0] == (name, "other")
    with open_table(address, names_only(name, dropped=("other",))) as source:
        assert rows_of(source) == [("x",), ("y",)]
    with open_table(f"{address}&where={part} = 'y'", names_only(name, dropped=("other",))) as source:
        assert rows_of(source) == [("y",)]
    assert read_rows(f"duckdb:{file}?table=t", "a") == [(7,)]


def test_a_table_that_is_not_there_is_told_by_its_nearest_name(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE SCHEMA s", "CREATE TABLE s.People (a INT)", "CREATE TABLE PEOPLE (a INT)")
    with pytest.raises(TableError, match=r'no table or view "people"; it has "PEOPLE", .*: names are taken'):
        open_table(f"duckdb:{file}?table=people", names_only("a"))
    with pytest.raises(TableError, match=r'"s"."People"'):
        open_table(f"duckdb:{file}?table=s.people", names_only("a"))


@pytest.mark.parametrize("content", [None, b"", b"no database", b"DUCK" * 5000])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "t.duckdb").write_bytes(content)
    with pytest.raises(
        TableError, match="no such file" if content is None else "cannot be opened as a DuckDB"
    ) as caught:
        open_table(f"duckdb:{tmp_path / 't.duckdb'}?table=t", names_only("a"))
    assert caught.value.__context__ is None
    assert [path.name for path in tmp_path.iterdir()] == ([] if content is None else ["t.duckdb"])


def test_a_file_may_be_read_twice_at_once(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE u AS SELECT 2 AS a")
    with open_table(f"duckdb:{file}?table=t", names_only("a")) as first:
        assert read_rows(f"duckdb:{file}?table=u", "a") == [(2,)]
        with open_table(f"duckdb:{file}?table=u", names_only("a")) as second:
            assert rows_of(first) + rows_of(second) == [(1,), (2,)]
        assert rows_of(first) == [(1,)]


def test_a_view_that_sorts_more_than_memory_holds_goes_on_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(
        tmp_path,
        "CREATE TABLE t AS SELECT i AS a, hash(i) AS b FROM range(1000000) r(i)",
        "CREATE VIEW v AS SELECT * FROM t ORDER BY b",
    )
    monkeypatch.setattr(duckdb_rows, "_QUERY_MIB", 24)
    options = ReadOptions(query_is_row_wise=True, spool_folder=tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()
    with open_table(f"duckdb:{file}?table=v", names_only("a", "b"), options) as source:
        assert sum(batch.num_rows for batch in source.batches()) == 1_000_000
        (folder,) = (tmp_path / "scratch").iterdir()
        assert folder.stat().st_mode & 0o077 == 0
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_file_that_is_open_for_writing_here_is_refused(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)")
    with duckdb.connect(str(file)), pytest.raises(TableError, match="open in no program for writing"):
        open_table(f"duckdb:{file}?table=t", names_only("a"))


WRITE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('INSERT INTO t VALUES (9)')"


def test_no_other_program_can_write_while_the_table_is_open(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)")
    write = [sys.executable, "-c", WRITE, str(file)]
    with open_table(f"duckdb:{file}?table=t", names_only("a")) as source:
        assert rows_of(source) == [(1,)]
        assert subprocess.run(write, capture_output=True, check=False).returncode != 0
        assert rows_of(source) == [(1,)]
    assert subprocess.run(write, capture_output=True, check=False).returncode == 0
    assert read_rows(f"duckdb:{file}?table=t", "a") == [(1,), (9,)]


@pytest.mark.parametrize("change", ["touch", "replace", "remove"])
def test_a_file_that_is_changed_behind_its_lock_ends_the_pass_with_fixed_text(tmp_path: Path, change: str) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)")
    other = file_with(tmp_path, "CREATE TABLE t (a INT)", name="other.duckdb")
    with open_table(f"duckdb:{file}?table=t", names_only("a")) as source:
        assert rows_of(source) == [(1,)]
        changes = {
            "touch": lambda: os.utime(file, ns=(1, 1)),
            "replace": lambda: other.replace(file),
            "remove": file.unlink,
        }
        changes[change]()
        with pytest.raises(TableError) as caught:
            rows_of(source)
        assert str(caught.value) in (CHANGED, BROKEN)
        assert CANARY not in str(caught.value)


def test_rows_come_in_the_order_stored_pass_for_pass(tmp_path: Path) -> None:
    file = file_with(
        tmp_path,
        "CREATE TABLE t AS SELECT i AS a, hash(i) % 7 AS b FROM range(500000) r(i)",
        "DELETE FROM t WHERE b = 3",
    )
    with open_table(f"duckdb:{file}?table=t", names_only("a", "b")) as source:
        for _ in range(2):
            cells = [cell for batch in source.batches() for cell in batch.column("a").to_pylist()]
            assert cells == sorted(cells)
            assert 300_000 < len(cells) < 500_000
        first, second = source.batches(), source.batches()
        assert next(first).equals(next(second)), "passes may overlap"


def test_a_package_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"pip install 'margent\[duckdb\]'"):
        open_table(f"duckdb:{file}?table=t", names_only("a"))


def test_nothing_but_a_table_s_errors_come_out_of_opening(tmp_path: Path) -> None:
    file = file_with(tmp_path, "CREATE TABLE t (a INT)")
    for address in (f"duckdb:{file}?table=u", f"duckdb:{tmp_path}?table=t", f"duckdb:{file}?table=t&where=b=1"):
        with pytest.raises(MargentError):
            open_table(address, names_only("a"))
    with pytest.raises(UsageError, match="not as a Path"):
        open_table(Path(f"duckdb:{file}?table=t"), names_only("a"))
