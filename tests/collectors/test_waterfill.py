"""The program of `dense`: its model of a pair, and its solution against a general optimizer."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from margent.collectors.waterfill import (
    BINS,
    Program,
    Sketch,
    largest_kappa,
    pair_sketch,
    sketch,
    stacked,
    variance_factors,
)
from margent.postprocessing.departures import error_left, error_table

Array = NDArray[np.float64]


def flat(each: Sketch) -> tuple[Array, Array]:
    """One sketch as arrays of one row."""
    return each.values[np.newaxis, :], each.weights[np.newaxis, :]


# Sketches.


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-100, 1e5), min_size=1, max_size=60))
def test_a_sketch_keeps_the_cells_and_the_records(counts: list[float]) -> None:
    made = sketch(np.array(counts))
    assert made.values.size == made.weights.size <= BINS
    assert made.weights.sum() == len(counts)
    assert made.weights.min() >= 1
    assert np.all(np.diff(made.values) >= -1e-9)
    assert (made.values * made.weights).sum() == pytest.approx(np.maximum(counts, 0).sum())
    if len(counts) <= BINS:
        assert sorted(made.values.tolist()) == sorted(max(count, 0.0) for count in counts)


@pytest.mark.parametrize("evenness", [0.1, 1.0, 10.0])
def test_a_sketch_knows_the_sum_of_square_roots(evenness: float) -> None:
    """What errors are made of, within a tenth, for columns of 200 codes."""
    counts = 10_000 * np.random.default_rng(1).dirichlet(np.full(200, evenness))
    made = sketch(counts)
    assert (made.weights * np.sqrt(made.values)).sum() == pytest.approx(np.sqrt(counts).sum(), rel=0.1)


def test_a_pair_has_the_products_of_its_columns() -> None:
    first, second = sketch(np.array([60.0, 40.0])), sketch(np.array([10.0, 20.0, 70.0]))
    made = pair_sketch(first, second, 100.0)
    assert sorted(made.values.tolist()) == [4.0, 6.0, 8.0, 12.0, 28.0, 42.0]
    assert made.weights.tolist() == [1.0] * 6
    large = pair_sketch(sketch(np.arange(100.0)), sketch(np.arange(50.0)), 4950.0)
    assert large.weights.sum() == 100 * 50
    assert (large.values * large.weights).sum() == pytest.approx(1225)
    values, weights = stacked([made, large])
    assert values.shape == weights.shape == (2, large.values.size)
    assert weights[0, 6:].sum() == 0
    assert stacked([])[0].shape == (0, 1)


# The variance factor.


def implied(kappa: float, expected: Sketch) -> float:
    """sum_c 2 m_c a^a e^-a / Gamma(a + 1) at a = m_c / kappa, cell by cell: how far gamma laws are from their means."""
    cells = zip(expected.values.tolist(), expected.weights.tolist(), strict=True)
    return sum(
        weight * 2 * mean * math.exp(a * math.log(a) - a - math.lgamma(a + 1))
        for mean, weight in cells
        if (a := mean / kappa) > 0
    )


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.001, 1.9), st.sampled_from([0.2, 1.0, 20.0]))
def test_variance_factor_solves_its_equation(seed: int, share: float, evenness: float) -> None:
    """The distance that kappa implies is the one that was asked for, to 2 %; or kappa is the most there is."""
    rng = np.random.default_rng(seed)
    columns = [5_000 * rng.dirichlet(np.full(size, evenness)) for size in rng.integers(2, 30, 2)]
    expected = pair_sketch(sketch(columns[0]), sketch(columns[1]), 5_000.0)
    most = np.array([largest_kappa(*columns)])
    (kappa,) = variance_factors(np.array([share * 5_000]), *flat(expected), most)
    if kappa < 0.999 * most[0]:
        assert implied(kappa, expected) == pytest.approx(share * 5_000, rel=0.02)
    else:
        assert implied(kappa, expected) <= share * 5_000 * 1.02


def test_variance_factors_at_both_ends() -> None:
    expected = pair_sketch(sketch(np.full(4, 250.0)), sketch(np.full(5, 200.0)), 1_000.0)
    values, weights = (np.repeat(each, 4, axis=0) for each in flat(expected))
    found = variance_factors(np.array([0.0, 1.0, 100.0, 5_000.0]), values, weights, np.full(4, 200.0))
    assert found[0] == 0
    assert np.all(np.diff(found) > 0)
    # Twenty cells of 50: .8 sqrt(50 kappa) = 5 while they are dense.
    assert found[2] == pytest.approx((5 / 0.8) ** 2 / 50, rel=0.02)
    assert found[3] == pytest.approx(200, rel=1e-3)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 5))
def test_no_table_of_two_columns_has_larger_squares_than_the_largest_kappa(seed: int, evenness: float) -> None:
    """sum x^2 <= kappa n for any table with these margins; equal where the finer column decides the coarser."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 1 + (1000 * rng.dirichlet(np.full(30, evenness))).astype(int)).reshape(5, 6) * 1.0
    counts[0, 0] += 1
    most = largest_kappa(counts.sum(axis=1), counts.sum(axis=0))
    assert np.square(counts).sum() <= most * counts.sum() * (1 + 1e-12)
    fine = counts.ravel()
    assert largest_kappa(fine, counts.sum(axis=1)) == pytest.approx(np.square(fine).sum() / fine.sum())


# The program.


def error(program: Program, pairs: Array, singles: Array) -> float:
    """The summed expected error that the program is about, cell by cell."""
    table, found = error_table(), 0.0
    for pair in np.flatnonzero(program.kappas):
        kappa, rho = program.kappas[pair], program.gains[pair] * pairs[pair]
        noise = 1 / math.sqrt(2 * rho) if rho > 0 else 1e30
        for mean, weight in zip(program.expected[pair].tolist(), program.weights[pair].tolist(), strict=True):
            found += weight * mean * error_left(table, mean / kappa, noise / kappa) if weight else 0.0
    one_ways = 0.8 * program.sizes * program.shares / np.sqrt(2 * (program.owned + singles))
    return found + float(one_ways.sum())


def made(seed: int, columns: int = 4, *, capped: bool = False) -> Program:
    """A small instance; without ``capped`` no cell reaches its cap, so the error is convex."""
    rng = np.random.default_rng(seed)
    total = 5_000.0
    sketches = [sketch(total * rng.dirichlet(np.full(size, 6.0))) for size in rng.integers(2, 9, columns)]
    both = [pair_sketch(first, second, total) for first, second in itertools.combinations(sketches, 2)]
    values, weights = stacked(both)
    # .8 sqrt(kappa m) < 2 m where kappa < 6.25 m.
    least = np.array([each.values.min() for each in both])
    kappas = rng.uniform(0.01, 6.0, len(both)) * (20 * least + 5 if capped else least)
    kappas[rng.random(len(both)) < 0.3] = 0.0
    sizes = np.array([each.values.size for each in sketches], dtype=np.float64)
    gains = rng.uniform(1, 16, len(both))
    return Program(values, weights, kappas, gains, sizes, np.full(columns, 1.5), rng.uniform(0.5, 2, columns) * 1e-3)


BUDGETS = (1e-4, 1e-2, 0.3)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_the_solution_is_that_of_a_general_optimizer(seed: int, budget: float) -> None:
    """Within 1e-4 of the best of three runs of SLSQP; equal parts for everything are not."""
    program = made(seed)
    pairs = program.kappas.size

    def at(point: Array) -> float:
        parts = np.abs(point) / np.abs(point).sum() * budget
        return error(program, parts[:pairs], parts[pairs:])

    size = pairs + program.sizes.size
    starts = (np.random.default_rng(start).random(size) for start in range(3))
    best = min(optimize.minimize(at, start, method="SLSQP", options={"maxiter": 300}).fun for start in starts)
    mine = error(program, *program.solve(budget))
    assert mine <= best * (1 + 1e-4)
    assert at(np.ones(size)) > best * (1 + 1e-3)


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_the_budget_is_spent_and_nothing_is_negative(seed: int, budget: float, capped: bool) -> None:
    program = made(seed, columns=6, capped=capped)
    pairs, singles = program.solve(budget)
    assert pairs.shape == program.kappas.shape
    assert singles.shape == program.sizes.shape
    assert min(pairs.min(), singles.min()) >= 0
    assert pairs.sum() + singles.sum() == pytest.approx(budget, rel=1e-12)
    assert np.all(pairs[program.kappas == 0] == 0)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_slopes_are_level(seed: int, budget: float) -> None:
    """What a little more would gain is the same for all that is bought, and no more where nothing is."""
    program = made(seed)
    pairs, singles = program.solve(budget)
    step, base = 1e-6 * budget, error(program, pairs, singles)
    gains = []
    for which, parts in ((0, pairs), (1, singles)):
        for place in range(parts.size):
            moved = [pairs.copy(), singles.copy()]
            moved[which][place] += step
            gains.append(((base - error(program, *moved)) / step, parts[place] > 0))
    level = [gain for gain, bought in gains if bought]
    assert max(level) < 1.1 * min(level)
    assert max(gain for gain, _ in gains) < 1.1 * min(level)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_no_transfer_between_two_tables_helps_where_cells_are_capped(seed: int, budget: float) -> None:
    """The error is not convex then; still, no part of one budget does more good in another's place (1 percent)."""
    program = made(seed, capped=True)
    pairs, singles = program.solve(budget)
    base, count = error(program, pairs, singles), pairs.size
    both = np.concatenate([pairs, singles])
    for giver, taker in itertools.permutations(np.arange(both.size), 2):
        for part in (0.1, 0.5, 1.0):
            moved = both.copy()
            moved[taker] += part * both[giver]
            moved[giver] -= part * both[giver]
            assert error(program, moved[:count], moved[count:]) >= base * (1 - 0.01)


def test_a_pair_at_the_greatest_distance_is_bought() -> None:
    """One column decides the other: nothing is gained by the first bit of budget, all by enough of it."""
    expected = pair_sketch(sketch(np.full(5, 1_000.0)), sketch(np.full(5, 1_000.0)), 5_000.0)
    values, weights = flat(expected)
    kappas = variance_factors(np.array([10_000.0]), values, weights, np.array([1_000.0]))
    program = Program(values, weights, kappas, np.ones(len(kappas)), np.full(2, 5.0), np.ones(2), np.full(2, 1e-3))
    pairs, _ = program.solve(0.02)
    assert 0.2 < pairs[0] / 0.02 < 0.9


def test_where_one_column_of_many_codes_decides_another_little_budget_tells_it() -> None:
    """100 x 100 codes, 300,000 records: full cells of 3,000 stand out of noise that is 20 times what a cell expects."""
    expected = pair_sketch(sketch(np.full(100, 3_000.0)), sketch(np.full(100, 3_000.0)), 300_000.0)
    values, weights = flat(expected)
    kappas = variance_factors(np.array([1.98 * 300_000]), values, weights, np.array([3_000.0]))
    program = Program(values, weights, kappas, np.ones(1), np.full(2, 100.0), np.ones(2), np.full(2, 1e-4))
    noises = np.array([600.0, 3_000.0])
    good, bad = program.errors(1 / (2 * noises**2))[0] / 300_000
    assert good < 1
    assert bad > 1.5
    pairs, _ = program.solve(1e-5)
    assert pairs[0] > 0.3e-5


def test_a_pair_whose_cells_are_too_thin_to_measure_is_not_bought() -> None:
    """Twenty of 400 cells hold fifteen records each: they cannot stand out of noise that could be afforded."""
    expected = pair_sketch(sketch(np.full(20, 15.0)), sketch(np.full(20, 15.0)), 300.0)
    values, weights = flat(expected)
    kappas = variance_factors(np.array([580.0]), values, weights, np.array([15.0]))
    program = Program(values, weights, kappas, np.ones(len(kappas)), np.full(2, 20.0), np.ones(2), np.full(2, 2e-5))
    pairs, singles = program.solve(5e-4)
    assert pairs[0] == 0
    assert singles.sum() == pytest.approx(5e-4)
    rich, _ = program.solve(5.0)
    assert rich[0] > 0


def test_without_pairs_everything_goes_to_one_ways() -> None:
    """In proportion to (cells x pairs entered)^(2/3), what is owned counted in."""
    none = np.zeros((0, 1))
    program = Program(
        none, none, np.zeros(0), np.ones(0), np.array([8.0, 27, 1]), np.ones(3), np.array([0.0, 0.0, 5.0])
    )
    pairs, singles = program.solve(1.3)
    assert pairs.size == 0
    np.testing.assert_allclose(singles, [0.4, 0.9, 0.0], rtol=1e-4)


def test_pairs_without_distance_leave_everything_to_one_ways() -> None:
    program = made(1)
    program = replace(program, kappas=np.zeros_like(program.kappas))
    pairs, singles = program.solve(0.5)
    assert pairs.tolist() == [0.0] * pairs.size
    assert singles.sum() == pytest.approx(0.5)


@pytest.mark.parametrize("budget", [0.0, -1.0])
def test_nothing_to_spend(budget: float) -> None:
    pairs, singles = made(1).solve(budget)
    assert not pairs.any()
    assert not singles.any()


def test_six_thousand_pairs() -> None:
    program = made(2, columns=111, capped=True)
    assert program.kappas.size == 6_105
    pairs, singles = program.solve(0.02)
    assert pairs.sum() + singles.sum() == pytest.approx(0.02, rel=1e-12)
    assert 0 < np.count_nonzero(pairs) < 6_105
    even = np.full(111, 0.02 / 111)
    assert error(program, pairs, singles) < error(program, np.zeros(6_105), even)
