"""PrivMRF's graph and tables: under their caps, and at a local optimum."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margent.collectors.dependency_graph import Caps, grown_graph, network_tables
from margent.postprocessing.junction import triangulated
from margent.schema.domain import Domain

NAMES = tuple("abcdef")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
@example(685757)  # where an exchange of edges made room for another
def test_the_graph_keeps_the_caps_and_no_edge_more_would(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain(NAMES, tuple(rng.integers(2, 6, 6).tolist()))
    values = {pair: float(rng.normal(0.1, 0.1)) for pair in combinations(NAMES, 2)}
    caps = Caps(int(rng.integers(30, 200)), int(rng.integers(40, 400)))
    cliques = grown_graph(values, domain, caps, trials=10_000)
    sizes = [domain.cells(names) for names in cliques]
    assert max(sizes) <= caps.clique
    assert sum(sizes) <= caps.tree
    inside = {pair for names in cliques for pair in combinations(names, 2)}
    for pair, value in values.items():
        if value > 0 and pair not in inside:
            larger = [domain.cells(names) for names in triangulated([*cliques, pair], domain)]
            assert max(larger) > caps.clique or sum(larger) > caps.tree


def test_with_room_for_everything_all_positive_edges_are_taken() -> None:
    domain = Domain(NAMES, (2,) * 6)
    values = {pair: (0.1 if "f" not in pair else -0.1) for pair in combinations(NAMES, 2)}
    assert grown_graph(values, domain, Caps(10**6, 10**6)) == (("a", "b", "c", "d", "e"), ("f",))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 60))
def test_tables_fit_and_lie_inside_the_cliques(seed: int, cap: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain(NAMES, tuple(rng.integers(2, 5, 6).tolist()))
    values = {pair: float(rng.normal(0.1, 0.1)) for pair in combinations(NAMES, 2)}
    cliques = (("a", "b", "c", "d"), ("c", "d", "e"), ("f",))
    tables = network_tables(cliques, values, domain, cap)
    for names in tables:
        assert domain.cells(names) <= cap
        assert any(set(names) <= set(clique) for clique in cliques)
        assert not any(set(names) < set(other) for other in tables)
