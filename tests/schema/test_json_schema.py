"""The published JSON Schema against Margent's own reader: it accepts what is read, and what it refuses is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.json_schema import schema_file_text
from margent.schema.read import schema_from_json
from margent.schema.write import schema_to_json
from tests.conftest import SCHEMA, SHARED
from tests.schema.imports.test_sheet import FULL
from tests.schema.strategies import fields
from tests.schema.test_docs import EXAMPLES

jsonschema = pytest.importorskip("jsonschema")
CHECKER = jsonschema.Draft202012Validator(json.loads(schema_file_text()))


def accepted(document: Any) -> bool:
    return bool(CHECKER.is_valid(document))


def is_read(document: Any) -> bool:
    try:
        schema_from_json(document)
    except SchemaError:
        return False
    return True


def test_it_is_a_json_schema_itself() -> None:
    jsonschema.Draft202012Validator.check_schema(CHECKER.schema)


@pytest.mark.parametrize("document", [SCHEMA, FULL, *map(json.loads, EXAMPLES)])
def test_schemas_are_accepted(document: Any) -> None:
    assert is_read(document)
    assert not list(CHECKER.iter_errors(document))
    assert accepted(schema_to_json(schema_from_json(document)))


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="needs the real tables in ../shared/data")
def test_schemas_of_real_tables_are_accepted() -> None:
    paths = sorted((SHARED / "data").glob("*/schema.json"))
    assert [path for path in paths if not accepted(json.loads(path.read_text()))] == []


@settings(max_examples=100, deadline=None)
@given(st.lists(fields(), min_size=1, max_size=3))
def test_whatever_is_read_is_accepted(drawn: list[dict[str, Any]]) -> None:
    document = {"fields": drawn, "margent": {"unit": "row"}}
    if is_read(document):
        assert accepted(document)
        assert accepted(schema_to_json(schema_from_json(document)))


AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}
FLAWED: list[dict[str, Any]] = [
    {"type": "int"},
    {"constrains": {"maximum": 3}},
    {"constraints": {"minimum": True, "maximum": 9}},
    {"constraints": {"minimum": 0, "maximum": 9, "required": "yes"}},
    {"margent": {"bins": "decade"}},
    {"margent": {"bins": 0}},
    {"margent": {"bins": {"quantiles": 3, "width": 3}}},
    {"margent": {"role": "key"}},
    {"margent": {"special": 5}},
    {"margent": {"special": {"5": 5}}},
    {"margent": {"spikes": 5}},
    {"margent": {"decode": "mean"}},
    {"margent": {"unlisted": {"into": "x"}}},
    {"margent": {"decimals": 99}},
    {"margent": {"openSet": False}},
    {"margent": {"hierarchy": {"levels": ["a"]}}},
    {"margent": {"relativeTo": {"field": "x"}}},
    {"missingValues": "NA"},
    {"missingValues": [{"text": "NA"}]},
    {"categories": []},
    {"trueValues": [1]},
    {"groupChar": ""},
]
FLAWED_TABLES: list[dict[str, Any]] = [
    {"fields": []},
    {"fields": [{"type": "integer"}]},
    {"margent": {}},
    {"margent": {"unit": "person"}},
    {"margent": {"unit": {"field": "age"}}},
    {"margent": {"unit": {"field": "age", "maxRows": 0}}},
    {"margent": {"unit": "row", "rules": [{}]}},
    {"margent": {"unit": "row", "rules": [{"never": {}}]}},
    {"margent": {"unit": "row", "rules": [{"order": ["age"]}]}},
    {"margent": {"unit": "row", "rules": [{"if": {"age": 3}}]}},
    {"margent": {"unit": "row", "rules": [{"never": {"age": {"under": 3}}}]}},
    {"margent": {"unit": "row", "rule": []}},
    {"unit": "row"},
    {"name": 3},
]


@pytest.mark.parametrize("flaw", FLAWED)
def test_what_it_refuses_of_a_field_margent_refuses(flaw: dict[str, Any]) -> None:
    document = {"fields": [copy.deepcopy(AGE) | flaw], "margent": {"unit": "row"}}
    assert not accepted(document)
    assert not is_read(document)


@pytest.mark.parametrize("flaw", FLAWED_TABLES)
def test_what_it_refuses_of_a_table_margent_refuses(flaw: dict[str, Any]) -> None:
    document: dict[str, Any] = {"fields": [AGE], "margent": {"unit": "row"}} | flaw
    assert not accepted(document)
    assert not is_read(document)


WORDS = st.sampled_from(["value", "label", "width", "quantiles", "grid", "to", "file", "levels"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 300), st.sampled_from(["row", "month", "x", "0.5", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(WORDS, inner, max_size=2),
    ),
    max_leaves=4,
)
KEYS = ["categories", "categoriesOrdered", "missingValues", "format", "trueValues", "decimalChar", "groupChar", "title",
        "constraints/minimum", "constraints/required", "constraints/enum", "margent/role", "margent/bins",
        "margent/special", "margent/spikes", "margent/decode", "margent/unlisted", "margent/decimals",
        "margent/timeZone", "margent/openSet", "margent/hierarchy"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(KEYS), values, st.sampled_from(["string", "integer", "number", "date", "boolean"]))
def test_any_value_of_any_key_that_is_read_is_accepted(key: str, value: Any, kind: str) -> None:
    field: dict[str, Any] = {"name": "x", "type": kind}
    if kind in ("integer", "number"):
        field |= {"constraints": {"minimum": 0, "maximum": 99}, "margent": {"bins": 3}}
    if kind == "string":
        field["categories"] = ["x"]
    outer, _, inner = key.rpartition("/")
    (field.setdefault(outer, {}) if outer else field)[inner] = value
    document = {"fields": [field], "margent": {"unit": "row"}}
    if is_read(document):
        assert accepted(document)
