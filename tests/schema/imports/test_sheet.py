"""The sheet with one line a column: what is written comes back, what is typed is understood, and faults name lines."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.exports.sheet import sheet_text
from margent.schema.formulas import is_formula
from margent.schema.imports.cells import guarded, joined, split, unguarded
from margent.schema.imports.sheet import from_sheet
from margent.schema.read import schema_from_json
from margent.schema.write import schema_to_json
from tests.conftest import SHARED
from tests.schema.imports.drafts import by_name
from tests.schema.strategies import HOSTILE_TEXTS, fields, texts

FULL: dict[str, Any] = {
    "name": "stays",
    "title": "Stays",
    "missingValues": ["", "NA", {"value": "-8", "label": "not asked"}],
    "fields": [
        {"name": "=ward", "type": "string", "categories": ["101", {"value": "a|b\\", "label": "odd"}, "=1+1"],
         "margent": {"hierarchy": {"levels": ["floor"], "parents": [{"101": "1", "a|b\\": "1", "=1+1": "2"}]}}},
        {"name": "town", "type": "string", "margent": {"openSet": {"maxCategories": 5}}},
        {"name": "gain", "type": "integer", "constraints": {"minimum": 0, "maximum": 9999, "pattern": "x"},
         "margent": {"bins": {"quantiles": 4}, "spikes": [0], "special": {"-9": "refused", "<5": ""},
         "unlisted": {"to": "-9"}}},
        {"name": "dose", "type": "number", "decimalChar": ",", "constraints": {"minimum": 0.1, "maximum": 5,
         "required": True},
         "margent": {"bins": [0.1, 1, 5], "decimals": 2, "decode": {"tail": 2}}},
        {"name": "in", "type": "date", "format": "%d/%m/%Y", "constraints": {"minimum": "2020-01-01",
         "maximum": "2020-12-31"},
         "margent": {"bins": "month"}},
        {"name": "out", "type": "date", "missingValues": [],
         "margent": {"bins": 5, "relativeTo": {"field": "in", "unit": "day", "minimum": 0, "maximum": 300}}},
        {"name": "ok", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein", "n|n"]},
        {"name": "half", "type": "number", "constraints": {"enum": [0.5, 1]}},
        {"name": "person", "type": "string", "margent": {"role": "identifier"}},
        {"name": "note", "type": "string", "description": "-free\ntext", "margent": {"role": "drop"}},
    ],
    "margent": {"unit": {"field": "person", "maxRows": 3}, "provenance": "made up",
                "rules": [{"if": {"ok": True}, "then": {"half": 1}}]},
}  # fmt: skip


def test_everything_comes_back() -> None:
    schema = schema_from_json(FULL)
    text = sheet_text(schema_to_json(schema))
    made = from_sheet(text, "sheet.csv")
    assert schema_from_json(made.draft.document) == schema
    assert not made.draft.todos
    for row in csv.reader(io.StringIO(text)):
        assert not any(is_formula(cell) for cell in row)


@settings(max_examples=150, deadline=None)
@given(st.lists(fields(), min_size=1, max_size=4, unique_by=lambda field: field["name"]), texts, st.booleans())
def test_any_schema_comes_back(drawn: list[dict[str, Any]], name: str, person: bool) -> None:
    unit: Any = {"field": drawn[0]["name"], "maxRows": 2} if person else "row"
    try:
        schema = schema_from_json({"name": name, "fields": drawn, "margent": {"unit": unit, "provenance": name}})
    except SchemaError:
        return
    text = sheet_text(schema_to_json(schema))
    back = schema_from_json(from_sheet(text, "sheet.csv").draft.document)
    assert schema_to_json(back) == schema_to_json(schema)


@given(st.one_of(texts, st.sampled_from(["'", "''=1", "'x", "@a", "-5", "+1+1", "\t=1"])))
def test_guards_come_off_again(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert not is_formula(guarded(text))


@given(st.lists(st.one_of(texts, st.text("|\\a", max_size=4)), min_size=1, max_size=4))
def test_lists_come_back(items: list[str]) -> None:
    assert split(joined(items)) == items or items == [""]


def test_a_sheet_typed_by_hand() -> None:
    text = (
        "name,type,minimum,maximum,values,labels,bins,required,role,missing,unit\n"
        ",table,,,,,,,,|NA,row\n"
        "age,int,0,110,,,,yes,,,\n"
        "pay,number,0,,,,,,,,\n"
        "sex,,,,F|M,female|male,,,,,\n"
        "town,string,,,,,,,,,\n"
        "id,id,,,,,,,,,\n"
        "memo,,,,,,,,drop,,\n"
        "when,date,2020-01-01,2020-12-31,,,width 7,,,,\n"
        "what,,,,,,,,,,\n"
    )
    made = from_sheet(text, "sheet.csv")
    found = by_name(made)
    assert made.draft.document["missingValues"] == ["", "NA"]
    assert found["age"] == {"type": "integer", "constraints": {"minimum": 0, "maximum": 110, "required": True}}
    assert found["pay"]["constraints"] == {"maximum": "todo", "minimum": 0}
    assert found["pay"]["margent"] == {"bins": "todo"}
    assert found["sex"]["categories"] == [{"value": "F", "label": "female"}, {"value": "M", "label": "male"}]
    assert found["town"]["categories"] == "todo"
    assert (found["id"]["margent"], found["memo"]["margent"]) == ({"role": "identifier"}, {"role": "drop"})
    assert found["when"]["margent"] == {"bins": {"width": 7}}
    assert found["what"]["type"] == "todo"
    again = from_sheet(sheet_text(made.draft.document), "sheet.csv")
    assert again.draft.document == made.draft.document, "a draft comes back with its questions"


def test_a_date_that_follows_another_has_a_cell() -> None:
    text = (
        "name,type,minimum,maximum,relativeTo,bins,unit\n"
        ",table,,,,,row\n"
        "in,date,2020-01-01,2020-12-31,,month,\n"
        "out,date,,,in|day|0|300,0|1|8|300,\n"
    )
    made = from_sheet(text, "sheet.csv").draft
    relative = {"field": "in", "unit": "day", "minimum": 0, "maximum": 300}
    assert made.document["fields"][1]["margent"] == {"relativeTo": relative, "bins": [0, 1, 8, 300]}
    assert not made.todos
    (line,) = [row for row in csv.DictReader(io.StringIO(sheet_text(made.document))) if row["name"] == "out"]
    assert (line["relativeTo"], line["bins"]) == ("in|day|0|300", "0|1|8|300")
    assert line["more"] == ""
    odd = {"field": " in", "unit": "day", "minimum": 0, "maximum": 300}
    schema = {"fields": [{"name": " in"}, {"name": "out", "type": "date", "margent": {"relativeTo": odd}}]}
    assert json.loads(list(csv.DictReader(io.StringIO(sheet_text(schema))))[2]["more"])["margent"]["relativeTo"] == odd


def test_semicolons_are_read_as_well() -> None:
    commas = "name,type,minimum,maximum,values\nage,int,0,110,\nsex,,,,F|M\n"
    made = from_sheet(commas.replace(",", ";"), "sheet.csv").draft.document
    assert made["fields"] == from_sheet(commas, "sheet.csv").draft.document["fields"]
    assert made["fields"][0]["constraints"] == {"minimum": 0, "maximum": 110}


def test_values_may_lie_in_a_file_beside_the_sheet(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("value\nA10\nB20\n")
    made = from_sheet("name,type,values\nward,,codes.csv\nnext,string,cods.csv|x\n", str(tmp_path / "sheet.csv"))
    assert made.draft.document["fields"] == [
        {"name": "ward", "type": "string", "categories": {"file": "codes.csv"}},
        {"name": "next", "type": "string", "categories": ["cods.csv", "x"]},
    ]
    again = from_sheet(sheet_text(made.draft.document), str(tmp_path / "again.csv"))
    assert again.draft.document["fields"] == made.draft.document["fields"]
    with pytest.raises(SchemaError, match=r"line 2 .*none\.csv: there is no such file"):
        from_sheet("name,type,values\nward,,none.csv\n", str(tmp_path / "sheet.csv"))
    odd = {"fields": [{"name": "a", "type": "string", "categories": ["x.csv"]}], "margent": {"unit": "row"}}
    assert from_sheet(sheet_text(odd), "sheet.csv").draft.document["fields"] == odd["fields"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("name,typ,type\na,,int\n", "line 1: the column 'typ' is not known; type?"),
        ("name,type,minimum\na,int,x\n", "line 2 (/fields/0/constraints/minimum)"),
        ("name,type\na,elephant\n", "line 2, type: 'elephant'"),
        ("name,type,bins\na,int,many\n", "line 2, bins"),
        ("name,type,relativeTo\na,date,b|day|0\n", "line 2, relativeTo: expected the other column"),
        ("name,type,required\na,int,maybe\n", "line 2, required"),
        ("name,type,values,labels\na,string,x|y,z\n", "line 2, labels: 2 values and 1 labels"),
        ("name,type,more\na,string,{\n", "line 2, more"),
        ("name,type,more\na,string,[]\n", "line 2, more"),
        ('name,type,minimum,more\na,int,1,"{""constraints"": {""minimum"": 2}}"\n', "in another cell too"),
        ("name,type\n,table\n,table\na,int\n", "line 3: is a second line about the table"),
        ("name,type,unit\n,table,person\na,int,\n", "line 2, maxRows"),
        ("name,type,unit,maxRows\n,table,p,2\na,string,,\n", "/margent/unit/field"),
        ("name,type\na,int\na,int\n", "names must differ"),
        ("name,type\n", "describes no column"),
        ("type,unit\nint,\n", "needs the column name"),
        ("name,type,role\na,int,king\n", "line 2, role"),
        ('name,type\n"a\n', "is not CSV"),
        ("name,type\na,int,3\n", "line 2: has 3 cells"),
    ],
)
def test_faults_name_lines_and_columns(lines: str, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_sheet(lines, "sheet.csv")
    assert said in str(caught.value)


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="needs the real tables in ../shared/data")
def test_the_schemas_of_real_tables_come_back() -> None:
    for path in sorted((SHARED / "data").glob("*/schema.json")):
        schema = schema_from_json(json.loads(path.read_text()), folder=path.parent)
        back = schema_from_json(from_sheet(sheet_text(schema_to_json(schema)), "s.csv").draft.document)
        assert schema_to_json(back) == schema_to_json(schema), path


def test_long_lists_come_back() -> None:
    towns = [f"town number {number}" for number in range(50_000)]
    document = {"fields": [{"name": "town", "type": "string", "categories": towns}], "margent": {"unit": "row"}}
    made = from_sheet(sheet_text(document), "sheet.csv")
    assert made.draft.document["fields"] == document["fields"]


def test_hostile_texts_are_tried() -> None:
    assert "=1+1" in HOSTILE_TEXTS
