"""Every registered sensitivity against brute force over all small tables and hill-climbing beyond.

For every query, relation and unit: no change between neighbors passes what is registered, and some change comes within
a tenth of it, so that no noise is wasted.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import (
    SCORE_LATTICE,
    marginal_sensitivity_l1,
    marginal_sensitivity_squared,
    score_sensitivity_squared,
)
from margent.privacy.scores import independence_distance, indif
from tests.privacy.all_tables import AllTables, climbed, compositions
from tests.sizes import rounds

SHAPES = [(1, 3), (2, 2), (2, 3), (3, 3)]
MOST = 8
WIDE = rounds(MOST, 15)
REPLACED = Neighbors("replace")
PERSONS = [Neighbors("add-remove", rows) for rows in (1, 2, 3)]
ALL = [Neighbors(), REPLACED, *PERSONS]
RECORD = SCORE_LATTICE["indif"]


def registered(kind: str, neighbors: Neighbors) -> int:
    return math.isqrt(int(score_sensitivity_squared(kind, 1, neighbors)))


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def every(request: pytest.FixtureRequest) -> AllTables:
    """All tables of a shape with at most eight records: 24,310 of 3 x 3."""
    return AllTables(request.param, MOST)


def test_all_tables_are_there(every: AllTables) -> None:
    assert len(np.unique(every.tables, axis=0)) == len(every.tables) == math.comb(MOST + every.cells, every.cells)
    assert every.tables.min() == 0
    assert every.records.max() == MOST


def test_indif_of_all_small_tables(every: AllTables) -> None:
    scores = every.values(indif)
    changes = {neighbors: every.largest(scores, neighbors) for neighbors in ALL}
    for neighbors, change in changes.items():
        assert change <= registered("indif", neighbors), str(neighbors)
    if every.shape == (3, 3):
        # Adding one to n records: at most 4n/(n+1), reached; further rows of a person: the sum over their steps.
        assert changes[Neighbors()] == changes[PERSONS[0]] == RECORD * 4 * (MOST - 1) / MOST
        two = 4 * (MOST - 2) / (MOST - 1) + 4 * (MOST - 1) / MOST
        assert 0.9 * RECORD * two <= changes[PERSONS[1]] <= RECORD * two
        # One of n replaced: PrivSyn's Lemma 4 claims 4 for this relation too.
        assert 4 * RECORD < changes[REPLACED] == RECORD * largest_replacement(MOST)


def largest_replacement(records: int) -> Fraction:
    """6 - 2 (ceil(2 sqrt n) + 1)/n: how far InDif of some table of n records moves, and no other's moves farther."""
    return 6 - Fraction(2 * (math.isqrt(4 * records - 1) + 2), records)


def n_times_indif(tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """n R, a whole number, of each table in a stack, all of n records; nothing is rounded."""
    rows, columns = tables.sum(axis=2, keepdims=True), tables.sum(axis=1, keepdims=True)
    records = tables.sum(axis=(1, 2), keepdims=True)
    whole: NDArray[np.int64] = np.abs(records * tables - rows * columns).sum(axis=(1, 2))
    return whole


@pytest.mark.parametrize("most", [WIDE])
def test_replacing_one_of_n_records_moves_indif_by_exactly_what_the_proof_says(most: int) -> None:
    """All 3 x 3 tables of n - 1 common records, one more at (0, 0): n to 8 at every commit, to 15 in an audit."""
    for records in range(1, most + 1):
        common = compositions(records - 1, 9).reshape(-1, 3, 3)
        before = common.copy()
        before[:, 0, 0] += 1
        largest = 0
        for place in ((1, 1), (0, 1), (1, 0)):
            after = common.copy()
            after[:, place[0], place[1]] += 1
            largest = max(largest, int(np.abs(n_times_indif(after) - n_times_indif(before)).max()))
        assert largest == records * largest_replacement(records), records


@pytest.mark.parametrize("shape", [(2, 5), (4, 4), (3, 6)])
def test_no_larger_table_moves_by_more_when_a_record_is_replaced(shape: tuple[int, int]) -> None:
    """Random ones of up to 40 records, most of them with few filled cells, as the extreme ones are."""
    rng = np.random.default_rng(11)
    cells = shape[0] * shape[1]
    for records in range(1, 41):
        chances = rng.dirichlet(np.full(cells, 0.2), 400)
        common = rng.multinomial(records - 1, chances).reshape(-1, *shape)
        before = common.copy()
        before[:, 0, 0] += 1
        for place in ((1, 1), (0, 1), (1, 0)):
            after = common.copy()
            after[:, place[0], place[1]] += 1
            moved = int(np.abs(n_times_indif(after) - n_times_indif(before)).max())
            assert moved <= records * largest_replacement(records)


def test_for_every_number_of_records_a_table_reaches_the_largest_replacement() -> None:
    for records in [*range(2, 400), 10**4, 10**6 + 7]:
        total = math.isqrt(4 * records - 1) + 1
        row, column = total // 2, total - total // 2
        before = np.zeros((1, 3, 3), dtype=np.int64)
        before[0, :2, :2] = [[1, row - 1], [column - 1, records + 1 - total]]
        after = before.copy()
        after[0, 0, 0], after[0, 2, 2] = 0, 1
        moved = int((n_times_indif(after) - n_times_indif(before))[0])
        assert moved == records * largest_replacement(records)
    assert largest_replacement(54) > Fraction(9, 10) * 6 > max(map(largest_replacement, range(1, 54)))
    assert largest_replacement(10**12) > 6 - Fraction(1, 10**5)


@pytest.mark.parametrize("rows", [1, 2, 3, 10])
@pytest.mark.parametrize("records", [64, 1000])
def test_the_extreme_table_comes_near_the_registered_sensitivity_of_indif(records: int, rows: int) -> None:
    """All mass in one cell, a person's rows in an empty row and column: the change is 4nk/(n+k)."""
    before = np.zeros((3, 3), dtype=np.int64)
    before[0, 0] = records
    after = before.copy()
    after[2, 2] = rows
    change = abs(indif(after) - indif(before))
    assert change == RECORD * 4 * records * rows // (records + rows)
    limit = registered("indif", Neighbors("add-remove", rows))
    assert 0.9 * limit * min(1.0, 1.1 * records / (records + rows)) <= change <= limit


@pytest.mark.parametrize("side", [8, 10, 30])
def test_the_extreme_replacement_comes_within_a_tenth_of_the_registered_sensitivity_of_indif(side: int) -> None:
    """n = m^2, a row and a column of m records that meet in one, all independent: the change is 6 - 4/m - 2/m^2."""
    before = np.zeros((3, 3), dtype=np.int64)
    before[:2, :2] = [[1, side - 1], [side - 1, (side - 1) ** 2]]
    after = before.copy()
    after[0, 0], after[2, 2] = 0, 1
    change = indif(after) - indif(before)
    assert indif(before) == 0
    assert change == math.floor(RECORD * (6 - 4 / side - 2 / side**2) + 1e-9)
    assert 0.9 * registered("indif", REPLACED) <= change <= registered("indif", REPLACED)


@pytest.mark.parametrize("neighbors", ALL, ids=str)
def test_climbing_to_larger_tables_finds_nothing_beyond_the_registered_sensitivity(neighbors: Neighbors) -> None:
    found = climbed(indif, (3, 3), neighbors, most=64, starts=20, seed=1)
    assert 0.85 * registered("indif", neighbors) <= found <= registered("indif", neighbors)


def test_a_planted_bug_is_caught() -> None:
    """PrivSyn's constant under replacement, and a person priced as a single row, are found by the same search."""
    scores = (every := AllTables((3, 3), MOST)).values(indif)
    assert every.largest(scores, REPLACED) > registered("indif", Neighbors())
    assert every.largest(scores, PERSONS[1]) > registered("indif", Neighbors())
    assert every.largest(scores, PERSONS[2]) > registered("indif", PERSONS[1])


@pytest.mark.parametrize("neighbors", ALL, ids=str)
def test_marginal_sensitivity_is_exact_for_a_stack_of_tables(neighbors: Neighbors) -> None:
    """All tables of at most four records over two binary columns: one-ways and the pair, counted together."""
    every = AllTables((2, 2), 4)
    pairs = every.tables.reshape(-1, 2, 2)
    stack = np.concatenate([every.tables, pairs.sum(axis=1), pairs.sum(axis=2)], axis=1)
    places = {tuple(table): place for place, table in enumerate(every.tables)}
    worst_one = worst_all = worst_l1 = 0
    for change in every.changes(neighbors):
        for place, table in enumerate(every.tables):
            other = places.get(tuple(table + change))
            if other is not None:
                squares = (stack[other] - stack[place]) ** 2
                worst_l1 = max(worst_l1, int(np.abs(stack[other] - stack[place])[:4].sum()))
                worst_one, worst_all = max(worst_one, int(squares[:4].sum())), max(worst_all, int(squares.sum()))
    assert worst_one == marginal_sensitivity_squared(neighbors)
    assert worst_l1 == marginal_sensitivity_l1(neighbors)
    assert worst_all == 3 * marginal_sensitivity_squared(neighbors)


def test_a_vector_of_scores_is_registered_at_root_m_and_a_person_at_k_times_a_row() -> None:
    one = score_sensitivity_squared("indif", 1, Neighbors())
    assert score_sensitivity_squared("indif", 91, Neighbors()) == 91 * one
    assert one == Fraction(1024) ** 2
    for kind in ("indif", "independence"):
        single = score_sensitivity_squared(kind, 7, Neighbors())
        assert score_sensitivity_squared(kind, 7, Neighbors("add-remove", 5)) == 25 * single


def test_indif_example_of_the_paper() -> None:
    # PrivSyn Fig. 1: two of three columns of a 2 x 3 table deviate by 2 % each way; the sum is 0.08 n.
    table = np.array([[12, 8, 20], [13, 17, 30]], dtype=np.int64)
    assert indif(table) / SCORE_LATTICE["indif"] == 0.08 * table.sum()


def test_indif_of_three_billion_records_does_not_wrap() -> None:
    table = np.array([[1_500_000_000, 0], [0, 1_500_000_000]], dtype=np.int64)
    assert indif(table) == 256 * 3_000_000_000


@pytest.mark.parametrize("neighbors", ALL, ids=str)
def test_distance_from_a_public_product_moves_by_exactly_its_sensitivity(
    every: AllTables, neighbors: Neighbors
) -> None:
    """Awkward public expectations, cells far below one record among them."""
    rng = np.random.default_rng(3)
    largest = 0
    for _ in range(2 if every.cells > 6 else 6):
        rows, columns = rng.random(every.shape[0]) ** 4 * 9, rng.random(every.shape[1]) ** 4 * 9
        total = max(float(rows.sum()), 1.0)
        scores = every.values(lambda table, a=rows, b=columns, n=total: independence_distance(table, a, b, n))
        largest = max(largest, every.largest(scores, neighbors))
    bound = registered("independence", neighbors)
    assert bound == (2 if neighbors == REPLACED else neighbors.unit_rows)
    assert largest == bound
