"""Record descent against brute force: it never gets worse, and ends where no single cell could be better."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.progress import silent
from margent.schema.domain import Clique
from margent.stream import Stream
from margent.synthesizers.descending import DescentSettings, descend

Records = NDArray[np.int32]
Targets = Mapping[Clique, NDArray[np.float64]]

NAMES = ("a", "b", "c", "d")
SIZES = (2, 3, 4, 2)
ALL_CLIQUES = [names for size in (1, 2, 3, 4) for names in itertools.combinations(NAMES, size)]
PAIRS = list(itertools.combinations(NAMES, 2))
TO_THE_END = DescentSettings(still=0.0, most_sweeps=30)


def counts(records: Records, names: Clique) -> NDArray[np.int64]:
    places = [NAMES.index(name) for name in names]
    shape = tuple(SIZES[place] for place in places)
    flat = np.ravel_multi_index(tuple(records[:, place] for place in places), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def misfit(records: Records, targets: Targets) -> float:
    """F = sum of the squared residuals of all tables, counted anew."""
    return float(sum(np.square(counts(records, names) - target).sum() for names, target in targets.items()))


def neighbors(records: Records) -> list[Records]:
    """All tables that differ in one cell of one record."""
    moved = []
    for row, place in itertools.product(range(len(records)), range(len(SIZES))):
        for value in set(range(SIZES[place])) - {int(records[row, place])}:
            other = records.copy()
            other[row, place] = value
            moved.append(other)
    return moved


def drawn(rows: int, seed: int) -> Records:
    """Records whose b and d follow a: a = d in seven of ten."""
    rng = np.random.default_rng(seed)
    records = np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1).astype(np.int32)
    follows = rng.random(rows) < 0.7
    records[follows, 1] = records[follows, 0] + 1
    records[follows, 3] = records[follows, 0]
    return records


def uniform(rows: int, seed: int) -> Records:
    rng = np.random.default_rng(seed + 1_000)
    return np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1).astype(np.int32)


def tables_of(records: Records, cliques: list[Clique]) -> dict[Clique, NDArray[np.float64]]:
    return {names: counts(records, names).astype(np.float64) for names in cliques}


def fitted(start: Records, targets: Targets, options: DescentSettings | None = None, seed: int = 0) -> Records:
    return descend(start, targets, NAMES, SIZES, Stream(seed, "descent"), silent, options or DescentSettings())


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 24),
    st.lists(st.sampled_from(ALL_CLIQUES), min_size=1, max_size=7, unique=True),
)
def test_it_never_gets_worse_and_ends_where_no_single_move_helps(seed: int, rows: int, cliques: list[Clique]) -> None:
    """Cliques of one to four columns, exact counts of other records as targets, every neighbor tried."""
    start, targets = uniform(rows, seed), tables_of(drawn(rows, seed), cliques)
    end = fitted(start, targets, TO_THE_END, seed)
    assert end.shape == start.shape
    assert misfit(end, targets) <= misfit(start, targets)
    assert misfit(end, targets) <= min(misfit(other, targets) for other in neighbors(end))


def test_local_optimality_is_not_for_free() -> None:
    """The oracle above finds better neighbors after one sweep, and the start is far from a fit."""
    stopped, targets = 0, tables_of(drawn(24, 0), PAIRS)
    for seed in range(20):
        end = fitted(uniform(24, seed), targets, DescentSettings(most_sweeps=1), seed)
        stopped += misfit(end, targets) > min(misfit(other, targets) for other in neighbors(end))
    assert stopped > 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 24), st.floats(0.01, 50.0))
def test_fractional_targets_of_any_total_are_scaled_to_the_records(seed: int, rows: int, total: float) -> None:
    """Local optimality for the scaled targets, up to their fixed point of a thousandth of a record."""
    rng = np.random.default_rng(seed)
    targets = {
        names: total * rng.dirichlet(np.ones(size)).reshape(shape)
        for names, size, shape in [(("a", "c"), 8, (2, 4)), (("b",), 3, (3,)), (("a", "b", "d"), 12, (2, 3, 2))]
    }
    end = fitted(uniform(rows, seed), targets, TO_THE_END, seed)
    scaled = {names: target * (rows / target.sum()) for names, target in targets.items()}
    rounding = 12 * 2 / 1024
    assert misfit(end, scaled) <= min(misfit(other, scaled) for other in neighbors(end)) + rounding


@pytest.mark.parametrize(
    ("cliques", "most"),
    [
        ([("a",), ("b",), ("c",), ("d",)], 0),
        ([("a", "b"), ("c", "d")], 8),
        ([("a", "b"), ("b", "c"), ("c", "d")], 8),
        ([("a", "b", "c"), ("c", "d")], 16),
    ],
)
def test_targets_that_records_can_meet_are_met_but_for_single_records(cliques: list[Clique], most: int) -> None:
    """One-ways exactly, in all of 40 runs. A pair can end with one record too many at (0, 1) and one too few at
    (1, 0): two cells of a record would have to move at once. F is then 2; at most so much is left in any run."""
    for seed in range(40):
        targets = tables_of(drawn(300, seed), cliques)
        end = fitted(uniform(300, seed), targets, TO_THE_END, seed)
        assert misfit(end, targets) <= most
        assert max(np.abs(counts(end, names) - target).max() for names, target in targets.items()) <= min(most, 1)


@pytest.mark.parametrize("rows", [200, 5_000])
def test_a_dense_graph_is_met_to_a_few_records(rows: int) -> None:
    """All six pairs and a triple at once: no more than 30 of the squares of a start that misses thousands."""
    for seed in range(5):
        targets = tables_of(drawn(rows, seed), [*PAIRS, ("a", "b", "c")])
        start = uniform(rows, seed)
        assert misfit(start, targets) > 2_000
        assert misfit(fitted(start, targets, TO_THE_END, seed), targets) <= 30


def test_a_start_that_fits_stays_as_it_is() -> None:
    records = drawn(500, 1)
    targets = tables_of(records, [*PAIRS, ("a",)])
    assert fitted(records, targets).tobytes() == records.tobytes()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_records(rows: int) -> None:
    end = fitted(uniform(rows, 0), tables_of(drawn(100, 0), PAIRS))
    assert end.shape == (rows, 4)
    assert np.all((end >= 0) & (end < SIZES))


@pytest.mark.parametrize(("rows", "share"), [(50, 0.25), (20_000, 0.002)])
def test_targets_are_scaled_to_fewer_and_to_many_more_records(rows: int, share: float) -> None:
    """Total variation over all pairs of records fitted to counts of 1,000 others, at most ``share``."""
    targets = tables_of(drawn(1_000, 2), PAIRS)
    end = fitted(uniform(rows, 3), targets)
    for names, target in targets.items():
        assert 0.5 * np.abs(counts(end, names) / rows - target / 1_000).sum() < share


def test_without_targets_nothing_moves() -> None:
    start = uniform(30, 4)
    assert fitted(start, {}).tobytes() == start.tobytes()


def test_the_start_is_not_changed() -> None:
    start = uniform(60, 5)
    before = start.tobytes()
    end = fitted(start, tables_of(drawn(60, 5), PAIRS))
    assert start.tobytes() == before != end.tobytes()


def test_columns_without_a_table_stay_as_they_are() -> None:
    start = uniform(400, 6)
    end = fitted(start, tables_of(drawn(400, 6), [("a", "b"), ("b",)]))
    assert np.array_equal(end[:, 2:], start[:, 2:])
    assert not np.array_equal(end[:, :2], start[:, :2])


@pytest.mark.parametrize("values", [np.zeros((2, 3)), np.full((2, 3), -1.0)])
def test_a_target_without_mass_is_even(values: NDArray[np.float64]) -> None:
    end = fitted(drawn(600, 7), {("a", "b"): values})
    assert np.abs(counts(end, ("a", "b")) - 100).max() <= 1


# Bytes.

SHARDED = DescentSettings(shard_rows=300, least_rows=100, joint_sweeps=3)


@pytest.mark.parametrize("options", [DescentSettings(), SHARDED], ids=["joint", "sharded"])
def test_the_same_seed_gives_the_same_bytes(options: DescentSettings) -> None:
    targets = tables_of(drawn(2_000, 8), PAIRS)
    runs = [fitted(uniform(2_000, 8), targets, options, seed).tobytes() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_bytes_are_those_of_any_machine() -> None:
    """A golden value: integers only, so it never changes but with the algorithm."""
    start = (np.arange(400, dtype=np.int32).reshape(100, 4) * 7) % np.array(SIZES, dtype=np.int32)
    targets = {
        ("a", "c"): np.arange(8.0).reshape(2, 4),
        ("b",): np.array([5.0, 2, 1]),
        ("b", "d"): np.eye(3)[:, :2],
    }
    found = hashlib.sha256(fitted(start, targets, TO_THE_END, 11).astype("<i4").tobytes()).hexdigest()
    assert found == "19a9d458879fca4040b9eb6518628a3a7f1535ed7cc454d4a951f9a99eae809b"


@pytest.mark.parametrize("cores", [1, 2, 7, None])
def test_the_number_of_cores_changes_no_byte(cores: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    targets, start = tables_of(drawn(2_000, 9), PAIRS), uniform(2_000, 9)
    here = fitted(start, targets, SHARDED)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert fitted(start, targets, SHARDED).tobytes() == here.tobytes()


@pytest.mark.parametrize("rows", [901, 2_000])
def test_shards_end_close_to_the_joint_result(rows: int) -> None:
    """Before the joint sweeps shards add up their own errors; after them hardly anything is left of those."""
    targets, start = tables_of(drawn(rows, 10), [*PAIRS, ("b", "c", "d")]), uniform(rows, 10)
    joint = misfit(fitted(start, targets), targets)
    apart = misfit(fitted(start, targets, DescentSettings(shard_rows=100, least_rows=50, joint_sweeps=0)), targets)
    end = misfit(fitted(start, targets, DescentSettings(shard_rows=100, least_rows=50, joint_sweeps=3)), targets)
    assert apart > joint
    assert end <= joint + 0.2 * (apart - joint)
    assert end <= misfit(start, targets) / 100


def test_progress_rises_to_one() -> None:
    def noted(options: DescentSettings) -> list[float]:
        seen: list[float] = []

        def note(step: str, share: float | None) -> None:
            assert step == "records"
            assert share is not None
            seen.append(share)

        descend(uniform(900, 1), tables_of(drawn(900, 1), PAIRS), NAMES, SIZES, Stream(0, "descent"), note, options)
        return seen

    together = noted(DescentSettings())
    assert together == sorted(together)
    assert together[-1] == 1.0
    sharded = noted(SHARDED)
    assert sharded == sorted(sharded)
    assert sharded[-1] == 1.0
    assert len(sharded) == 4
