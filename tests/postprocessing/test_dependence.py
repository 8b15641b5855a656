"""From scores to distances: what noise in the one-ways adds to a score is taken off again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.postprocessing.dependence import distances_from_independence, product_noise
from margent.postprocessing.simplex import norm_sub

Array = NDArray[np.float64]


def simulated_noise(first: Array, second: Array, deviations: tuple[float, float], total: float) -> float:
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
@given(st.lists(st.floats(-1e6, 1e6), max_size=8), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(1, 1e6))
def test_distances_are_possible_distances(scores: list[float], bias: float, variance: float, total: float) -> None:
    found = distances_from_independence(np.array(scores), np.full(len(scores), bias), variance, total)
    assert found.shape == (len(scores),)
    assert np.all((found >= 0) & (found <= 2 * total))


def test_distances_without_noise_are_the_scores() -> None:
    found = distances_from_independence(np.array([123.0, -50, 5000, 50]), np.array([0.0, 0, 0, 30]), 0.0, 1000.0)
    assert found.tolist() == [123.0, 0.0, 2000.0, 40.0]
    assert distances_from_independence(np.array([50.0]), np.array([0.0]), 900.0, 1000.0).tolist() == [40.0]
    assert distances_from_independence(np.zeros(0), np.zeros(0), 900.0, 1000.0).size == 0


def noisy_scores(strong: int) -> tuple[Array, Array, Array]:
    """2,000 pairs, ``strong`` of them dependent: true distances, distances from all scores, and from each alone."""
    rng = np.random.default_rng(2)
    true = np.concatenate([np.full(strong, 900.0), np.full(2_000 - strong, 30.0)])
    scores = true + rng.normal(0, 100, 2_000)
    together = distances_from_independence(scores, np.zeros(2_000), 100.0**2, 20_000.0)
    alone = [distances_from_independence(score, np.zeros(1), 100.0**2, 20_000.0)[0] for score in scores[:, np.newaxis]]
    return true, together, np.array(alone)


def test_the_largest_of_many_noisy_scores_is_not_taken_at_its_word() -> None:
    true, together, alone = noisy_scores(0)
    assert together.max() < 0.5 * alone.max()
    assert np.square(together**2 - true**2).mean() < 0.5 * np.square(alone**2 - true**2).mean()


def test_the_few_dependent_pairs_stay_in_front() -> None:
    _, together, alone = noisy_scores(40)
    assert together[:40].min() > together[40:].max()
    assert together[40:].max() <= alone[40:].max()


def test_scores_far_above_their_noise_are_believed() -> None:
    _, together, alone = noisy_scores(40)
    assert float(alone[:40].mean()) == pytest.approx(900, rel=0.05)
    assert float(together[:40].mean()) == pytest.approx(900, rel=0.05)


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
        found.append(distances_from_independence(np.array([score]), np.array([bias]), own**2, table.sum())[0])
        raw.append(score)
    assert float(np.mean(found)) == pytest.approx(true, abs=0.01 * total)
    if strength < 0.1:
        assert float(np.mean(raw)) > true + 0.01 * total
