"""Bounds against an outside library, known answers, and mechanisms whose loss is known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from margent.audits.bounds import chance_at_most, gaussian_bound
from tests.audits.adversaries import best_threshold, epsilon_bound, one_run_bound


@given(st.integers(1, 100_000), st.data(), st.sampled_from([0.3, 0.05, 1e-4, 1e-9]))
@settings(max_examples=100, deadline=None)
def test_clopper_pearson_agrees_with_scipy(trials: int, data: st.DataObject, alpha: float) -> None:
    successes = data.draw(st.integers(0, trials))
    exact = 1.0 if successes == trials else stats.beta.isf(alpha, successes + 1, trials - successes)
    found = chance_at_most(successes, trials, alpha)
    assert found == pytest.approx(exact, rel=1e-6)


def test_gaussian_bound_approaches_the_truth_from_below() -> None:
    """Two normals one apart, threshold at 1/2: mu is 1; the bound passes it with probability 10^-6."""
    chance = stats.norm.sf(0.5)
    for trials, least in ((1_000, 0.5), (100_000, 0.95), (10_000_000, 0.994)):
        errors = round(trials * chance)
        assert least < gaussian_bound(errors, errors, trials, 1e-6) < 1


def test_epsilon_bound_of_randomized_response() -> None:
    """A coin that tells the truth with e / (1 + e) has epsilon 1, whatever the bound's assumptions."""
    lie = 1 / (1 + math.e)
    found = [epsilon_bound(round(n * lie), round(n * lie), n, 0.0, 1e-6) for n in (1_000, 1_000_000)]
    assert 0.5 < found[0] < found[1] < 1
    assert found[1] > 0.98


@pytest.mark.parametrize("bound", [gaussian_bound, lambda a, b, n, alpha: epsilon_bound(a, b, n, 0.0, alpha)])
def test_guessing_shows_nothing(bound: object) -> None:
    assert bound(500, 500, 1000, 0.05) == 0  # type: ignore[operator]
    assert bound(0, 1000, 1000, 0.05) == 0  # type: ignore[operator]


def test_one_run_bound_of_randomized_response() -> None:
    """Independent coins under pure epsilon meet the theorem with equality: v ~ Binomial(r, e^eps / (1 + e^eps))."""
    right = round(100_000 * math.e / (1 + math.e))
    assert 0.95 < one_run_bound(right, 100_000, 100_000, 0.0, 1e-3) < 1
    # At the bound itself, so many right guesses are exactly as rare as alpha.
    found = one_run_bound(700, 1000, 1000, 0.0, 1e-3)
    assert stats.binom.sf(699, 1000, 1 / (1 + math.exp(-found))) == pytest.approx(1e-3, rel=1e-5)
    assert one_run_bound(500, 1000, 1000, 0.0, 1e-3) == 0
    assert one_run_bound(0, 0, 10, 0.0, 1e-3) == 0


def test_a_delta_makes_the_one_run_bound_smaller() -> None:
    bounds = [one_run_bound(800, 1000, 100_000, delta, 0.01) for delta in (0.0, 1e-8, 1e-6, 1e-4)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[2] > bounds[3] == 0


def test_the_threshold_separates() -> None:
    rng = np.random.default_rng(1)
    cut = best_threshold(rng.normal(0, 1, 4000), rng.normal(2, 1, 4000))
    assert 0.5 < cut < 1.5
    assert best_threshold(np.ones(5), np.ones(5)) == 1
