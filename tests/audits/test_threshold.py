"""The published threshold test of JTree is not private: exact losses, an audit, and the repaired selection.

JTree (Chen, Xiao, Zhang, Xu 2015) compares every pair's noisy dependence with one noisy threshold and reports
who is above, any number of them, at a fixed epsilon. Lyu, Su, Li 2017 (their Algorithm 6) show the fault: the
loss grows with the number of pairs. It lives here, and only here.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from margent.privacy.budget import Budget
from margent.privacy.noise import discrete_gaussian
from tests.audits.adversaries import epsilon_bound


def published_threshold_test(
    scores: NDArray[np.float64], epsilon: float, runs: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Lap(2/eps) on the threshold 0, Lap(2/eps) on each score of sensitivity one; who is above. (runs, scores)"""
    threshold = rng.laplace(0, 2 / epsilon, (runs, 1))
    return scores + rng.laplace(0, 2 / epsilon, (runs, scores.size)) > threshold


def exact_loss(pairs: int, epsilon: float) -> float:
    """log of Pr[first half below, second half above] on D (all 0) over that on D' (+1 and -1)."""
    law = stats.laplace(scale=2 / epsilon)

    def chance(first: float, second: float) -> float:
        def given(z: float) -> float:
            return float(law.pdf(z) * law.cdf(z - first) ** pairs * law.sf(z - second) ** pairs)

        return float(integrate.quad(given, -60, 60, limit=400, points=[-1, 0, 1])[0])

    return math.log(chance(0, 0) / chance(1, -1))


def test_the_published_threshold_test_loses_more_than_it_claims() -> None:
    losses = {pairs: exact_loss(pairs, 1.0) for pairs in (1, 2, 5, 10)}
    assert losses[1] < 1 < losses[2]
    assert losses[5] == pytest.approx(4.49, abs=0.05)
    assert losses[10] == pytest.approx(9.28, abs=0.05)


def loss_shown(outcomes: tuple[NDArray[np.bool_], NDArray[np.bool_]], delta: float) -> float:
    """The adversary names D where the first half is below and the second above."""
    half = outcomes[0].shape[1] // 2
    hits = [np.count_nonzero(~seen[:, :half].any(axis=1) & seen[:, half:].all(axis=1)) for seen in outcomes]
    trials = outcomes[0].shape[0]
    # "Alarm": the event under D'; "miss": no event under D.
    return epsilon_bound(int(hits[1]), trials - int(hits[0]), trials, delta, 1e-6)


def test_the_audit_catches_it_and_passes_the_repair() -> None:
    """Two pairs a side at a claimed epsilon of 1 (truth 1.7), a million runs: caught; Gaussian scores: not."""
    runs, rng = 1_000_000, np.random.default_rng()
    scores = (np.zeros(4), np.array([1.0, 1.0, -1.0, -1.0]))
    published = tuple(published_threshold_test(each, 1.0, runs, rng) for each in scores)
    assert loss_shown((published[0], published[1]), 0.0) > 1

    # The repair: each of m scores gets Gaussian noise for sensitivity sqrt(m), and thresholds are free.
    budget = Budget(1, "1e-6")
    scale = budget.account.gaussian_scale(Fraction(4), budget.total)
    repaired = tuple(each + discrete_gaussian(runs * 4, scale).reshape(runs, 4) > 0 for each in (scores[0], scores[1]))
    assert loss_shown((repaired[0], repaired[1]), float(budget.delta)) <= 1
