"""Cases 01 to 08: dialects, encodings, headers, and cells that are text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from margent import Budget, BudgetFile, ReadOptions, read_schema
from margent.cli import run
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.strict import require_listed
from margent.tables.source import open_table
from tests.cases.inputs import SCHEMAS, given, ranged, schema_file, synthesize


def test_01_the_default_delimiter_is_refused_with_a_hint_and_no_entry_in_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, schema = given("01"), schema_file(tmp_path, SCHEMAS["01"])
    file = BudgetFile(tmp_path / "b.budget", "people")
    file.init(Budget(3), unit="row")
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "1"]
    assert run([*arguments, "--budget", str(tmp_path / "b.budget"), "-o", str(tmp_path / "OUT")]) == 3
    said = capsys.readouterr().err
    assert '--delimiter ";"' in said
    assert all(field["name"] in said for field in SCHEMAS["01"]), "which columns are missing"
    assert file.balance().reservations == ()


def test_01_decimal_commas_and_grouping_are_read() -> None:
    fields: list[dict[str, Any]] = [
        *SCHEMAS["01"][:2],
        {"name": "cost", "type": "number", "decimalChar": ",", "groupChar": ".", "constraints": {}},
    ]
    fields[2]["constraints"] = {"enum": [12.99, 88, 940.10, 1204.50], "required": True}
    schema = schema_from_json({"fields": fields, "margent": {"unit": "row"}})
    with open_table(given("01"), schema, ReadOptions(delimiter=";")) as source:
        (batch,) = source.batches()
    assert Codec(schema).encode(batch)[2].tolist() == [3, 1, 2, 0]


def test_01_the_output_is_read_again_with_the_same_options(tmp_path: Path) -> None:
    made = synthesize(given("01"), SCHEMAS["01"], tmp_path, "--delimiter", ";", "--rows", "200")
    assert made.code == 0
    schema = read_schema(tmp_path / "schema.json")
    with open_table(made.out / "synthetic.csv", schema, ReadOptions(delimiter=";")) as source:
        require_listed(source, Codec(schema))
    frames = [
        pd.read_csv(path, sep=";", decimal=",", thousands=".") for path in (given("01"), made.out / "synthetic.csv")
    ]
    assert frames[0].dtypes.tolist() == frames[1].dtypes.tolist()
    assert made.document("summary.json")["dialect"]["delimiter"] == ";"


def test_02_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    made = synthesize(given("02"), SCHEMAS["02"], tmp_path, "--rows", "50")
    assert made.code == 0
    assert (made.out / "synthetic.csv").read_bytes().startswith(b"patient_kind,visits\n")


def test_03_the_declared_encoding_gives_the_words_themselves(tmp_path: Path) -> None:
    made = synthesize(given("03"), SCHEMAS["03"], tmp_path, "--encoding", "latin-1", "--rows", "200")
    assert made.code == 0
    assert set(made.column("city")) - {""} <= {"Münster", "Köln", "Bonn"}
    assert {"Münster", "Köln"} <= set(made.column("city"))


def test_03_undecodable_cells_go_where_the_schema_says(tmp_path: Path) -> None:
    fields = [SCHEMAS["03"][0] | {"margent": {"unlisted": {"to": "Bonn"}}}, SCHEMAS["03"][1]]
    made = synthesize(given("03"), fields, tmp_path, "--rows", "200")
    assert made.code == 0
    assert made.column("city").count("Bonn") > 100, "all four cells are Bonn or undecodable"
    text = "".join(path.read_text(encoding="utf-8") for path in made.out.rglob("*.json"))
    assert not re.search(
        r"(?i)byte offset|byte \d|row \d|row number|line \d", text + (made.out / "release.html").read_text()
    )


def test_04_quotes_newlines_and_commas(tmp_path: Path) -> None:
    fields = SCHEMAS["04"]
    schema = schema_from_json({"fields": fields, "margent": {"unit": "row"}})
    with open_table(given("04"), schema) as source:
        assert sum(batch.num_rows for batch in source.batches()) == 4
    made = synthesize(given("04"), fields, tmp_path, "--rows", "100")
    assert set(made.column("answer")) <= set(fields[0]["categories"])
    assert len(made.rows) == 100


def test_05_a_name_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = synthesize(given("05"), SCHEMAS["05"], tmp_path)
    said = capsys.readouterr().err
    assert made.code == 3
    assert re.search(r"age: the column name occurs 2 times, at positions 1 and 3", said)
    assert "age.1" not in said
    assert not made.out.exists()


def test_07_odd_names_pass_through_and_are_escaped(tmp_path: Path) -> None:
    made = synthesize(given("07"), SCHEMAS["07"], tmp_path, "--rows", "60")
    assert made.code == 0
    assert made.header == [field["name"] for field in SCHEMAS["07"]]
    head = given("07").read_bytes().split(b"\n")[0].rstrip(b"\r")
    assert (made.out / "synthetic.csv").read_bytes().split(b"\n")[0] == head
    page = (made.out / "release.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;pay&lt;/b&gt;" in page
    assert "<b>pay" not in page
    arguments = [
        "evaluate",
        str(given("07")),
        str(made.out),
        "--schema",
        str(tmp_path / "schema.json"),
        "--no-learning",
    ]
    assert run([*arguments, "-o", str(tmp_path / "I")]) == 0
    document = json.loads((tmp_path / "I" / "INTERNAL-evaluation.json").read_text(encoding="utf-8"))
    assert [column["name"] for column in document["columns"]] == made.header
    assert "<b>pay" not in (tmp_path / "I" / "INTERNAL-evaluation.html").read_text(encoding="utf-8")


def test_08_leading_zeros_stay(tmp_path: Path) -> None:
    made = synthesize(given("08"), SCHEMAS["08"], tmp_path, "--rows", "200")
    assert all(re.fullmatch(r"\d{5}", cell) for cell in made.column("zip"))
    assert all(re.fullmatch(r"\d{6}", cell) for cell in made.column("code6"))
    assert all(re.fullmatch(r"[0-3]\d[01]\d(19|20)\d\d", cell) for cell in made.column("birth_ddmmyyyy"))
    assert any(cell[0] == "0" for cell in made.column("birth_ddmmyyyy"))
    typed = synthesize(given("08"), SCHEMAS["08"], tmp_path, "--rows", "5", "--format", "parquet", out="TYPED")
    assert pd.read_parquet(typed.out / "synthetic.parquet")["zip"].astype(str).str.len().eq(5).all()


def test_a_bound_on_a_text_is_a_fault_not_a_number(tmp_path: Path) -> None:
    """Codes with leading zeros that somebody bounds like numbers would lose them."""
    assert synthesize(given("08"), [ranged("zip", "string", 0, 99999), *SCHEMAS["08"][1:]], tmp_path).code == 3
