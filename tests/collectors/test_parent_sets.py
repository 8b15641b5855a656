"""Maximal parent sets against their definition, and what gives way where there are too many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from margent.collectors.parent_sets import CandidateLimits, Views, candidate_nodes, maximal_parent_sets, views_of
from margent.schema.domain import Clique, Domain, Merge, clique

ROOMY = CandidateLimits(10**6, 10**9)


@st.composite
def tables(draw: st.DrawFn) -> Views:
    """Up to five columns of one to three views, each of fewer codes than the one before."""
    views = {}
    for place in range(draw(st.integers(1, 5))):
        sizes = sorted(draw(st.sets(st.integers(2, 12), min_size=1, max_size=3)), reverse=True)
        views[f"c{place}"] = tuple((f"c{place}" + "@" * level, size) for level, size in enumerate(sizes))
    return views


def by_definition(views: Views, cap: int, degree: int) -> set[Clique]:
    """All sets that fit, less those that a larger or a finer one, by one step, shows not to be maximal."""
    options: list[list[int | None]] = [[None, *range(len(listed))] for listed in views.values()]
    listed = list(views.values())

    def fits(levels: Sequence[int | None]) -> bool:
        used = [sizes[level][1] for sizes, level in zip(listed, levels, strict=True) if level is not None]
        return len(used) <= degree and math.prod(used) <= cap

    fitting = {levels for levels in itertools.product(*options) if fits(levels) and any(x is not None for x in levels)}
    maximal = set()
    for levels in fitting:
        more = []
        for place, level in enumerate(levels):
            other = (len(listed[place]) - 1) if level is None else level - 1
            if other >= 0:
                more.append((*levels[:place], other, *levels[place + 1 :]))
        if not any(each in fitting for each in more):
            named = [sizes[level][0] for sizes, level in zip(listed, levels, strict=True) if level is not None]
            maximal.add(clique(named))
    return maximal


@given(tables(), st.integers(0, 400), st.integers(1, 5))
def test_sets_are_all_the_maximal_ones_each_once(views: Views, cap: int, degree: int) -> None:
    found = maximal_parent_sets(list(views), views, cap, degree, 10**6)
    assert found is not None
    assert len(set(found)) == len(found)
    assert set(found) == by_definition(views, cap, degree)


@given(tables(), st.integers(0, 400), st.integers(1, 5))
def test_a_limit_is_passed_or_kept(views: Views, cap: int, degree: int) -> None:
    every = by_definition(views, cap, degree)
    assert maximal_parent_sets(list(views), views, cap, degree, max(len(every) - 1, 0)) in (None, [])
    # Not so many visits a set in tables this small.
    assert maximal_parent_sets(list(views), views, cap, degree, len(every) + 50) is not None


def plain(sizes: Sequence[int]) -> Views:
    names = tuple(f"c{place:03}" for place in range(len(sizes)))
    return views_of(Domain(names, tuple(sizes)), {})


def test_candidates_are_every_child_with_its_maximal_sets() -> None:
    views = plain([2, 3, 4, 5])
    names = list(views)
    nodes = candidate_nodes(names[:2], names[2:], views, 25, ROOMY)
    # Under 25 cells: 4 leaves 6 to the parents, 5 leaves 5.
    assert [(node.child, node.parents) for node in nodes] == [
        ("c002", ("c000", "c001")),
        ("c003", ("c000",)),
        ("c003", ("c001",)),
    ]
    assert candidate_nodes(names[:2], names[2:], views, 7, ROOMY) == []


@pytest.mark.parametrize(("columns", "placed", "degree"), [(14, 9, 9), (40, 20, 2), (100, 50, 1), (200, 100, 1)])
def test_wide_tables_have_no_more_candidates_than_allowed(columns: int, placed: int, degree: int) -> None:
    limits = CandidateLimits(4_000, 10_000_000)
    views = plain([3] * columns)
    names = list(views)
    nodes = candidate_nodes(names[:placed], names[placed:], views, 3**10, limits)
    assert 0 < len(nodes) <= limits.candidates
    assert max(len(node.parents) for node in nodes) == degree
    children = {node.child for node in nodes}
    if columns < 200:
        assert children == set(names[placed:])
    else:  # 10,000 pairs: the first forty children, each with all of its parents
        assert children == set(names[placed : placed + 40])
    if degree == 1:
        assert all(sum(node.child == child for node in nodes) == placed for child in children)


def test_cells_are_limited_too() -> None:
    views = plain([10] * 12)
    names = list(views)
    wide = candidate_nodes(names[:8], names[8:], views, 10**5, ROOMY)
    assert {len(node.parents) for node in wide} == {4}
    few = candidate_nodes(names[:8], names[8:], views, 10**5, CandidateLimits(10**6, 200_000))
    assert {len(node.parents) for node in few} == {2}
    assert len(few) * 1000 <= 200_000


def test_views_come_finest_first_and_take_each_others_place() -> None:
    merges = {"zip@county": Merge("zip", tuple(code // 10 for code in range(100)))}
    views = views_of(Domain(("sex", "zip"), (2, 100)), merges)
    assert maximal_parent_sets(["sex", "zip"], views, 200, 2, 9) == [("sex", "zip")]
    assert maximal_parent_sets(["sex", "zip"], views, 199, 2, 9) == [("sex", "zip@county"), ("zip",)]
    assert maximal_parent_sets(["sex", "zip"], views, 99, 2, 9) == [("sex", "zip@county")]
    assert maximal_parent_sets(["sex", "zip"], views, 19, 2, 9) == [("sex",), ("zip@county",)]
