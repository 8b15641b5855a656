"""Algorithm 2 by its rules, against all cliques of small graphs, and on graphs with far too many cliques."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.collectors.combine import combine
from margent.schema.domain import Clique, Domain

NAMES = "abcdefg"
edges = st.sets(st.sampled_from(list(combinations(NAMES, 2))), max_size=21)
sizes = st.lists(st.integers(2, 12), min_size=7, max_size=7)


def every_clique(pairs: set[Clique], domain: Domain, gamma: int) -> list[Clique]:
    """Algorithm 2 with all cliques listed: size from large to small, small columns first within a size."""
    order = sorted(domain.names, key=lambda name: (domain.size(name), domain.position[name]))
    accepted: list[Clique] = []
    covered: set[str] = set()
    for size in range(len(order), 2, -1):
        for names in combinations(order, size):
            complete = all(tuple(sorted(pair)) in pairs for pair in combinations(names, 2))
            if complete and domain.cells(names) <= gamma and len(covered & set(names)) <= 2:
                accepted.append(tuple(sorted(names)))
                covered |= set(names)
    return accepted


@given(edges, sizes, st.sampled_from([8, 60, 400, 5000]))
@settings(deadline=None, max_examples=150)
def test_small_graphs_give_what_all_cliques_give(pairs: set[Clique], codes: list[int], gamma: int) -> None:
    domain = Domain(tuple(NAMES), tuple(codes))
    accepted = every_clique(pairs, domain, gamma)
    result = combine(sorted(pairs), domain, gamma)
    assert [names for names in result if len(names) > 2] == accepted
    inside = {pair for names in accepted for pair in combinations(names, 2)}
    assert [names for names in result if len(names) == 2] == [pair for pair in sorted(pairs) if pair not in inside]


def test_the_order_of_the_pairs_does_not_matter_for_the_cliques() -> None:
    domain = Domain(tuple(NAMES), (2, 3, 2, 4, 3, 2, 2))
    pairs = list(combinations(NAMES, 2))[3:]
    wanted = set(combine(pairs, domain))
    for seed in range(5):
        random.Random(seed).shuffle(pairs)
        assert set(combine(pairs, domain)) == wanted


def test_a_complete_graph_of_a_hundred_binary_columns_is_soon_done() -> None:
    """2^100 cliques; gamma 5000 allows 12 columns, and each accepted clique may reuse two."""
    names = tuple(f"c{place:03d}" for place in range(100))
    domain = Domain(names, (2,) * 100)
    pairs = list(combinations(names, 2))
    result = combine(pairs, domain)
    large = [names for names in result if len(names) > 2]
    assert max(len(names) for names in result) == 12
    assert len(large) == 10
    assert all(domain.cells(names) <= 5000 for names in large)
    inside = {pair for names in large for pair in combinations(names, 2)}
    assert sum(len(names) == 2 for names in result) == len(pairs) - len(inside)


@pytest.mark.parametrize("missing", [0.1, 0.5])
def test_dense_random_graphs_end_with_valid_cliques(missing: float) -> None:
    rng = random.Random(7)
    names = tuple(f"c{place:03d}" for place in range(80))
    domain = Domain(names, tuple(rng.randint(2, 9) for _ in names))
    pairs = [pair for pair in combinations(names, 2) if rng.random() > missing]
    result = combine(pairs, domain, steps=20_000)
    covered: set[str] = set()
    for chosen in result:
        assert all(pair in set(pairs) for pair in combinations(chosen, 2))
        if len(chosen) > 2:
            assert domain.cells(chosen) <= 5000
            assert len(covered & set(chosen)) <= 2
            covered |= set(chosen)
    assert {pair for names in result for pair in combinations(names, 2)} >= set(pairs)


def test_gamma_of_one_combines_nothing() -> None:
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    assert combine(pairs, domain, gamma=1) == tuple(pairs)
    assert combine(pairs, domain, gamma=8) == (("a", "b", "c"),)
    assert combine([], domain) == ()
