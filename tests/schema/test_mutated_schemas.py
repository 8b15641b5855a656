"""Schemas put together from parts of every type, and mutated ones: refused with pointers, or read back equal."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.schema.settled import planned
from margent.schema.write import schema_text
from tests.conftest import SCHEMA
from tests.schema.documents import document

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
