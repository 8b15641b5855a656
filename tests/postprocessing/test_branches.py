"""Coarsening along hierarchies: siblings first, then cousins; the cap kept; districts survive where towns do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from margent import Category, Schema
from margent.metrics.mgd.attribute import attributes_from_schema
from margent.postprocessing.branches import branches, branches_of
from margent.postprocessing.coarsening import coarsened, merge_branches
from margent.schema.codec import Codec
from margent.transcript import NoisyMarginal


def towns(districts: int, each: int) -> tuple[list[str], dict[str, str]]:
    names = [f"town {d}-{t}" for d in range(districts) for t in range(each)]
    return names, {name: f"district {name[5:].split('-')[0]}" for name in names}


def schema_of(districts: int, each: int, *, ordered: bool = False) -> Schema:
    names, parent = towns(districts, each)
    region = {district: "north" if int(district[9:]) % 2 else "south" for district in set(parent.values())}
    tree = {"levels": ["district", "region"], "parents": [parent, region]}
    town = Category("town", names, ordered=ordered, hierarchy=tree, required=True, unlisted={"to": names[0]})
    return Schema([town, Category("sex", ["F", "M"])], unit="row")


def answer(name: str, counts: np.ndarray) -> NoisyMarginal:
    return NoisyMarginal((name,), counts.astype(np.int64), Fraction(1), 0)


@st.composite
def trees(draw: st.DrawFn) -> tuple[np.ndarray, list[list[int]]]:
    size = draw(st.integers(1, 40))
    counts = np.array(draw(st.lists(st.integers(-5, 9), min_size=size, max_size=size)), dtype=float)
    one = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    return counts, [one, [group // 3 for group in one]]


@given(trees(), st.sampled_from([1.0, 3.0, 6.0]))
def test_groups_are_high_codes_low_siblings_low_cousins_and_the_rest(
    tree: tuple[np.ndarray, list[list[int]]], bar: float
) -> None:
    counts, levels = tree
    groups = branches(counts, levels, bar)
    assert set(groups.tolist()) == set(range(groups.max() + 1))
    rest = []
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        if counts[members].max() >= bar:
            assert members.size == 1
            continue
        reached = counts[members].sum() >= bar * np.sqrt(members.size)
        depth = next((place for place, level in enumerate(levels) if len({level[m] for m in members}) == 1), None)
        if depth is None or not reached:
            rest.append(group)
            continue
        # All low codes of that parent that no finer group took are in it.
        parent = levels[depth][members[0]]
        finer = {
            int(code)
            for code in np.flatnonzero((counts < bar) & (np.array(levels[depth]) == parent))
            if groups[code] != group
        }
        for code in finer:
            assert depth > 0
            others = np.flatnonzero(groups == groups[code])
            assert len({levels[depth - 1][other] for other in others}) == 1
    assert len(rest) <= 1  # what is left at the root is one group


def test_a_district_survives_although_none_of_its_towns_does() -> None:
    schema, rng = schema_of(40, 20), np.random.default_rng(1)
    counts = np.minimum(np.rint(rng.normal(2, 1, 800)), 2)
    counts[:5] = 50
    merge = coarsened(schema, [answer("town", counts), answer("sex", np.array([900, 900, 0]))], 300, 10**6)["town"]
    groups = np.array(merge.groups)
    assert len(set(groups[:5])) == 5
    assert set(np.bincount(groups[:5])) == {1}
    districts = [set(groups[20 * d : 20 * d + 20]) for d in range(1, 40)]
    assert all(len(found) == 1 for found in districts)
    assert len(set.union(*districts)) == 39


def test_what_is_too_faint_for_its_district_is_counted_in_its_region() -> None:
    counts = np.full(800, 0.0)
    counts[::4] = 1
    schema = schema_of(40, 20)
    merge = coarsened(schema, [answer("town", counts), answer("sex", np.array([9, 9, 0]))], 300, 10**6)["town"]
    region = np.array([int(name.split()[1].split("-")[0]) % 2 for name in towns(40, 20)[0]])
    assert merge.size == 2
    assert len(set(zip(merge.groups, region.tolist(), strict=True))) == 2


def test_the_cap_is_kept_by_moving_up_the_tree() -> None:
    schema = schema_of(40, 20)
    counts = np.full(800, 100.0)
    one_ways = [answer("town", counts), answer("sex", np.array([40_000, 40_000, 0]))]
    assert coarsened(schema, one_ways, 10**6, 10**6) == {}
    for cap in (2000, 300, 120, 30):
        merge = coarsened(schema, one_ways, 10**6, cap)["town"]
        assert 3 * merge.size <= cap
        for district in range(40):  # never a part of one district with a part of another
            groups = set(merge.groups[20 * district : 20 * district + 20])
            elsewhere = set(merge.groups[: 20 * district]) | set(merge.groups[20 * district + 20 :])
            assert len(groups) == 1 or not groups & elsewhere


def test_a_hierarchy_comes_before_an_order_and_after_codes_nothing_changes() -> None:
    schema = schema_of(4, 100, ordered=True)
    assert list(branches_of(schema)) == ["town"]
    counts = np.append(np.tile([4.0, 1.0], 200), [7.0, 0.0])
    merge = merge_branches(answer("town", counts), branches_of(schema)["town"])
    assert merge is not None
    assert merge.groups[-2:] == (merge.size - 2, merge.size - 1)
    assert len({merge.groups[code] for code in range(1, 100, 2)}) == 1
    assert merge_branches(answer("town", np.full(400, 9.0)), branches_of(schema)["town"]) is None


def test_mgd_moves_along_the_same_branches() -> None:
    schema = schema_of(4, 5)
    attribute = attributes_from_schema(Codec(schema))["town"]
    assert attribute.kind == "tree"
    assert attribute.groups == branches_of(schema)["town"]
