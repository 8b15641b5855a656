"""What a schema file may not say: refused always all at once and with JSON pointers."""

from __future__ import annotations

from typing import Any

import pytest

from margent.errors import SchemaError
from margent.schema.fields import Schema
from tests.schema.documents import SEX, document, faults_of, field_faults


def test_all_faults_at_once_each_with_its_pointer() -> None:
    found = faults_of(
        {
            "colour": 1,
            "fields": [
                SEX | {"catgories": [], "minimum": 3, "bins": 4},
                {"name": "age", "type": "integr"},
                {"name": "sex", "type": "integer", "constraints": {"minimum": 9, "maximum": 1}, "margent": {"bin": 3}},
                {"name": "free", "type": "string"},
                {"type": "string"},
                7,
            ],
            "margent": {"unit": "people"},
        }
    )
    assert set(found) == {
        "/colour",
        "/fields/0/bins",
        "/fields/0/catgories",
        "/fields/0/minimum",
        "/fields/1/type",
        "/fields/2/constraints",
        "/fields/2/margent/bin",
        "/fields/2/name",
        "/fields/3",
        "/fields/4",
        "/fields/5",
        "/margent/unit",
    }
    assert "did you mean 'categories'" in found["/fields/0/catgories"]
    assert "belongs into constraints" in found["/fields/0/minimum"]
    assert "did you mean 'bins'" in found["/fields/2/margent/bin"]
    assert "identifier" in found["/fields/3"]


@pytest.mark.parametrize(
    ("field", "pointer", "said"),
    [
        ({"constraints": {"minimum": 5, "maximum": 4}}, "/constraints", "above maximum"),
        ({"constraints": {"minimum": 0}}, "/constraints", "needs a public maximum"),
        ({"constraints": {"minimum": 0, "maximum": 2**63}}, "/constraints/maximum", "64 bits"),
        ({"constraints": {"minimum": 0.5, "maximum": 4}}, "/constraints/minimum", "whole number"),
        ({"constraints": {"minimum": "a", "maximum": 4}}, "/constraints/minimum", "whole number"),
        ({"constraints": {"minimum": 0, "maximum": 256}}, "", "needs margent.bins"),
        ({"constraints": {"minimum": 0, "maximum": 9, "minLength": 3}}, "/constraints/minLength", "not known"),
        ({"margent": {"bins": 11}}, "/margent/bins", "at most 10"),
        ({"margent": {"bins": 0}}, "/margent/bins", "at least 1"),
        ({"margent": {"bins": [0, 5, 5, 9]}}, "/margent/bins", "must grow"),
        ({"margent": {"bins": [9, 5, 0]}}, "/margent/bins", "must grow"),
        ({"margent": {"bins": [1, 9]}}, "/margent/bins", "must equal"),
        ({"margent": {"bins": [0]}}, "/margent/bins", "at least two"),
        ({"margent": {"bins": [0, "x", 9]}}, "/margent/bins/1", "whole number"),
        ({"margent": {"bins": {"width": 0}}}, "/margent/bins", "above 0"),
        ({"margent": {"bins": {"width": 1.5}}}, "/margent/bins", "whole number"),
        ({"margent": {"bins": {"width": "x"}}}, "/margent/bins/width", "expected a number"),
        ({"margent": {"bins": "month"}}, "/margent/bins", "does not cut a integer"),
        ({"margent": {"bins": "decade"}}, "/margent/bins", "must be one of"),
        ({"margent": {"bins": {"step": 3}}}, "/margent/bins", "expected a count"),
        ({"margent": {"special": ["-9", "-9"]}}, "/margent/special/1", "listed twice"),
        ({"margent": {"special": ["7", "7.0"]}}, "/margent/special", "same value"),
        ({"margent": {"special": [""]}}, "/margent/special/0", "is blank"),
        ({"margent": {"special": [7]}}, "/margent/special", "must be texts"),
        ({"margent": {"special": [{"value": "-9", "lable": "?"}]}}, "/margent/special/0/lable", "did you mean 'label'"),
        ({"margent": {"special": ["1e30"]}}, "/margent/special/0", "too large"),
        ({"missingValues": ["-9.0"], "margent": {"special": ["-9"]}}, "/missingValues", "cannot be both"),
        ({"missingValues": ["", ""]}, "/missingValues/1", "listed twice"),
        ({"missingValues": [3]}, "/missingValues", "entry 0: expected a text"),
        ({"margent": {"unlisted": "x"}}, "/margent/unlisted", "expected"),
        ({"margent": {"unlisted": {"to": "x"}}}, "/margent/unlisted/to", "not one of the field's own"),
        ({"margent": {"role": "key"}}, "/margent/role", "must be one of"),
        ({"margent": {"decimals": 2}}, "/margent/decimals", "only a number"),
        ({"margent": {"timeZone": "UTC"}}, "/margent/timeZone", "only a datetime"),
        ({"margent": {"hierarchy": {"levels": [], "parents": []}}}, "/margent/hierarchy", "needs categories"),
        ({"margent": 3}, "/margent", "expected an object"),
        ({"constraints": []}, "/constraints", "expected an object"),
        ({"categories": [1, 2]}, "/constraints", "no minimum or maximum"),
        ({"categories": []}, "/categories", "empty"),
        ({"constraints": {}, "categories": [1, 2, 1]}, "/categories/2", "also entry 0"),
        ({"constraints": {}, "categories": [1, "b"]}, "/categories/1", "whole number"),
        ({"constraints": {}, "categories": [1, {"value": 2, "lable": "x"}]}, "/categories/1/lable", "label"),
        ({"constraints": {}, "categories": [1], "margent": {"bins": 2}}, "/margent/bins", "no bins"),
        ({"constraints": {}, "categories": [1], "margent": {"special": ["2"]}}, "/margent/special", "closed list"),
        ({"constraints": {}, "categories": {"files": "x"}}, "/categories/files", "file"),
        ({"constraints": {}, "categories": {"file": "x.csv"}}, "/categories/file", "beside the schema file"),
        ({"categoriesOrdered": True}, "/categoriesOrdered", "needs categories"),
        ({"trueValues": ["1"]}, "/trueValues", "booleans"),
        ({"decimalChar": "12"}, "/decimalChar", "one character"),
        ({"groupChar": "."}, "/groupChar", "differ"),
        ({"format": "%Y"}, "/format", "no format"),
        ({"type": "array"}, "/type", "not one of"),
        ({"type": None}, "/type", "found null"),
        ({"type": "string"}, "/constraints/minimum", "no minimum"),
        ({"type": "number"}, "", "needs margent.bins"),
        ({"type": "number", "margent": {"bins": 3, "decimals": 16}}, "/margent/decimals", "at most 15"),
        ({"type": "number", "margent": {"bins": 20, "decimals": 0}}, "/margent/bins", "no value that could be"),
        (
            {"type": "number", "constraints": {"minimum": 0, "maximum": 10**13}, "margent": {"bins": 3, "decimals": 3}},
            "/constraints/maximum",
            "more than 15 digits",
        ),
        ({"type": "boolean", "constraints": {}, "trueValues": ["1"], "falseValues": [" 1"]}, "/falseValues", "true as"),
        ({"type": "boolean", "constraints": {}, "trueValues": []}, "/trueValues", "at least one"),
        ({"type": "boolean", "constraints": {}, "missingValues": ["0"]}, "/missingValues", "cannot be both"),
        ({"type": "date", "constraints": {"minimum": "x", "maximum": "2020-01-01"}}, "/constraints/minimum", "ISO"),
        ({"type": "date", "format": "%Q"}, "/format", "%Q is not one of"),
        ({"type": "date", "format": "any"}, "/format", "guessing"),
        ({"type": "date", "format": "%d/%m"}, "/format", "needs %Y or %y"),
        (
            {
                "type": "date",
                "format": "%d%m%y",
                "constraints": {"minimum": "1950-01-01", "maximum": "2000-01-01"},
                "margent": {"bins": "year"},
            },
            "/constraints/minimum",
            "two-digit years",
        ),
        (
            {
                "type": "datetime",
                "constraints": {"minimum": "2020-01-01T00:00:00Z", "maximum": "2020-02-01T00:00:00Z"},
                "margent": {"bins": "day"},
            },
            "/constraints/minimum",
            "needs margent.timeZone",
        ),
        (
            {
                "type": "datetime",
                "constraints": {"minimum": "0001-01-01", "maximum": "9999-12-31"},
                "margent": {"bins": "year", "timeZone": "Europe/Berlin"},
            },
            "/constraints/maximum",
            "1800 to 2300",
        ),
        (
            {
                "type": "datetime",
                "constraints": {"minimum": "2020-01-01", "maximum": "2020-02-01"},
                "margent": {"bins": "day", "timeZone": "../../etc/passwd"},
            },
            "/margent/timeZone",
            "not a time zone",
        ),
        ({"type": "time", "constraints": {"minimum": "25:00", "maximum": "26:00"}}, "/constraints/minimum", "time"),
        ({"type": "number", "margent": {"role": "identifier"}}, "/type", "string or integer"),
    ],
)
def test_single_faults(field: dict[str, Any], pointer: str, said: str) -> None:
    found = field_faults(**field)
    assert pointer in found, found
    assert said in found[pointer], found
    assert "field 'x'" in found[pointer]


def test_table_faults() -> None:
    assert "who is protected" in faults_of({"fields": [SEX]})["/margent"]
    assert (
        "at least 1"
        in faults_of(document(SEX, margent={"unit": {"field": "sex", "maxRows": 0}}))["/margent/unit/maxRows"]
    )
    assert (
        "not a field"
        in faults_of(document(SEX, margent={"unit": {"field": "id", "maxRows": 1}}))["/margent/unit/field"]
    )
    assert "needs" in faults_of(document(SEX, margent={"unit": {"field": "sex"}}))["/margent/unit"]
    assert "at least one field" in faults_of(document())["/fields"]
    assert "also the name of" in faults_of(document(SEX, SEX))["/fields/1/name"]
    assert "fields" in faults_of({"margent": {"unit": "row"}})["/"[:0]]
    assert "an object" in faults_of(document(SEX, margent={"unit": "row", "rules": [3]}))["/margent/rules/0"]
    with pytest.raises(SchemaError, match="must be"):
        Schema([], unit="person")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parents", "said"),
    [
        ([{"F": "x"}], "not every value reaches the root"),
        ([{"F": "x", "M": "y", "D": "y"}], "not a value of the level below"),
        ([{"F": "x", "M": "y"}, {"x": "top"}], "needs one object a level"),
    ],
)
def test_hierarchies_that_are_no_trees(parents: list[dict[str, str]], said: str) -> None:
    raw = SEX | {"margent": {"hierarchy": {"levels": ["group"], "parents": parents}}}
    found = faults_of(document(raw))
    assert any(said in message for message in found.values()), found


def test_every_level_must_lead_to_the_root() -> None:
    raw = SEX | {"margent": {"hierarchy": {"levels": ["a", "b"], "parents": [{"F": "x", "M": "y"}, {"x": "top"}]}}}
    found = faults_of(document(raw))
    assert "not every group reaches the root" in found["/fields/0/margent/hierarchy/parents/1"]


def test_todos_are_all_listed_and_nothing_runs_before_they_are_answered() -> None:
    found = faults_of(
        document(
            {"name": "a", "type": "todo"},
            {"name": "b", "type": "integer", "constraints": {"minimum": "todo", "maximum": "todo"}},
            {"name": "c", "type": "string", "categories": "todo"},
            {"name": "d", "type": "string", "categories": ["todo"]},
            margent={"unit": "todo"},
        )
    )
    assert set(found) == {
        "/margent/unit",
        "/fields/0/type",
        "/fields/1/constraints/minimum",
        "/fields/1/constraints/maximum",
        "/fields/2/categories",
    }
    assert all(message.startswith("todo: ") for message in found.values())
