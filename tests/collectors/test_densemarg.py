"""The greedy selection against Algorithm 1 written out; score shrinkage; connecting lonely columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.collectors.densemarg import connect, select_pairs, shrunk


def algorithm_1(phi: list[float], cells: list[int], one: float, power: int) -> list[int]:
    """As printed: noise error summed over the chosen tables with their own budgets, all candidates each time.

    ``one``: mean absolute noise of a cell that has the whole budget; a share x of it has x^(-1/power) times that.
    """

    def error(chosen: list[int]) -> float:
        growth = power / (power + 1)
        whole = sum(cells[place] ** growth for place in chosen)
        noise = 0.0
        for place in chosen:
            share = cells[place] ** growth / whole
            noise += cells[place] * one * share ** (-1 / power)
        return noise + sum(max(phi[place], 0.0) for place in range(len(phi)) if place not in chosen)

    chosen: list[int] = []
    while len(chosen) < len(phi):
        best = min((place for place in range(len(phi)) if place not in chosen), key=lambda p: error([*chosen, p]))
        if error([*chosen, best]) >= error(chosen) - 1e-6:
            break
        chosen.append(best)
    return chosen


@given(
    st.lists(st.tuples(st.floats(-500, 20000), st.integers(4, 5000)), min_size=1, max_size=9, unique=True),
    st.floats(0.5, 60),
    st.sampled_from([1, 2]),
)
@settings(deadline=None)
def test_greedy_is_algorithm_1(pairs: list[tuple[float, int]], one: float, power: int) -> None:
    phi, cells = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    chosen = select_pairs(np.array(phi), cells, one, scale_power=power)
    assert sorted(chosen) == sorted(algorithm_1(phi, cells, one, power))


def test_cheap_strong_pairs_come_first_and_hopeless_ones_never() -> None:
    phi = np.array([5000.0, 5000.0, -800.0, 3.0])
    assert select_pairs(phi, [400, 10, 10, 10], 5.0) == (1, 0)
    assert select_pairs(phi, [400, 10, 10, 10], 1e9) == ()
    assert select_pairs(np.zeros(0), [], 1.0) == ()


def test_a_pair_with_a_negative_score_is_not_taken_for_a_gain() -> None:
    """Leaving out a pair of score -800 must not lower E: only the clamp keeps its score at 0."""
    assert select_pairs(np.array([-800.0, -800.0]), [2, 2], 0.001) == ()


def test_chosen_cells_stay_under_their_cap() -> None:
    assert select_pairs(np.array([9e9, 8e9, 7e9]), [600, 500, 300], 1.0, most_cells=1000) == (0, 2)


def test_as_many_pairs_as_a_hundred_columns_have() -> None:
    rng = np.random.default_rng(0)
    phi, cells = rng.exponential(3000, 4851), rng.integers(4, 2000, 4851).tolist()
    chosen = select_pairs(phi, cells, 1.0)
    assert 50 < len(chosen) < 4851
    assert len(set(chosen)) == len(chosen)


def test_scores_of_pure_noise_shrink_to_nothing_and_strong_ones_stay() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1000, 4000)
    assert np.abs(shrunk(noise, 1000.0)).max() < 0.1 * np.abs(noise).max()
    strong = rng.exponential(1e6, 50)
    np.testing.assert_allclose(shrunk(strong, 1000.0), strong, rtol=1e-4)
    two = np.array([3.0, 4.0])
    assert shrunk(two, 100.0) is two
    assert shrunk(np.zeros(5), 1.0).tolist() == [0.0] * 5


def test_shrinkage_lowers_the_squared_error_of_weak_scores() -> None:
    """300 vectors of 100 weak scores: the risk of James and Stein's rule is far below that of the raw scores."""
    rng = np.random.default_rng(2)
    truth = rng.exponential(300, 100)
    raw, pulled = 0.0, 0.0
    for _ in range(300):
        noisy = truth + rng.normal(0, 1000, 100)
        raw += float(((noisy - truth) ** 2).sum())
        pulled += float(((shrunk(noisy, 1000.0) - truth) ** 2).sum())
    assert pulled < 0.5 * raw


def test_lonely_columns_are_tied_to_covered_ones_by_their_best_score() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    scores = np.array([9.0, 1.0, 2.0, 5.0])
    assert connect(["c", "d"], pairs, scores, {"a", "b"}) == [2, 3]
    assert connect(["c", "d"], pairs, scores, set()) == []
    assert connect([], pairs, scores, {"a"}) == []
    # Equal scores: the first pair.
    assert connect(["c"], pairs, np.zeros(4), {"a", "b"}) == [1]


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
def test_selection_does_not_depend_on_the_unit(scale: float) -> None:
    rng = np.random.default_rng(3)
    phi, cells = rng.exponential(3000, 200), rng.integers(4, 2000, 200).tolist()
    assert select_pairs(phi * scale, cells, 10.0 * scale) == select_pairs(phi, cells, 10.0)
