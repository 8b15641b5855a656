"""The exponential mechanism, exactly: Pr[i] proportional to exp(epsilon score_i / (2 sensitivity)).

One uniform number is inverted through integer brackets, as for the noise laws; bits are drawn until they
decide. The weights are whole powers of one number, whose low powers are shared by all candidates.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.privacy.brackets import Brackets, Interval, exp_bracket, listed_brackets, multiply
from margent.privacy.inversion import refine
from margent.privacy.randomness import random_bits

_DIGIT = 8  # bits of an exponent that one look into a table of powers covers
_BITS = 64


def exponential_choice(scores: Sequence[int] | NDArray[np.integer], epsilon: Fraction, sensitivity: Fraction) -> int:
    """An index i drawn with probability proportional to exp(epsilon score_i / (2 sensitivity)).

    Shapes: m candidates, in; one index, out.
    Units: scores and ``sensitivity`` in the same one; ``sensitivity`` is how far one unit of privacy can move
    one score.
    Privacy: epsilon-DP, and epsilon^2/8-zCDP; the charge is the caller's. Scores are private: no message
    holds one, and nothing of them is kept.
    Source: McSherry, Talwar 2007; the zCDP cost, Cesar, Rogers 2021. Exactness: `margent.privacy.inversion`.
    Raises: UsageError without candidates, for scores that are not whole numbers, or a parameter that is not a
    positive Fraction.

    >>> exponential_choice([0, 10_000, 3], Fraction(1), Fraction(1))
    1
    """
    for name, value in (("epsilon", epsilon), ("sensitivity", sensitivity)):
        if not isinstance(value, Fraction) or value <= 0:
            raise UsageError(f"{name} must be a positive Fraction, such as Fraction(1, 2)")
    law = _ChoiceLaw(_gaps(scores), epsilon / (2 * sensitivity))
    return refine(law.brackets, random_bits(_BITS), _BITS, _BITS)


def _gaps(scores: Iterable[int]) -> list[int]:
    """How far each score is below the best."""
    try:
        whole = [operator.index(score) for score in scores]
    except TypeError:
        raise UsageError("scores must be whole numbers; round them to a public grid first") from None
    if not whole:
        raise UsageError("there is nothing to choose from: give at least one score")
    best = max(whole)
    return [best - score for score in whole]


@dataclass(frozen=True, slots=True)
class _ChoiceLaw:
    """Pr[i] proportional to exp(-rate gap_i), the gaps whole and one of them 0."""

    gaps: list[int]
    rate: Fraction

    def brackets(self, bits: int) -> Brackets:
        """Bracket Pr[X < i] for i = 0 .. n to ``bits`` bits."""
        # Errors, in units, stay below the largest exponent in use times the number of candidates.
        reach = min(max(self.gaps), 4 * bits * self.rate.denominator // self.rate.numerator + 1)
        precision = bits + 32 + reach.bit_length() + len(self.gaps).bit_length()
        powers = _Powers(self.rate, precision)
        weights = {gap: powers.power(gap) for gap in set(self.gaps)}
        return listed_brackets((weights[gap] for gap in self.gaps), bits)


class _Powers:
    """Brackets of exp(-rate n), n >= 0, from tables of exp(-rate j 256^d), 0 <= j < 256, made when needed."""

    def __init__(self, rate: Fraction, precision: int) -> None:
        self._precision = precision
        one = 1 << precision
        self._unit = Interval(one, one)
        self._base = exp_bracket(rate, precision)  # the next table's second entry
        self._tables: list[list[Interval]] = []
        # From rate n >= precision on, exp(-rate n) < 2^-precision: one unit at most.
        self._vanishing = -(-precision * rate.denominator // rate.numerator)

    def power(self, exponent: int) -> Interval:
        """Bracket exp(-rate n)."""
        if exponent >= self._vanishing:
            return Interval(0, 1)
        result = self._unit
        place = 0
        while exponent:
            digit = exponent & ((1 << _DIGIT) - 1)
            if digit:
                result = multiply(result, self._table(place)[digit], self._precision)
            exponent >>= _DIGIT
            place += 1
        return result

    def _table(self, place: int) -> list[Interval]:
        while place >= len(self._tables):
            table = [self._unit]
            for _ in range(1 << _DIGIT):
                table.append(multiply(table[-1], self._base, self._precision))
            self._base = table.pop()
            self._tables.append(table)
        return self._tables[place]
