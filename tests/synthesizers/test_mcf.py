"""MCF and its flow: least cost by linear programming and by brute force, tables met exactly, uniform choice."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from margent.errors import UsageError
from margent.progress import silent
from margent.stream import Stream
from margent.synthesizers.mcf import MinCostFlow, meet
from margent.synthesizers.transport import transport
from tests.synthesizers.made import counts_of, transcript


def cost_of(shape: tuple[int, ...], moves: tuple[np.ndarray, np.ndarray, np.ndarray]) -> int:
    origin, goal, records = moves
    differ = np.array(np.unravel_index(origin, shape)) != np.array(np.unravel_index(goal, shape))
    return int((differ.sum(axis=0) * records).sum())


def least_cost(counts: np.ndarray, target: np.ndarray) -> int:
    """The transportation problem over all pairs of cells, by linear programming."""
    excess = (counts - target).ravel()
    sources, sinks = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    if not sources.size:
        return 0
    places = [np.array(np.unravel_index(cells, counts.shape)) for cells in (sources, sinks)]
    costs = (places[0][:, :, None] != places[1][:, None, :]).sum(axis=0)
    rows = np.kron(np.eye(sources.size), np.ones(sinks.size))
    columns = np.kron(np.ones(sources.size), np.eye(sinks.size))
    sums = np.concatenate([excess[sources], -excess[sinks]])
    return round(linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=sums, method="highs").fun)


def tables(shape: tuple[int, ...], rows: int, concentration: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    cells = int(np.prod(shape))
    counts, target = (rng.multinomial(rows, rng.dirichlet(np.full(cells, concentration))) for _ in range(2))
    return counts.reshape(shape), target.reshape(shape)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    st.integers(0, 60),
    st.sampled_from([0.1, 0.5, 2.0]),
    st.integers(0, 2**32),
)
def test_moves_cost_as_little_as_linear_programming_finds(
    shape: tuple[int, ...], rows: int, concentration: float, seed: int
) -> None:
    counts, target = tables(shape, rows, concentration, seed)
    origin, goal, records = moves = transport(counts, target)
    moved = counts.ravel().copy()
    np.subtract.at(moved, origin, records)
    assert moved.min() >= 0
    np.add.at(moved, goal, records)
    assert np.array_equal(moved, target.ravel())
    assert np.all(records > 0)
    assert len(set(zip(origin.tolist(), goal.tolist(), strict=True))) == records.size
    assert cost_of(shape, moves) == least_cost(counts, target)


def test_moves_cost_as_little_as_any_assignment_of_five_records() -> None:
    for seed in range(40):
        counts, target = tables((2, 2, 3), 5, 0.5, seed)
        places = [
            np.array(np.unravel_index(np.repeat(np.arange(12), table.ravel()), (2, 2, 3))).T
            for table in (counts, target)
        ]
        least = min(int((places[0] != places[1][list(order)]).sum()) for order in permutations(range(5)))
        assert cost_of((2, 2, 3), transport(counts, target)) == least


def test_the_flow_pushes_back_what_greed_would_keep() -> None:
    """(0,0) could go to (0,1) for 1, but then (1,1), whose only near cell that is, has to change both columns."""
    counts, target = np.zeros((3, 3), dtype=np.int64), np.zeros((3, 3), dtype=np.int64)
    counts[0, 0] = counts[1, 1] = 1
    target[0, 1] = target[2, 0] = 1
    assert cost_of((3, 3), transport(counts, target)) == 2


def greedy_cost(counts: np.ndarray, target: np.ndarray) -> int:
    """Serve pairs of cells at distance 1 first, in order, then those at distance 2, and so on."""
    excess = (counts - target).ravel().copy()
    places = np.array(np.unravel_index(np.arange(excess.size), counts.shape)).T
    cost = 0
    for distance in range(1, counts.ndim + 1):
        for origin in range(excess.size):
            for goal in range(excess.size):
                if excess[origin] > 0 > excess[goal] and (places[origin] != places[goal]).sum() == distance:
                    amount = min(excess[origin], -excess[goal])
                    excess[origin] -= amount
                    excess[goal] += amount
                    cost += distance * amount
    return int(cost)


def test_greed_by_distance_would_be_caught() -> None:
    cases = [tables((3, 3, 2), 30, 0.5, seed) for seed in range(40)]
    assert any(greedy_cost(*case) > least_cost(*case) for case in cases)


def test_tables_of_other_sums_are_refused() -> None:
    with pytest.raises(ValueError, match="as many records"):
        transport(np.array([1, 2]), np.array([1, 1]))


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4)])
def test_a_table_is_met_exactly_with_the_fewest_changes(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    records = np.stack([rng.integers(0, size, 400) for size in (*shape, 6)]).astype(np.int32)
    before = records.copy()
    _, target = tables(shape, 400, 0.3, 3)
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(records[:-1]), 1)
    changed = meet(records, np.arange(len(shape)), target, Stream(1, "test"))
    after = np.zeros(shape, dtype=np.int64)
    np.add.at(after, tuple(records[:-1]), 1)
    assert np.array_equal(after, target)
    assert changed == (records != before).sum() == least_cost(counts, target)
    assert np.array_equal(records[-1], before[-1])


def moved_often(meet_once: object) -> np.ndarray:
    """How often each of 20 records of a cell moves when 5 must, over 2,000 seeds."""
    often = np.zeros(20)
    for seed in range(2_000):
        records = np.zeros((1, 20), dtype=np.int32)
        meet_once(records, np.array([0]), np.array([15, 3, 2]), Stream(seed, "test"))
        often += records[0] > 0
    return often


def test_which_records_of_a_cell_move_is_uniform() -> None:
    """Chi-square of 19 degrees; above 70 by chance below 1e-6."""
    often = moved_often(meet)
    assert often.sum() == 10_000
    assert ((often - 500) ** 2 / 500).sum() < 70


def test_a_choice_that_prefers_early_records_would_be_caught() -> None:
    def early(records: np.ndarray, axes: np.ndarray, target: np.ndarray, stream: Stream) -> None:
        meet(records, axes, target, stream)
        if stream.unit(1)[0] < 0.3:
            records[0] = np.sort(records[0])[::-1]

    often = moved_often(early)
    assert ((often - 500) ** 2 / 500).sum() > 70


def test_an_exact_tree_of_tables_is_met_on_every_table_in_the_end() -> None:
    """Chain a-b-c without noise: a later table keeps the shared column's counts, so passes come to rest."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 4, 4_000)
    b = np.where(rng.random(4_000) < 0.7, a, rng.integers(0, 4, 4_000))
    c = np.where(rng.random(4_000) < 0.7, b, rng.integers(0, 4, 4_000))
    sizes = {"a": 4, "b": 4, "c": 4}
    real = np.stack([a, b, c], axis=1)
    pairs = [("a", "b"), ("b", "c")]
    record = transcript(sizes, [(names, counts_of(real, sizes, names)) for names in pairs])
    model = MinCostFlow().build(record, silent)
    made = model.sample(4_000, 1, silent)
    for names in pairs:
        assert np.abs(counts_of(made, sizes, names) - counts_of(real, sizes, names)).max() <= 2


@pytest.mark.parametrize("wrong", [{"passes": -1}, {"enough": -1}, {"still": 2.0}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="mcf"):
        MinCostFlow(**wrong)
