"""The schema file: what is honored, carried along and refused, always all at once and with JSON pointers."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.check import unsettled
from margent.schema.codec import Codec
from margent.schema.fields import PersonUnit, Schema
from margent.schema.parts import MissingToken
from margent.schema.read import read_schema, schema_from_json
from margent.schema.settled import planned
from margent.schema.write import schema_text, schema_to_json
from tests.conftest import SCHEMA

SEX: dict[str, Any] = {"name": "sex", "type": "string", "categories": ["F", "M"]}


def document(*fields: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"fields": list(fields), "margent": {"unit": "row"}} | top


def faults_of(value: Any) -> dict[str, str]:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(value)
    return {fault.pointer: fault.message for fault in caught.value.faults}


def field_faults(**field: Any) -> dict[str, str]:
    base = {"name": "x", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}
    found = faults_of(document(base | field))
    return {pointer.removeprefix("/fields/0"): message for pointer, message in found.items()}


def test_everything_honored_and_carried_along_survives() -> None:
    rules = [{"if": {"sex": "F"}, "then": {"ok": True}, "description": "as the codebook says"}]
    full = {
        "name": "people",
        "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
        "title": "People",
        "primaryKey": ["id"],
        "missingValues": ["", {"value": "-9", "label": "refused"}],
        "fields": [
            SEX | {"title": "Sex", "rdfType": "x", "example": "F", "constraints": {"pattern": "[FM]", "unique": False}},
            {
                "name": "pay",
                "type": "number",
                "decimalChar": ",",
                "groupChar": ".",
                "bareNumber": False,
                "constraints": {"minimum": 0.5, "maximum": "99.75", "required": True},
                "margent": {"bins": [0.5, 10, 99.75], "decimals": 2, "special": {"-1": "none", "x": ""}},
            },
            {
                "name": "when",
                "type": "datetime",
                "format": "%d.%m.%Y %H:%M",
                "constraints": {"minimum": "2020-01-01", "maximum": "31.12.2020 23:59"},
                "margent": {"timeZone": "Europe/Berlin", "bins": "week"},
            },
            {
                "name": "ward",
                "type": "integer",
                "categories": [{"value": 1, "label": "North"}, 2],
                "categoriesOrdered": True,
                "missingValues": [],
                "margent": {
                    "unlisted": {"to": "2"},
                    "hierarchy": {"levels": ["site"], "parents": [{"1": "A", "2": "A"}]},
                },
            },
            {"name": "ok", "type": "boolean", "trueValues": ["y"], "falseValues": ["n"]},
            {"name": "id", "type": "string", "margent": {"role": "identifier"}},
            {"name": "note", "type": "string", "margent": {"role": "drop"}},
        ],
        "margent": {"unit": {"field": "id", "maxRows": 3}, "rules": rules, "provenance": "made up"},
    }
    schema = schema_from_json(full)
    assert schema.unit == PersonUnit("id", 3)
    assert schema.columns_read == ("sex", "pay", "when", "ward", "ok", "id")
    assert schema.output_columns == ("sex", "pay", "when", "ward", "ok", "id")
    assert schema.missing_of(schema.fields[0]) == (MissingToken(""), MissingToken("-9", "refused", alone=True))
    assert schema.missing_of(schema.fields[3]) == ()
    written = schema_to_json(schema)
    for key in ("$schema", "title", "primaryKey", "name", "missingValues"):
        assert written[key] == full[key]
    assert written["fields"][0]["constraints"] == {"pattern": "[FM]", "unique": False}
    assert written["fields"][1]["constraints"] == {"required": True, "minimum": 0.5, "maximum": 99.75}
    assert written["fields"][2]["constraints"]["maximum"] == "2020-12-31T23:59:00"
    assert schema_from_json(json.loads(schema_text(schema))) == schema
    assert written["margent"]["rules"] == rules


def test_what_is_bought_loads_and_has_no_codes_yet() -> None:
    schema = schema_from_json(
        document(
            {"name": "a", "type": "string", "margent": {"openSet": {"maxCategories": 9}}},
            {
                "name": "b",
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 999},
                "margent": {"bins": {"quantiles": 4, "grid": 50}},
            },
        )
    )
    assert schema_from_json(schema_to_json(schema)) == schema
    assert [fault.pointer for fault in unsettled(schema)] == ["/fields/0/margent/openSet", "/fields/1/margent/bins"]
    with pytest.raises(SchemaError, match="openSet"):
        Codec(schema)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": NaN}', "/a: NaN and infinite"),
        ('{"a": [1, -Infinity]}', "/a/1: NaN and infinite"),
        ('{"a": 1e999}', "/a: NaN and infinite"),
        (f'{{"a": {"9" * 5000}}}', "/a: NaN and infinite"),
        ('{"a": {"b": 1, "b": 2}}', "/a/b: the key is given more than once"),
        ("[" * 40 + "]" * 40, "deeper than 32"),
        ("[" * 100_000 + "]" * 100_000, "deeper than 32"),
        ('{"a": "\\ud800"}', "/a: not valid Unicode"),
        ('{"\\ud800": 1}', "not valid Unicode"),
        ("{", "line 1, column 2"),
        ("", "line 1, column 1"),
        ("[]", "expected an object, found a list"),
        ("null", "expected an object, found null"),
        ('{"a": 1} x', "line 1, column 10"),
    ],
)
def test_strict_json(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        read_schema(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        read_schema(tmp_path / "none.json")
    with pytest.raises(SchemaError, match=r"cannot be read|not a regular file"):
        read_schema(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(SchemaError, match="not UTF-8"):
        read_schema(tmp_path / "latin.json")
    (tmp_path / "big.json").write_bytes(b" " * (16 * 2**20 + 1))
    with pytest.raises(SchemaError, match="larger than"):
        read_schema(tmp_path / "big.json")
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(document(SEX)).encode())
    assert read_schema(tmp_path / "bom.json").fields[0].name == "sex"


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
        ({"margent": {"special": ["1e30"]}}, "/margent/special/0", "too large"),
        ({"missingValues": ["-9.0"], "margent": {"special": ["-9"]}}, "/missingValues", "cannot be both"),
        ({"missingValues": ["", ""]}, "/missingValues/1", "listed twice"),
        ({"missingValues": [3]}, "/missingValues", "expected texts"),
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


class TestCategoryFiles:
    def write(self, folder: Path, content: str, **extra: str) -> Path:
        (folder / "codes.csv").write_text(content)
        field = {"name": "zip", "type": "string", "categories": {"file": "codes.csv"} | extra}
        path = folder / "schema.json"
        path.write_text(json.dumps(document(field)))
        return path

    def test_values_labels_and_hash(self, tmp_path: Path) -> None:
        content = 'value,label\n02116,Boston\n00501,"Holtsville, NY"\n'
        schema = read_schema(self.write(tmp_path, content))
        (field,) = schema.fields
        assert [item.value for item in field.listed or ()] == ["02116", "00501"]
        assert [item.label for item in field.listed or ()] == ["Boston", "Holtsville, NY"]
        assert field.listed_file is not None
        assert field.listed_file.sha256 == hashlib.sha256(content.encode()).hexdigest()
        # The written schema stands alone: values in full, the file only on record.
        assert schema_from_json(schema_to_json(schema)) == schema
        good = self.write(tmp_path, content, sha256=field.listed_file.sha256)
        assert read_schema(good) == schema
        with pytest.raises(SchemaError, match="it has changed"):
            read_schema(self.write(tmp_path, content + "1\n", sha256=field.listed_file.sha256))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("02116\n", "header"),
            ("value,label\n1,2,3\n", "cells"),
            ("value\n1\n1\n", "also entry 0"),
            ("", "header"),
            ('value\n"a\n', "not CSV"),
            ("value\n", "is empty"),
        ],
    )
    def test_damaged_files(self, tmp_path: Path, content: str, said: str) -> None:
        with pytest.raises(SchemaError, match=said):
            read_schema(self.write(tmp_path, content))

    @pytest.mark.parametrize(
        "name", ["../codes.csv", "/etc/passwd", "a/../../b", "c:\\x", "..", "", "\x00", "none.csv"]
    )
    def test_names_never_leave_the_folder(self, tmp_path: Path, name: str) -> None:
        field = {"name": "zip", "type": "string", "categories": {"file": name}}
        path = tmp_path / "schema.json"
        path.write_text(json.dumps(document(field)))
        with pytest.raises(SchemaError, match="/fields/0/categories/file"):
            read_schema(path)

    def test_links_do_not_lead_out(self, tmp_path: Path) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        (tmp_path / "secret.csv").write_text("value\n1\n")
        (inner / "codes.csv").symlink_to(tmp_path / "secret.csv")
        field = {"name": "zip", "type": "string", "categories": {"file": "codes.csv"}}
        (inner / "schema.json").write_text(json.dumps(document(field)))
        with pytest.raises(SchemaError, match="leads out"):
            read_schema(inner / "schema.json")


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(["row", "string", "integer", "number", "todo", "date", "month", "%d%m", "UTC", 2**70, 1e300]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(["bins", "width", "name", "type"])), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, member in pairs for place in places(member, (*path, key)))]


POOL: dict[str, list[Any]] = {
    "name": ["x", "", "a/b"],
    "type": ["string", "integer", "number", "boolean", "date", "datetime", "time", "year", "yearmonth"],
    "format": ["default", "email", "any", "%Y", "%d%m%Y", "%H:%M", "%Y-%m-%d %H:%M %z", "%"],
    "categories": [["a", "b"], [1, 2], [], [{"value": "a", "label": "A"}], [1.5], ["1", "01"], {"file": "x"}],
    "categoriesOrdered": [True, False],
    "missingValues": [[], ["", "-9"], [{"value": "a"}], ["2020-01-01"], ["true"]],
    "trueValues": [["a"], [], ["1"]],
    "falseValues": [["b"], ["1"]],
    "decimalChar": [",", "", "e"],
    "groupChar": [",", ".", " "],
    "bareNumber": [True, False],
    "constraints": [
        {"minimum": 0, "maximum": 9},
        {"minimum": 0.5, "maximum": 2**64},
        {"minimum": "2020-01-01", "maximum": "2020-03-01"},
        {"minimum": "2020-01-01T00:00:00Z", "maximum": "2020-01-02"},
        {"minimum": "08:00", "maximum": "09:00:00"},
        {"minimum": "2020-01", "maximum": "2021-01"},
        {"enum": ["a"]},
        {"enum": [True]},
        {"enum": [1, 2.5]},
        {"enum": ["2020-01-01", "2020-01-01T00:00:00+01:00"]},
        {"required": True},
        {},
    ],
}
BLOCK: dict[str, list[Any]] = {
    "role": ["model", "identifier", "drop"],
    "bins": [
        3,
        [0, 9],
        ["2020-01-01", "2020-03-01"],
        ["a"],
        {"width": 2},
        {"width": 0.5},
        "month",
        "hour",
        {"quantiles": 3},
    ],
    "special": [["a"], ["-9", "5"], {"1": "one"}],
    "spikes": [[0], [5, 7], ["x"], [1, 1.0]],
    "decode": ["uniform", "midpoint", "integer", "tail", {"tail": 2}, {"tail": -1}, "middle"],
    "unlisted": [{"to": "a"}, {"to": "5"}, {"to": "-9"}],
    "openSet": [True, {"maxCategories": 3}],
    "hierarchy": [{"levels": ["l"], "parents": [{"a": "x", "b": "x"}]}, {"levels": [], "parents": []}],
    "timeZone": ["UTC", "naive", "Europe/Berlin", "Mars"],
    "decimals": [0, 2, 15],
    "relativeTo": [{"field": "x", "unit": "day", "minimum": 0, "maximum": 9}],
    "categoriesFile": [{"file": "x", "sha256": "0"}],
}


@st.composite
def chimeras(draw: st.DrawFn) -> dict[str, Any]:
    """Fields put together from parts that belong to fields of every type."""

    def some(pool: dict[str, list[Any]]) -> dict[str, Any]:
        keys = draw(st.lists(st.sampled_from(sorted(pool)), max_size=4, unique=True))
        return {key: copy.deepcopy(draw(st.sampled_from(pool[key]))) for key in keys}

    return {"name": "x", "type": draw(st.sampled_from(POOL["type"]))} | some(POOL) | {"margent": some(BLOCK)}


@settings(max_examples=1000, deadline=None)
@given(st.lists(chimeras(), min_size=1, max_size=2))
def test_chimeras_are_refused_with_pointers_or_can_be_coded(fields: list[dict[str, Any]]) -> None:
    try:
        schema = schema_from_json(document(*fields))
    except SchemaError as error:
        assert all(fault.pointer.startswith("/") for fault in error.faults)  # noqa: PT017
        return
    assert schema_from_json(json.loads(schema_text(schema))) == schema
    codec = Codec(planned(schema))
    assert [len(codec.labels[name]) for name in codec.domain.names] == list(codec.domain.sizes)
    codes = np.zeros((2, len(codec.domain.names)), np.int32)
    assert codec.decode(codes, seed=1).column_names == list(schema.output_columns)
    assert codec.decode_text(codes, seed=1).num_rows == 2


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_mutated_schemas_are_refused_with_pointers_or_read_back_equal(data: st.DataObject) -> None:
    mutated = copy.deepcopy(SCHEMA)
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from([path for path in places(mutated) if path]))
        owner = mutated
        for key in parents:
            owner = owner[key]
        if isinstance(owner, dict) and data.draw(st.booleans()):
            owner[data.draw(st.text(max_size=5))] = data.draw(json_values)
        owner[last] = data.draw(json_values)
    try:
        schema = schema_from_json(mutated)
    except SchemaError as error:
        assert error.faults  # noqa: PT017
        assert all(fault.pointer == "" or fault.pointer.startswith("/") for fault in error.faults)  # noqa: PT017
        return
    assert schema_from_json(json.loads(schema_text(schema))) == schema
    assert not any(isinstance(leaf, float) and math.isnan(leaf) for leaf in json.loads(schema_text(schema)).values())
