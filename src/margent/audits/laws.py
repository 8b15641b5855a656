"""Is the noise what it is said to be? Exact brackets against 600-bit arithmetic, and draws against the law."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

from margent.privacy.brackets import DiscreteLaw

_PRECISION = 600  # bits
_NEGLIGIBLE = 300  # weights below 2^-300 of the largest cannot move a bracket of 192 bits


def checked_brackets(law: DiscreteLaw, bits: int) -> tuple[int, int]:
    """How many integer brackets the sampler has, and how many do not enclose the 600-bit value within two units.

    Privacy: none: constants of a public law.

    >>> from fractions import Fraction
    >>> from margent.privacy.brackets import discrete_gaussian_law
    >>> checked_brackets(discrete_gaussian_law(Fraction(5)), 64)
    (48, 0)
    """
    brackets = law.brackets(bits)
    with mp.workprec(_PRECISION):
        masses = _masses(law, _PRECISION)
        first = 1 - (len(masses) + 1) // 2 if law.two_sided else 0
        below, reached = {}, mpf(0)
        for place, mass in enumerate(masses):
            below[first + place] = reached
            reached += mass
        wrong = 0
        for place, (low, high) in enumerate(zip(brackets.lows, brackets.highs, strict=True)):
            true = below.get(brackets.first + place, mpf(1)) * mpf(2) ** bits
            wrong += not (low <= true <= high and high - low <= 2)
    return len(brackets.lows), wrong


def _masses(law: DiscreteLaw, precision: int) -> list[mpf]:
    """Probabilities from the definition, in arithmetic of so many bits, from the least outcome kept to the largest."""
    with mp.workprec(precision):
        weights = [mpf(1)]
        while weights[-1] > mpf(2) ** -_NEGLIGIBLE:
            exponent = law.exponent(len(weights))
            weights.append(mp.exp(-mpf(exponent.numerator) / exponent.denominator))
        listed = weights[:0:-1] + weights if law.two_sided else weights
        total = mp.fsum(listed)
        return [weight / total for weight in listed]


@lru_cache(maxsize=16)
def _float_masses(law: DiscreteLaw) -> tuple[NDArray[np.float64], int]:
    """The same to the nearest float, with the least outcome kept; a law is tested many times."""
    masses = np.array([float(mass) for mass in _masses(law, 100)])
    return masses, 1 - (masses.size + 1) // 2 if law.two_sided else 0


def misfit(draws: NDArray[np.int64], law: DiscreteLaw) -> float:
    """How many standard deviations Pearson's statistic of the draws is off: a normal deviate, two sides alike.

    Cells hold at least 200 expected draws; the statistic is made normal by Wilson and Hilferty's cube root,
    which is accurate to a few hundredths here.

    Shapes: draws (n,), n at least 2,000.
    Privacy: none: the draws are made for the test.
    """
    masses, first = _float_masses(law)
    places = np.clip(draws - first, 0, masses.size - 1)
    observed = np.bincount(places, minlength=masses.size)
    expected = masses * draws.size
    # Tails join their neighbor, so that every group is well filled.
    groups = np.floor(np.minimum(np.cumsum(expected), draws.size - 200) / 200)
    _, groups = np.unique(groups, return_inverse=True)
    want, got = np.bincount(groups, weights=expected), np.bincount(groups, weights=observed)
    freedom = want.size - 1
    if freedom == 0:
        return 0.0
    statistic = float(((got - want) ** 2 / want).sum())
    spread = 2 / (9 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))


def scale_misfit(draws: NDArray[np.int64], law: DiscreteLaw) -> float:
    """How many standard deviations the mean square of the draws is off the law's variance: sees 1 % in 2e5 draws.

    Privacy: none: the draws are made for the test.
    """
    masses, first = _float_masses(law)
    outcomes = np.arange(first, first + masses.size, dtype=np.float64)
    second, fourth = float((masses * outcomes**2).sum()), float((masses * outcomes**4).sum())
    mean = float((draws.astype(np.float64) ** 2).mean())
    return (mean - second) / math.sqrt((fourth - second**2) / draws.size)


def limit(alpha: float) -> float:
    """The deviate that is passed on either side with probability ``alpha``.

    Privacy: none.

    >>> round(limit(0.05), 2)
    1.96
    """
    return NormalDist().inv_cdf(1 - alpha / 2)
