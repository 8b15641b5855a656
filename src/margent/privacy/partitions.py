"""Partition selection: above which noisy count a value's name may be told, and how much of delta that uses up.

Each value of an open set gets its exact count plus its own draw of N_Z(0, s^2), and is told, with that sum, where the
sum is at least T. A value that neighbors share is covered by the noise. One that only one of them has is told with
probability Pr[v + N >= T], where v of the unit's rows hold it; T makes the sum of these at most delta, however the k
rows of a unit are split among such values (``proofs/partition-selection.md``).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from margent.errors import UsageError
from margent.privacy import normal
from margent.privacy.laws import Gaussian, Law
from margent.privacy.neighbors import Neighbors
from margent.privacy.normal import real

MOST_THRESHOLD = 2**60


def threshold(law: Law, delta: Fraction, neighbors: Neighbors) -> int:
    """The least T for which `delta_used` is at most ``delta``; a function of public facts.

    Units: records.
    Privacy: none: public.
    Raises: UsageError where delta is 0 or the noise is not Gaussian: at delta 0 no name could ever be told.

    >>> threshold(Gaussian(Fraction(100)), Fraction(1, 10**10), Neighbors())
    66
    """
    if delta <= 0 or not isinstance(law, Gaussian):
        raise UsageError(
            "values of an open set can only be bought with delta above 0: any value might be one person's alone, and "
            "telling its name with a chance of delta is what delta is for; list the values, or use accountant gdp"
        )
    return _threshold(law.scale_squared, delta, neighbors.unit_rows)


def delta_used(scale_squared: Fraction, least: int, rows: int) -> Fraction:
    """At least the sum of Pr[v_i + N >= T] over any split of ``rows`` = v_1 + v_2 + ...: max over v of rows/v times it.

    Privacy: none: public.
    Source: ``proofs/partition-selection.md``.
    """
    return max(Fraction(rows, each) * tail(scale_squared, least - each) for each in range(1, rows + 1))


def tail(scale_squared: Fraction, start: int) -> Fraction:
    """At least Pr[N >= start], and at most 1: exp(-t^2/(2 s^2)) / (s sqrt(2 pi) (1 - exp(-t/s^2))).

    The sum over x >= t is bounded by a geometric one, since (t + j)^2 >= t^2 + 2 t j, and the normalizing sum of the
    discrete law is at least s sqrt(2 pi) (Poisson summation).

    Privacy: none: public.

    >>> round(float(tail(Fraction(100), 30)), 5)
    0.00171
    """
    if start < 1:
        return Fraction(1)
    mp, squared, t = normal.context(), real(scale_squared), real(start)
    bound = mp.exp(-t * t / (2 * squared)) / (mp.sqrt(2 * mp.pi * squared) * -mp.expm1(-t / squared))
    return min(Fraction(1), normal.rounded_up(bound, normal.PRICE_BITS))


@lru_cache(maxsize=256)
def _threshold(scale_squared: Fraction, delta: Fraction, rows: int) -> int:
    low, high = rows, rows + 1
    while delta_used(scale_squared, high, rows) > delta:
        low, high = high, 2 * high
        if high > MOST_THRESHOLD:
            raise UsageError("delta is too small for this noise: no count could ever pass the threshold; raise epsilon")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_used(scale_squared, middle, rows) <= delta else (middle, high)
    return high
