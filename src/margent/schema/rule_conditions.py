"""Conditions on the cell of one column, in a rule: which codes of the column meet them.

"never-married"                   the value
["a", "b", null]                  one of these; null stands for a missing cell
{"atLeast": 15, "below": 65}      a range, of values in order; a missing cell or special code lies in none
{"missing": true}                 a missing cell
{"not": ...}                      anything else, missing cells included
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import Fault
from margent.schema.boxes import boxes_of
from margent.schema.labels import code_labels, scalar_text
from margent.schema.layout import Layout, listed_values
from margent.schema.parts import ListedValue, Scalar
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
    boxes = boxes_of(layout)
    for code, (low, high) in enumerate(zip(boxes.low, boxes.high, strict=True)):
        if boxes.position(low) <= position <= boxes.position(high):
            if low == high and boxes.position(low) == position:
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
    listed = listed_values(field)
    if listed is not None:
        return None, next((code for code, item in enumerate(listed) if _same(item, scalar)), None)
    try:
        position = scalar_position(field.type, scalar, field.time_zone)
    except ValueError:
        return None, None
    return position, layout.points.get(position)


def _same(item: ListedValue, scalar: Scalar) -> bool:
    return type(item.value) is type(scalar) and item.value == scalar


def _within(condition: Within, layout: Layout, pointer: str, faults: list[Fault]) -> Truth | None:
    field = layout.field
    if field.type == "string":
        return _within_list(condition, layout, pointer, faults)
    if field.type == "boolean":
        faults.append(Fault(pointer, f"{field.name!r} is true or false: it has no range"))
        return None
    result = np.arange(layout.size) < layout.values
    boxes, sound = boxes_of(layout), True
    for bound, raw in condition.bounds:
        place = step(pointer, bound)
        try:
            scalar = declared_scalar(field.type, raw, field.spelling)
            edge = scalar_position(field.type, scalar, field.time_zone)
        except ValueError as error:
            faults.append(Fault(place, f"field {field.name!r}: {error}"))
            sound = False
            continue
        for code in range(layout.values):
            ends = [_meets(bound, boxes.position(end), edge) for end in (boxes.low[code], boxes.high[code])]
            if ends[0] != ends[1]:
                faults.append(_cut(layout, code, place, "the bound"))
                sound = False
            result[code] &= ends[0]
    return result if sound else None


def _meets(bound: str, position: Position, edge: Position) -> bool:
    return {
        "below": position < edge,
        "atMost": position <= edge,
        "above": position > edge,
        "atLeast": position >= edge,
    }[bound]


def _within_list(condition: Within, layout: Layout, pointer: str, faults: list[Fault]) -> Truth | None:
    """A range of an ordered list of texts, by their places in it."""
    field, result = layout.field, np.arange(layout.size) < layout.values
    if not field.ordered:
        faults.append(Fault(pointer, f"{field.name!r} is no ordered list; give the values, or categoriesOrdered"))
        return None
    texts = [scalar_text(item.value) for item in field.listed or ()]
    for bound, raw in condition.bounds:
        if raw not in texts:
            faults.append(Fault(step(pointer, bound), f"is no value of the list of {field.name!r}"))
            return None
        edge = texts.index(raw)
        result[: layout.values] &= np.array([_meets(bound, place, edge) for place in range(layout.values)])
    return result


def _cut(layout: Layout, code: int, pointer: str, what: str) -> Fault:
    label = code_labels(layout)[code]
    return Fault(
        pointer,
        f"{what} lies inside the bin {label!r} of {layout.field.name!r}, which would have to obey and not to obey; "
        "list the edges of its bins and put one there",
    )
