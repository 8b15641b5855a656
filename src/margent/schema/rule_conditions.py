"""Conditions on the cell of one column, in a rule: which codes of the column meet them.

"never-married"                   the value
["a", "b", null]                  one of these; null stands for a missing cell
{"atLeast": 15, "below": 65}      a range, of values in order; a missing cell or special code lies in none
{"missing": true}                 a missing cell
{"not": ...}                      anything else, missing cells included
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import Fault
from margent.schema.boxes import Boxes, kept_boxes
from margent.schema.labels import code_labels
from margent.schema.layout import Layout, listed_values
from margent.schema.parts import Scalar
from margent.schema.positions import Position, declared_scalar, scalar_position
from margent.schema.strict_json import Members, kind_of, step

Truth = NDArray[np.bool_]

BOUNDS = ("below", "atMost", "above", "atLeast")


@dataclass(frozen=True, slots=True)
class OneOf:
    """The cell is one of ``values``; None stands for a missing cell."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The cell is a value within ``bounds``: pairs such as ("below", 15)."""

    bounds: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """The cell is missing (or, with False, is not)."""

    wanted: bool


@dataclass(frozen=True, slots=True)
class Not:
    """The cell does not meet ``other``."""

    other: Condition


Condition = OneOf | Within | Missing | Not


def read_conditions(members: Members, key: str) -> tuple[tuple[str, Condition], ...]:
    """The conditions under a key: an object column -> condition, at least one; none with a fault.

    >>> read_conditions(Members({"never": {"age": {"below": 15}}}, "", []), "never")
    (('age', Within(bounds=(('below', 15),))),)
    """
    raw = members.get(key)
    if not isinstance(raw, Mapping) or not raw:
        message = "expected an object column -> condition with at least one column"
        members.fault(key if key in members else None, message if key in members else f'needs "{key}": {message}')
        return ()
    inner = members.inner(key, raw)
    found = [(name, _read_condition(inner, name, condition)) for name, condition in raw.items()]
    members.adopt(inner)
    return tuple((name, condition) for name, condition in found if condition is not None)


def _read_condition(members: Members, key: str, raw: Any) -> Condition | None:
    """One condition, or None with a fault."""
    if raw is None or isinstance(raw, str | int | float | bool):
        return OneOf((raw,))
    if isinstance(raw, list | tuple):
        if raw and all(value is None or isinstance(value, str | int | float | bool) for value in raw):
            return OneOf(tuple(raw))
        members.fault(key, "expected a list of at least one value (null for missing)")
        return None
    inner = members.inner(key, raw)
    found = _object(inner, raw)
    members.adopt(inner)
    return found


def _object(inner: Members, raw: Mapping[str, Any]) -> Condition | None:
    if set(raw) == {"missing"} and isinstance(raw["missing"], bool):
        return Missing(raw["missing"])
    if set(raw) == {"not"}:
        other = _read_condition(inner, "not", raw["not"])
        return None if other is None else Not(other)
    if raw and set(raw) <= set(BOUNDS):
        return Within(tuple(raw.items()))
    bounds = ", ".join(f'"{bound}"' for bound in BOUNDS)
    inner.fault(None, f'expected bounds ({bounds}), {{"missing": true or false}} or {{"not": condition}}')
    return None


def truth(condition: Condition, layout: Layout, pointer: str, faults: list[Fault]) -> Truth | None:
    """Which codes of a column meet a condition; None with a fault where a code's cells would differ in it.

    Shapes: one entry a code.
    """
    if isinstance(condition, Not):
        other = truth(condition.other, layout, step(pointer, "not"), faults)
        return None if other is None else ~other
    if isinstance(condition, Missing):
        code = np.arange(layout.size) - layout.first_missing
        missing: Truth = (code >= 0) & (code < len(layout.missing))
        return missing if condition.wanted else ~missing
    if isinstance(condition, Within):
        return _within(condition, layout, pointer, faults)
    found = np.zeros(layout.size, dtype=np.bool_)
    sound = True
    for value in condition.values:
        if value is None:
            found[layout.first_missing : layout.first_missing + len(layout.missing)] = True
            continue
        listed = code_of_value(value, layout, pointer, faults)
        if listed is None:
            sound = False
        else:
            found[listed] = True
    return found if sound else None


def code_of_value(value: Any, layout: Layout, pointer: str, faults: list[Fault]) -> int | None:
    """The one code that stands for a value (or special code, or missing token) and nothing else; None with a fault."""
    if isinstance(value, str) and value in layout.texts:
        return layout.texts[value]
    position, listed = _declared(value, layout)
    if listed is not None:
        return listed
    if position is None:
        kind = kind_of(value)
        faults.append(Fault(pointer, f"{kind} here is no value of {layout.field.name!r}; name one that the field has"))
        return None
    boxes = kept_boxes(layout)
    # A field with a list has answered above: what is left are bins, whose boxes stand in order.
    code = bisect_right(boxes.low, boxes.grid.floor(position)) - 1
    if code >= 0 and boxes.position(boxes.low[code]) <= position <= boxes.position(boxes.high[code]):
        if boxes.low[code] == boxes.high[code]:
            return code
        faults.append(_cut(layout, code, pointer, "a value"))
        return None
    faults.append(Fault(pointer, f"no value of {layout.field.name!r} is that one; it lies outside the field's bounds"))
    return None


def _declared(value: Any, layout: Layout) -> tuple[Position | None, int | None]:
    """A JSON value's position on the field's axis, or its code where the field has a list of it."""
    field = layout.field
    try:
        scalar: Scalar = declared_scalar(field.type, value, field.spelling)
    except ValueError:
        return None, None
    if listed_values(field) is not None:
        return None, _codes_of_list(layout).get((type(scalar), scalar))
    try:
        position = scalar_position(field.type, scalar, field.time_zone)
    except ValueError:
        return None, None
    return position, layout.points.get(position)


def _codes_of_list(layout: Layout) -> Mapping[tuple[type, Scalar], int]:
    """The first code of each listed value, kept with the layout."""
    found: dict[tuple[type, Scalar], int] | None = layout.__dict__.get("codes_of_list")
    if found is None:
        found = layout.__dict__["codes_of_list"] = {}
        for code, item in enumerate(listed_values(layout.field) or ()):
            found.setdefault((type(item.value), item.value), code)
    return found


def _within(condition: Within, layout: Layout, pointer: str, faults: list[Fault]) -> Truth | None:
    field = layout.field
    if field.type == "string":
        return _within_list(condition, layout, pointer, faults)
    if field.type == "boolean":
        faults.append(Fault(pointer, f"{field.name!r} is true or false: it has no range"))
        return None
    result = np.arange(layout.size) < layout.values
    boxes, sound = kept_boxes(layout), True
    for bound, raw in condition.bounds:
        place = step(pointer, bound)
        try:
            scalar = declared_scalar(field.type, raw, field.spelling)
            edge = scalar_position(field.type, scalar, field.time_zone)
        except ValueError as error:
            faults.append(Fault(place, f"field {field.name!r}: {error}"))
            sound = False
            continue
        low, high = _meeting(bound, boxes, edge)
        for code in np.flatnonzero(low != high).tolist():
            faults.append(_cut(layout, code, place, "the bound"))
            sound = False
        result[: layout.values] &= low
    return result if sound else None


def _meeting(bound: str, boxes: Boxes, edge: Position) -> tuple[Truth, Truth]:
    """Which codes have a low end, and which a high one, that meets a bound."""
    index = boxes.grid.floor(edge)
    # From here on all indices meet "atLeast", or none of them "below"; for the two others, one that is the edge counts.
    first = index + (bound in ("above", "atMost") or boxes.position(index) != edge)
    first = max(min(first, 2**63 - 1), -(2**63))
    low, high = (ends >= first for ends in boxes.ends)
    return (low, high) if bound in ("above", "atLeast") else (~low, ~high)


def _within_list(condition: Within, layout: Layout, pointer: str, faults: list[Fault]) -> Truth | None:
    """A range of an ordered list of texts, by their places in it."""
    field, result = layout.field, np.arange(layout.size) < layout.values
    if not field.ordered:
        faults.append(Fault(pointer, f"{field.name!r} is no ordered list; give the values, or categoriesOrdered"))
        return None
    places = np.arange(layout.values)
    for bound, raw in condition.bounds:
        edge = _codes_of_list(layout).get((type(raw), raw)) if isinstance(raw, str) else None
        if edge is None:
            faults.append(Fault(step(pointer, bound), f"is no value of the list of {field.name!r}"))
            return None
        beyond = places >= edge + (bound in ("above", "atMost"))
        result[: layout.values] &= beyond if bound in ("above", "atLeast") else ~beyond
    return result


def _cut(layout: Layout, code: int, pointer: str, what: str) -> Fault:
    labels: tuple[str, ...] | None = layout.__dict__.get("labels")
    if labels is None:
        labels = layout.__dict__["labels"] = code_labels(layout)
    label = labels[code]
    return Fault(
        pointer,
        f"{what} lies inside the bin {label!r} of {layout.field.name!r}, which would have to obey and not to obey; "
        "list the edges of its bins and put one there",
    )
