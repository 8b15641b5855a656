"""The lemma behind every price: N_Z(0, s^2) is g(s)-GDP, decided by interval arithmetic scale by scale.

``proofs/accounting.md`` reduces the claim for one scale to finitely many inequalities between proven
enclosures; here they are decided. An arb comparison is true only where the enclosures leave no doubt, so a
pass is a proof up to the correctness of FLINT. The environment variable MARGENT_AUDIT=1 runs the whole grid.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from margent.privacy.gdp import ETA, VERIFIED_UP_TO, squared_price
from margent.privacy.grid import index_above, point
from tests.sizes import LONG_AUDIT

LAST = index_above(VERIFIED_UP_TO)
BITS = 160
FEWER_BITS = 96  # decide nearly every inequality; the rest are decided with BITS


def exactly(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def square_root(value: arb) -> arb:
    return value.sqrt()


class Scale:
    """One scale s^2: quantiles y(k) = Q^-1(Pr[N >= k]) up to where the analytic tail bound takes over."""

    def __init__(self, scale_squared: Fraction, last: int | None = None) -> None:
        self.exact = scale_squared
        self.s2 = exactly(scale_squared)
        self.last = last if last is not None else self._takeover()
        # density f(k) = exp(-k^2/(2 s^2)) by the recurrence f(k + 1) = f(k) exp(-(2k + 1)/(2 s^2))
        self.density = [arb(1)]
        ratio, shrink = (-1 / (2 * self.s2)).exp(), (-1 / self.s2).exp()
        while len(self.density) <= self.last + 1 or not self.density[-1] < self.density[self.last] * arb(2) ** -BITS:
            self.density.append(self.density[-1] * ratio)
            ratio *= shrink
        # All further ratios are below this one, so what is left is below a geometric series.
        rest = self.density[-1] * ratio / (1 - ratio)
        self.rest = rest.union(arb(0))
        self.rest_weighted = (rest * (len(self.density) + ratio / (1 - ratio))).union(arb(0))
        self.tails = [self.rest] * (len(self.density) + 1)
        for k in range(len(self.density) - 1, -1, -1):
            self.tails[k] = self.tails[k + 1] + self.density[k]
        self.mass = 2 * self.tails[0] - 1
        self.root_of_two, self.root_of_two_pi = square_root(arb(2)), square_root(2 * arb.pi())
        self.g = 2 * self.y(1)

    def y(self, k: int) -> arb:
        return (2 * self.tails[k] / self.mass).erfcinv() * square_root(arb(2))

    def y_from(self, guess: arb, k: int) -> arb:
        """y(k) from a guess x of it, by one evaluation of Q: as Q(x) - Q(y) is y - x times a density between the two.

        Between x and x +- d the density changes by at most e^c either way, c = (|x| + d) d. Let n be Q(x) - Q(y(k))
        over the density at x, and d = 2 |n|. Where c <= 1/2, Q changes by at least d e^-c > |n| times that density
        within d either way, so |y(k) - x| <= d, and y(k) - x is n times a number in e^-c..e^c, which lies in 1 -+ 2 c.
        """
        x = guess.mid()
        density = (-x * x / 2).exp() / self.root_of_two_pi
        step = ((x / self.root_of_two).erfc() / 2 - self.tails[k] / self.mass) / density
        reach = 2 * abs(step)
        change = (abs(x) + reach) * reach
        return x + step * (1 + 2 * change * arb(0, 1)) if change < 0.5 else self.y(k)

    def _takeover(self) -> int:
        """A guess by floats at the least k where `tail_bound_holds`; the bound itself is decided by arb."""
        s2 = float(self.exact)

        def holds(k: int) -> bool:
            t = k / s2
            sinh = math.sinh(min(t / 2, 300))
            return k * k > 6.5 * s2 and t * t * (1 / (4 * sinh**2) + 1 / 12) - 1 > (
                13 / (s2 * t * t) + 1 / (6 * s2) + 1 / (144 * s2 * s2)
            )

        high = 1
        while not holds(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def tail_bound_holds(self) -> bool:
        """Steps 1 to 3 of the proof's part on the far tail, at K = `last`: all of them, decided."""
        t = arb(self.last) / self.s2
        big_g = self.g**2 * self.s2
        start = self._hazard() < self.g * self._normal_hazard(self.y(self.last))
        excess = big_g >= 1 + 1 / (12 * self.s2)
        rising = 2 * big_g <= arb(self.last) ** 2 / self.s2
        left = t * t * (1 / (4 * (t / 2).sinh() ** 2) + arb(1) / 12) - 1
        right = 13 / (self.s2 * t * t) + 1 / (6 * self.s2) + 1 / (144 * self.s2**2)
        return bool(start and excess and rising and left > right)

    def _hazard(self) -> arb:
        """H(K) = sum_j (K + j) f(K + j) / (s^2 T(K))."""
        weighted = sum((self.density[k] * k for k in range(self.last, len(self.density))), arb(0))
        return (weighted + self.rest_weighted) / self.s2 / self.tails[self.last]

    @staticmethod
    def _normal_hazard(y: arb) -> arb:
        return (-y * y / 2).exp() / ((y / square_root(arb(2))).erfc() * square_root(arb.pi() / 2))

    def smallest_margin(self, claimed: arb) -> float:
        """Least of 1 - (y(k + 1) - y(k))/claimed over 1 <= k < K; -1 where one is undecided or off.

        Each quantile starts from a step like the last one; where the enclosure found leaves doubt, both are inverted.
        """
        least = math.inf
        with ctx.workprec(FEWER_BITS):
            here, step = self.y(1), claimed
            for k in range(1, self.last):
                there = self.y_from(here + step, k + 1)
                step = there - here
                if not step < claimed:
                    with ctx.workprec(BITS):
                        step = self.y(k + 1) - self.y(k)
                    if not step < claimed:
                        return -1.0
                least = min(least, float((claimed - step).mid()))
                here = there
            return least / float(claimed.mid())


def verify(scale_squared: Fraction) -> tuple[int, float]:
    """Decide the lemma for one scale, and that its price is g^2 rounded up by little: (checks, margin)."""
    with ctx.workprec(BITS):
        scale = Scale(scale_squared)
        assert scale.tail_bound_holds(), scale_squared
        margin = scale.smallest_margin(scale.g)
        assert margin > 0, scale_squared
        price = exactly(squared_price(scale_squared))
        assert scale.g**2 <= price <= scale.g**2 * (1 + arb(2) ** -77), scale_squared
        return scale.last, margin


def test_lemma_on_a_spread_of_the_grid() -> None:
    indices = {*range(0, LAST + 1, 97), *range(12), *range(LAST - 2, LAST + 1)}
    assert LAST == 16384
    assert all(verify(point(index))[0] >= 1 for index in sorted(indices))


@pytest.mark.skipif(not LONG_AUDIT, reason="the whole grid takes minutes: set MARGENT_AUDIT=1")
def test_lemma_on_the_whole_grid() -> None:
    results = [verify(point(index)) for index in range(LAST + 1)]
    checks, margin = sum(count for count, _ in results), min(margin for _, margin in results)
    print(f"{len(results)} scales, {checks} inequalities, smallest relative margin {margin:.3g}")
    assert len(results) == 16385


def test_prices_fall_along_the_whole_grid_also_where_the_lemmas_meet() -> None:
    indices = [*range(0, LAST - 40, 53), *range(LAST - 40, LAST + 60), *range(LAST + 60, LAST + 9000, 101)]
    prices = [squared_price(point(index)) for index in indices]
    assert all(high > low for high, low in itertools.pairwise(prices))


def test_prices_are_above_the_continuous_one() -> None:
    for index in range(0, LAST + 5000, 61):
        assert squared_price(point(index)) * point(index) > 1 + 1 / (12 * point(index))


@pytest.mark.parametrize("scale_squared", [Fraction(1, 16), Fraction(1), Fraction(25), Fraction(4096)])
@pytest.mark.parametrize("factor", [Fraction(0), 1 - Fraction(1, 2**75)])
def test_planted_bug_a_price_too_low_is_refuted(
    scale_squared: Fraction, factor: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The continuous price 1/s^2, and the true price less one part in 2^75."""
    low = squared_price(scale_squared) * factor if factor else 1 / scale_squared
    monkeypatch.setitem(globals(), "squared_price", lambda _: low)
    with pytest.raises(AssertionError):
        verify(scale_squared)


def test_planted_bug_a_supremum_elsewhere_is_noticed() -> None:
    with ctx.workprec(BITS):
        scale = Scale(Fraction(25))
        assert scale.smallest_margin(scale.g) > 0
        assert scale.smallest_margin(scale.y(2) - scale.y(1)) == -1


@pytest.mark.parametrize("s", [65, 90, 151, 300, 500])
def test_wide_scales_cost_at_least_their_true_price(s: int) -> None:
    """Beyond the verified grid: the supremum over 14 s corners, against 1/(s^2 - 4)."""
    scale_squared = point(index_above(Fraction(s * s)))
    with ctx.workprec(BITS):
        scale = Scale(scale_squared, last=14 * s)
        price = exactly(squared_price(scale_squared))
        assert scale.smallest_margin(scale.g) > 0
        assert scale.g**2 < price < scale.g**2 * (1 + 4.2 / scale.s2)


def test_poisson_summation_bound_and_the_slack() -> None:
    """tau = 2: sum_z exp(-(z - c)^2/8) is 2 sqrt(2 pi) (1 +- e0) for all c; 2^40 draws stay in ETA."""
    with ctx.workprec(300):
        first = 2 * (-8 * arb.pi() ** 2).exp()
        e0 = first + 2 * (-32 * arb.pi() ** 2).exp() * 2
        for c in [Fraction(step, 16) for step in range(9)] + [Fraction(1, 3)]:
            total = sum(((-((z - exactly(c)) ** 2) / 8).exp() for z in range(-80, 81)), arb(0))
            wobble = abs(total / (2 * square_root(2 * arb.pi())) - 1)
            assert wobble <= e0 + arb(2) ** -250
            if c == 0:
                assert wobble > first * (1 - arb(2) ** -100)
        assert arb(2) ** 40 * ((1 + e0) / (1 - e0)).log() < exactly(ETA)
