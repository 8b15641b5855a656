"""From scores to distances: what noise in the one-ways adds to a score is taken off again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.postprocessing.dependence import distance_from_independence, product_noise
from margent.postprocessing.simplex import norm_sub

Counts = NDArray[np.float64]


def simulated_noise(first: Counts, second: Counts, deviations: tuple[float, float], total: float) -> float:
    """Mean L1 change of the product when both one-ways get independent normal noise, from 2,000 draws."""
    rng = np.random.default_rng(3)
    changes = []
    for _ in range(2_000):
        rows = first + rng.normal(0, deviations[0], first.size)
        columns = second + rng.normal(0, deviations[1], second.size)
        changes.append(np.abs(np.outer(rows, columns) - np.outer(first, second)).sum() / total)
    return float(np.mean(changes))


@pytest.mark.parametrize("deviations", [(1.0, 1.0), (30.0, 5.0), (0.0, 20.0)])
def test_product_noise_is_the_mean_change_of_the_product(deviations: tuple[float, float]) -> None:
    """Within 2 percent of a simulation while the noise is small beside the counts (its own error is 1 percent)."""
    rng = np.random.default_rng(1)
    first, second = 10_000 * rng.dirichlet(np.full(4, 9.0)), 10_000 * rng.dirichlet(np.full(7, 9.0))
    stated = product_noise(first, second, deviations, 10_000)
    assert stated == pytest.approx(simulated_noise(first, second, deviations, 10_000), rel=0.02)
    # The same law of another size of noise is told apart.
    wrong = simulated_noise(first, second, (1.1 * deviations[0], 1.1 * deviations[1]), 10_000)
    assert stated != pytest.approx(wrong, rel=0.02)


def test_cells_that_the_simplex_set_to_zero_add_nothing() -> None:
    some = np.array([600.0, 400.0])
    assert product_noise(some, some, (3.0, 4.0), 1000) == product_noise(
        np.append(some, [0.0, 0.0]), np.append(some, 0.0), (3.0, 4.0), 1000
    )
    assert product_noise(np.zeros(3), some, (3.0, 4.0), 1) == 0.0


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(1, 1e6))
def test_distance_is_a_possible_distance_and_rises_with_the_score(
    score: float, bias: float, variance: float, total: float
) -> None:
    distance = distance_from_independence(score, bias, variance, total)
    assert 0 <= distance <= 2 * total
    assert distance <= max(score, 0)
    assert distance <= distance_from_independence(score + 1, bias, variance, total)
    assert distance >= distance_from_independence(score, bias + 1, variance, total)


def test_distance_without_noise_is_the_score() -> None:
    assert distance_from_independence(123.0, 0.0, 0.0, 1000.0) == 123.0
    assert distance_from_independence(50.0, 30.0, 0.0, 1000.0) == 40.0
    assert distance_from_independence(50.0, 0.0, 900.0, 1000.0) == 40.0
    assert distance_from_independence(-50.0, 0.0, 0.0, 1000.0) == 0.0
    assert distance_from_independence(5000.0, 0.0, 0.0, 1000.0) == 2000.0


@pytest.mark.parametrize("strength", [0.0, 0.01, 0.1, 0.5])
def test_debiased_scores_are_near_the_true_distance(strength: float) -> None:
    """Mean over 200 noises of two one-ways and of the score, within 1 percent of the records.

    Without the debiasing, small distances would be further off than that.
    """
    rng = np.random.default_rng(8)
    first, second = rng.dirichlet(np.full(8, 6.0)), rng.dirichlet(np.full(8, 6.0))
    joint = (1 - strength) * np.outer(first, second) + strength * np.diag(first)
    total, deviation, own = 30_000, 80.0, 60.0
    table = np.rint(total * joint)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    true = np.abs(table - np.outer(rows, columns) / table.sum()).sum()
    found, raw = [], []
    for _ in range(200):
        noisy = [norm_sub(exact + rng.normal(0, deviation, 8), table.sum()) for exact in (rows, columns)]
        score = np.abs(table - np.outer(*noisy) / table.sum()).sum() + rng.normal(0, own)
        bias = product_noise(noisy[0], noisy[1], (deviation, deviation), table.sum())
        found.append(distance_from_independence(score, bias, own**2, table.sum()))
        raw.append(score)
    assert float(np.mean(found)) == pytest.approx(true, abs=0.01 * total)
    if strength < 0.1:
        assert float(np.mean(raw)) > true + 0.01 * total
