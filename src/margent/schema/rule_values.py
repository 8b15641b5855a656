"""Orderings, sums and equalities of a schema: systems of values for the decoding, and their structural zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from margent.errors import Fault
from margent.schema.allowed import MOST_CELLS, MOST_COLUMNS, Factor, Room, cells_of, factor_of
from margent.schema.boxes import Boxes, kept_boxes
from margent.schema.labels import scalar_text
from margent.schema.layout import Layout, listed_values
from margent.schema.parts import NUMERIC
from margent.schema.rule_systems import Axis, System
from margent.schema.rule_tables import Placed, is_wide, too_large, too_many_columns
from margent.schema.rules import Equal, Order, Sum, columns_of_rule

FARTHEST = 2**56
"""Values this far from zero, in units of the finest column, are too large to be added up."""
CHUNK = 2**17


@dataclass(frozen=True, eq=False)
class Joint:
    """Columns whose values are drawn together because rules link them inside their bins."""

    columns: tuple[str, ...]
    system: System

    def indices(self, values: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        """Grid indices of a column's lattice positions."""
        axis = self.system.axes[place]
        return (values - axis.offset) // axis.stride


def value_faults(placed: Placed, layouts: Mapping[str, Layout]) -> list[Fault]:
    """Why the columns of an ordering, sum or equality cannot be compared or added."""
    rule, names = placed.rule, columns_of_rule(placed.rule)
    kinds = {name: _kind(layouts[name]) for name in names}
    if isinstance(rule, Equal):
        good, wanted = len(set(kinds.values())) == 1, "columns of one type"
    elif isinstance(rule, Order):
        ordered = {kind for kind in kinds.values() if kind not in ("string", "boolean")}
        good, wanted = len(ordered) == len(set(kinds.values())) == 1, "numbers, or dates or times of one type"
    else:
        good, wanted = set(kinds.values()) == {"numbers"}, "numbers"
    if not good:
        found = ", ".join(f"{name!r} ({layouts[name].field.type})" for name in names)
        return [Fault(placed.pointer, f"needs {wanted}; found {found}")]
    if kinds[names[0]] in ("string", "boolean"):
        return []
    faults = []
    axes = _axes([kept_boxes(layouts[name]) for name in names], [layouts[name] for name in names])
    if axes is None:
        return [Fault(placed.pointer, "its columns hold values too large to be compared in 64 bits; narrow the bounds")]
    for name, axis in zip(names, axes, strict=True):
        if not isinstance(rule, Order) and is_wide(layouts[name]) and axis.stride > 1:
            message = f"{name!r} is written with fewer decimals than others; give all of them the same margent.decimals"
            faults.append(Fault(placed.pointer, message))
    return faults


def _kind(layout: Layout) -> str:
    field = layout.field
    if field.type in NUMERIC:
        return "numbers"
    zoned = field.type == "datetime" and field.time_zone not in (None, "naive")
    return f"{field.type}{' with a zone' if zoned else ''}"


def _axes(boxes: Sequence[Boxes], layouts: Sequence[Layout]) -> tuple[Axis, ...] | None:
    """The columns' lattices in one unit, or None where their numbers are too large."""
    unit = Fraction(0)
    for own in boxes:
        unit = _common(_common(unit, own.grid.unit), Fraction(own.grid.anchor))
    axes = []
    for own, layout in zip(boxes, layouts, strict=True):
        stride, offset = int(own.grid.unit / unit), int(own.grid.anchor / unit)
        ends = [offset + stride * end for end in (*own.low, *own.high)]
        if ends and max(abs(min(ends)), abs(max(ends))) > FARTHEST // len(boxes):
            return None
        low, high = np.zeros(layout.size, dtype=np.int64), np.zeros(layout.size, dtype=np.int64)
        low[: layout.values] = [offset + stride * end for end in own.low]
        high[: layout.values] = [offset + stride * end for end in own.high]
        holes = np.array(sorted(offset + stride * hole for hole in own.holes), dtype=np.int64)
        axes.append(Axis(stride, offset, holes, low, high, np.arange(layout.size) < layout.values))
    return tuple(axes)


def _common(one: Fraction, other: Fraction) -> Fraction:
    """The greatest common divisor of two fractions."""
    while other:
        one, other = other, one % other
    return abs(one)


def equal_tables(placed: Placed, layouts: Mapping[str, Layout], room: Room) -> tuple[list[Factor], list[Fault]]:
    """For each neighboring pair of an equality: codes that can stand for the same cell."""
    assert isinstance(placed.rule, Equal)
    factors, faults = [], []
    for one, other in pairwise(placed.rule.columns):
        left, right = layouts[one], layouts[other]
        if left.size * right.size > MOST_CELLS:
            faults.append(too_large(placed.pointer, [left, right]))
            continue
        if not room.take(left.size * right.size, placed.pointer):
            break
        table = np.zeros((left.size, right.size), dtype=np.bool_)
        if left.field.type in ("string", "boolean"):
            keys = [[scalar_text(item.value) for item in listed_values(own.field) or ()] for own in (left, right)]
            table[: left.values, : right.values] = np.array(keys[0])[:, None] == np.array(keys[1])[None, :]
        else:
            axes = _axes([kept_boxes(left), kept_boxes(right)], [left, right])
            assert axes is not None
            lows, highs = ([getattr(axis, end)[axis.present] for axis in axes] for end in ("low", "high"))
            meets = (lows[0][:, None] <= highs[1][None, :]) & (lows[1][None, :] <= highs[0][:, None])
            table[: left.values, : right.values] = meets
        twins: dict[tuple[str, str], list[int]] = {}
        for twin in range(right.values, right.size):
            twins.setdefault(_literal(right, twin), []).append(twin)
        for code in range(left.values, left.size):
            table[code, twins.get(_literal(left, code), [])] = True
        factors.append(factor_of((placed.place,), (one, other), table))
    return factors, faults


def _literal(layout: Layout, code: int) -> tuple[str, str]:
    """What a code that stands for no value is written as; plain missing cells are all alike."""
    place = code - layout.values
    if place < len(layout.special):
        return "special", layout.special[place].text
    place -= len(layout.special)
    if place < len(layout.missing):
        token = layout.missing[place][0]
        return "missing", token.text if token.alone else ""
    return "unlisted", ""


def joints(
    rules: Sequence[Placed], layouts: Mapping[str, Layout], room: Room
) -> tuple[list[Joint], list[Factor], list[Fault]]:
    """Rules that share columns become one system; its zeros are those combinations of codes without a solution.

    A rule whose columns have one value a code is a system of its own, and so needs only a table of its own.
    """
    numeric = [placed for placed in rules if layouts[columns_of_rule(placed.rule)[0]].field.type not in _TEXTS]
    groups: list[tuple[set[str], list[Placed]]] = []
    for placed in numeric:
        wide = {name for name in columns_of_rule(placed.rule) if is_wide(layouts[name])}
        joined, members, apart = set(wide), [placed], []
        for columns, others in groups:
            if columns & joined:
                joined |= columns
                members = [*others, *members]
            else:
                apart.append((columns, others))
        groups = [*apart, (joined, members)]
    found, factors, faults = [], list[Factor](), list[Fault]()
    for wide, members in groups:
        names = tuple(dict.fromkeys(name for placed in members for name in columns_of_rule(placed.rule)))
        if len(names) > MOST_COLUMNS:
            faults.append(too_many_columns(members[-1].pointer, len(names), MOST_COLUMNS))
            continue
        axes = _axes([kept_boxes(layouts[name]) for name in names], [layouts[name] for name in names])
        if axes is None:
            faults.append(
                Fault(members[-1].pointer, "links columns with values too large to compare; narrow the bounds")
            )
            continue
        joint = Joint(names, _system(names, axes, members))
        if wide:
            found.append(joint)
        tables, large = _zeros(joint, members, layouts, room)
        factors += tables
        faults += large
    return found, factors, faults


_TEXTS = ("string", "boolean")


def _system(names: Sequence[str], axes: tuple[Axis, ...], members: Sequence[Placed]) -> System:
    place = {name: number for number, name in enumerate(names)}
    orders, sums, equals = [], [], []
    for rule in (placed.rule for placed in members):
        if isinstance(rule, Order):
            # All pairs and not neighbors only: a missing cell between two others does not free them.
            for later in range(len(rule.columns)):
                for earlier in range(later):
                    pair = place[rule.columns[earlier]], place[rule.columns[later]]
                    orders.append((*pair, int(rule.strict)))
        elif isinstance(rule, Sum):
            sums.append((tuple(place[name] for name in rule.parts), place[rule.total]))
        elif isinstance(rule, Equal):
            equals += [(place[one], place[other]) for one, other in pairwise(rule.columns)]
    return System(axes, tuple(orders), tuple(sums), tuple(equals))


def _zeros(
    joint: Joint, members: Sequence[Placed], layouts: Mapping[str, Layout], room: Room
) -> tuple[list[Factor], list[Fault]]:
    """The zeros of a system, over codes of which all that stand for no value are one class."""
    pointer, whole = members[-1].pointer, [joint]
    if len(members) == 1 and _pairwise(joint.system, members[0]):
        pairs = [
            Joint(
                (joint.columns[one], joint.columns[other]),
                System((joint.system.axes[one], joint.system.axes[other]), ((0, 1, gap),), (), ()),
            )
            for one, other, gap in joint.system.orders
        ]
        if all(_cells(pair) <= MOST_CELLS for pair in pairs):
            whole = pairs
    tables: list[Factor] = []
    for part in whole:
        cells = _cells(part)
        if cells > MOST_CELLS:
            return [], [too_large(pointer, [layouts[name] for name in part.columns])]
        if not room.take(cells * part.system.links, pointer):
            return [], []
        tables.append(_table([placed.place for placed in members], part))
    return tables, []


def _pairwise(system: System, placed: Placed) -> bool:
    """Whether a combination is possible as soon as each pair of it is: intervals of one lattice, in weak order."""
    plain = all(not axis.holes.size and axis.stride == system.axes[0].stride for axis in system.axes)
    return isinstance(placed.rule, Order) and not placed.rule.strict and plain and len(system.axes) > 2


def _shape(joint: Joint) -> list[int]:
    """Classes of each column: its values one by one, then all codes that stand for no value together."""
    return [min(axis.present.size, int(axis.present.sum()) + 1) for axis in joint.system.axes]


def _cells(joint: Joint) -> int:
    return cells_of(_shape(joint))


def _table(places: Sequence[int], joint: Joint) -> Factor:
    """Which combinations of codes have a solution, over classes."""
    shape, axes = _shape(joint), joint.system.axes
    classes = [np.minimum(np.arange(axis.present.size), int(axis.present.sum())) for axis in axes]
    cells = cells_of(shape)
    allowed = np.empty(cells, dtype=np.bool_)
    for start in range(0, cells, CHUNK):
        stop = min(start + CHUNK, cells)
        codes = np.stack(np.unravel_index(np.arange(start, stop), shape)).astype(np.int64)
        allowed[start:stop] = joint.system.feasible(codes)
    return Factor(tuple(places), joint.columns, tuple(classes), allowed.reshape(shape))
