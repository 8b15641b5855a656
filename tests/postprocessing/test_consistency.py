"""Agreement against brute force and least squares; non-negativity; degenerate tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.postprocessing.consistency import Agreement, Consistency, shared_cliques
from margent.postprocessing.tables import Table
from margent.schema.domain import Clique, clique

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 5}
cliques = st.lists(st.sets(st.sampled_from("abcde"), min_size=1, max_size=4).map(clique), min_size=1, max_size=7)


def noisy(names: Clique, rng: np.random.Generator, variance: float = 4.0) -> Table:
    shape = [SIZES[name] for name in names]
    values = rng.normal(20, variance**0.5, shape)
    return Table(names, values, np.full(shape, variance))


def margin(table: NDArray[np.float64], names: Clique, kept: Clique) -> NDArray[np.float64]:
    return table.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in kept))


def closure(given_cliques: list[Clique]) -> set[frozenset[str]]:
    """Intersections of all non-empty sets of distinct cliques that at least two cliques contain, and the empty one."""
    sets = [frozenset(names) for names in set(given_cliques)]
    found = {frozenset.intersection(*group) for size in range(2, len(sets) + 1) for group in combinations(sets, size)}
    return found | {frozenset()}


@given(cliques)
@settings(deadline=None)
def test_shared_cliques_are_all_intersections(given_cliques: list[Clique]) -> None:
    shared = shared_cliques(given_cliques)
    as_sets = {frozenset(names) for names in shared}
    # Single columns of two tables are always in, though they need not be an intersection.
    assert closure(given_cliques) <= as_sets
    extra = as_sets - closure(given_cliques)
    assert all(len(names) == 1 for names in extra)
    assert [len(names) for names in shared] == sorted(len(names) for names in shared)
    for names in shared[1:]:
        assert sum(set(names) <= set(other) for other in set(given_cliques)) >= 2


@given(cliques, st.integers(0, 1000))
@settings(deadline=None)
def test_one_pass_makes_everything_shared_agree(given_cliques: list[Clique], seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [noisy(names, rng, float(rng.uniform(1, 50))) for names in sorted(set(given_cliques))]
    values = [table.values.copy() for table in tables]
    Agreement(tables).reach(values, 100.0)
    for (one, left), (other, right) in combinations(zip(tables, values, strict=True), 2):
        shared = clique(set(one.clique) & set(other.clique))
        np.testing.assert_allclose(margin(left, one.clique, shared), margin(right, other.clique, shared), atol=1e-9)
    for value in values:
        assert value.sum() == pytest.approx(100.0)


def test_uneven_variances_of_a_merged_one_way_still_agree_after_one_pass() -> None:
    rng = np.random.default_rng(2)
    one_way = Table(("b",), rng.normal(30, 3, 3), np.array([1.0, 1.0, 60.0]))
    tables = [one_way, noisy(("a", "b"), rng), noisy(("b", "c"), rng)]
    values = [table.values.copy() for table in tables]
    Agreement(tables).reach(values, 90.0)
    for table, value in zip(tables[1:], values[1:], strict=True):
        np.testing.assert_allclose(margin(value, table.clique, ("b",)), values[0], atol=1e-9)
    assert values[0].sum() == pytest.approx(90.0)
    # The imprecise group takes more of the correction than the precise codes do.
    moved = np.abs(values[0] - one_way.values)
    assert moved[2] > moved[:2].max()


def least_squares(tables: list[Table], shared: Clique, total: float) -> list[NDArray[np.float64]]:
    """Minimize sum of squared changes over variances, subject to equal margins and the total (via KKT)."""
    sizes = [table.values.size for table in tables]
    start = np.concatenate([table.values.ravel() for table in tables])
    weight = np.concatenate([1.0 / table.variance.ravel() for table in tables])
    projections = []
    for table in tables:
        axes = [range(size) for size in table.values.shape]
        cells = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
        kept = [table.clique.index(name) for name in shared]
        keys = [tuple(cell[kept]) for cell in cells]
        order = sorted(set(keys))
        projections.append(np.array([[float(key == wanted) for key in keys] for wanted in order]))
    rows = []
    for place in range(1, len(tables)):
        row = np.zeros((projections[0].shape[0], sum(sizes)))
        row[:, : sizes[0]] = projections[0]
        first = sum(sizes[:place])
        row[:, first : first + sizes[place]] = -projections[place]
        rows.append(row)
    last = np.zeros((1, sum(sizes)))
    last[0, : sizes[0]] = 1
    constraints = np.concatenate([*rows, last])
    goal = np.zeros(constraints.shape[0])
    goal[-1] = total
    scaled = constraints / weight
    shift = scaled.T @ np.linalg.lstsq(scaled @ constraints.T, goal - constraints @ start, rcond=None)[0]
    solved = np.split(start + shift, np.cumsum(sizes)[:-1])
    return [part.reshape(table.values.shape) for part, table in zip(solved, tables, strict=True)]


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        ([("a", "b"), ("b", "c")], ("b",)),
        ([("b",), ("a", "b"), ("b", "c", "d")], ("b",)),
        ([("a", "b", "c"), ("a", "b", "e")], ("a", "b")),
        ([("b", "d"), ("b", "e")], ("b",)),
    ],
)
def test_tables_that_share_one_clique_get_the_least_squares_answer(names: list[Clique], shared: Clique) -> None:
    rng = np.random.default_rng(len(names))
    tables = [noisy(each, rng, variance) for each, variance in zip(names, (3.0, 17.0, 6.0), strict=False)]
    values = [table.values.copy() for table in tables]
    Agreement(tables).reach(values, 77.0)
    for got, wanted in zip(values, least_squares(tables, shared, 77.0), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-8)


def test_the_loop_ends_non_negative_and_in_agreement() -> None:
    rng = np.random.default_rng(6)
    names: list[Clique] = [("a",), ("a", "b"), ("b", "c"), ("a", "c", "e"), ("c", "d")]
    tables = []
    for each in names:
        shape = [SIZES[name] for name in each]
        truth = rng.multinomial(2000, np.full(int(np.prod(shape)), 1 / np.prod(shape))).reshape(shape)
        truth[truth < 2000 / np.prod(shape)] = 0
        tables.append(Table(each, truth + rng.normal(0, 40, shape), np.full(shape, 1600.0)))
    rule = Consistency()
    made = rule.apply(tables, 2000.0)
    for one, other in combinations(made, 2):
        shared = clique(set(one.clique) & set(other.clique))
        gap = np.abs(margin(one.values, one.clique, shared) - margin(other.values, other.clique, shared)).sum()
        assert gap <= 4 * rule.tolerance * 2000
    for table in made:
        assert table.values.min() >= 0
        assert table.values.sum() == pytest.approx(2000.0)


def test_degenerate_tables() -> None:
    rule = Consistency()
    assert rule.apply([], 5.0) == []
    single = rule.apply([Table(("x",), np.array([-3.0]), np.array([1.0]))], 5.0)
    assert single[0].values.tolist() == [5.0]
    negative = Table(("a", "b"), np.full((2, 3), -9.0), np.ones((2, 3)))
    made = rule.apply([negative, Table(("a",), np.array([-50.0, 10.0]), np.ones(2))], 6.0)
    for table in made:
        assert table.values.min() >= 0
        assert table.values.sum() == pytest.approx(6.0)
    np.testing.assert_allclose(made[0].values.sum(axis=1), made[1].values, atol=1e-2)


def test_a_nearly_empty_table_keeps_its_shape() -> None:
    empty = Table(("a",), np.array([2.0, -2.0]), np.ones(2))
    assert Consistency().apply([empty], 1.0)[0].values.tolist() == [1.0, 0.0]
