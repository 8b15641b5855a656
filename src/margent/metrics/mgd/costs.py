"""What a move costs: weights of attributes, semantic distances, and one whole-number unit for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from margent.errors import UsageError
from margent.metrics.mgd.attribute import Attribute

Convention = Literal["definition", "table1"]
Weight = Fraction | float | int

FINEST_UNIT = 2**20
"""Costs that need a finer unit than 1/2^20 are rounded down to it, and the result is a pair of bounds."""


@dataclass(frozen=True)
class Axis:
    """One attribute of a marginal: what a step along it costs, None where nothing may be moved along it.

    A step is one place in an order, or one level up in a tree (down again costs nothing more).
    """

    attribute: Attribute
    step: Fraction | None


def axes_of(
    attributes: Sequence[Attribute], weights: Mapping[str, Weight] | None, convention: Convention
) -> tuple[Axis, ...]:
    """The axes of a marginal; its finite weights are scaled to sum to 1, so that no move costs more than 1.

    By default attributes with an order weigh the same and others infinitely. The convention "table1" instead
    gives every attribute the weight 1, 1/2 or 0.33 (of one, two or three) and lets one place in an order cost
    all of it, not the weight over the number of places.

    Source: Li, Dang, Wang and Li 2021, section 4 (definition) and the code behind their table 1.
    Raises: UsageError for a weight that is not above 0.
    """
    if convention == "table1":
        each = Fraction(33, 100) if len(attributes) == 3 else Fraction(1, max(len(attributes), 1))
        return tuple(Axis(one, each if one.kind == "order" else each / (len(one.levels) + 1)) for one in attributes)
    if convention != "definition":
        raise UsageError(f'unknown convention {convention!r}; use "definition" or "table1"')
    finite: dict[str, Fraction] = {}
    for one in attributes:
        weight = (weights or {}).get(one.name, 1 if one.kind == "order" and weights is None else math.inf)
        if isinstance(weight, float) and math.isinf(weight) and weight > 0:
            continue
        if not weight > 0:
            raise UsageError(f"weight of {one.name!r}: must be above 0 (math.inf: nothing is moved along it)")
        finite[one.name] = Fraction(str(weight)) if isinstance(weight, float) else Fraction(weight)
    total = sum(finite.values(), Fraction(0))
    return tuple(
        Axis(one, finite[one.name] / total / _places(one) if one.name in finite else None) for one in attributes
    )


def _places(attribute: Attribute) -> int:
    """How many steps the longest way along an attribute has."""
    return max(attribute.values - 1, 1) if attribute.kind == "order" else len(attribute.levels) + 1


def whole_costs(axes: Sequence[Axis]) -> tuple[int, tuple[int, ...]]:
    """The unit, and each axis's step in it: exact, or rounded down where that needs a unit above `FINEST_UNIT`."""
    steps = [Fraction(0) if axis.step is None else axis.step for axis in axes]
    unit = math.lcm(*(step.denominator for step in steps))
    unit = unit if unit <= FINEST_UNIT else FINEST_UNIT
    return unit, tuple(math.floor(step * unit) for step in steps)
