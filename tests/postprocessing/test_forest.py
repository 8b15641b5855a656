"""The forest of strongest pairs against brute force: the choice of edges, its law over records, its tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from margent.postprocessing.forest import Forest, independence, spanning_forest
from margent.schema.domain import Clique, Domain
from margent.stream import Stream

Array = NDArray[np.float64]

FALSE_ALARM = 1e-6


def acyclic(edges: tuple[Clique, ...]) -> bool:
    """Whether no edge joins two columns that others have joined before."""
    parts: list[set[str]] = []
    for first, second in edges:
        meets = [part for part in parts if first in part or second in part]
        if any(first in part and second in part for part in meets):
            return False
        parts = [part for part in parts if part not in meets] + [{first, second}.union(*meets)]
    return True


def heaviest(weights: Mapping[Clique, int]) -> int:
    """The largest summed weight of any set of edges without a cycle."""
    subsets = (edges for size in range(len(weights) + 1) for edges in itertools.combinations(weights, size))
    return max(sum(weights[edge] for edge in edges) for edges in subsets if acyclic(edges))


NAMES = ("a", "b", "c", "d", "e")
GRAPHS = st.dictionaries(
    st.sampled_from(list(itertools.combinations(NAMES, 2))), st.integers(-2, 6), min_size=0, max_size=8
)


def forest_of(weights: Mapping[Clique, float], sizes: Mapping[str, int], seed: int = 0, rare: float = 1.0) -> Forest:
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(sizes), tuple(sizes.values()))
    tables = {
        pair: 100 * rng.dirichlet(np.full(domain.cells(pair), rare)).reshape(domain.shape(pair)) for pair in weights
    }
    singles = {name: 100 * rng.dirichlet(np.ones(size)) for name, size in sizes.items()}
    return spanning_forest(weights, tables, singles, domain)


@settings(max_examples=150, deadline=None)
@given(GRAPHS)
def test_no_forest_weighs_more(weights: dict[Clique, int]) -> None:
    made = forest_of(weights, dict.fromkeys(NAMES, 2))
    assert made.edges <= set(weights)
    assert acyclic(tuple(made.edges))
    assert all(weights[edge] > 0 for edge in made.edges)
    assert sum(weights[edge] for edge in made.edges) == heaviest(weights)


@settings(max_examples=60, deadline=None)
@given(GRAPHS)
def test_every_column_is_visited_once_and_after_its_parent(weights: dict[Clique, int]) -> None:
    seen: set[str] = set()
    for name, parent in forest_of(weights, dict.fromkeys(NAMES, 2)).visits:
        assert name not in seen
        assert parent is None or parent in seen
        seen.add(name)
    assert seen == set(NAMES)


TREE: dict[Clique, float] = {("a", "b"): 3, ("b", "c"): 2, ("b", "d"): 5, ("e", "f"): 1, ("a", "c"): 0.5}
SIZES = {"a": 3, "b": 4, "c": 2, "d": 3, "e": 2, "f": 3, "g": 2}


def joint_of(made: Forest) -> Array:
    """Pr[x] of every record: the product of all conditionals."""
    places, sizes = made.domain.position, made.domain.sizes
    joint = np.zeros(sizes)
    for record in itertools.product(*map(range, sizes)):
        joint[record] = np.prod(
            [
                made.given[name][0 if parent is None else record[places[parent]], record[places[name]]]
                for name, parent in made.visits
            ]
        )
    return joint


@pytest.mark.parametrize("rare", [1.0, 0.05])
def test_tables_along_paths_are_margins_of_the_tree_law(rare: float) -> None:
    """All pairs: neighbors, pairs three edges apart, pairs of different trees; with thin and empty cells too."""
    made = forest_of(TREE, SIZES, rare=rare)
    assert made.edges == {("a", "b"), ("b", "c"), ("b", "d"), ("e", "f")}
    joint = joint_of(made)
    assert joint.sum() == pytest.approx(1)
    for name, place in made.domain.position.items():
        away = tuple(other for other in range(7) if other != place)
        np.testing.assert_allclose(made.single(name), joint.sum(axis=away), atol=1e-12)
    for pair in itertools.combinations(SIZES, 2):
        places = [made.domain.position[name] for name in pair]
        away = tuple(other for other in range(7) if other not in places)
        np.testing.assert_allclose(made.table(pair, 50.0), 50 * joint.sum(axis=away), atol=1e-10)


def test_columns_of_different_trees_are_independent() -> None:
    made = forest_of(TREE, SIZES)
    for pair in [("a", "e"), ("d", "g"), ("f", "g"), ("c", "f")]:
        np.testing.assert_allclose(made.table(pair, 9.0), 9 * np.outer(made.single(pair[0]), made.single(pair[1])))


def test_edges_keep_their_tables_where_the_margins_agree() -> None:
    """Tables of one population: every edge comes back, and a Markov chain's far pair follows exactly."""
    rng = np.random.default_rng(6)
    first, down, across = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(2), 4)
    chain = np.einsum("i,ij,jk->ijk", first, down, across)
    tables = {("a", "b"): chain.sum(axis=2), ("b", "c"): chain.sum(axis=0), ("a", "c"): chain.sum(axis=1)}
    singles = {"a": first, "b": chain.sum(axis=(0, 2)), "c": chain.sum(axis=(0, 1))}
    weights = {("a", "b"): 1.0, ("b", "c"): 1.0, ("a", "c"): 0.9}
    made = spanning_forest(weights, tables, singles, Domain(("a", "b", "c"), (3, 4, 2)))
    assert made.edges == {("a", "b"), ("b", "c")}
    for pair, table in tables.items():
        np.testing.assert_allclose(made.table(pair, 1.0), table, atol=1e-12)


def record_pvalue(made: Forest, expected: Array, rows: int = 40_000) -> float:
    records = made.records(rows, Stream(2, "records"))
    flat = np.bincount(np.ravel_multi_index(tuple(records.T), made.domain.sizes), minlength=expected.size)
    return float(stats.chisquare(flat, rows * expected.ravel()).pvalue)


def test_records_follow_the_law() -> None:
    """Chi-square of 144 cells, false alarm 1e-6; a forest with one edge's table turned around is rejected."""
    sizes = {"a": 3, "b": 4, "c": 2, "d": 3, "e": 2}
    weights: dict[Clique, float] = {("a", "b"): 3, ("b", "c"): 2, ("b", "d"): 5}
    made = forest_of(weights, sizes, rare=3.0)
    expected = joint_of(made)
    assert record_pvalue(made, expected) > FALSE_ALARM
    turned = Forest(made.domain, made.visits, dict(made.given) | {"d": made.given["d"][::-1]})
    assert record_pvalue(turned, expected) < FALSE_ALARM


def test_values_without_mass_are_never_drawn_and_their_children_follow_their_own_shares() -> None:
    joint = np.array([[0.0, 6, 0], [0, 0, 0], [4, 0, 0]])
    singles = {"a": np.array([5.0, 1, 4]), "b": np.array([3.0, 3, 4])}
    made = spanning_forest({("a", "b"): 1.0}, {("a", "b"): joint}, singles, Domain(("a", "b"), (3, 3)))
    assert made.visits == (("a", None), ("b", "a"))
    np.testing.assert_allclose(made.given["b"], [[0, 1, 0], [0.3, 0.3, 0.4], [1, 0, 0]])
    records = made.records(4_000, Stream(1, "records"))
    assert set(records[records[:, 0] == 0][:, 1].tolist()) == {1}
    assert set(records[records[:, 0] == 2][:, 1].tolist()) == {0}
    assert set(records[records[:, 0] == 1][:, 1].tolist()) == {0, 1, 2}


def test_columns_without_mass_are_uniform() -> None:
    made = spanning_forest({}, {}, {"a": np.zeros(4), "b": np.array([-1.0, 0.0])}, Domain(("a", "b"), (4, 2)))
    assert made.edges == frozenset()
    assert made.single("a").tolist() == [0.25] * 4
    assert made.single("b").tolist() == [0.5] * 2


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_any_number_of_records(rows: int) -> None:
    made = forest_of(TREE, SIZES)
    records = made.records(rows, Stream(1, "records"))
    assert records.shape == (rows, 7)
    assert records.tobytes() == forest_of(TREE, SIZES).records(rows, Stream(1, "records")).tobytes()


def test_independence_is_the_product_over_the_total() -> None:
    singles = {"a": np.array([6.0, 4.0]), "b": np.array([1.0, 9.0])}
    assert independence(("a", "b"), singles, 10.0).tolist() == [[0.6, 5.4], [0.4, 3.6]]
