"""Integer brackets of distribution functions: low <= 2^B Pr[X < k] <= high, in whole-number arithmetic only.

No floating point and no library function enters: exp(-x) of a rational x is bracketed by an alternating
series and squarings, all further weights by multiplication, every step rounded outward. What is bracketed is
the whole law, tails included, so a sampler that compares B random bits with the brackets either knows the
outcome for certain or knows that it needs more bits (`margent.privacy.inversion`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol


class Interval(NamedTuple):
    """low <= the number <= high, both in units of 2^-precision, the precision being the context's."""

    low: int
    high: int


def multiply(left: Interval, right: Interval, precision: int) -> Interval:
    """Bracket the product of two nonnegative numbers.

    Privacy: none: constants.
    """
    return Interval(left[0] * right[0] >> precision, -(-left[1] * right[1] >> precision))


def exp_bracket(exponent: Fraction, precision: int) -> Interval:
    """Bracket exp(-x) for a rational x >= 0; at most two units wide.

    Privacy: none: a constant of the law.
    Source: alternating Taylor series on x / 2^h < 2^-8, then h squarings; each doubles the relative error, so
    h + 32 guard bits leave under 2^-20 of a unit before the final rounding.

    >>> exp_bracket(Fraction(1), 32)
    Interval(low=1580030168, high=1580030169)
    """
    if exponent == 0:
        return Interval(1 << precision, 1 << precision)
    if exponent >= precision:
        return Interval(0, 1)  # exp(-x) < 2^-x
    top, bottom = exponent.numerator, exponent.denominator
    halvings = max(0, top.bit_length() - bottom.bit_length() + 9)
    guard = halvings + 32
    working = precision + guard
    small = (top << working) // (bottom << halvings)
    argument = Interval(small, small + 1)
    low = high = 1 << working
    term = Interval(low, high)
    order = 0
    while term.high > 1:
        order += 1
        below, above = multiply(term, argument, working)
        term = Interval(below // order, -(-above // order))
        if order % 2:
            low, high = low - term.high, high - term.low
        else:
            low, high = low + term.low, high + term.high
    # The terms alternate and decrease, so what is left out is below the last one: at most one unit.
    power = Interval(low - 1, high + 1)
    for _ in range(halvings):
        power = multiply(power, power, working)
    return Interval(power.low >> guard, min(-(-power.high >> guard), 1 << precision))


@dataclass(frozen=True, slots=True)
class Brackets:
    """For i = 0 .. m: lows[i] <= 2^bits Pr[X < first + i] <= highs[i], both sequences nondecreasing.

    Privacy: none for a noise law, whose parameters are public; those of a private choice never leave it.
    """

    bits: int
    first: int
    lows: list[int]
    highs: list[int]

    def outcome(self, string: int) -> int | None:
        """What every uniform number whose first bits are ``string`` maps to, or None where that differs.

        The number maps to k when Pr[X < k] <= number < Pr[X < k + 1].
        """
        index = bisect_right(self.lows, string) - 1
        if 0 <= index < len(self.lows) - 1 and self.highs[index] <= string:
            return self.first + index
        return None

    def coarser(self, bits: int) -> Brackets:
        """Bracket the same numbers to fewer bits."""
        drop = self.bits - bits
        return Brackets(bits, self.first, [low >> drop for low in self.lows], [-(-high >> drop) for high in self.highs])


class Law(Protocol):
    """A distribution on the integers that can be bracketed to any number of bits."""

    def brackets(self, bits: int) -> Brackets:
        """Bracket the distribution function to ``bits`` bits."""
        ...


@dataclass(frozen=True, slots=True)
class DiscreteLaw:
    """Pr[X = x] proportional to exp(-E(|x|)), E(j) = slope j + curvature j (j - 1) / 2, on Z or on x >= 0.

    The discrete Laplace has curvature 0; the discrete Gaussian has curvature = 2 slope, so E(j) = slope j^2.
    """

    slope: Fraction
    curvature: Fraction
    two_sided: bool = True

    def exponent(self, magnitude: int) -> Fraction:
        """E(j), exactly."""
        return self.slope * magnitude + self.curvature * (magnitude * (magnitude - 1) // 2)

    def brackets(self, bits: int) -> Brackets:
        """Bracket Pr[X < k] for all k up to where the tail is below 2^-(bits + 16)."""
        resolution = bits + 16
        # 2^reach is about the number of weights; their errors, in units, add up to less than its cube.
        reach = 0
        while self.exponent(1 << reach) < resolution + 8:
            reach += 1
        precision = resolution + 3 * reach + 32
        return self._normalized(bits, 1 << precision, *self.sums(precision, resolution))

    def sums(self, precision: int, resolution: int) -> tuple[list[Interval], Interval]:
        """Bracket w_1 + .. + w_j, w_j = exp(-E(j)), for j = 0 .. K, and the sum of all from w_1 on.

        K is where the rest is below 2^-resolution. w_{j+1} = w_j r_j and r_{j+1} = r_j exp(-curvature); the r_j
        do not increase, so the rest is between w_{K+1} and w_{K+1} / (1 - r_{K+1}).
        """
        one = 1 << precision
        shrink = exp_bracket(self.curvature, precision)
        weight = exp_bracket(self.slope, precision)  # w_{j+1}, while the sums end at w_j
        ratio = multiply(weight, shrink, precision)  # r_{j+1}
        sums = [Interval(0, 0)]
        low = high = 0
        while weight.high << resolution >= one - ratio.high:
            low += weight.low
            high += weight.high
            sums.append(Interval(low, high))
            weight = multiply(weight, ratio, precision)
            ratio = multiply(ratio, shrink, precision)
        tail = -(-(weight.high << precision) // (one - ratio.high))
        return sums, Interval(low + weight.low, high + tail)

    def _normalized(self, bits: int, one: int, sums: list[Interval], every: Interval) -> Brackets:
        """Turn brackets of w_1 + .. + w_j, and of the sum of all, into those of the distribution function."""
        whole = 1 << bits
        sides = 2 if self.two_sided else 1
        total = Interval(one + sides * every.low, one + sides * every.high)
        if not self.two_sided:  # Pr[X < j + 1] = (1 + w_1 + .. + w_j) / total
            lows = [((one + low) << bits) // total.high for low, _ in sums]
            highs = [min(whole, -((-(one + high) << bits) // total.low)) for _, high in sums]
            return Brackets(bits, 0, [0, *lows], [0, *highs])
        # Pr[X < j + 1] = 1/2 + (1 + 2 (w_1 + .. + w_j)) / (2 total), and Pr[X < -j] = 1 - Pr[X < j + 1].
        lows = [((total.high + one + 2 * low) << bits) // (2 * total.high) for low, _ in sums]
        highs = [min(whole, -((-(total.low + one + 2 * high) << bits) // (2 * total.low))) for _, high in sums]
        return Brackets(
            bits,
            1 - len(sums),
            [whole - high for high in reversed(highs)] + lows,
            [whole - low for low in reversed(lows)] + highs,
        )


def discrete_gaussian_law(scale_squared: Fraction) -> DiscreteLaw:
    """N_Z(0, s^2): Pr[X = x] proportional to exp(-x^2 / (2 s^2)).

    Units: records squared.
    Privacy: none: a public law.

    >>> discrete_gaussian_law(Fraction(8)).exponent(3)
    Fraction(9, 16)
    """
    return DiscreteLaw(1 / (2 * scale_squared), 1 / scale_squared)


def discrete_laplace_law(scale: Fraction) -> DiscreteLaw:
    """Pr[X = x] proportional to exp(-|x| / t).

    Units: records.
    Privacy: none: a public law.

    >>> discrete_laplace_law(Fraction(8)).exponent(3)
    Fraction(3, 8)
    """
    return DiscreteLaw(1 / scale, Fraction(0))


def listed_brackets(weights: Iterable[Interval], bits: int) -> Brackets:
    """Bracket the law on 0 .. n - 1 whose probabilities are proportional to n bracketed weights.

    Privacy: none by itself: as private as the weights.
    """
    low = high = 0
    sums = [Interval(0, 0)]
    for weight in weights:
        low += weight[0]
        high += weight[1]
        sums.append(Interval(low, high))
    whole = 1 << bits
    lows = [(before << bits) // high for before, _ in sums[:-1]]
    highs = [min(whole, -((-after << bits) // low)) for _, after in sums[:-1]]
    return Brackets(bits, 0, [*lows, whole], [*highs, whole])
