"""Real tables from end to end through the command line: every cell inside the schema, order and spelling kept."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from margent.cli import run
from margent.schema.codec import Codec
from margent.schema.read import read_schema, schema_from_json
from margent.strict import require_listed
from margent.tables.source import open_table
from tests.schema.oracle import SlowField
from tests.sizes import LONG_AUDIT

NAMES = ("adult", "mpls-stops", "sdnist-ma")
TABLES = (
    "adult",
    "bank-marketing",
    "diabetes-130",
    "mpls-stops",
    "nyc-flights",
    "pums-null",
    "sdnist-national",
    "uk-census-2011",
)
METHODS = ("independent", "dense", "privsyn") if LONG_AUDIT else ("independent",)
OTHER_TYPES = {"nyc-flights": {"time_hour": "timestamp[us, tz=America/New_York]"}}
"""Columns of Parquet files that are written in another type than the file's: in the schema's time zone."""


def columns_of(path: Path) -> dict[str, Counter[str]]:
    """How often each text occurs in each column, in the header's order."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return {name: Counter(row[place] for row in rows) for place, name in enumerate(header)}


def modeled(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (field for field in document["fields"] if field.get("margent", {}).get("role", "model") == "model")


def outside(field: dict[str, Any], missing: list[str], cells: Counter[str]) -> list[str]:
    """The cells that are no value, special code or missing token of the field, or lie beyond its bounds."""
    reading = SlowField(field, missing)
    return [cell for cell in cells if not _inside(field, reading, cell)]


def _inside(field: dict[str, Any], reading: SlowField, cell: str) -> bool:
    if cell in reading.missing and not reading.required:
        return True
    if reading.value(cell) is None:
        return False
    bounds = field.get("constraints", {})
    if "minimum" not in bounds or cell in reading.special:
        return True
    texts = (str(bounds["minimum"]), cell, str(bounds["maximum"]))
    if field["type"] != "datetime":
        low, value, high = (Fraction(text) for text in texts)
        return low <= value <= high
    # Bounds without an offset are wall-clock readings in the field's zone.
    first, moment, last = (datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts)
    first, last = (bound if bound.tzinfo else bound.replace(tzinfo=reading.zone) for bound in (first, last))
    return first <= moment <= last


def synthesize(shared: Path, name: str, schema: Path, out: Path, *options: str) -> Path:
    (table,) = (path for path in (shared / "data" / name).iterdir() if path.name.endswith((".csv.gz", ".parquet")))
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "1", "--single-release"]
    assert run([*arguments, "-o", str(out), *options]) == 0
    return table


@pytest.mark.parametrize("method", ["dense", "privsyn"])
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_lies_inside_the_schema_and_columns_keep_their_order(
    name: str, method: str, shared: Path, tmp_path: Path
) -> None:
    schema = shared / "data" / name / "schema.json"
    table = synthesize(shared, name, schema, tmp_path / "OUT", "--method", method)
    document = json.loads(schema.read_text())
    real, made = columns_of(table), columns_of(tmp_path / "OUT" / "synthetic.csv.gz")
    assert list(made) == list(real)
    rows = next(iter(real.values())).total()
    assert next(iter(made.values())).total() == pytest.approx(rows, rel=0.05)
    for field in modeled(document):
        assert outside(field, document.get("missingValues", [""]), made[field["name"]]) == [], field["name"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TABLES)
def test_types_come_back_as_they_were(name: str, method: str, shared: Path, tmp_path: Path) -> None:
    """Each table with the schema beside it: the columns in order, every cell a value of the schema, types kept."""
    path = shared / "data" / name / "schema.json"
    table = synthesize(shared, name, path, tmp_path / "OUT", "--method", method, "--rows", "2000")
    schema = read_schema(path)
    (made,) = (tmp_path / "OUT").glob("synthetic.*")
    written = schema_from_json(
        json.loads((tmp_path / "OUT" / "datapackage.json").read_text())["resources"][0]["schema"]
    )
    with open_table(made, written) as source:
        assert source.columns == schema.output_columns
        require_listed(source, Codec(written))
        assert sum(batch.num_rows for batch in source.batches()) == 2000
    if table.suffix == ".parquet":
        declared, kinds = pq.read_schema(table), pq.read_schema(made)
        differ = {one.name: str(one.type) for one in kinds if not one.equals(declared.field(one.name))}
        assert differ == OTHER_TYPES.get(name, {})
    else:
        document = json.loads(path.read_text())
        cells = columns_of(made)
        for field in modeled(document):
            assert outside(field, document.get("missingValues", [""]), cells[field["name"]]) == [], field["name"]


@pytest.mark.parametrize("listed", [["", "?"], ["?", ""]])
def test_missing_cells_come_back_as_the_column_spells_them(listed: list[str], shared: Path, tmp_path: Path) -> None:
    """The table spells a missing cell "?" in three columns, which list it beside the table's own empty cell."""
    document = json.loads((shared / "data" / "adult" / "schema.json").read_text())
    gappy = [field for field in document["fields"] if "?" in field.get("missingValues", ())]
    assert {field["name"] for field in gappy} >= {"workclass", "occupation"}
    for field in gappy:
        field["missingValues"] = listed
    (tmp_path / "schema.json").write_text(json.dumps(document))
    table = synthesize(shared, "adult", tmp_path / "schema.json", tmp_path / "OUT", "--method", "privsyn")
    real, made = columns_of(table), columns_of(tmp_path / "OUT" / "synthetic.csv.gz")
    for field in gappy:
        assert made[field["name"]][""] == 0
    # 2,799 of 48,842 cells are missing; the noise of this count has a deviation of about 20.
    assert made["workclass"]["?"] == pytest.approx(real["workclass"]["?"], abs=300)


def test_a_planted_cell_outside_the_schema_is_found(shared: Path) -> None:
    document = json.loads((shared / "data" / "adult" / "schema.json").read_text())
    fields = {field["name"]: field for field in modeled(document)}
    for name, cell in (("sex", "female"), ("sex", ""), ("age", "3"), ("age", "x"), ("workclass", "Privat")):
        assert outside(fields[name], [""], Counter(["Male", "17", "Private", cell]))[-1] == cell
    assert outside(fields["workclass"], [""], Counter(["Private", "", "?"])) == []
