"""Max-entropy tables against product formulas and a general optimizer; empty cells, cycles, degenerate margins."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.errors import PlanError
from margent.postprocessing.max_entropy import Scaling, max_entropy

Counts = NDArray[np.float64]


def population(shape: tuple[int, ...], seed: int, empty: float = 0.0) -> Counts:
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape) * 1000
    values[rng.random(shape) < empty] = 0.0
    return values + (0.0 if values.sum() > 0 else 1.0)


def margin(values: Counts, axes: tuple[int, ...]) -> Counts:
    return values.sum(axis=tuple(axis for axis in range(values.ndim) if axis not in axes))


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5]))
@settings(deadline=None)
def test_decomposable_margins_give_the_product_formula(seed: int, empty: float) -> None:
    """ab and bc: x = ab bc / b, also where cells are empty; a lone d is independent of them."""
    real = population((3, 4, 5), seed, empty)
    ab, bc, d = margin(real, (0, 1)), margin(real, (1, 2)), np.array([2.0, 1.0]) * real.sum() / 3
    b = ab.sum(axis=0)
    product = np.divide(
        ab[:, :, None] * bc[None], b[None, :, None], where=b[None, :, None] > 0, out=np.zeros(real.shape)
    )
    expected = product[..., None] * d / real.sum()
    made = max_entropy((3, 4, 5, 2), {(0, 1): ab, (1, 2): bc, (3,): d}, float(real.sum()))
    assert made.gap <= Scaling().tolerance
    np.testing.assert_allclose(made.values, expected, atol=1e-4)


def optimizer(shape: tuple[int, ...], targets: dict[tuple[int, ...], Counts]) -> Counts:
    """Greatest entropy under linear equality constraints, by sequential quadratic programming."""
    from scipy.optimize import minimize

    cells = int(np.prod(shape))
    rows = []
    for axes, target in targets.items():
        for place in np.ndindex(*target.shape):
            inside = np.zeros(shape)
            index = [slice(None)] * len(shape)
            for axis, code in zip(axes, place, strict=True):
                index[axis] = code  # type: ignore[call-overload]
            inside[tuple(index)] = 1
            rows.append((inside.ravel(), target[place]))
    # Redundant constraints stop the optimizer: an orthonormal set of as many as are independent.
    left, strength, right = np.linalg.svd(np.array([row for row, _ in rows]), full_matrices=False)
    kept = strength > 1e-9
    wanted = (left.T @ np.array([value for _, value in rows]))[kept] / strength[kept]
    matrix = right[kept]
    done = minimize(
        lambda x: float((x * np.log(np.maximum(x, 1e-300))).sum()),
        np.full(cells, 1 / cells),
        jac=lambda x: np.log(np.maximum(x, 1e-300)) + 1,
        bounds=[(1e-12, 1)] * cells,
        constraints={"type": "eq", "fun": lambda x: matrix @ x - wanted, "jac": lambda x: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return np.asarray(done.x).reshape(shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [2, 3])
def test_cycles_of_margins_agree_with_a_general_optimizer(seed: int, size: int) -> None:
    real = population((size, 2, 3), seed)
    real /= real.sum()
    targets = {axes: margin(real, axes) for axes in combinations(range(3), 2)}
    made = max_entropy(real.shape, targets, 1.0, Scaling(rounds=5000, tolerance=1e-9))
    assert made.gap <= 1e-9
    np.testing.assert_allclose(made.values, optimizer(real.shape, targets), atol=2e-4)


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(deadline=None, max_examples=40)
def test_margins_of_a_table_are_met_whatever_is_empty(seed: int, empty: float) -> None:
    real = population((3, 4, 2, 3), seed, empty)
    targets = {axes: margin(real, axes) for axes in [(0, 1), (1, 2), (2, 3), (0, 3)]}
    made = max_entropy(real.shape, targets, float(real.sum()))
    assert made.values.min() >= 0
    assert made.values.sum() == pytest.approx(real.sum())
    assert made.gap < 0.02
    for axes, target in targets.items():
        assert np.abs(margin(made.values, axes) - target).sum() <= (made.gap + 1e-6) * real.sum() + 1e-6


def test_margins_that_no_table_has_are_missed_alike_and_it_is_said() -> None:
    """a = b, b = c, a != c: every two agree on their column; the best misses each pair by a third of the records."""
    same = np.eye(2) / 2
    made = max_entropy((2, 2, 2), {(0, 1): same, (1, 2): same, (0, 2): same[::-1]}, 300.0)
    assert made.gap == pytest.approx(2 / 3, abs=0.01)
    for axes in combinations(range(3), 2):
        assert np.sort(margin(made.values, axes).ravel()) == pytest.approx([50, 50, 100, 100], abs=2)


@given(st.integers(0, 10**6), st.floats(0, 200))
@settings(deadline=None, max_examples=40)
def test_any_noise_gives_a_table(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    real = population((3, 4, 3), seed, 0.5)
    targets = {
        axes: margin(real, axes) + rng.normal(0, spread, margin(real, axes).shape) for axes in combinations(range(3), 2)
    }
    made = max_entropy(real.shape, targets, 500.0)
    assert np.isfinite(made.values).all()
    assert made.values.min() >= 0
    assert made.values.sum() == pytest.approx(500.0)


def test_degenerate_margins() -> None:
    assert max_entropy((), {}, 5.0).values == pytest.approx(5.0)
    assert max_entropy((2, 3), {}, 6.0).values.tolist() == [[1.0] * 3] * 2
    assert max_entropy((2, 3), {(0,): np.array([-1.0, -2.0])}, 6.0).values.tolist() == [[1.0] * 3] * 2
    assert max_entropy((2,), {(0,): np.array([1.0, 2.0])}, -3.0).values.tolist() == [0.0, 0.0]
    with pytest.raises(PlanError, match="cannot be reconstructed"):
        max_entropy((2**11, 2**11), {}, 1.0)
