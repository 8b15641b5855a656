"""The privacy profile of a choice and of Laplace noise, enumerated, is within what the three accounts charge.

Laws are read off the implementation's own brackets. Renyi divergences at 150 orders are held against rho alpha, the
largest log ratio against epsilon, and the hockey-stick curve against that of mu-GDP. Per commit a share of the
pairs; MARGENT_AUDIT=1 runs 1,000. A planted permute-and-flip, which is epsilon-DP but not of bounded range, must
be caught by the zCDP price of a choice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from margent.privacy import exponential
from margent.privacy.accounting import account_named
from margent.privacy.brackets import discrete_laplace_law
from tests.sizes import rounds

PAIRS = rounds(60, 1_000)
ORDERS = 1 + np.geomspace(1e-3, 1e4, 150)
BITS = 200
SLACK = 1e-9
"""Relative: what double precision may lose in a sum of up to a few hundred terms."""

Law = NDArray[np.float64]
Mechanism = Callable[[list[int], Fraction, int], Law]


def log_probabilities(lows: list[int]) -> Law:
    """From cumulative brackets; Python divides whole numbers of any size exactly before it rounds."""
    steps = [after - before for before, after in itertools.pairwise(lows)]
    return np.log([max(step, 1) / 2**BITS for step in steps])


def chosen(scores: list[int], epsilon: Fraction, sensitivity: int) -> Law:
    """Log probabilities of every candidate, from the brackets that decide real choices."""
    law = exponential._ChoiceLaw(exponential._gaps(scores), epsilon / (2 * sensitivity))
    return log_probabilities(list(law.brackets(BITS).lows))


def permute_and_flip(scores: list[int], epsilon: Fraction, sensitivity: int) -> Law:
    """The planted mechanism: Pr[i] = p_i times the integral over x in [0, 1] of prod_{j != i} (1 - x p_j)."""
    heads = np.exp(float(epsilon) * (np.array(scores) - max(scores)) / (2 * sensitivity))
    made = []
    for place, own in enumerate(heads):
        product = np.polynomial.Polynomial([1.0])
        for other in np.delete(heads, place):
            product *= np.polynomial.Polynomial([1.0, -other])
        made.append(own * product.integ()(1.0))
    return np.asarray(np.log(np.array(made)))


def renyi(left: Law, right: Law) -> Law:
    """D_alpha(left || right) at all orders."""
    exponents = ORDERS[:, np.newaxis] * left + (1 - ORDERS[:, np.newaxis]) * right
    return np.asarray(special.logsumexp(exponents, axis=1) / (ORDERS - 1))


def faults(left: Law, right: Law, epsilon: float, rho: float, mu: float) -> set[str]:
    """Which of the three claims the pair of laws breaks."""
    found = set()
    if np.abs(left - right).max() > epsilon * (1 + SLACK) + 1e-12:
        found.add("pure")
    # Near order 1 the division by alpha - 1 costs digits.
    if np.any(renyi(left, right) > ORDERS * rho * (1 + SLACK) + 1e-12 / (ORDERS - 1)):
        found.add("zcdp")
    levels = np.linspace(-epsilon, epsilon, 41)
    exact = np.maximum(np.exp(left) - np.exp(levels[:, np.newaxis] + right), 0).sum(axis=1)
    curve = stats.norm.cdf(mu / 2 - levels / mu) - np.exp(levels) * stats.norm.cdf(-mu / 2 - levels / mu)
    if np.any(exact > curve + 1e-12):
        found.add("gdp")
    return found


def neighbors(rng: np.random.Generator) -> tuple[list[int], list[int], int]:
    """Two vectors of scores that differ by at most the sensitivity; half of the time by all of it."""
    sensitivity, size = int(rng.integers(1, 300)), int(rng.integers(2, 13))
    scores = rng.integers(0, sensitivity * int(rng.choice([1, 5, 40])) + 1, size)
    extreme = bool(rng.integers(0, 2))
    step = (
        rng.choice([-sensitivity, sensitivity], size) if extreme else rng.integers(-sensitivity, sensitivity + 1, size)
    )
    return scores.tolist(), (scores + step).tolist(), sensitivity


def caught(mechanism: Mechanism, pairs: int) -> set[str]:
    rng = np.random.default_rng(20261128)
    found: set[str] = set()
    for _ in range(pairs):
        scores, moved, sensitivity = neighbors(rng)
        epsilon = Fraction(int(rng.integers(1, 3_000)), 1_000)
        rho, gdp = (float(account_named(name).exponential_cost(epsilon)) for name in ("zcdp", "gdp"))
        laws = mechanism(scores, epsilon, sensitivity), mechanism(moved, epsilon, sensitivity)
        for left, right in (laws, laws[::-1]):
            found |= faults(left, right, float(epsilon), rho, (2 * gdp) ** 0.5)
    return found


def test_a_choice_costs_no_more_than_it_is_charged() -> None:
    assert caught(chosen, PAIRS) == set()


def test_permute_and_flip_is_caught_at_the_price_of_a_choice() -> None:
    assert caught(permute_and_flip, 60) == {"zcdp"}


def test_a_choice_of_more_than_its_budget_is_caught() -> None:
    """The GDP price is that of any epsilon-DP answer, up to four times what a choice needs: caught later."""
    assert caught(lambda scores, epsilon, delta: chosen(scores, 2 * epsilon, delta), 60) >= {"pure", "zcdp"}
    assert caught(lambda scores, epsilon, delta: chosen(scores, 4 * epsilon, delta), 60) == {"pure", "zcdp", "gdp"}


def test_the_price_of_a_choice_is_tight() -> None:
    """Two candidates far apart by one sensitivity each way come within a hundredth of epsilon^2/8."""
    epsilon = Fraction(1, 10)
    left, right = chosen([0, 0], epsilon, 1), chosen([1, -1], epsilon, 1)
    rho = float(epsilon) ** 2 / 8
    assert 0.99 * rho < renyi(left, right)[60] / ORDERS[60] <= rho * (1 + SLACK)


def shifted(scale: Fraction, shift: int, reach: int) -> tuple[Law, Law]:
    """Log probabilities of Laplace noise and of noise plus ``shift`` at -reach .. reach + shift."""
    law = discrete_laplace_law(scale)
    places = np.arange(-reach, reach + shift + 1)
    exponents = np.array([float(law.exponent(abs(int(place)))) for place in range(reach + shift + 1)])
    norm = np.log(np.tanh(0.5 / float(scale)))
    return norm - exponents[np.abs(places)], norm - exponents[np.abs(places - shift)]


@pytest.mark.parametrize("planted", [False, True])
def test_laplace_noise_costs_no_more_than_it_is_charged(planted: bool) -> None:
    """Random scales and shifts; noise of half the scale that is charged must break all three claims."""
    rng = np.random.default_rng(7)
    found: set[str] = set()
    for _ in range(PAIRS // 4):
        shift, scale = int(rng.integers(1, 12)), Fraction(int(rng.integers(1, 40)), int(rng.integers(1, 8)))
        epsilon = Fraction(shift) / scale
        rho, gdp = (float(account_named(name).laplace_cost(Fraction(shift), scale)) for name in ("zcdp", "gdp"))
        # The tail that is cut off has mass below e^-40; it can only be missing from the left side of a claim.
        laws = shifted(scale / 2 if planted else scale, shift, int(40 * scale) + 1)
        for left, right in (laws, laws[::-1]):
            found |= faults(left, right, float(epsilon), rho, (2 * gdp) ** 0.5)
    assert found == ({"pure", "zcdp", "gdp"} if planted else set())
