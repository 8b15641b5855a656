"""From rules to structural zeros and to systems of values, or to faults that say what a rule cannot be kept for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margent.errors import Fault
from margent.schema.allowed import MOST_CELLS, MOST_COLUMNS, MOST_TOGETHER, Factor, Room, Truth, cells_of, factor_of
from margent.schema.bins import bin_of
from margent.schema.boxes import kept_boxes
from margent.schema.layout import Layout
from margent.schema.positions import declared_scalar, scalar_position
from margent.schema.rule_conditions import code_of_value, truth
from margent.schema.rules import Conditions, Determines, Implication, Never, Rule
from margent.schema.strict_json import step

MOST_CONDITIONS = MOST_CELLS.bit_length() - 1
"""Columns of conditions that one table can have: it has two lines for each."""


@dataclass(frozen=True)
class Placed:
    """A rule with its place in the schema's list."""

    place: int
    rule: Rule

    @property
    def pointer(self) -> str:
        """Where it stands in the schema file."""
        return f"/margent/rules/{self.place}"


@dataclass(frozen=True, eq=False)
class Written:
    """A column of wide bins that others determine: the grid value to write for each combination of their codes.

    Shapes: ``values`` has one axis a determinant; ``bound`` says where the mapping speaks.
    """

    determinants: tuple[str, ...]
    column: str
    values: np.ndarray[Any, np.dtype[np.int64]]
    bound: Truth


@dataclass
class Tables:
    """What is made of rules one after the other: factors, written columns and faults."""

    layouts: Mapping[str, Layout]
    factors: list[Factor] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    room: Room = field(default_factory=Room)

    def conditions(self, placed: Placed) -> None:
        """An implication or a forbidden combination, over codes that meet or do not meet each condition."""
        rule, before = placed.rule, len(self.faults)
        if isinstance(rule, Never):
            groups = [(self._truths(rule.together, placed, "never"), False)]
        else:
            assert isinstance(rule, Implication)
            when = self._truths(rule.when, placed, "if")
            # "a, so b and c" is "a, so b" and "a, so c": small tables instead of a large one.
            groups = [([*when, then], True) for then in self._truths(rule.then, placed, "then")]
        if len(self.faults) > before:
            return
        for group, last_is_then in groups:
            self._forbid(placed, group, last_is_then)

    def _truths(self, conditions: Conditions, placed: Placed, key: str) -> list[tuple[str, Truth]]:
        found = []
        for name, condition in conditions:
            pointer = step(step(placed.pointer, key), name)
            own = truth(condition, self.layouts[name], pointer, self.faults)
            if own is not None:
                found.append((name, own))
        return found

    def _forbid(self, placed: Placed, group: Sequence[tuple[str, Truth]], last_is_then: bool) -> None:
        """Forbid all of the conditions together (the last one's contrary, if it is what must follow)."""
        met: dict[str, Truth] = {}
        for number, (name, own) in enumerate(group):
            wanted = ~own if last_is_then and number == len(group) - 1 else own
            met[name] = met[name] & wanted if name in met else wanted
        names = tuple(met)
        if len(names) > MOST_CONDITIONS:
            self.faults.append(too_many_columns(placed.pointer, len(names), MOST_CONDITIONS))
            return
        if not self.room.take(2 ** len(names) + sum(own.size for own in met.values()), placed.pointer):
            return
        allowed = np.ones((2,) * len(names), dtype=np.bool_)
        allowed[(1,) * len(names)] = False
        classes = tuple(met[name].astype(np.int64) for name in names)
        self.factors.append(Factor((placed.place,), names, classes, allowed))

    def determines(self, placed: Placed) -> None:
        """The mapping as a table over its determinants and the column; wide bins are written from it."""
        rule = placed.rule
        assert isinstance(rule, Determines)
        given = [self.layouts[name] for name in rule.determinants]
        target = self.layouts[rule.column]
        shape = tuple(layout.size for layout in given)
        if len(given) + 1 > MOST_COLUMNS:
            self.faults.append(too_many_columns(placed.pointer, len(given) + 1, MOST_COLUMNS))
            return
        if cells_of((*shape, target.size)) > MOST_CELLS and cells_of(shape) > MOST_CELLS // 8:
            self.faults.append(too_large(placed.pointer, [*given, target]))
            return
        codes, values = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        wide = is_wide(target)
        pointer = step(placed.pointer, "mapping")
        before = len(self.faults)
        done: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {}
        for line, cells in enumerate(rule.mapping):
            here = step(pointer, line)
            keys = self._line_codes(given, cells[:-1], here)
            if keys is None:
                continue
            code, value = self._target(target, cells[-1], here, wide)
            if code is None:
                continue
            key = tuple((own[0], len(own)) for own in keys)
            if key in done:
                if done[key] != (code, value):
                    self.faults.append(Fault(here, "maps values that another line maps to something else"))
                continue
            done[key] = code, value
            index = np.ix_(*keys)
            if ((codes[index] >= 0) & ((codes[index] != code) | (values[index] != value))).any():
                self.faults.append(Fault(here, "maps values that another line maps to something else"))
            codes[index], values[index] = code, value
        unmapped = codes < 0
        for axis, layout in enumerate(given):
            # Cells that are no values are free unless a line names them.
            special = np.arange(layout.size) >= layout.values
            unmapped &= ~special.reshape([-1 if other == axis else 1 for other in range(len(given))])
        if unmapped.any() and len(self.faults) == before:
            message = f"lacks lines for {int(unmapped.sum()):,} combinations of values; every value needs one"
            self.faults.append(Fault(pointer, message))
        if len(self.faults) > before:
            return
        self._function(placed, rule, codes, target.size)
        if wide:
            self.written.append(Written(rule.determinants, rule.column, values, codes >= 0))

    def _function(self, placed: Placed, rule: Determines, codes: np.ndarray[Any, Any], size: int) -> None:
        """The factor of a function of codes; combinations with the same image are one class where there is one key."""
        if codes.ndim == 1:
            images, classes = np.unique(codes, return_inverse=True)
            if images.size * size > MOST_CELLS:
                names = (*rule.determinants, rule.column)
                self.faults.append(too_large(placed.pointer, [self.layouts[name] for name in names]))
                return
            if not self.room.take(images.size * size, placed.pointer):
                return
            allowed = (images[:, None] == np.arange(size)) | (images[:, None] < 0)
            factor = factor_of((placed.place,), (*rule.determinants, rule.column), allowed)
            first = factor.classes[0][classes.reshape(-1)]
            self.factors.append(Factor(factor.rules, factor.columns, (first, factor.classes[1]), factor.allowed))
            return
        if codes.size * size > MOST_CELLS:
            layouts = [self.layouts[name] for name in (*rule.determinants, rule.column)]
            self.faults.append(too_large(placed.pointer, layouts))
            return
        if not self.room.take(codes.size * size, placed.pointer):
            return
        allowed = (codes[..., None] == np.arange(size)) | (codes[..., None] < 0)
        self.factors.append(factor_of((placed.place,), (*rule.determinants, rule.column), allowed))

    def _line_codes(self, given: Sequence[Layout], cells: Sequence[Any], pointer: str) -> list[list[int]] | None:
        keys: list[list[int]] = []
        for layout, cell in zip(given, cells, strict=True):
            if cell is None:
                keys.append(list(range(layout.first_missing, layout.first_missing + len(layout.missing))))
                continue
            code = code_of_value(_typed(layout, cell), layout, pointer, self.faults)
            if code is None:
                return None
            keys.append([code])
        return keys if all(keys) else None

    def _target(self, layout: Layout, cell: Any, pointer: str, wide: bool) -> tuple[int | None, int]:
        """The code of a mapped value and, in a column of wide bins, the grid value to write."""
        if cell is None:
            if layout.missing:
                return layout.first_missing, 0
            self.faults.append(Fault(pointer, f"maps to a missing cell, and {layout.field.name!r} is required"))
            return None, 0
        if not wide:
            return code_of_value(_typed(layout, cell), layout, pointer, self.faults), 0
        return _grid_value(layout, _typed(layout, cell), pointer, self.faults)


def _typed(layout: Layout, cell: Any) -> Any:
    """The value that a text in a mapping stands for: keys of JSON objects and cells of files are always texts."""
    if not isinstance(cell, str) or cell in layout.texts or layout.field.type not in ("integer", "year"):
        return cell
    body = cell.removeprefix("-")
    return int(cell) if body.isascii() and body.isdigit() and len(body) < 20 else cell


def _grid_value(layout: Layout, cell: Any, pointer: str, faults: list[Fault]) -> tuple[int | None, int]:
    name = layout.field.name
    if isinstance(cell, str) and cell in layout.texts:
        return layout.texts[cell], 0
    try:
        scalar = declared_scalar(layout.field.type, cell, layout.field.spelling)
        position = scalar_position(layout.field.type, scalar, layout.field.time_zone)
    except ValueError as error:
        faults.append(Fault(pointer, f"field {name!r}: {error}"))
        return None, 0
    boxes, cuts = kept_boxes(layout), layout.cuts
    assert cuts is not None
    index = boxes.grid.floor(position)
    code = bin_of(cuts, position)
    written = Fraction(boxes.position(index)) == position and boxes.low[code] <= index <= boxes.high[code]
    if not written or index in boxes.holes:
        faults.append(Fault(pointer, f"maps to a value that {name!r} cannot be written as; check bounds and decimals"))
        return None, 0
    return code, index


def is_wide(layout: Layout) -> bool:
    """Whether some code of a column stands for several values."""
    return layout.field.type not in ("string", "boolean") and kept_boxes(layout).wide


def too_large(pointer: str, layouts: Sequence[Layout]) -> Fault:
    """The fault of a table of allowed combinations above the cap, with what would make it fit."""
    sizes = " x ".join(f"{layout.size:,} ({layout.field.name!r})" for layout in layouts)
    cells = cells_of([layout.size for layout in layouts])
    return Fault(
        pointer,
        f"links columns with {sizes} = {cells:,} combinations of codes, and at most {MOST_CELLS:,} can be kept; "
        "give these columns fewer bins or categories, or split the rule",
    )


def too_many_columns(pointer: str, count: int, most: int) -> Fault:
    """The fault of a rule, or of rules that share columns, over more columns than one table can have."""
    return Fault(
        pointer, f"links {count:,} columns at once, and one table can have {most}; split the rule into smaller ones"
    )


def no_room(pointer: str) -> Fault:
    """The fault of the rule whose table did not fit beside those of the others."""
    return Fault(
        pointer,
        f"the tables of all rules together can have {MOST_TOGETHER:,} combinations of codes, and this rule's does not "
        "fit any more; use fewer rules, rules on fewer columns, or columns of fewer bins",
    )
