"""Rules as structural zeros: for each, a small table over codes that says which combinations some row can have.

A table is kept over *classes* of codes that a rule cannot tell apart, so that a condition on a column of a thousand
codes takes two lines and not a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Truth = NDArray[np.bool_]
Integers = NDArray[np.int64]

MOST_CELLS = 2**22
"""Combinations of codes that one table of allowed ones may have."""
MOST_COLUMNS = 64
"""Columns that one table may have: the axes of an array, and what `rule_systems` narrows to its end in its rounds."""
MOST_TOGETHER = 2**25
"""Combinations of all tables of a schema; those of orderings, sums and equalities count once for each link."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Which combinations of codes of ``columns`` obey the rules at ``rules`` (their places in the schema).

    Shapes: ``classes`` has one array a column, with one class a code; ``allowed`` one axis a column, over classes.
    Privacy: none: a function of the schema.

    >>> same = Factor((0,), ("a", "b"), (np.array([0, 1]), np.array([0, 1, 1])), np.eye(2, dtype=bool))
    >>> same.holds([np.array([0, 0, 1, 1]), np.array([0, 2, 1, 2])]).tolist()
    [True, False, True, True]
    """

    rules: tuple[int, ...]
    columns: tuple[str, ...]
    classes: tuple[Integers, ...]
    allowed: Truth

    def holds(self, codes: Sequence[Integers]) -> Truth:
        """Which rows obey: one array of codes a column of the factor."""
        places = tuple(own[each] for own, each in zip(self.classes, codes, strict=True))
        good: Truth = self.allowed[places]
        return good

    def merged(self, groups: Mapping[str, Integers]) -> Factor:
        """The factor over groups of codes: allowed where some codes of the groups are.

        Shapes: ``groups[name]`` has one group a code, -1 for codes that are left out.
        """
        table, classes = self.allowed, []
        for axis, (name, own) in enumerate(zip(self.columns, self.classes, strict=True)):
            group = groups[name]
            held = np.zeros((int(group.max()) + 1, table.shape[axis]), dtype=np.bool_)
            held[group[group >= 0], own[group >= 0]] = True
            sets, members = np.unique(held, axis=0, return_inverse=True)
            classes.append(members.reshape(-1).astype(np.int64))
            moved = np.moveaxis(table, axis, 0)
            table = np.moveaxis(np.stack([moved[each].any(axis=0) for each in sets]), 0, axis)
        return Factor(self.rules, self.columns, tuple(classes), np.ascontiguousarray(table))

    def projected(self, names: Collection[str]) -> Truth | None:
        """Which codes of those of its columns that are among ``names`` can go together; None where all can.

        Shapes: one axis for each column of the factor that is among ``names``, in the factor's order.
        """
        others = tuple(axis for axis, name in enumerate(self.columns) if name not in names)
        table = np.asarray(self.allowed.any(axis=others))
        if table.ndim == 0 or table.all():
            return None
        own = [classes for classes, name in zip(self.classes, self.columns, strict=True) if name in names]
        result: Truth = table[np.ix_(*own)]
        return result


def factor_of(rules: Sequence[int], columns: Sequence[str], table: Truth) -> Factor:
    """The factor of a table over codes: codes with equal slices share a class.

    >>> factor_of([0], ["a", "b"], np.array([[True, False], [True, False], [False, True]])).allowed.shape
    (2, 2)
    """
    classes = []
    for axis in range(table.ndim):
        moved = np.moveaxis(table, axis, 0)
        flat = np.packbits(moved.reshape(moved.shape[0], -1), axis=1)
        _, first, members = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        classes.append(members.reshape(-1).astype(np.int64))
        table = np.moveaxis(moved[first], 0, axis)
    return Factor(tuple(rules), tuple(columns), tuple(classes), np.ascontiguousarray(table))


def cells_of(shape: Sequence[int]) -> int:
    """How many combinations there are, as an exact integer."""
    return math.prod(int(size) for size in shape)


class Room:
    """How many combinations the tables of a schema may still have; ``refused`` is the first rule that found too few."""

    def __init__(self) -> None:
        """Room for `MOST_TOGETHER`."""
        self.left = MOST_TOGETHER
        self.refused: str | None = None

    def take(self, combinations: int, pointer: str) -> bool:
        """Take room for a table of the rule at ``pointer``; False where there is not enough."""
        if combinations > self.left:
            self.refused = self.refused or pointer
            return False
        self.left -= combinations
        return True


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """All factors, and which codes each column of theirs can have at all.

    Shapes: ``possible[name]`` has one entry a code; columns of no factor are absent.
    Privacy: none: a function of the schema.
    """

    factors: tuple[Factor, ...]
    possible: Mapping[str, Truth]

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that a factor speaks of."""
        return frozenset(name for factor in self.factors for name in factor.columns)

    def merged(self, groups: Mapping[str, Integers]) -> StructuralZeros:
        """The zeros over groups of codes (-1: left out)."""
        possible = {}
        for name, codes in self.possible.items():
            own = np.zeros(int(groups[name].max()) + 1, dtype=np.bool_)
            own[groups[name][codes & (groups[name] >= 0)]] = True
            possible[name] = own
        return StructuralZeros(tuple(factor.merged(groups) for factor in self.factors), possible)

    def mask(self, clique: Sequence[str]) -> Truth | None:
        """Which cells of a table over some columns can hold records; None where all can.

        Shapes: broadcasts against the table over ``clique``.
        """
        found: Truth | None = None
        for factor in self.factors:
            table = factor.projected(clique)
            if table is None:
                continue
            own = [name for name in factor.columns if name in clique]
            table = np.transpose(table, sorted(range(len(own)), key=lambda axis: clique.index(own[axis])))
            table = np.expand_dims(table, tuple(axis for axis, name in enumerate(clique) if name not in own))
            found = table if found is None else found & table
        return found
