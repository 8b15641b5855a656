"""A rho that OpenDP's MST can divide without passing it, for `opendp_tables.py`. Standard library only.

OpenDP 0.16's MST divides what it may spend on choosing edges by their number and adds the parts up again, rounding up.
With 13 edges, for about five budgets of six, the sum is too large in its last place, and it refuses itself
("insufficient budget") after the one-ways are bought. Here the same sums are made beforehand, and rho is lowered until
they fit: by some parts in a million, which no figure shows.
"""

from __future__ import annotations

import math
from fractions import Fraction

STEP = 1e-6


def added_up(left: float, right: float) -> float:
    """The least float that is no less than the sum."""
    near = left + right
    return near if Fraction(near) >= Fraction(left) + Fraction(right) else math.nextafter(near, math.inf)


def before(value: float) -> float:
    return math.nextafter(value, -math.inf)


def divides(rho: float, edges: int) -> bool:
    """Whether the parts for so many edges keep within what MST sets apart for choosing them."""
    tables = before(before(rho - rho * 0.5))
    choosing = before(before(tables - tables * 0.9))
    spent = 0.0
    for _ in range(edges):
        spent = added_up(spent, before(choosing / edges))
    return spent <= choosing


def divisible(rho: float, edges: int) -> float:
    """The largest rho·(1 − j·STEP), j = 1, 2, ..., that divides."""
    for steps in range(1, 10_000):
        lowered = rho * (1 - steps * STEP)
        if divides(lowered, edges):
            return lowered
    raise SystemExit("no budget near this one can be divided by MST as OpenDP rounds it")
