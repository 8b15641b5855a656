from __future__ import annotations

import math
import random
from itertools import combinations, permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from margent.errors import UsageError
from margent.postprocessing.junction import adjacency, components, junction_tree, maximal, tree_cells, triangulated
from margent.schema.domain import Clique, Domain

NAMES = tuple("abcdefgh")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Clique], Domain]:
    """Cliques over at most eight columns of few codes."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    sizes = tuple(draw(st.integers(1, 6)) for _ in names)
    subsets = [pair for count in (1, 2, 2, 3) for pair in combinations(names, count)]
    cliques = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=14))
    return cliques, Domain(names, sizes)


def edges(cliques: list[Clique] | tuple[Clique, ...]) -> set[Clique]:
    return {pair for names in cliques for pair in combinations(sorted(names), 2)}


def is_chordal(graph: set[Clique], names: set[str]) -> bool:
    """No cycle of four or more columns without a chord: by eliminating columns whose neighbors are all neighbors."""
    left = set(names)
    near = {name: {other for pair in graph if name in pair for other in pair} - {name} for name in names}
    while left:
        simplicial = [
            name
            for name in left
            if all(other in near[one] for one, other in combinations(sorted(near[name] & left), 2))
        ]
        if not simplicial:
            return False
        left.discard(simplicial[0])
    return True


def maximal_by_brute_force(graph: set[Clique], names: set[str]) -> set[Clique]:
    subsets = [subset for count in range(1, len(names) + 1) for subset in combinations(sorted(names), count)]
    complete = [subset for subset in subsets if all(pair in graph for pair in combinations(subset, 2))]
    return {one for one in complete if not any(set(one) < set(other) for other in complete)}


@given(graphs())
def test_a_triangulation_is_chordal_covers_the_edges_and_lists_its_maximal_cliques(
    case: tuple[list[Clique], Domain],
) -> None:
    cliques, domain = case
    found = triangulated(cliques, domain)
    names = {name for members in cliques for name in members}
    graph = edges(found)
    assert edges(cliques) <= graph
    assert is_chordal(graph, names)
    assert set(found) == maximal_by_brute_force(graph, names)
    assert tree_cells(cliques, domain) == sum(domain.cells(members) for members in found)


@given(graphs())
@example(([("a", "c"), ("a", "b", "d")], Domain(("a", "b", "c", "d"), (1, 1, 1, 1))))
def test_a_chordal_graph_is_left_alone(case: tuple[list[Clique], Domain]) -> None:
    cliques, domain = case
    names = {name for members in cliques for name in members}
    found = triangulated(cliques, domain)
    assert triangulated(found, domain) == found
    if is_chordal(edges(cliques), names):
        assert edges(found) == edges(cliques)


@given(graphs(), st.integers(0, 2**32))
def test_nothing_depends_on_the_order_of_cliques(case: tuple[list[Clique], Domain], seed: int) -> None:
    cliques, domain = case
    shuffled = list(cliques)
    random.Random(seed).shuffle(shuffled)
    assert triangulated(shuffled, domain) == triangulated(cliques, domain)


@given(graphs())
def test_each_clique_meets_those_before_it_inside_its_parent_and_paths_hold_what_their_ends_share(
    case: tuple[list[Clique], Domain],
) -> None:
    cliques, domain = case
    found = triangulated(cliques, domain)
    tree = junction_tree(found)
    assert tree.cliques == found
    assert len([parent for parent in tree.parents if parent is None]) == len(components(cliques))
    for place, (names, parent, separator) in enumerate(zip(tree.cliques, tree.parents, tree.separators, strict=True)):
        before = {name for members in tree.cliques[:place] for name in members}
        assert set(separator) == before & set(names)
        if parent is not None:
            assert parent < place
            assert set(separator) <= set(tree.cliques[parent])

    def upwards(place: int) -> list[int]:
        path = [place]
        while (parent := tree.parents[path[-1]]) is not None:
            path.append(parent)
        return path

    for one, other in combinations(range(len(found)), 2):
        above, below = upwards(one), upwards(other)
        # A root that both ways end in lies on the path only if it is where they meet.
        common = set(above) & set(below)
        meeting = max(common, default=None)
        between = [place for place in (*above, *below) if place not in common or place == meeting]
        shared = set(found[one]) & set(found[other])
        assert all(shared <= set(found[place]) for place in between)
        if meeting is None:
            assert not shared


@given(graphs())
def test_min_fill_is_never_better_than_the_best_order(case: tuple[list[Clique], Domain]) -> None:
    """The heuristic against all elimination orders of up to five columns: within them, and seldom above the least."""
    cliques, domain = case
    names = sorted({name for members in cliques for name in members})[:5]
    cut = maximal([tuple(name for name in members if name in names) for members in cliques])
    best, worst = extremes(cut, names, domain)
    assert best <= tree_cells(cut, domain) <= worst


def extremes(cliques: tuple[Clique, ...], names: list[str], domain: Domain) -> tuple[int, int]:
    """Fewest and most cells over all elimination orders."""
    totals = []
    for order in permutations(names):
        near = {name: set(others) for name, others in adjacency(cliques).items()}
        met = []
        for name in order:
            if name not in near:
                continue
            around = near.pop(name)
            met.append(tuple(sorted({name, *around})))
            for one in around:
                near[one] = (near[one] | around) - {one, name}
        totals.append(sum(domain.cells(members) for members in maximal(met)))
    return min(totals), max(totals)


def test_the_lighter_of_two_chords_is_filled_in() -> None:
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    assert triangulated(cycle, Domain(("a", "b", "c", "d"), (2, 9, 2, 9))) == (("a", "b", "c"), ("a", "c", "d"))
    assert triangulated(cycle, Domain(("a", "b", "c", "d"), (9, 2, 9, 2))) == (("a", "b", "d"), ("b", "c", "d"))


@given(graphs())
def test_costs_that_are_kept_are_those_that_would_be_computed_anew(case: tuple[list[Clique], Domain]) -> None:
    """The same elimination, every cost computed again at every step from its definition."""
    cliques, domain = case
    near = {name: set(others) for name, others in adjacency(cliques).items()}
    logs = {name: round(2**20 * math.log2(domain.size(name))) for name in near}

    def cost(name: str) -> tuple[int, int, str]:
        fill = [pair for pair in combinations(sorted(near[name]), 2) if pair[1] not in near[pair[0]]]
        weight = sum(logs[name] for pair in fill for name in pair)
        return 2 * (weight + len(fill)), logs[name] + sum(logs[other] for other in near[name]), name

    met = []
    while near:
        name = min(near, key=cost)
        around = near.pop(name)
        met.append(tuple(sorted({name, *around})))
        for one in around:
            near[one] = (near[one] | around) - {one, name}
    assert maximal(met) == tuple(sorted(triangulated(cliques, domain)))


def test_a_ladder_is_triangulated_as_well_as_can_be() -> None:
    """Two by thirty columns: each of the 29 squares needs one chord, and no clique more than three columns."""
    rungs = [(f"l{number:02d}", f"r{number:02d}") for number in range(30)]
    sides = [(f"{side}{number:02d}", f"{side}{number + 1:02d}") for number in range(29) for side in "lr"]
    domain = Domain(tuple(name for rung in rungs for name in rung), (2,) * 60)
    found = triangulated([*rungs, *sides], domain)
    assert {len(members) for members in found} == {3}
    assert len(found) == 58


def test_sizes_beyond_floats_are_exact() -> None:
    names = tuple(f"c{number:03d}" for number in range(300))
    domain = Domain(names, (10_000,) * 300)
    assert tree_cells([names], domain) == 10_000**300


def test_what_forms_no_junction_tree_is_refused() -> None:
    with pytest.raises(UsageError, match="no junction tree"):
        junction_tree([("a", "b"), ("b", "c"), ("a", "c")])
    with pytest.raises(UsageError, match="inside another"):
        junction_tree([("a", "b"), ("a",)])


def test_no_cliques_are_no_tree() -> None:
    assert junction_tree([]).cliques == ()
    assert triangulated([], Domain(("a",), (2,))) == ()
    assert tree_cells([], Domain(("a",), (2,))) == 0
