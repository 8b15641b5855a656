"""Projections onto the simplex against slow definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from margent.postprocessing.simplex import norm_cut, norm_sub, threshold_cut

cells = st.floats(-1000, 1000, allow_nan=False).map(lambda value: round(value, 3))
tables = arrays(np.float64, array_shapes(max_dims=2, max_side=30), elements=cells)
totals = st.floats(0.001, 5000).map(lambda value: round(value, 3))


def by_bisection(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    low, high = values.min() - total - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(values - middle, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(values - high, 0)


def cut_cell_by_cell(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    left = np.maximum(values.ravel(), 0).tolist()
    excess = sum(left) - total
    for cell in sorted(range(len(left)), key=lambda cell: (left[cell], cell)):
        given_up = min(left[cell], excess)
        left[cell] -= given_up
        excess -= given_up
    return np.array(left).reshape(values.shape)


@given(tables, totals)
@settings(deadline=None)
def test_norm_sub_is_the_least_squares_projection(values: NDArray[np.float64], total: float) -> None:
    result = norm_sub(values, total)
    np.testing.assert_allclose(result, by_bisection(values, total), atol=1e-6)
    assert result.min() >= 0
    assert result.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)


@given(tables, totals)
@settings(deadline=None)
def test_norm_cut_takes_from_the_smallest_cells(values: NDArray[np.float64], total: float) -> None:
    result = norm_cut(values, total)
    assert result.min() >= 0
    assert result.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)
    if np.maximum(values, 0).sum() > total:
        np.testing.assert_allclose(result, cut_cell_by_cell(values, total), atol=1e-6)
    else:
        assert np.argmax(result) == np.argmax(np.maximum(values, 0))


@given(tables, totals)
def test_the_threshold_is_the_smallest_whole_one_whose_sum_is_nearest(
    values: NDArray[np.float64], total: float
) -> None:
    positive = np.maximum(values, 0)
    sums = [(positive[positive >= least].sum(), least) for least in range(int(positive.max()) + 2)]
    _, least = min(sums, key=lambda option: (round(abs(option[0] - total), 6), option[1]))
    kept = np.where(positive >= least, positive, 0)
    expected = kept * (total / kept.sum()) if kept.sum() > 0 else np.full_like(values, total / values.size)
    np.testing.assert_allclose(threshold_cut(values, total), expected, atol=1e-6)


@pytest.mark.parametrize("project", [norm_sub, norm_cut, threshold_cut])
def test_edges(project: object) -> None:
    assert callable(project)
    assert project(np.array([-5.0]), 3.0).tolist() == [3.0]
    assert project(np.array([-5.0, -5.0]), 4.0).tolist() == [2.0, 2.0]
    assert project(np.array([5.0, 1.0]), 0.0).tolist() == [0.0, 0.0]
    assert project(np.array([5.0, 1.0]), -1.0).tolist() == [0.0, 0.0]
    assert project(np.zeros(0), 7.0).tolist() == []
    assert project(np.array([[1.0, 1.0], [1.0, 1.0]]), 4.0).shape == (2, 2)


def test_on_a_sparse_histogram_cutting_is_nearer_in_l1_and_both_beat_clipping() -> None:
    """500 cells, 20 of them not empty, 1,000 records, noise of 5: the mean over 40 draws decides."""
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(40):
        truth = np.zeros(500)
        truth[:20] = rng.multinomial(1000, np.full(20, 0.05))
        noisy = truth + rng.normal(0, 5, 500)
        made = (norm_sub(noisy, 1000.0), norm_cut(noisy, 1000.0), np.maximum(noisy, 0))
        errors.append([np.abs(each - truth).sum() for each in made])
    nearest, cut, clipped = np.mean(errors, axis=0)
    # The standard error of each mean is below 5 records.
    assert 1.5 * cut < nearest < clipped / 3
