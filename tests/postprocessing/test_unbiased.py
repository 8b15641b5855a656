"""The best unbiased table against general least squares, and its variance against the covariance of that."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.postprocessing.unbiased import EvenTable, best_unbiased

SIZES = {"a": 2, "b": 3, "c": 2}
SUBSETS = [subset for count in range(4) for subset in combinations(SIZES, count)]


def summing(names: tuple[str, ...]) -> np.ndarray:
    """The matrix that sums a flat (a, b, c) table onto some columns."""
    matrix = np.ones((1, 1))
    for name, size in SIZES.items():
        matrix = np.kron(matrix, np.eye(size) if name in names else np.ones((1, size)))
    return matrix


@given(st.lists(st.sampled_from(SUBSETS), max_size=6), st.integers(0, 10**6))
@settings(deadline=None)
def test_it_is_weighted_least_squares_with_its_variance(extra: list[tuple[str, ...]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = []
    for names in [("a", "b", "c"), *extra]:
        shape = tuple(SIZES[name] for name in names)
        tables.append(EvenTable(names, rng.normal(50, 20, shape), float(rng.uniform(0.5, 30))))
    by_subset = {
        subset: [table.onto(subset) for table in tables if set(subset) <= set(table.clique)] for subset in SUBSETS
    }
    made = best_unbiased(SIZES, by_subset)
    matrix = np.concatenate([summing(table.clique) / table.variance**0.5 for table in tables])
    seen = np.concatenate([table.values.ravel() / table.variance**0.5 for table in tables])
    covariance = np.linalg.inv(matrix.T @ matrix)
    np.testing.assert_allclose(made.values.ravel(), covariance @ matrix.T @ seen, atol=1e-8)
    np.testing.assert_allclose(np.diag(covariance), made.variance, rtol=1e-9)


def test_a_projection_carries_the_noise_of_all_its_cells() -> None:
    table = EvenTable(("a", "b"), np.arange(6.0).reshape(2, 3), 5.0).onto(("a",))
    assert table.values.tolist() == [3.0, 12.0]
    assert table.variance == pytest.approx(15.0)
