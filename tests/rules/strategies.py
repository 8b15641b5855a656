"""Random schemas with rules between their columns, as JSON: small ones that can be enumerated, and wide ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.schema.allowed import StructuralZeros


def document(fields: list[dict[str, Any]], rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"fields": fields, "missingValues": ["", "NA"], "margent": {"unit": "row", "rules": rules}}


def _required(draw: st.DrawFn) -> dict[str, Any]:
    return {"required": True} if draw(st.booleans()) else {}


@st.composite
def narrow_fields(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Two lists of texts and three short axes of whole numbers, one code a value."""
    fields: list[dict[str, Any]] = [
        {
            "name": name,
            "type": "string",
            "categories": ["a", "b", "c"][: draw(st.integers(1, 3))],
            "categoriesOrdered": True,
            "constraints": _required(draw),
        }
        for name in ("s", "t")
    ]
    for name in ("i", "j", "k"):
        low = draw(st.integers(-1, 1))
        bounds = {"minimum": low, "maximum": low + draw(st.integers(0, 3))}
        block = {"special": ["-9"]} if draw(st.integers(0, 3)) == 0 else {}
        fields.append(
            {"name": name, "type": "integer", "constraints": bounds | _required(draw), "margent": block},
        )
    return fields


@st.composite
def wide_fields(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Texts, and numbers and dates in bins of several values."""
    fields: list[dict[str, Any]] = [
        {"name": name, "type": "string", "categories": ["a", "b", "c"], "constraints": _required(draw)}
        for name in ("s", "t")
    ]
    for name in ("i", "j", "k"):
        low = draw(st.integers(-5, 5))
        bounds = {"minimum": low, "maximum": low + draw(st.integers(3, 14))}
        block: dict[str, Any] = {"bins": draw(st.integers(1, 4))}
        if draw(st.integers(0, 3)) == 0:
            block["special"] = [draw(st.sampled_from(["-9", "99"]))]
        fields.append({"name": name, "type": "integer", "constraints": bounds | _required(draw), "margent": block})
    for name in ("x", "y"):
        bounds = {"minimum": 0, "maximum": draw(st.sampled_from([1, 2.5, 4]))}
        block = {"bins": draw(st.integers(1, 3)), "decimals": 1}
        fields.append({"name": name, "type": "number", "constraints": bounds | _required(draw), "margent": block})
    for name in ("d", "e"):
        bounds = {"minimum": "2020-01-20", "maximum": draw(st.sampled_from(["2020-02-10", "2020-06-01"]))}
        block = {"bins": draw(st.sampled_from(["month", "week", 2]))}
        fields.append({"name": name, "type": "date", "constraints": bounds | _required(draw), "margent": block})
    return fields


def _conditions(draw: st.DrawFn, fields: list[dict[str, Any]], most: int) -> dict[str, Any]:
    """Conditions that cut no bin: on lists, and on axes of one code a value."""
    able = [field for field in fields if "bins" not in field.get("margent", {})]
    chosen = draw(st.lists(st.sampled_from(able), min_size=1, max_size=most, unique_by=lambda field: field["name"]))
    return {field["name"]: _condition(draw, field) for field in chosen}


def _condition(draw: st.DrawFn, field: dict[str, Any]) -> Any:
    kind = draw(st.sampled_from(["one", "several", "missing", "not", "range"]))
    values = field.get("categories")
    if values is None:
        values = list(range(field["constraints"]["minimum"], field["constraints"]["maximum"] + 1))
    if kind == "missing":
        return {"missing": draw(st.booleans())}
    if kind == "several":
        return draw(st.lists(st.sampled_from([*values, None]), min_size=1, max_size=3, unique=True))
    if kind == "not":
        return {"not": draw(st.sampled_from(values))}
    if kind == "range" and field["type"] == "integer":
        return {draw(st.sampled_from(["below", "atMost", "above", "atLeast"])): draw(st.sampled_from(values))}
    return draw(st.sampled_from(values))


@st.composite
def rules_for(draw: st.DrawFn, fields: list[dict[str, Any]], most: int = 3) -> list[dict[str, Any]]:
    """One to ``most`` rules of any kinds that the fields can have."""
    numbers = [field["name"] for field in fields if field["type"] == "integer"]
    kinds = ["if", "never", "order", "sum", "equal", "determines"]
    rules: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(kinds))
        if kind == "if":
            rules.append({"if": _conditions(draw, fields, 2), "then": _conditions(draw, fields, 2)})
        elif kind == "never":
            rules.append({"never": _conditions(draw, fields, 3)})
        elif kind == "order":
            choices = [draw(st.permutations(numbers))[: draw(st.integers(2, 3))]]
            choices += [["d", "e"], ["i", "x"]] if len(fields) > 5 else []
            rules.append({"order": draw(st.sampled_from(choices)), "strict": draw(st.booleans())})
        elif kind == "sum":
            first, second, total = draw(st.permutations(numbers))
            rules.append({"sum": [first, second] if draw(st.booleans()) else [first], "equals": total})
        elif kind == "equal":
            choices = [["s", "t"], draw(st.permutations(numbers))[:2], numbers]
            choices += [["x", "y"], ["d", "e"]] if len(fields) > 5 else []
            rules.append({"equal": draw(st.sampled_from(choices))})
        else:
            rules.append(_determines(draw, fields))
    return rules


def _determines(draw: st.DrawFn, fields: list[dict[str, Any]]) -> dict[str, Any]:
    by_name = {field["name"]: field for field in fields}
    column = draw(st.sampled_from(["t", "i"]))
    if column == "t":
        images: list[Any] = list(by_name["t"]["categories"])
    else:
        bounds = by_name["i"]["constraints"]
        images = list(range(bounds["minimum"], bounds["maximum"] + 1))
    mapping = {value: draw(st.sampled_from(images)) for value in by_name["s"]["categories"]}
    if "required" not in by_name["s"]["constraints"] and draw(st.booleans()):
        return {
            "determines": ["s"],
            "column": column,
            "mapping": [*([key, image] for key, image in mapping.items()), [None, draw(st.sampled_from(images))]],
        }
    return {"determines": ["s"], "column": column, "mapping": mapping}


def obeying(zeros: StructuralZeros, columns: Mapping[str, NDArray[np.int64]], rows: int) -> NDArray[np.bool_]:
    """Which rows of codes obey every rule."""
    good = np.ones(rows, dtype=np.bool_)
    for factor in zeros.factors:
        good &= factor.holds([columns[name] for name in factor.columns])
    return good
