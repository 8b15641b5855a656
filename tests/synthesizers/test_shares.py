"""The shares of blocks: whole, exact over all blocks, no cell lost, and the same where there is one block only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from margent.stream import Stream
from margent.synthesizers.apportion import apportion
from margent.synthesizers.shares import WHOLE, Share, shuffled_codes

weights = arrays(
    np.float64,
    st.one_of(st.integers(1, 40), st.tuples(st.integers(1, 6), st.integers(1, 6))),
    elements=st.floats(0, 1000).map(lambda value: round(value, 4)),
)
blocks = st.integers(2, 200)
seeds = st.integers(0, 2**62)


def shares(count: int, seed: int) -> list[Share]:
    return [Share(index, count, seed) for index in range(count)]


@given(weights, st.integers(1, 2**20), blocks, seeds)
def test_blocks_sum_exactly_to_one_apportionment_of_all_records(
    table: NDArray[np.float64], rows: int, count: int, seed: int
) -> None:
    each = [share.counts(table, rows, 0.0) for share in shares(count, seed)]
    expected = (table if table.any() else np.ones_like(table)) / max(table.sum(), 1e-300)
    expected = expected if table.any() else np.full(table.shape, 1 / table.size)
    for counts in each:
        assert counts.shape == table.shape
        assert counts.sum() == rows
        assert counts.min() >= 0
        assert np.abs(counts - rows * expected).max() < 1 + 1e-6
    union = np.sum(each, axis=0)
    # As near as one table of all records: less than one record off in every cell.
    assert np.abs(union - count * rows * expected).max() < 1 + 1e-3
    if table.any():
        assert union[table == 0].sum() == 0


def test_blocks_that_round_alone_lose_what_is_rare() -> None:
    """Planted: each block by itself gives the union none of a cell, or one in every block."""
    table = np.array([1000.0, 0.3])
    alone = [apportion(table, 1000, 0.5) for _ in range(100)]
    together = [share.counts(table, 1000, 0.5) for share in shares(100, 3)]
    assert np.sum(alone, axis=0)[1] == 0
    assert np.sum(together, axis=0)[1] in (29, 30)


@given(st.integers(1, 5000), seeds)
@example(40, 0)  # the nearest stride above the golden section that will do is far from it; the one below is near
def test_every_place_is_taken_once_and_the_first_blocks_are_spread(count: int, seed: int) -> None:
    places = [share.place for share in shares(count, seed)]
    assert sorted(places) == list(range(count))
    if count >= 16:
        # Any eight blocks in a row round up in different eighths, but for two or three.
        assert len({8 * place // count for place in places[:8]}) >= 5


@given(weights, st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_one_block_is_the_whole_table(table: NDArray[np.float64], rows: int, start: float) -> None:
    assert np.array_equal(WHOLE.counts(table, rows, start).ravel(), apportion(table.ravel(), rows, start))
    own = np.linspace(0, 0.9, 5)
    assert WHOLE.starts(own, "x") is own


@given(st.integers(1, 30), blocks, seeds)
def test_starts_are_a_lattice_of_their_own_for_every_group(groups: int, count: int, seed: int) -> None:
    starts = np.array([share.starts(np.zeros(groups), "column") for share in shares(count, seed)])
    assert starts.min() >= 0
    assert starts.max() < 1
    for group in range(groups):
        cells = np.floor(np.sort(starts[:, group]) * count).astype(int)
        assert np.abs(cells - np.arange(count)).max() <= 1
    other = Share(0, count, seed).starts(np.zeros(groups), "another")
    assert not np.allclose(other, starts[0])


@pytest.mark.parametrize("share", [WHOLE, Share(3, 7, 5)])
def test_codes_of_a_share_come_in_random_order(share: Share) -> None:
    weights = np.array([4.0, 1.0])
    made = [shuffled_codes(weights, 5, Stream(seed), share) for seed in range(5000)]
    ones = [int(codes.sum()) for codes in made]
    assert set(ones) <= {0, 1, 2}
    places = [int(np.argmax(codes)) for codes in made if codes.sum() == 1]
    # Binomial: five deviations of a fifth of them.
    assert np.abs(np.bincount(places, minlength=5) - len(places) / 5).max() < 5 * np.sqrt(len(places) * 0.16)
