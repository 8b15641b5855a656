"""Coarsening: which codes are counted together, the cap kept, order respected, and huge columns end to end."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margent import Budget, Category, Integer, Schema
from margent.collectors.dense import Dense
from margent.counts.source import CodedCounts
from margent.postprocessing.coarsening import coarsened, merge_runs, most_groups, ordered_codes, runs
from margent.postprocessing.merging import pulled_together
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.release.summary import coarsened_columns, pairs_left_out
from margent.schema.codec import Codec
from margent.synthesizers.descent import Descent
from margent.transcript import NoisyMarginal
from tests.synthesizers.made import counts_of, variation


def answer(name: str, counts: list[int] | np.ndarray, variance: int = 1) -> NoisyMarginal:
    return NoisyMarginal((name,), np.asarray(counts, dtype=np.int64), Fraction(variance), 0)


def column(name: str, size: int, *, ordered: bool = False) -> object:
    names = [f"{name}{code}" for code in range(size)]
    return Category(name, names, ordered=ordered, required=True, unlisted={"to": names[0]})


@given(st.lists(st.integers(1, 3000), min_size=2, max_size=8), st.integers(1, 100_000))
def test_no_pair_is_over_the_cap_and_some_pair_would_be_with_more(sizes: list[int], cap: int) -> None:
    most = most_groups(sizes, cap)
    cut = [min(size, most) for size in sizes]
    assert all(one * other <= cap for one, other in combinations(cut, 2))
    more = [min(size, most + 1) for size in sizes]
    assert more == cut or any(one * other > cap for one, other in combinations(more, 2))


@given(st.lists(st.integers(-20, 60), min_size=1, max_size=60), st.sampled_from([1.0, 3.0, 8.0]))
def test_runs_are_neighbors_that_reach_the_bar_together(counts: list[int], bar: float) -> None:
    values = np.array(counts, dtype=np.float64)
    groups = runs(values, bar)
    assert groups[0] == 0
    assert set(np.diff(groups).tolist()) <= {0, 1}
    for group in range(groups[-1] + 1):
        members = values[groups == group]
        if members.max() >= bar:
            assert members.size == 1
        elif group < groups[-1] and values[np.flatnonzero(groups == group)[-1] + 1] < bar:
            assert members.sum() >= bar * np.sqrt(members.size)
        # Not later than needed.
        reached = np.cumsum(members)[:-1] >= bar * np.sqrt(np.arange(1, members.size))
        assert not reached.any()


def test_special_codes_stay_apart_from_an_order() -> None:
    merge = merge_runs(answer("a", [1, 1, 1, 1, 50, 1, 1, 0, 2]), values=7)
    assert merge is not None
    assert merge.groups == (0, 0, 0, 0, 1, 2, 2, 3, 4)


def test_the_bar_rises_until_the_groups_fit() -> None:
    counts = np.random.default_rng(1).integers(50, 150, 1000)
    assert merge_runs(answer("a", counts), 1000) is None
    for most in (1, 7, 100, 400):
        merge = merge_runs(answer("a", counts), 1000, most)
        assert merge is not None
        assert 0.6 * most <= merge.size <= most
        assert list(merge.groups) == sorted(merge.groups)


def test_numbers_and_ordered_categories_have_an_order_others_do_not() -> None:
    schema = Schema(
        [
            Category("size", ["s", "m", "l"], ordered=True),
            Category("color", ["r", "g"]),
            Integer("age", 0, 99, bins={"width": 10}),
        ],
        unit="row",
    )
    assert ordered_codes(schema) == {"size": 3, "age": 10}


def test_only_wide_columns_are_touched_unless_a_pair_is_over_the_cap() -> None:
    schema = Schema([column("a", 40), column("b", 40), column("c", 3)], unit="row")
    low = np.arange(40)
    answers = [answer("a", low, 100), answer("b", low[::-1], 100), answer("c", [0, 0, 0], 100)]
    assert coarsened(schema, answers, above=40, cap=1600) == {}
    wide = coarsened(schema, answers, above=39, cap=1600)
    assert {name: merge.size for name, merge in wide.items()} == {"a": 11, "b": 11}
    capped = coarsened(schema, answers, above=40, cap=400)
    assert {name: merge.size for name, merge in capped.items()} == {"a": 20, "b": 20}
    assert capped["a"].groups == (*[19] * 21, *range(19))
    ordered = Schema([column("a", 40, ordered=True), column("b", 40), column("c", 3)], unit="row")
    neighbors = coarsened(ordered, answers, above=40, cap=400)["a"]
    assert neighbors.size <= 20
    assert list(neighbors.groups) == sorted(neighbors.groups)


def test_a_column_of_more_special_codes_than_groups_still_fits() -> None:
    schema = Schema([Integer("a", 0, 30, bins={"width": 1}, special=["-9", "-8", "-7"]), column("b", 9)], unit="row")
    size = Codec(schema).domain.size("a")
    merges = coarsened(schema, [answer("a", np.arange(size)), answer("b", np.arange(9))], above=300, cap=9)
    assert {name: merge.size for name, merge in merges.items()} == {"a": 3, "b": 3}


def test_noise_between_members_is_not_written() -> None:
    """5,000 rare codes of 2 records each under noise of variance 200: off by .1 of their records, not by all."""
    noisy = 2 + np.random.default_rng(2).normal(0, 200**0.5, 5000)
    assert np.abs(pulled_together(noisy, 200.0) - 2).mean() < 1
    assert np.abs(np.maximum(noisy, 0) - 2).mean() > 4
    apart = np.array([500.0, 3.0, 100.0])
    np.testing.assert_allclose(pulled_together(apart, 1.0), apart, atol=0.01)


CODES, ROWS = 50_000, 100_000


def huge(*, ordered: bool) -> tuple[Schema, list[np.ndarray]]:
    """A column of 50,000 codes and one of 10 that follows it in 4 of 5 records."""
    rng = np.random.default_rng(1)
    if ordered:
        wide = np.clip(rng.normal(CODES / 2, CODES / 6, ROWS), 0, CODES - 1).astype(np.int64)
        near = wide * 10 // CODES
    else:
        weights = 1 / np.arange(1, CODES + 1) ** 1.1
        wide = rng.permutation(CODES)[rng.choice(CODES, ROWS, p=weights / weights.sum())]
        near = wide % 10
    ten = np.where(rng.random(ROWS) < 0.8, near, rng.integers(0, 10, ROWS))
    schema = Schema([column("w", CODES, ordered=ordered), column("y", 10)], unit="row")
    return schema, [wide.astype(np.uint16), ten.astype(np.uint16)]


@pytest.mark.parametrize(("ordered", "least"), [(False, 0.45), (True, 0.70)], ids=["names", "ordered"])
def test_a_huge_column_keeps_its_dependence_at_the_price_of_a_small_one(ordered: bool, least: float) -> None:
    """Records that follow: .82 in the table, .1 if independent; .56 (frequent codes only) and .78 measured."""
    schema, columns = huge(ordered=ordered)
    budget = Budget(epsilon=1)
    domain = Codec(schema).domain
    made = Dense().collect(DataCurator(schema, CodedCounts(columns, domain), Ledger(budget)), budget)
    (pair,) = [each for each in made.marginals if each.clique == ("w", "y")]
    assert pair.counts.shape == (made.merges["w"].size, 10)
    assert 20 < made.merges["w"].size < 1500
    (entry,) = coarsened_columns(made)
    assert entry == {"column": "w", "codes": CODES, "groups": made.merges["w"].size}
    assert pairs_left_out(made) == 0
    records = Descent().build(made, silent).sample(ROWS, 1, silent)
    near = records[:, 0] * 10 // CODES if ordered else records[:, 0] % 10
    assert np.mean(near == records[:, 1]) > least
    assert np.unique(records[:, 0]).size > 10_000
    sizes = {"w": CODES, "y": 10}
    real = np.stack(columns, axis=1).astype(np.int64)
    assert variation(counts_of(records, sizes, ("w",)), counts_of(real, sizes, ("w",))) < 0.4
