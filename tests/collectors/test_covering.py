"""Covering designs: every t-subset in a view, exact designs by brute force, the noise formula against a simulation."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.collectors.covering import best_cover, blown_up, greedy_cover, noise_left, pruned
from margent.collectors.steiner import Design, affine_plane, galois_field, known_designs, projective_plane

sizes = st.lists(st.integers(2, 30), min_size=1, max_size=11)
KNOWN = {(7, 3, 2): 7, (9, 3, 2): 12, (13, 4, 2): 13, (16, 4, 2): 20, (21, 5, 2): 21, (25, 5, 2): 30, (31, 6, 2): 31,
         (8, 4, 3): 14, (16, 4, 3): 140, (10, 4, 3): 30, (17, 5, 3): 68, (26, 6, 3): 130}  # fmt: skip
"""(points, block size, t) to the number of blocks of the Steiner system."""


def uncovered(views: object, count: int, strength: int) -> set[tuple[int, ...]]:
    held = {subset for view in views for subset in combinations(sorted(view), strength)}  # type: ignore[attr-defined]
    return set(combinations(range(count), strength)) - held


@pytest.mark.parametrize("strength", [2, 3])
def test_every_t_points_of_a_known_design_lie_in_exactly_one_block(strength: int) -> None:
    seen = set()
    for design in known_designs(strength):
        held = Counter(subset for block in design.blocks for subset in combinations(block, strength))
        assert set(held) == set(combinations(range(design.points), strength)), design.name
        assert set(held.values()) == {1}, design.name
        (size,) = {len(block) for block in design.blocks}
        seen.add((design.points, size, strength))
        assert KNOWN.get((design.points, size, strength), len(design.blocks)) == len(design.blocks)
    assert {key for key in KNOWN if key[2] == strength} <= seen


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9])
def test_galois_fields_are_fields(order: int) -> None:
    field, every = galois_field(order), range(order)
    for a in every:
        assert field.plus[a][0] == a
        assert field.times[a][1] == a
        assert sorted(field.plus[a]) == list(every)
        assert a == 0 or sorted(field.times[a]) == list(every)
        for b in every:
            assert field.plus[a][b] == field.plus[b][a]
            assert field.times[a][b] == field.times[b][a]
            for c in every:
                assert field.times[a][field.plus[b][c]] == field.plus[field.times[a][b]][field.times[a][c]]
                assert field.times[a][field.times[b][c]] == field.times[field.times[a][b]][c]


@given(sizes, st.sampled_from([2, 3]), st.sampled_from([4, 30, 256, 5000]))
@settings(deadline=None)
def test_greedy_covers_hold_every_subset_and_keep_to_the_cap(given_sizes: list[int], strength: int, cap: int) -> None:
    strength = min(strength, len(given_sizes))
    views = greedy_cover(given_sizes, strength, cap)
    assert not uncovered(views, len(given_sizes), strength)
    for view in views:
        cells = math.prod(given_sizes[place] for place in view)
        assert cells <= cap or len(view) == strength
    less = pruned(views, strength)
    assert not uncovered(less, len(given_sizes), strength)
    for left_out in less:
        assert uncovered([view for view in less if view != left_out], len(given_sizes), strength)


@given(sizes, st.sampled_from([2, 3]), st.sampled_from([1, 2]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_the_best_cover_holds_every_subset(given_sizes: list[int], strength: int, power: int, even: bool) -> None:
    strength = min(strength, len(given_sizes))
    found = best_cover(given_sizes, strength, power, even, 10**9)
    assert found is not None
    assert not uncovered(found.views, len(given_sizes), strength)
    alone = list(combinations(range(len(given_sizes)), strength))
    assert found.noise <= noise_left(alone, given_sizes, strength, power, even) * (1 + 1e-8)
    assert best_cover(given_sizes, strength, power, even, 1) is None


@pytest.mark.parametrize("design", [affine_plane(3), projective_plane(3), known_designs(3)[-1]], ids=lambda d: d.name)
@given(st.lists(st.integers(2, 30), min_size=3, max_size=40))
@settings(deadline=None, max_examples=20)
def test_a_design_of_groups_holds_every_subset(design: Design, given_sizes: list[int]) -> None:
    assert not uncovered(blown_up(design, given_sizes), len(given_sizes), design.strength)


def test_a_missing_block_would_be_seen() -> None:
    fano = projective_plane(2)
    assert uncovered(fano.blocks[1:], 7, 2)


@pytest.mark.parametrize(("count", "strength", "expected"), [(7, 2, 7), (13, 2, 13), (21, 2, 21), (8, 3, 14)])
def test_equal_columns_of_a_known_design_get_no_more_views_than_it(count: int, strength: int, expected: int) -> None:
    """Under pure epsilon fewer, larger views win; the design's own number of blocks is not passed."""
    found = best_cover([2] * count, strength, 1, True, 10**6)
    assert found is not None
    assert len(found.views) <= expected


@pytest.mark.parametrize(("power", "even"), [(2, True), (2, False), (1, True), (1, False)])
def test_the_noise_left_is_that_of_the_best_mean_of_simulated_views(power: int, even: bool) -> None:
    """Two views share a pair: the spread of its cells over 4,000 draws is within 5 % (alarm below 1e-6 a case)."""
    given_sizes, views = [2, 3, 4], [(0, 1), (0, 1, 2)]
    rng = np.random.default_rng(5)
    cells = np.array([6.0, 24.0])
    weights = np.ones(2) if even else cells ** (power / (power + 1))
    deviation = (weights / weights.sum()) ** (-1 / power)
    draws = 4000
    small = rng.normal(0, deviation[0], (draws, 2, 3))
    large = rng.normal(0, deviation[1], (draws, 2, 3, 4)).sum(axis=3)
    precision = [1 / deviation[0] ** 2, 1 / (4 * deviation[1] ** 2)]
    mean = (precision[0] * small + precision[1] * large) / sum(precision)
    pair = float(mean.std()) * 6
    others = sum(
        math.prod(given_sizes[place] for place in names)
        * deviation[1]
        * math.sqrt(24 / math.prod(given_sizes[place] for place in names))
        for names in [(0, 2), (1, 2)]
    )
    assert noise_left(views, given_sizes, 2, power, even) == pytest.approx(pair + others, rel=0.05)
