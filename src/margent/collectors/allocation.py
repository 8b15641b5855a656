"""Dividing a share of the budget among tables so that their noise error is least: rho_i ~ c_i^(2/3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

_SHIFT = 20
SCALE = 2**_SHIFT
"""Units of `two_thirds_power` in one: cube roots are exact to 1e-6 and the same on every machine."""


def two_thirds_power(cells: int) -> int:
    """floor(2^20 c^(2/3)) in whole numbers, so that no machine's rounding can change a plan.

    Shapes: c cells. Privacy: none: public facts only.

    >>> two_thirds_power(8) / SCALE, two_thirds_power(1000) / SCALE
    (4.0, 100.0)
    """
    target = cells * cells << (3 * _SHIFT)
    root = 1 << -(-target.bit_length() // 3)
    while True:
        lower = (2 * root + target // (root * root)) // 3
        if lower >= root:
            return root
        root = lower


def allocate(share: Fraction, cells: Sequence[int]) -> list[Fraction]:
    """Split ``share`` in proportion to c_i^(2/3), which makes sum_i c_i / sqrt(rho_i) least.

    Shapes: one cell count a table, one part a table; the parts add up to ``share`` exactly.
    Units: the account's (mu^2/2 or rho); the noise error of a table is c_i sqrt(1/(pi rho_i)) records.
    Privacy: none: public facts and earlier noisy answers only.
    Source: PrivSyn 2021 section 4.3.
    """
    weights = [two_thirds_power(count) for count in cells]
    whole = sum(weights)
    return [share * Fraction(weight, whole) for weight in weights]
