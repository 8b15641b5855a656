"""The compiled loops: the published example, the generator's published values, uniform subsets, conservation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.synthesizers import gum_rounds
from margent.synthesizers.gum_rounds import ONE

Int = NDArray[np.int64]


def state(seed: int = 1) -> NDArray[np.uint64]:
    return np.array([seed], dtype=np.uint64)


def step(
    records: NDArray[np.int32], shape: tuple[int, ...], target: Int, alpha: float, duplicate: float, seed: int = 1
) -> Int:
    """One update of the marginal over the first columns; returns the counts after it."""
    columns = np.arange(len(shape))
    strides = np.array([int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))])
    codes = np.empty(records.shape[1], dtype=np.int32)
    counts = np.empty(int(np.prod(shape)), dtype=np.int64)
    gum_rounds.tabulate(records, columns, strides, codes, counts)
    gum_rounds.update(
        records, columns, strides, np.array(shape), target, round(alpha * ONE), round(duplicate * ONE),
        state(seed), codes, counts,
    )  # fmt: skip
    gum_rounds.tabulate(records, columns, strides, codes, counts)
    return counts


@pytest.mark.parametrize("duplicate", [0.0, 0.5, 1.0])
def test_the_published_example(duplicate: float) -> None:
    """Figure 3 of PrivSyn: 5 records at (0, 0, .8, .2), wanted (0, 0, .2, .8), alpha 2, beta .5 -> (0, 0, .4, .6)."""
    records = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 1], [7, 7, 7, 7, 9]], dtype=np.int32)
    counts = step(records, (2, 2), np.array([0, 0, ONE, 4 * ONE]), 2.0, duplicate)
    assert counts.tolist() == [0, 0, 2, 3]
    # Copies bring the other columns of the cell they join, overwritten records keep theirs.
    assert sorted(records[2].tolist()) == [7] * (4 - round(2 * duplicate)) + [9] * (1 + round(2 * duplicate))


def test_alpha_beta_bisection_matches_the_example() -> None:
    counts, target = np.array([0, 0, 4, 1]), np.array([0, 0, ONE, 4 * ONE])
    gains, losses = np.zeros(4, np.int64), np.zeros(4, np.int64)
    assert gum_rounds.plan_gains(counts, target, 2 * ONE, state(), gains) == 2
    assert gains.tolist() == [0, 0, 0, 2]
    assert gum_rounds.plan_losses(counts, target, 2, losses) == 2
    assert losses.tolist() == [0, 0, 2, 0]
    half = np.zeros(4, np.int64)
    assert gum_rounds.losses_at(counts, target, 1 << (gum_rounds.BETA_SHIFT - 1), half) == 2


def test_the_generator_is_splitmix64() -> None:
    """First words from seed 1234567 as published with the reference code."""
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    words_state = state(1234567)
    assert [gum_rounds.below(words_state, 2**31) for _ in words] == [word >> 33 for word in words]


def test_losses_are_the_least_rate_that_frees_enough() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 40, 30)
        target = rng.integers(0, 40 * ONE, 30)
        most = np.maximum(0, (counts * ONE - target + ONE // 2) >> 16) * (counts > 0)
        wanted = int(rng.integers(1, most.sum() + 20))
        losses = np.zeros(30, np.int64)
        free = gum_rounds.plan_losses(counts, target, wanted, losses)
        assert free == losses.sum()
        assert np.all(losses <= most)
        assert free >= min(wanted, most.sum())
        # Never more than one record a cell above what was wanted.
        assert free <= wanted + 30


def picked_often(pick: Callable[..., None], cells: Int, losses: Int, copies: Int, runs: int) -> tuple[Int, Int]:
    """How often each record is freed, and copied, over runs with different seeds."""
    counts = np.bincount(cells, minlength=losses.size)
    freed_often, copied_often = np.zeros(cells.size, np.int64), np.zeros(cells.size, np.int64)
    words = state(9)
    for _ in range(runs):
        freed, sources = np.empty(losses.sum(), np.int64), np.empty(copies.sum(), np.int64)
        pick(cells.astype(np.int32), counts, losses, copies, words, freed, sources)
        assert np.bincount(cells[freed], minlength=losses.size).tolist() == losses.tolist()
        assert cells[sources].tolist() == np.repeat(np.arange(losses.size), copies).tolist()
        np.add.at(freed_often, freed, 1)
        np.add.at(copied_often, sources, 1)
    return freed_often, copied_often


CELLS = np.array([0, 0, 0, 1, 1, 0, 2, 1, 1, 2, 0, 1, 2, 0, 0, 0])


def chi_square(observed: Int, expected: NDArray[np.float64]) -> float:
    return float(((observed - expected) ** 2 / expected).sum())


def test_freed_and_copied_records_are_uniform_subsets() -> None:
    """2,000 runs; 8 + 5 records, chi-square bound 60 (false alarm below 1e-7 with at most 12 degrees)."""
    freed, copied = picked_often(gum_rounds.pick, CELLS, np.array([3, 0, 0]), np.array([0, 2, 0]), 2000)
    assert freed[CELLS != 0].sum() == copied[CELLS != 1].sum() == 0
    assert chi_square(freed[CELLS == 0], np.full(8, 2000 * 3 / 8)) < 60
    assert chi_square(copied[CELLS == 1], np.full(5, 2000 * 2 / 5)) < 60


def test_a_pick_that_prefers_early_records_would_be_caught() -> None:
    def biased(codes: Int, counts: Int, losses: Int, copies: Int, words: Int, freed: Int, sources: Int) -> None:
        gum_rounds.pick(codes, counts, losses, copies, words, freed, sources)
        if freed[0] % 2:  # now and then the first record of the cell instead of a random one
            freed[:] = np.flatnonzero(codes == 0)[: freed.size]

    freed, _ = picked_often(biased, CELLS, np.array([3, 0, 0]), np.array([0, 0, 0]), 2000)
    assert chi_square(freed[CELLS == 0], np.full(8, 2000 * 3 / 8)) > 60


def test_more_copies_than_records_take_each_several_times() -> None:
    _, copied = picked_often(gum_rounds.pick, CELLS, np.array([0, 0, 0]), np.array([0, 12, 0]), 500)
    often = copied[CELLS == 1]
    assert often.min() >= 1000
    assert often.sum() == 6000


@pytest.mark.parametrize("duplicate", [0.0, 0.5, 1.0])
def test_steps_keep_the_rows_and_the_domain_and_come_nearer(duplicate: float) -> None:
    rng = np.random.default_rng(3)
    records = rng.integers(0, 3, (4, 500)).astype(np.int32)
    shape = (3, 3)
    target = rng.multinomial(500, rng.dirichlet(np.ones(9))) * ONE
    before = np.abs(np.bincount(records[0] * 3 + records[1], minlength=9) * ONE - target).sum()
    for _ in range(30):
        counts = step(records, shape, target, 0.8, duplicate)
    assert records.shape == (4, 500)
    assert records.min() >= 0
    assert records.max() <= 2
    assert np.abs(counts * ONE - target).sum() <= before / 10


def test_thin_cells_are_filled_on_average() -> None:
    """Targets of a quarter record in all 40 cells, 10 records: each cell is filled about equally often."""
    filled = np.zeros(40)
    for seed in range(300):
        records = np.zeros((1, 10), dtype=np.int32)
        for turn in range(6):
            counts = step(records, (40,), np.full(40, ONE // 4), 1.0, 0.5, seed=1000 * turn + seed)
        filled += counts
    assert filled.sum() == 3000
    assert filled[1:].min() > 30


def test_a_round_serves_the_worst_marginal_first_and_reports_the_error() -> None:
    rng = np.random.default_rng(5)
    records = rng.integers(0, 2, (3, 400)).astype(np.int32)
    targets = np.array([100, 100, 100, 100, 300, 0, 0, 100]) * ONE
    arrays = [np.array(each) for each in ([0, 1, 1, 2], [2, 1, 2, 1], [2, 2, 2, 2], [0, 2, 4])]
    words = state(2)
    errors = [
        gum_rounds.play_round(records, *arrays, targets, np.array([0, 4, 8]), ONE, ONE // 2, words) for _ in range(40)
    ]
    assert isinstance(errors[0], int)
    assert errors[0] > 200 * ONE
    # The two disagree on column 1 (half against three quarters), so the error cannot vanish.
    assert errors[-1] >= 100 * ONE
