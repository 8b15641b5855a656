"""The repaired JTree: it finds a tree where there is one, pays what it says, keeps its caps, and is replayed."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent import Budget
from margent.collectors.dependency import Caps, as_distances, edge_threshold, grown
from margent.collectors.jtree import JTree
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.postprocessing.junction import tree_cells, triangulated
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.replay import ReplayCurator
from margent.progress import silent
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Domain
from margent.synthesizers.junction_tree import JunctionTreeSampling
from margent.transcript import Choice, CliqueTree, Scores, Transcript
from tests.collectors.test_privsyn import schema
from tests.synthesizers.made import counts_of, variation

TREE: list[Clique] = [("c0", "c1"), ("c1", "c2"), ("c1", "c3"), ("c3", "c4"), ("c5", "c6")]
SIZES = {f"c{number}": 3 for number in range(8)}


def from_tree(rows: int = 40_000) -> NDArray[np.int64]:
    """Two trees and a column of its own: a column copies its parent four times in five."""
    rng = np.random.default_rng(11)
    parents = {child: parent for parent, child in TREE}
    columns: dict[str, NDArray[np.int64]] = {}
    for name in SIZES:
        free = rng.integers(0, 3, rows)
        columns[name] = np.where(rng.random(rows) < 0.2, free, columns[parents[name]]) if name in parents else free
    return np.stack(list(columns.values()), axis=1)


def collected(collector: JTree, real: NDArray[np.int64], budget: Budget, sizes: dict[str, int] = SIZES) -> Transcript:
    about = schema(*sizes.values())
    source = CodedCounts([column.astype(np.uint16) for column in real.T], Codec(about).domain)
    return collector.collect(DataCurator(about, source, Ledger(budget)), budget)


def pure(epsilon: int | str) -> Budget:
    return Budget(epsilon=epsilon, delta=0, accountant="pure")


@pytest.mark.parametrize("kind", ["independence", "r"])
def test_scores_find_the_tree_and_the_law_meets_its_tables(kind: str) -> None:
    """At epsilon 1000 noise is below a record where edges are thousands apart: a miss has odds far below 1e-9."""
    real = from_tree()
    made = collected(JTree(score=kind, cramer=0.8), real, Budget(epsilon=1000))  # type: ignore[arg-type]
    assert isinstance(made.structure, CliqueTree)
    assert sorted(made.structure.cliques) == sorted([*TREE, ("c7",)])
    model = JunctionTreeSampling().build(made, silent)
    for names in TREE:
        assert variation(model.marginals([names], 0)[0], counts_of(real, SIZES, names)) < 1e-3
    # Two edges apart and never measured together unless a cluster holds them: the law follows the tree.
    for names in [("c0", "c2"), ("c0", "c4"), ("c2", "c4")]:
        assert variation(model.marginals([names], 0)[0], counts_of(real, SIZES, names)) < 0.01


def test_choices_find_the_tree_under_pure_epsilon() -> None:
    """Eight columns, seven choices: the five edges, and the two strongest that their paths bring about."""
    real = from_tree()
    made = collected(JTree(), real, pure(1000))
    (choice,) = [answer for answer in made.answers if isinstance(answer, Choice)]
    assert set(choice.cliques[:5]) == set(TREE)
    assert isinstance(made.structure, CliqueTree)
    assert all(any(set(edge) <= set(names) for names in made.structure.cliques) for edge in TREE)


def test_mutual_information_is_for_replaced_records() -> None:
    real = from_tree()
    budget = Budget(epsilon=1000, relation="replace")
    made = collected(JTree(score="mutual-information", records=40_000, cramer=0.7), real, budget)
    assert isinstance(made.structure, CliqueTree)
    assert sorted(made.structure.cliques) == sorted([*TREE, ("c7",)])
    with pytest.raises(UsageError, match="number of records is private"):
        collected(JTree(score="mutual-information", records=40_000), real, Budget(epsilon=1))
    with pytest.raises(UsageError, match="needs records"):
        JTree(score="mutual-information")


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, accountant="zcdp"), pure(1)], ids=str)
def test_the_whole_budget_is_spent_as_planned(budget: Budget) -> None:
    made = collected(JTree(), from_tree(5_000), budget)
    stages = JTree().stages(made.domain, budget)
    spent = sum((charge.cost for charge in made.charges), Fraction(0))
    assert Fraction(98, 100) * budget.total <= spent <= budget.total
    assert sum((stage.share for stage in stages), Fraction(0)) == 1
    for label, stage in zip(("one-way marginals", "dependence of pairs", "clusters of cliques"), stages, strict=True):
        cost = sum((charge.cost for charge in made.charges if charge.label == label), Fraction(0))
        assert Fraction(98, 100) * budget.total * stage.share <= cost <= budget.total * stage.share
    assert sum(charge.label == "clusters of cliques" for charge in made.charges) <= stages[2].questions
    kinds = {Choice} if budget.delta == 0 else {Scores}
    assert {type(answer) for answer in made.answers if isinstance(answer, Choice | Scores)} == kinds


@pytest.mark.parametrize("budget", [Budget(epsilon=1), pure(2)], ids=["gdp", "pure"])
def test_a_run_is_written_read_replayed_and_sampled_to_the_same_bytes(budget: Budget, tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    made = collected(JTree(), from_tree(5_000), budget)
    for name, content in measurement_files(made).items():
        (folder / name).write_bytes(content)
    again = read_measurements(folder)
    assert again.structure == made.structure
    assert measurement_files(JTree().collect(ReplayCurator(again), budget)) == measurement_files(made)
    records = [JunctionTreeSampling().build(each, silent).sample(1000, 3, silent) for each in (made, again)]
    assert records[0].tobytes() == records[1].tobytes()


def test_every_clique_lies_in_a_measured_table() -> None:
    for budget in (Budget(epsilon=3), pure(3)):
        made = collected(JTree(), from_tree(20_000), budget)
        assert isinstance(made.structure, CliqueTree)
        tables = [set(answer.clique) for answer in made.marginals]
        assert all(any(set(names) <= table for table in tables) for names in made.structure.cliques)
        assert triangulated(made.structure.cliques, made.domain) == made.structure.cliques


def test_where_noise_rules_everything_goes_to_single_columns() -> None:
    made = collected(JTree(), from_tree(60), Budget(epsilon="0.01"))
    assert isinstance(made.structure, CliqueTree)
    assert {len(answer.clique) for answer in made.marginals} == {1}
    spent = sum((charge.cost for charge in made.charges), Fraction(0))
    assert spent >= Fraction(98, 100) * Budget(epsilon="0.01").total


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (4,), (1, 4, 1, 3)])
@pytest.mark.parametrize("budget", [Budget(epsilon=1), pure(1)], ids=["gdp", "pure"])
def test_constant_columns_and_single_columns(sizes: tuple[int, ...], budget: Budget) -> None:
    rng = np.random.default_rng(0)
    real = np.stack([rng.integers(0, size, 500) for size in sizes], axis=1)
    made = collected(JTree(), real, budget, {f"c{number}": size for number, size in enumerate(sizes)})
    assert sum((charge.cost for charge in made.charges), Fraction(0)) >= Fraction(95, 100) * budget.total
    assert JunctionTreeSampling().build(made, silent).sample(10, 1, silent).shape == (10, len(sizes))


def roomy(most: int, tree: int, noise: float = 1e12) -> Caps:
    return Caps(most, tree, noise, alone=1.0, scale_power=2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([20, 200, 5000]), st.sampled_from([5.0, 60.0, 1e9]))
def test_the_tree_stays_within_its_caps_and_takes_what_fits_in_order(seed: int, most: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    names = tuple("abcdefgh")
    domain = Domain(names, tuple(int(size) for size in rng.integers(2, 6, 8)))
    pairs = list(combinations(names, 2))
    edges = [pairs[place] for place in rng.permutation(len(pairs))[:20]]
    caps = roomy(most, 3 * most, noise)
    cliques = grown(edges, names, domain, caps)
    assert {name for members in cliques for name in members} == set(names)
    assert triangulated(cliques, domain) == cliques
    if any(len(members) > 1 for members in cliques):
        assert max(domain.cells(members) for members in cliques) <= most
        assert tree_cells(cliques, domain) <= 3 * most
        assert max(caps.noise(cliques, domain).values()) <= noise
    # The first edge that fits by itself is in, whatever comes after it.
    singles = [(name,) for name in names]

    def fits(edge: Clique) -> bool:
        alone = triangulated([*singles, edge], domain)
        return caps.fit(alone, domain) and max(caps.noise(alone, domain).values()) <= noise

    first = next((edge for edge in edges if fits(edge)), None)
    assert first is None or any(set(first) <= set(members) for members in cliques)


def test_noise_of_a_pair_is_that_of_the_sums_of_a_clique() -> None:
    """Against drawn noise: three cliques of one chain, parts as the square roots of their cells; 2 % at 2000 draws."""
    domain = Domain(("a", "b", "c", "d"), (3, 4, 2, 5))
    cliques: list[Clique] = [("a", "b", "c"), ("c", "d")]
    found = roomy(1000, 1000).noise(cliques, domain)
    roots = [np.sqrt(domain.cells(names)) for names in cliques]
    rng = np.random.default_rng(4)
    for names, root in zip(cliques, roots, strict=True):
        deviation = np.sqrt(np.pi / 2) * np.sqrt(sum(roots) / root)
        for pair in combinations(names, 2):
            draws = rng.normal(0, deviation, (2000, *domain.shape(names)))
            summed = draws.sum(axis=tuple(axis + 1 for axis, name in enumerate(names) if name not in pair))
            assert np.abs(summed).reshape(2000, -1).sum(axis=1).mean() == pytest.approx(found[pair], rel=0.02)


def test_an_edge_must_be_worth_the_noise_that_it_brings() -> None:
    """Two by two cells bring 5.2 records of noise here: a distance of 40 is worth that, one of 3 is not."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    edges: list[Clique] = [("a", "b"), ("b", "c")]
    for distance, taken in ((40.0, True), (3.0, False)):
        cliques = grown(edges, domain.names, domain, roomy(100, 100), {("a", "b"): distance, ("b", "c"): 0.0})
        assert cliques == ((("a", "b"), ("c",)) if taken else (("a",), ("b",), ("c",)))


def test_a_dense_graph_does_not_explode() -> None:
    """Thirty columns that all depend on one another: without a cap the one clique would have 4^30 cells."""
    names = tuple(f"c{number:02d}" for number in range(30))
    domain = Domain(names, (4,) * 30)
    cliques = grown(list(combinations(names, 2)), names, domain, roomy(10_000, 100_000))
    assert max(domain.cells(members) for members in cliques) == 4**6
    assert tree_cells(cliques, domain) <= 100_000


@pytest.mark.parametrize(("sizes", "strength"), [((2, 2), 0.1), ((2, 2), 0.2), ((5, 9), 0.1), ((12, 12), 0.05)])
def test_thresholds_are_the_distances_of_pairs_of_that_strength(sizes: tuple[int, int], strength: float) -> None:
    """Random departures from independence of a given Cramer's V: mutual information and distance as converted.

    Means over 200 tables, to a tenth; two by two cells all depart alike, which is the bound, sqrt(pi/2) more.
    """
    rng = np.random.default_rng(2)
    expected = np.full(sizes, 1 / np.prod(sizes))
    found = []
    for _ in range(200):
        departure = rng.normal(size=sizes)
        departure -= departure.mean(axis=0, keepdims=True)
        departure -= departure.mean(axis=1, keepdims=True)
        chi = float((departure**2 * expected).sum())
        joint = expected * (1 + departure * strength * np.sqrt((min(sizes) - 1) / chi))
        if joint.min() > 0:
            found.append((np.abs(joint - expected).sum(), (joint * np.log(joint / expected)).sum()))
    assert len(found) > 100
    distance, information = np.mean(found, axis=0)
    threshold = edge_threshold(strength, sizes)
    alike = np.sqrt(np.pi / 2) if sizes == (2, 2) else 1.0
    assert distance == pytest.approx(alike * threshold, rel=0.1)
    assert information == pytest.approx(strength**2 * (min(sizes) - 1) / 2, rel=0.1)
    assert as_distances("mutual-information", np.array([1000 * information]), 1000.0)[0] == pytest.approx(
        1000 * threshold, rel=0.1
    )


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="shares"):
        JTree(one_way_share=Fraction(1, 2), pick_share=Fraction(1, 2))
