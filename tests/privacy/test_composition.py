"""Stated (epsilon, delta) against the exact divergence of small releases, summed point by point.

The oracle knows nothing of GDP or zCDP: it adds up (P - e^epsilon Q)+ over all outcomes of a vector of
discrete Gaussians, in 200-bit interval arithmetic, tails included. A price of 1/s^2, which would be right for
continuous noise, is the planted bug that it must catch.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from flint import arb, ctx

from margent.privacy.accounting import account_named

BITS = 200
EPSILONS = [Fraction(step) for step in ("0", "1/4", "1", "2", "4")]

# Each release is a list of (s^2, shift of that coordinate); every s^2 is on the grid.
RELEASES = [
    [(Fraction(1, 16), 1)],
    [(Fraction(1, 4), 1)],
    [(Fraction(1), 1)],
    [(Fraction(4), 3)],
    [(Fraction(25), 2)],
    [(Fraction(1, 2), 1), (Fraction(2), -1)],
    [(Fraction(1), 1), (Fraction(1), 1)],
    [(Fraction(3, 2), 1), (Fraction(9), 4)],
    [(Fraction(5000), 40)],
    [(Fraction(1, 4), 1), (Fraction(1, 2), 1), (Fraction(3), 2)],
    [(Fraction(1), 1), (Fraction(2), 1), (Fraction(4), 1)],
]

Release = list[tuple[Fraction, int]]


def exactly(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


class Law:
    """N_Z(0, s^2) on -reach..reach, with the mass outside as a bound."""

    def __init__(self, scale_squared: Fraction) -> None:
        self.s2 = scale_squared
        self.reach = int((90 * float(scale_squared)) ** 0.5 * 1.3) + 12
        weights = {z: (-exactly(z * z / (2 * scale_squared))).exp() for z in range(-self.reach, self.reach + 1)}
        total = sum(weights.values(), arb(0))
        self.outside = 4 * (-exactly(Fraction(self.reach**2) / (2 * scale_squared))).exp()
        # Leaving the outer mass out of the normalization changes each probability by less than ``outside``.
        self.mass = {z: weight / total for z, weight in weights.items()}
        self.above = {self.reach + 1: arb(0)}
        for z in range(self.reach, -self.reach - 1, -1):
            self.above[z] = self.above[z + 1] + self.mass[z]

    def tail(self, z: int) -> arb:
        """Pr[N >= z], up to ``outside``."""
        return self.above[min(max(z, -self.reach), self.reach + 1)]

    def loss(self, z: int, shift: int) -> Fraction:
        """ln of Pr[N + shift = z] / Pr[N = z]."""
        return Fraction(2 * shift * z - shift * shift) / (2 * self.s2)


def exact_delta(release: Release, epsilon: Fraction) -> arb:
    """sum of (P - e^epsilon Q)+ with P the shifted release; every coordinate but the last is enumerated."""
    laws = [Law(s2) for s2, _ in release]
    shifts = [abs(shift) for _, shift in release]
    *firsts, last = laws
    ranges = [range(-law.reach, law.reach + shift + 1) for law, shift in zip(firsts, shifts, strict=False)]
    growth = exactly(epsilon).exp()
    total = arb(0)
    for outcome in itertools.product(*ranges):
        p, q, loss = arb(1), arb(1), Fraction(0)
        for law, shift, z in zip(firsts, shifts, outcome, strict=False):
            p *= law.mass.get(z - shift, arb(0))
            q *= law.mass.get(z, arb(0))
            loss += law.loss(z, shift)
        # P > e^epsilon Q exactly where the last coordinate is above this threshold.
        threshold = ((epsilon - loss) * last.s2 / shifts[-1] + Fraction(shifts[-1], 2)).__floor__() + 1
        total += p * last.tail(threshold - shifts[-1]) - growth * q * last.tail(threshold)
    outside = sum((law.outside for law in laws), arb(0)) * (1 + growth) * 4
    assert outside < total * arb(10) ** -9
    return total + outside


def brute_delta(release: Release, epsilon: Fraction) -> float:
    """The same sum in floats, every coordinate enumerated: checks the oracle itself."""
    laws, growth = [Law(s2) for s2, _ in release], float(exactly(epsilon).exp())
    masses = [{z: float(mass) for z, mass in law.mass.items()} for law in laws]
    total = 0.0
    for outcome in itertools.product(*(range(-law.reach, law.reach + 9) for law in laws)):
        p = q = 1.0
        for mass, (_, shift), z in zip(masses, release, outcome, strict=True):
            p *= mass.get(z - abs(shift), 0.0)
            q *= mass.get(z, 0.0)
        total += max(0.0, p - growth * q)
    return total


def cost(release: Release, name: str) -> Fraction:
    account = account_named(name)
    return sum((account.gaussian_cost(Fraction(shift * shift), s2) for s2, shift in release), Fraction(0))


def continuous_cost(release: Release) -> Fraction:
    return sum((Fraction(shift * shift) / (2 * s2) for s2, shift in release), Fraction(0))


def gaussian_delta(epsilon: Fraction, spent: Fraction) -> arb:
    mu, eps = exactly(2 * spent).sqrt(), exactly(epsilon)
    root = arb(2).sqrt()
    upper, lower = ((eps / mu + sign * mu / 2) / root for sign in (-1, 1))
    return upper.erfc() / 2 - eps.exp() * lower.erfc() / 2


@pytest.mark.parametrize("release", RELEASES)
def test_exact_delta_is_within_the_stated_curve(release: Release) -> None:
    with ctx.workprec(BITS):
        exact = [exact_delta(release, epsilon) for epsilon in EPSILONS]
        stated = [gaussian_delta(epsilon, cost(release, "gdp")) for epsilon in EPSILONS]
        assert all(true <= claim for true, claim in zip(exact, stated, strict=True))
        # At epsilon 0 the price is the least there is for one coordinate and a shift of one.
        if len(release) == 1 and release[0][1] == 1:
            assert exact[0] > stated[0] * (1 - arb(10) ** -9)


@pytest.mark.parametrize("name", ["gdp", "zcdp"])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6)])
def test_exact_delta_at_the_stated_epsilon(release: Release, name: str, delta: Fraction) -> None:
    stated = account_named(name).epsilon(cost(release, name), delta)
    with ctx.workprec(BITS):
        # rounded to a coarser fraction, downwards: still above the exact epsilon, or the account is too tight
        coarse = Fraction(int(stated * 2**60), 2**60)
        assert exact_delta(release, coarse) <= exactly(delta) * (1 + arb(2) ** -40)


@pytest.mark.parametrize("release", [case for case in RELEASES if len(case) < 3])
def test_planted_bug_the_continuous_price_understates_delta(release: Release) -> None:
    """Caught by the oracle at epsilon 0 for every small release; at s = 5 by .3 % of B."""
    with ctx.workprec(BITS):
        understated = [
            epsilon
            for epsilon in EPSILONS
            if exact_delta(release, epsilon) > gaussian_delta(epsilon, continuous_cost(release))
        ]
        assert understated


@pytest.mark.parametrize("release", [RELEASES[2], RELEASES[5], RELEASES[6]])
def test_oracle_agrees_with_plain_enumeration(release: Release) -> None:
    with ctx.workprec(BITS):
        for epsilon in EPSILONS[:3]:
            assert float(exact_delta(release, epsilon)) == pytest.approx(brute_delta(release, epsilon), rel=1e-9)
