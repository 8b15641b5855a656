"""Parameters of the NIST challenges, and what they say of who is protected."""

from __future__ import annotations

from typing import Any

import pytest

from margent.errors import SchemaError
from margent.schema.imports.nist import from_nist
from tests.schema.imports.drafts import by_name

COLUMNS: dict[str, Any] = {
    "PLACE": {"dtype": "str", "kind": "geo", "values": ["17-104", "17-105"]},
    "SEX": {"dtype": "uint8", "kind": "categorical", "values": [1, 2], "names": ["male", "female"]},
    "AGE": {"dtype": "uint8", "kind": "numeric", "min": 0, "max": 135},
    "INCOME": {"dtype": "int32"},
    "WEIGHT": {"dtype": "float", "min": 0, "max": 10, "bins": [0, 1, 5, 10]},
    "MARRIED": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1", "2"]},
    "POVERTY": {"dtype": "object", "has_null": True, "null_value": "N", "min": 0, "max": 501},
    "WHEN": {"dtype": "datetime64[ns]", "kind": "datetime", "min": "2020-01-01", "max": "2020-12-31"},
    "ODD": {"dtype": "uint8", "min": 9, "max": 1, "shape": "round"},
    "person": {"dtype": "int", "kind": "id"},
}


def test_columns_of_every_kind() -> None:
    made = from_nist({"schema": COLUMNS}, "data/parameters.json")
    fields = by_name(made)
    assert fields["PLACE"] == {"type": "string", "categories": ["17-104", "17-105"]}
    assert fields["SEX"]["categories"] == [{"value": 1, "label": "male"}, {"value": 2, "label": "female"}]
    assert fields["AGE"] == {"type": "integer", "constraints": {"minimum": 0, "maximum": 135}}
    assert fields["INCOME"]["constraints"] == {"minimum": "todo", "maximum": "todo"}
    assert fields["WEIGHT"]["margent"] == {"bins": [0, 1, 5, 10]}
    assert fields["MARRIED"] == {"type": "integer", "categories": [1, 2], "missingValues": ["", "N"]}
    assert fields["POVERTY"]["constraints"] == {"minimum": 0, "maximum": 501}
    assert fields["POVERTY"]["margent"] == {"bins": "todo"}, "more than 256 values need bins"
    assert fields["WHEN"]["constraints"]["maximum"] == "2020-12-31T00:00:00"
    assert fields["ODD"]["constraints"] == {"minimum": "todo", "maximum": "todo"}
    assert fields["person"] == {"type": "integer", "margent": {"role": "identifier"}}
    told = {note.pointer: note.message for note in made.left_out}
    assert "above" in told["/schema/ODD"]
    assert "/schema/ODD/shape" in told
    assert made.draft.document["margent"] == {
        "unit": "todo",
        "provenance": "imported from the parameters of a NIST challenge, parameters.json",
    }


@pytest.mark.parametrize(
    ("columns", "rows", "unit"),
    [
        (["person"], [7, 7], {"field": "person", "maxRows": 7}),
        (["AGE"], [1], "row"),
        (["AGE"], [7], "todo"),
        (["person"], [7, 3], "todo"),
        (["person"], [True], "todo"),
        (["person"], [2.5], "todo"),
        (["person"], [None], "todo"),
    ],
)
def test_who_is_protected_is_taken_only_where_it_is_said(columns: list[str], rows: list[Any], unit: Any) -> None:
    runs = [{"epsilon": 1.0, "max_records_per_individual": each} for each in rows]
    made = from_nist({"schema": {name: COLUMNS[name] for name in columns}, "runs": runs}, "p.json")
    assert made.draft.document["margent"]["unit"] == unit
    assert any(note.pointer == "/runs" for note in made.left_out)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(SchemaError) as caught:
        from_nist({"schema": {"a": 1, "b": [], "c": {"dtype": "int"}}}, "p.json")
    assert [fault.pointer for fault in caught.value.faults] == ["/schema/a", "/schema/b"]
    for document in ({}, [], {"schema": []}, {"schema": {}}):
        with pytest.raises(SchemaError):
            from_nist(document, "p.json")
