"""Dividing a share of the budget among tables so that their noise error is least: c^(2/3), or c^(1/2) if pure.

A table of c cells whose noise has scale s errs by c s (times a constant of the law), and costs a constant times
s^-p: p = 2 for Gaussian noise (rho = D^2/(2 s^2)), p = 1 for Laplace noise (epsilon = D/t). To make sum_i c_i s_i
least while sum_i s_i^-p = R is fixed, set the derivative of sum_i (c_i s_i + lambda s_i^-p) to 0:
c_i = lambda p s_i^-(p + 1), so the cost s_i^-p is proportional to c_i^(p/(p + 1)). The problem is convex in the
costs (c_i cost_i^(-1/p) is), so this is the minimum; it is R^(-1/p) (sum_i c_i^(p/(p + 1)))^((p + 1)/p).
"""

from __future__ import annotations

import math
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
    return cube_root(cells * cells << (3 * _SHIFT))


def cube_root(target: int) -> int:
    """floor(target^(1/3)) for a target of at least 1, exactly. Privacy: none: public facts only.

    >>> cube_root(26), cube_root(27), cube_root(10**300) == 10**100
    (2, 3, True)
    """
    root = 1 << -(-target.bit_length() // 3)
    while True:
        lower = (2 * root + target // (root * root)) // 3
        if lower >= root:
            return root
        root = lower


def weight(cells: int, scale_power: int) -> int:
    """floor(2^20 c^(p/(p + 1))) for costs that fall with the p-th power of the noise's scale, p = 1 or 2.

    Shapes: c cells. Privacy: none: public facts only.

    >>> weight(64, 2) / SCALE, weight(64, 1) / SCALE
    (16.0, 8.0)
    """
    return two_thirds_power(cells) if scale_power == 2 else math.isqrt(cells << (2 * _SHIFT))


def allocate(share: Fraction, cells: Sequence[int], scale_power: int = 2) -> list[Fraction]:
    """Split ``share`` in proportion to c_i^(p/(p + 1)), which makes the summed noise of all cells least.

    ``scale_power`` is p: the account's (`margent.privacy.accounting.Account`).

    Shapes: one cell count a table, one part a table; the parts add up to ``share`` exactly.
    Units: the account's: mu^2/2 or rho (p = 2; a table errs by c_i sqrt(1/(pi rho_i)) records), or epsilon (p = 1;
    by c_i/epsilon_i).
    Privacy: none: public facts and earlier noisy answers only.
    Source: PrivSyn 2021 section 4.3 for p = 2; the module's derivation for both.
    """
    weights = [weight(count, scale_power) for count in cells]
    whole = sum(weights)
    return [share * Fraction(part, whole) for part in weights]
