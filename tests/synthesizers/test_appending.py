"""Which columns need no iteration, and drawing them given the others."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.schema.domain import Clique, clique
from margent.stream import Stream
from margent.synthesizers.appending import Append, Layout, draw_given, layout

cliques = st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=4).map(clique), max_size=9)


@given(cliques)
def test_every_column_is_made_once_and_after_what_it_needs(given_cliques: list[Clique]) -> None:
    plan = layout(given_cliques)
    in_cores = [name for core in plan.cores for name in {name for names in core for name in names}]
    assert len(in_cores) == len(set(in_cores)), "components share no column"
    appended = [append.column for append in plan.appends]
    assert len(set(appended)) == len(appended)
    assert not set(appended) & set(in_cores)
    made = set(in_cores)
    for append in plan.appends:
        alone = set(append.given) - made
        assert not alone & set(appended), "what it needs is in a core, appended before, or drawn alone"
        made |= alone | {append.column}
        assert any({append.column, *append.given} <= set(names) for names in given_cliques)
    for core in plan.cores:
        for names in core:
            assert any(set(names) <= set(other) for other in given_cliques)
            for name in names:
                assert sum(name in other for other in core) >= 2, "else it could have been appended"


def test_a_tree_needs_no_iteration_and_a_cycle_needs_all_of_it() -> None:
    tree = layout([("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")])
    assert tree.cores == ()
    assert len(tree.appends) == 4
    cycle = layout([clique(pair) for pair in pairwise("abcda")])
    assert cycle == Layout(((("a", "b"), ("a", "d"), ("b", "c"), ("c", "d")),), ())


def test_chains_of_larger_cliques_are_acyclic_too() -> None:
    plan = layout([("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e")])
    assert plan.cores == ()
    assert plan.appends[-1] == Append("a", ("b", "c"))


def test_components_are_apart() -> None:
    one = [clique(pair) for pair in pairwise("abca")]
    other = [clique(pair) for pair in pairwise("xyzx")]
    assert layout([*other, *one]).cores == (tuple(sorted(one)), tuple(sorted(other)))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 400), st.integers(0, 2**32))
@settings(deadline=None)
def test_counts_within_a_group_are_floors_or_ceilings(groups: int, codes: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.exponential(1, (groups, codes)) * (rng.random((groups, codes)) < 0.7)
    fallback = rng.random(codes)
    of = rng.integers(0, groups, rows)
    column = draw_given(table, fallback, of, Stream(seed))
    for group in range(groups):
        got = np.bincount(column[of == group], minlength=codes)
        row = table[group] if table[group].sum() > 0 else fallback
        assert np.abs(got - row / row.sum() * (of == group).sum()).max() < 1 + 1e-6
        assert got[row == 0].sum() == 0


def test_small_groups_are_rounded_without_bias_and_independently() -> None:
    """3,000 groups of one record, three codes: chi-square (2 degrees, false alarm 1e-6); no runs of one code."""
    table = np.tile([0.5, 0.3, 0.2], (3000, 1))
    column = draw_given(table, np.ones(3), np.arange(3000), Stream(1))
    expected = 3000 * table[0]
    assert ((np.bincount(column) - expected) ** 2 / expected).sum() < 27.7
    repeats = float((column[1:] == column[:-1]).mean())
    assert abs(repeats - (table[0] ** 2).sum()) < 5 * (0.25 / 3000) ** 0.5


def test_no_group_and_no_rows() -> None:
    assert draw_given(np.zeros((2, 3)), np.zeros(3), np.zeros(0, np.int64), Stream(0)).tolist() == []
    evenly = draw_given(np.zeros((1, 3)), np.zeros(3), np.zeros(6, np.int64), Stream(0))
    assert np.bincount(evenly).tolist() == [2, 2, 2]
