"""Pandera schemas as JSON: checks as keys, as a list with names, and as an object."""

from __future__ import annotations

from typing import Any

import pytest

from margent.errors import SchemaError
from margent.schema.imports.pandera import from_pandera
from tests.schema.imports.drafts import by_name

BETWEEN = {"min_value": 0, "max_value": 110, "include_min": True, "include_max": True}


def schema_of(**columns: Any) -> dict[str, Any]:
    return {"schema_type": "dataframe", "api": "pandas", "columns": columns}


@pytest.mark.parametrize(
    "checks",
    [
        {"in_range": BETWEEN},
        {"checks": {"in_range": BETWEEN}},
        {"checks": [BETWEEN | {"options": {"check_name": "in_range", "raise_warning": False}}]},
        {"greater_than_or_equal_to": 0, "less_than_or_equal_to": 110, "checks": None},
        {"greater_than": -1, "less_than": 111},
        {"checks": {"ge": 0, "le": 110, "greater_than": {"value": -5, "options": {}}}},
    ],
)
def test_a_range_in_every_form(checks: dict[str, Any]) -> None:
    made = from_pandera(schema_of(age={"dtype": "int64", **checks}), "s.json")
    wanted = {"minimum": 0, "maximum": 110, "required": True}
    assert by_name(made)["age"] == {"type": "integer", "constraints": wanted}
    assert not made.left_out


def test_types_lists_and_what_is_left_out() -> None:
    made = from_pandera(
        schema_of(
            sex={"dtype": "string[python]", "isin": ["F", "M"], "nullable": True, "title": "Sex"},
            grade={"dtype": "int64", "isin": [1, 2, 3], "checks": None},
            three={"dtype": "int64", "equal_to": 3},
            pay={"dtype": "float64", "greater_than_or_equal_to": 0, "less_than": 10.5},
            when={"dtype": "datetime64[ns, Europe/Berlin]", "ge": "2020-01-01 00:00:00"},
            day={"dtype": "date", "ge": "2020-01-01 00:00:00", "le": "2020-12-31 00:00:00"},
            kind={"dtype": "category"},
            key={"dtype": "int64", "unique": True},
            odd={"dtype": "complex128"},
            zone={"dtype": "datetime64[ns, Mars/Olympus]"},
            word={"dtype": "str", "str_matches": "a.*"},
        )
        | {"index": [{"dtype": "int64"}]},
        "s.json",
    )
    fields = by_name(made)
    assert fields["sex"] == {"type": "string", "categories": ["F", "M"], "title": "Sex"}
    assert fields["grade"]["categories"] == [1, 2, 3]
    assert fields["three"]["categories"] == [3]
    assert fields["pay"]["constraints"] == {"minimum": 0, "maximum": 10.5, "required": True}
    assert fields["when"]["margent"]["timeZone"] == "Europe/Berlin"
    assert fields["when"]["constraints"]["minimum"] == "2020-01-01T00:00:00"
    assert fields["day"]["constraints"]["maximum"] == "2020-12-31"
    assert fields["kind"] == {"type": "todo"}
    assert fields["key"]["margent"] == {"role": "identifier"}
    assert fields["zone"]["margent"]["timeZone"] == "naive"
    told = {note.pointer for note in made.left_out}
    assert told == {
        "/columns/pay/less_than",
        "/columns/odd/dtype",
        "/columns/zone",
        "/columns/word/str_matches",
        "/index",
    }


def test_what_is_no_schema() -> None:
    for columns in (None, 3, {}, {"a": 3}, [{"dtype": "int64"}], [{"name": ["a", "b"]}], [3]):
        with pytest.raises(SchemaError):
            from_pandera({"schema_type": "dataframe", "columns": columns}, "s.json")
