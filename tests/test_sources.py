"""The same rows in every place that a table can lie: the same counts, to the last one, of rows and of persons."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import margent
from margent.cli import run
from margent.counts.contribution import KeptRows
from margent.counts.identity import Identity
from margent.counts.source import StreamedCounts
from margent.privacy import ledger
from margent.release.measurements import read_measurements
from margent.schema.codec import Codec
from margent.schema.fields import PersonUnit
from margent.schema.read import schema_from_json
from margent.tables.options import ReadOptions
from margent.tables.source import open_table

ROWS = 3_000
DOCUMENT: dict[str, Any] = {
    "missingValues": [""],
    "fields": [
        {"name": "id", "type": "string", "margent": {"role": "identifier"}},
        {"name": "sex", "type": "string", "categories": ["F", "M"]},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}, "margent": {"bins": 10}},
        {
            "name": "pay",
            "type": "number",
            "constraints": {"minimum": 0, "maximum": 1000},
            "margent": {"bins": 8, "decimals": 2},
        },
        {
            "name": "since",
            "type": "date",
            "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"},
            "margent": {"bins": "quarter"},
        },
        {"name": "smoker", "type": "boolean"},
    ],
    "margent": {"unit": "row"},
}
SCHEMA = schema_from_json(DOCUMENT)
PERSONS = schema_from_json(DOCUMENT | {"margent": {"unit": {"field": "id", "maxRows": 2}}})
CLIQUES = [("sex",), ("age", "sex"), ("pay",), ("age", "since"), ("smoker",), ("pay", "since", "smoker")]


def made_table() -> pa.Table:
    """Rows of which some have missing cells, and some persons many rows; no cell is off."""
    rng = np.random.default_rng(5)

    def holes(values: Any) -> Any:
        return pa.array([None if hole else value for value, hole in zip(values, rng.random(ROWS) < 0.05, strict=True)])

    pay = holes([cents / 100 for cents in rng.integers(0, 100_000, ROWS).tolist()])
    days = holes(rng.integers(18_262, 18_992, ROWS).astype("datetime64[D]").tolist())
    return pa.table(
        {
            "id": pa.array([f"p{number}" for number in rng.integers(0, 900, ROWS)]),
            "sex": holes(["FM"[bit] for bit in rng.integers(0, 2, ROWS)]),
            "age": holes(rng.integers(0, 100, ROWS).tolist()).cast(pa.int16()),
            "pay": pay,
            "since": days.cast(pa.date32()),
            "smoker": holes((rng.random(ROWS) < 0.3).tolist()),
        }
    )


TABLE = made_table()


def as_parquet(folder: Path, table: pa.Table) -> str:
    pq.write_table(table, folder / "t.parquet", row_group_size=700)
    return str(folder / "t.parquet")


def as_folder(folder: Path, table: pa.Table) -> str:
    (folder / "parts" / "deep").mkdir(parents=True)
    pq.write_table(table.slice(2000), folder / "parts" / "z.parquet")
    pq.write_table(table.slice(1000, 1000), folder / "parts" / "deep" / "b.parquet")
    pq.write_table(table.slice(0, 1000), folder / "parts" / "deep" / "a.parquet")
    (folder / "parts" / "_SUCCESS").touch()
    return str(folder / "parts")


def as_feather(folder: Path, table: pa.Table) -> str:
    pyarrow.feather.write_feather(table, folder / "t.feather", chunksize=450)
    return str(folder / "t.feather")


def as_csv(folder: Path, table: pa.Table) -> str:
    with (folder / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow(
                [
                    "" if cell is None else str(cell).lower() if cell is True or cell is False else cell
                    for cell in row.values()
                ]
            )
    return str(folder / "t.csv")


def as_csv_folder(folder: Path, table: pa.Table) -> str:
    (folder / "texts").mkdir()
    for part, start in (("1.csv", 0), ("2.csv", 1500)):
        made = as_csv(folder, table.slice(start, 1500))
        Path(made).rename(folder / "texts" / part)
    return str(folder / "texts")


def as_duckdb(folder: Path, table: pa.Table) -> str:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("made", table)
        connection.execute(
            "CREATE TABLE people AS SELECT id, sex, age, pay::DECIMAL(9, 2) AS pay, since, smoker FROM made"
        )
    return f"duckdb:{folder / 't.duckdb'}?table=people"


def as_duckdb_query(folder: Path, table: pa.Table) -> str:
    return as_duckdb(folder, table).replace("table=people", "query=SELECT * FROM people")


def as_stream(folder: Path, table: pa.Table) -> Any:
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=333)))


PLACES: list[Callable[[Path, pa.Table], Any]] = [
    *(as_folder, as_feather, as_csv, as_csv_folder, as_duckdb, as_duckdb_query, as_stream),
]
READ = ReadOptions(query_is_row_wise=True)
KEYS = bytes(range(32)), bytes(range(32, 64))


def rows_counted(table: Any) -> list[list[Any]]:
    with open_table(table, SCHEMA, READ) as source:
        return [counts.tolist() for counts in StreamedCounts(source, Codec(SCHEMA)).count(CLIQUES)]


def persons_counted(table: Any) -> list[list[Any]]:
    assert isinstance(PERSONS.unit, PersonUnit)
    with open_table(table, PERSONS, READ) as source:
        # With the keys pinned, which rows are kept hangs on each row's number among its person's: on the order.
        kept = KeptRows(
            source, Identity("id", ("",), "string", key=KEYS[0]), PERSONS.unit.max_rows, 10_000, key=KEYS[1]
        )
        counts = StreamedCounts(kept, Codec(PERSONS))
        return [*(counts.tolist() for counts in counts.count(CLIQUES)), kept.sizes().tolist()]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[Any]]:
    path = as_parquet(tmp_path_factory.mktemp("expected"), TABLE)
    return rows_counted(path), persons_counted(path)


@pytest.mark.parametrize("place", PLACES)
def test_the_same_rows_give_the_same_counts_wherever_they_lie(
    place: Any, expected: tuple[list[Any], list[Any]], tmp_path: Path
) -> None:
    if place is as_stream:
        assert (rows_counted(place(tmp_path, TABLE)), persons_counted(place(tmp_path, TABLE))) == expected
        return
    table = place(tmp_path, TABLE)
    assert rows_counted(table) == expected[0]
    assert persons_counted(table) == expected[1]


def in_postgres(server: Any, name: str, table: pa.Table = TABLE) -> str:
    server.ingest(f"{name}_raw", table)
    server.run(
        f"DROP TABLE IF EXISTS {name} CASCADE",
        f"CREATE TABLE {name} (id text NOT NULL, sex char(1), age smallint, pay numeric(9, 2), "
        "since date, smoker bool)",
        f"INSERT INTO {name} SELECT id, sex, age, pay, since, smoker FROM {name}_raw",
        f"DROP TABLE {name}_raw",
    )
    return str(server.table(name))


@pytest.mark.parametrize("form", ["table=people_counted", "query=SELECT * FROM people_counted"])
def test_the_same_rows_in_postgres_give_the_same_counts(
    form: str, expected: tuple[list[Any], list[Any]], postgres: Any
) -> None:
    in_postgres(postgres, "people_counted")
    table = f"{postgres.place}?{form}"
    assert rows_counted(table) == expected[0]
    assert persons_counted(table) == expected[1]


# --- the rest of the tool


@pytest.fixture(params=["duckdb", "postgresql", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "duckdb":
        return as_duckdb(tmp_path, TABLE)
    if request.param == "folder":
        return as_folder(tmp_path, TABLE)
    return in_postgres(request.getfixturevalue("postgres"), "people_cli")


def write_schema(folder: Path, document: dict[str, Any] = DOCUMENT) -> str:
    (folder / "schema.json").write_text(json.dumps(document))
    return str(folder / "schema.json")


def test_a_draft_has_names_types_and_what_is_not_null(place: str, tmp_path: Path) -> None:
    assert run(["schema", "draft", place, "-o", str(tmp_path / "draft.json")]) == 0
    fields = {field["name"]: field for field in json.loads((tmp_path / "draft.json").read_text())["fields"]}
    kinds = {name: field["type"] for name, field in fields.items()}
    assert kinds == {name: field["type"] for name, field in zip(fields, DOCUMENT["fields"], strict=True)}
    assert fields["pay"]["margent"].get("decimals") == (None if "parts" in place else 2)
    assert ("required" in fields["id"].get("constraints", {})) == place.startswith("postgresql")
    assert fields["sex"]["categories"] == "todo"


def test_checking_inspecting_evaluating_and_strict_runs_take_the_same_forms(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = write_schema(tmp_path)
    assert run(["schema", "check", schema, place]) == 0
    assert run(["inspect", place, "--schema", schema, "-o", str(tmp_path / "INTERNAL")]) == 0
    inspected = json.loads((tmp_path / "INTERNAL" / "INTERNAL-inspection.json").read_text())
    assert inspected["rows"] == ROWS
    out = str(tmp_path / "OUT")
    asked = ["synthesize", place, "--schema", schema, "--epsilon", "3", "--single-release", "--strict", "--rows", "50"]
    assert run([*asked, "--method", "independent", "-o", out]) == 0
    types = pq.read_schema(tmp_path / "OUT" / "synthetic.parquet")
    assert types.field("age").type == pa.int16()
    assert types.field("pay").type == (pa.float64() if "parts" in place else pa.decimal128(9, 2))
    study = ["evaluate", place, out, place, "--schema", schema, "--no-learning", "-o", str(tmp_path / "STUDY")]
    assert run(study) == 0
    assert "postgres@" not in "".join(capsys.readouterr())


def test_strict_refuses_a_cell_in_a_database_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = TABLE.set_column(1, "sex", pa.array(["canary-55", *["F"] * (ROWS - 1)]))
    table, charged = as_duckdb(tmp_path, cell), list[int]()
    original = ledger.Ledger.__init__
    monkeypatch.setattr(ledger.Ledger, "__init__", lambda self, *rest: charged.append(1) or original(self, *rest))
    asked = ["synthesize", table, "--schema", write_schema(tmp_path), "--epsilon", "1", "--single-release", "--strict"]
    assert run([*asked, "-o", str(tmp_path / "OUT")]) == 3
    assert charged == []
    assert "canary-55" not in "".join(capsys.readouterr())


# --- a query is declared, and the release says so


@pytest.mark.parametrize("form", ["query=SELECT * FROM people", "table=shown"])
def test_a_query_or_view_is_refused_until_it_is_declared_and_then_recorded(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_duckdb(tmp_path, TABLE)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE VIEW shown AS SELECT * FROM people WHERE age < 90")
    schema, out = write_schema(tmp_path), tmp_path / "OUT"
    asked = ["synthesize", f"duckdb:{tmp_path / 't.duckdb'}?{form}", "--schema", schema, "--epsilon", "1"]
    asked += ["--single-release", "--method", "independent", "--rows", "10"]
    assert run([*asked, "-o", str(out)]) == 2
    assert "--query-is-row-wise" in capsys.readouterr().err
    assert run([*asked, "--query-is-row-wise", "-o", str(out)]) == 0
    assert "declared to be row-wise" in capsys.readouterr().out
    again = tmp_path / "AGAIN"
    assert run(["resample", str(out), "-o", str(again)]) == 0
    for folder in (out, again):
        assert read_measurements(folder / "measurements").from_query
        assert json.loads((folder / "charges.json").read_text())["queryDeclaredRowWise"] is True
        assert "declared to be row-wise" in (folder / "release.html").read_text()
        assert "declared to be row-wise" in " ".join(json.loads((folder / "summary.json").read_text())["promise"])
        for path in folder.rglob("*.*"):
            assert b"SELECT" not in path.read_bytes()
    assert run(["statement", str(out), "-o", str(tmp_path / "statement.html")]) == 0
    assert "declared to be row-wise" in (tmp_path / "statement.html").read_text()


def test_a_release_of_a_table_says_nothing_of_queries(tmp_path: Path) -> None:
    release = margent.synthesize(as_duckdb(tmp_path, TABLE), SCHEMA, budget=margent.Budget(1), method="independent")
    release.save(tmp_path / "OUT")
    assert "queryDeclaredRowWise" not in (tmp_path / "OUT" / "charges.json").read_text()
    assert "row-wise" not in (tmp_path / "OUT" / "release.html").read_text()
    assert (tmp_path / "OUT" / "synthetic.parquet").exists()


def test_a_condition_keeps_the_rows_that_meet_it_and_needs_no_declaration(tmp_path: Path, postgres: Any) -> None:
    where = "where=age >= 30 AND (sex = 'F' OR pay BETWEEN 100 AND 200.5) AND since IS NOT NULL AND NOT smoker = true"
    wanted = [
        row
        for row in TABLE.to_pylist()
        if row["age"] is not None
        and row["age"] >= 30
        and (row["sex"] == "F" or (row["pay"] is not None and 100 <= row["pay"] <= 200.5))
        and row["since"] is not None
        and row["smoker"] is False
    ]
    assert 100 < len(wanted) < ROWS
    for address in (as_duckdb(tmp_path, TABLE), in_postgres(postgres, "people_where")):
        with open_table(f"{address}&{where}", SCHEMA) as source:
            assert not source.from_query
            found = pa.concat_tables([pa.Table.from_batches([batch]) for batch in source.batches()])
        assert found.num_rows == len(wanted)
        assert found.column("age").to_pylist() == [row["age"] for row in wanted]
