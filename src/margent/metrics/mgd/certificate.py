"""What a plan costs, and what prices prove that any plan must cost: equal numbers are a proof of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent.metrics.mgd.costs import Axis
from margent.metrics.mgd.split import Plan, blocks

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Certificate:
    """A plan that costs ``primal`` and prices that prove no plan costs less than ``dual``; optimal where equal.

    Units: records, exactly.
    """

    primal: Fraction
    dual: Fraction

    @property
    def optimal(self) -> bool:
        """Whether the plan is proved to be cheapest."""
        return self.primal == self.dual


def left_over(outflow: Ints, least: Ints, most: Ints) -> Ints:
    """Records over (positive) or short (negative) of each cell's tolerance after the moves."""
    over: Ints = np.maximum(least - outflow, 0)
    short: Ints = np.maximum(outflow - most, 0)
    return over - short


def price_terms(price: Ints, least: Ints, most: Ints) -> Ints:
    """What each cell adds to the bound: its price times what it must send (price > 0) or may send (price < 0)."""
    return np.where(price > 0, price * least, price * most)


def certified(
    plan: Plan, least: Ints, most: Ints, axes: Sequence[Axis], unit: int, steps: Sequence[int]
) -> Certificate:
    """The two bounds of a plan, each computed from the table and nothing that a solver says of itself.

    Raises: AssertionError where prices differ by more than a move costs, a fault of this program.
    """
    assert feasible(plan.price, axes, unit, steps), "prices break a bound"
    moves = sum(
        (axis.step * made for axis, made in zip(axes, plan.steps, strict=True) if axis.step is not None), Fraction(0)
    )
    primal = moves + int(np.abs(left_over(plan.outflow, least, most)).sum())
    return Certificate(primal, Fraction(int(price_terms(plan.price, least, most).sum()), unit))


def feasible(price: Ints, axes: Sequence[Axis], unit: int, steps: Sequence[int]) -> bool:
    """Whether no price exceeds a unit and no two differ by more than the distance between their cells.

    Checked along one axis at a time: a move along several is a chain of such ones.
    """
    if price.size and np.abs(price).max() > unit:
        return False
    for part, live in blocks(axes):
        for place in live:
            fibers = np.moveaxis(price[part], place, 0)
            one, step = axes[place].attribute, steps[place]
            if not fibers.size:
                continue
            if one.kind == "order":
                if np.abs(np.diff(fibers, axis=0)).max(initial=0) > step:
                    return False
                continue
            for height, level in enumerate([*one.groups, None], start=1):
                groups = np.zeros(one.size, dtype=np.int64) if level is None else np.array(level, dtype=np.int64)
                order = np.argsort(groups, kind="stable")
                starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
                inside = fibers[order]
                spread = np.maximum.reduceat(inside, starts) - np.minimum.reduceat(inside, starts)
                if spread.max() > height * step:
                    return False
    return True
