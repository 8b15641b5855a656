"""Before the targets: limits of the shrinkage, margins of raked tables, averages of projections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margent.postprocessing.posterior import (
    improved_one_ways,
    pair_tables,
    raked,
    shrunk,
)
from margent.schema.domain import Clique, Domain
from tests.postprocessing.noisy_tables import known, table

# Shrinkage.

RNG = np.random.default_rng(1)
PRIOR = 10_000 * RNG.dirichlet(np.full(40, 2.0)).reshape(5, 8)


def test_without_noise_the_table_is_believed() -> None:
    values = 10_000 * np.random.default_rng(2).dirichlet(np.ones(40)).reshape(5, 8)
    np.testing.assert_allclose(shrunk(table(("a", "b"), values, 1e-5), PRIOR, 10_000.0), values, atol=1e-4)


@pytest.mark.parametrize("deviation", [5.0, 50.0, 500.0])
def test_pure_noise_is_mostly_dropped(deviation: float) -> None:
    """Over 300 tables that are the prior plus noise, at most a tenth of the squared noise is kept on average."""
    rng = np.random.default_rng(3)
    kept = []
    for _ in range(300):
        values = PRIOR + rng.normal(0, deviation, PRIOR.shape)
        result = shrunk(table(("a", "b"), values, deviation), PRIOR, 10_000.0)
        kept.append(np.square(result - PRIOR).sum() / np.square(values - PRIOR).sum())
    assert np.mean(kept) < 0.1


@pytest.mark.parametrize(("factor", "deviation"), [(5.0, 20.0), (5.0, 50.0), (50.0, 50.0), (50.0, 150.0)])
def test_shrinkage_beats_both_the_table_and_the_prior(factor: float, deviation: float) -> None:
    """Tables that depart from the prior with variance kappa m a cell: near the best of all who know kappa."""
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(200):
        true = PRIOR + rng.normal(0, 1, PRIOR.shape) * np.sqrt(factor * PRIOR)
        values = true + rng.normal(0, deviation, PRIOR.shape)
        best = PRIOR + factor * PRIOR / (factor * PRIOR + deviation**2) * (values - PRIOR)
        candidates = (shrunk(table(("a", "b"), values, deviation), PRIOR, 10_000.0), values, PRIOR, best)
        errors.append([np.square(each - true).sum() for each in candidates])
    mine, noisy, prior, oracle = np.mean(errors, axis=0)
    assert mine < min(noisy, prior)
    assert mine < 1.3 * oracle


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e4), st.floats(0.01, 10))
@example(1120, 1659.0, 1.0)  # a cell of which a ten-billionth of a millionth is expected
def test_no_cell_is_negative_or_above_both_the_prior_and_the_table(seed: int, deviation: float, spread: float) -> None:
    """E X^2 = z E X + a gives the upper side; nothing stays where nothing is expected."""
    rng = np.random.default_rng(seed)
    prior = 100 * rng.dirichlet(np.full(12, 0.3)) * (rng.random(12) < 0.8)
    values = prior + rng.normal(0, spread * deviation, 12)
    result = shrunk(table(("a",), values, deviation), prior, 100.0)
    assert np.all(result >= 0)
    assert np.all(result <= np.maximum(prior, values) * (1 + 1e-3) + 1e-9)
    assert np.all(result[prior == 0] == 0)


def test_a_table_of_one_cell_a_row_comes_out_of_noise_that_hides_it_from_a_common_factor() -> None:
    """100 x 100 codes, one deciding the other, 3,000 records a cell under noise of 700."""
    size, each, deviation = 100, 3000.0, 700.0
    prior, true = np.full((size, size), each / size), each * np.eye(size)
    values = true + np.random.default_rng(5).normal(0, deviation, true.shape)
    result = shrunk(table(("a", "b"), values, deviation), prior, each * size)
    linear = prior + true.var() / (true.var() + deviation**2) * (values - prior)
    assert np.abs(result - true).sum() < 0.5 * np.abs(prior - true).sum()
    assert np.abs(linear - true).sum() > np.abs(prior - true).sum()


# Raking.


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_raked_tables_have_the_best_one_ways_as_their_margins(seed: int, negative: bool) -> None:
    """Exactly that of the last column; all of them where no cell is empty. Never negative."""
    rng = np.random.default_rng(seed)
    singles = {name: 500 * rng.dirichlet(np.full(size, 5.0)) for name, size in [("a", 3), ("b", 4)]}
    values = 500 * rng.dirichlet(np.full(12, 5.0)).reshape(3, 4) + negative * rng.normal(0, 30, (3, 4))
    made = raked(("a", "b"), values, singles, 500.0, rounds=60)
    assert made.min() >= 0
    np.testing.assert_allclose(made.sum(axis=0)[made.sum(axis=0) > 0], singles["b"][made.sum(axis=0) > 0])
    if not negative:
        np.testing.assert_allclose(made.sum(axis=1), singles["a"], atol=0.5)
        np.testing.assert_allclose(made.sum(axis=0), singles["b"])


def test_raking_keeps_what_fits_and_the_odds_of_what_does_not() -> None:
    values = np.array([[30.0, 10.0], [20.0, 40.0]])
    same = {"a": np.array([40.0, 60.0]), "b": np.array([50.0, 50.0])}
    np.testing.assert_allclose(raked(("a", "b"), values, same, 100.0), values)
    other = raked(("a", "b"), values, {"a": np.array([70.0, 30.0]), "b": np.array([20.0, 80.0])}, 100.0)
    assert other[0, 0] * other[1, 1] / (other[0, 1] * other[1, 0]) == pytest.approx(6)


def test_a_slice_without_mass_takes_that_of_independence() -> None:
    singles = {"a": np.array([60.0, 40.0]), "b": np.array([75.0, 25.0])}
    made = raked(("a", "b"), np.array([[75.0, 25.0], [-30.0, -9.0]]), singles, 100.0)
    np.testing.assert_allclose(made, np.outer(singles["a"], singles["b"]) / 100)


# Projections.


def test_pairs_inside_larger_tables_are_averaged_by_precision() -> None:
    rng = np.random.default_rng(5)
    triple, pair = rng.normal(50, 9, (2, 3, 4)), rng.normal(200, 9, (2, 3))
    found = pair_tables([table(("a", "b", "c"), triple, 3.0), table(("a", "b"), pair, 5.0)])
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    # Each cell of the projection on (a, b) sums 4 cells of variance 9; the pair's own have variance 25.
    np.testing.assert_allclose(found["a", "b"].values, (triple.sum(axis=2) / 36 + pair / 25) / (1 / 36 + 1 / 25))
    np.testing.assert_allclose(found["a", "b"].variance, 1 / (1 / 36 + 1 / 25))
    np.testing.assert_allclose(found["a", "c"].values, triple.sum(axis=1))
    np.testing.assert_allclose(found["b", "c"].variance, 18)
    assert pair_tables([table(("a",), np.ones(2), 1.0)]) == {}


def test_one_ways_are_improved_by_every_table_of_their_column() -> None:
    domain = Domain(("a", "b", "z"), (3, 4, 2))
    one_way, pair = np.array([50.0, 30, 20]), np.arange(12.0).reshape(3, 4)
    evidence = known([table(("a",), one_way, 2.0), table(("a", "b"), pair, 3.0)], domain, 100.0)
    made = improved_one_ways(evidence, 100.0)
    singles, means = made.counts, made.noisy
    np.testing.assert_allclose(means["a"].values, (one_way / 4 + pair.sum(axis=1) / 36) / (1 / 4 + 1 / 36))
    np.testing.assert_allclose(means["a"].variance, 1 / (1 / 4 + 1 / 36))
    np.testing.assert_allclose(means["b"].values, pair.sum(axis=0))
    assert "z" not in means
    assert singles["z"].tolist() == [50.0, 50.0]
    for name, size in zip(domain.names, domain.sizes, strict=True):
        assert singles[name].shape == (size,)
        assert singles[name].min() >= 0
        assert singles[name].sum() == pytest.approx(100)
    # Columns of few codes keep their noise; in codes above it there are as many unknown ones as codes.
    np.testing.assert_allclose(made.deviations["a"], np.sqrt(means["a"].variance))
    assert made.cells("a") == pytest.approx(3)


def test_improved_one_ways_have_the_smaller_error_that_they_state() -> None:
    """Over 400 noises the mean square error is 1 / (sum of precisions), within 15 percent, below each alone."""
    rng = np.random.default_rng(6)
    domain, true = Domain(("a", "b", "c"), (3, 4, 2)), 9_000 * rng.dirichlet(np.full(24, 5.0)).reshape(3, 4, 2)
    cliques: list[tuple[Clique, float]] = [(("a",), 20.0), (("a", "b"), 15.0), (("a", "c"), 10.0), (("b", "c"), 1.0)]
    squares, stated = [], 0.0
    for _ in range(400):
        tables = []
        for names, deviation in cliques:
            exact = true.sum(axis=tuple(axis for axis, name in enumerate(domain.names) if name not in names))
            tables.append(table(names, exact + rng.normal(0, deviation, exact.shape), deviation))
        means = improved_one_ways(known(tables, domain, 9_000.0), 9_000.0).noisy
        squares.append(np.square(means["a"].values - true.sum(axis=(1, 2))).mean())
        stated = float(means["a"].variance[0])
    assert stated == pytest.approx(1 / (1 / 20**2 + 1 / (4 * 15**2) + 1 / (2 * 10**2)))
    assert float(np.mean(squares)) == pytest.approx(stated, rel=0.15)
    assert stated < min(20**2, 4 * 15**2, 2 * 10**2)
