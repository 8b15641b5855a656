"""At most k rows of each person: which rows, in every pass the same, and nobody else's affected by anybody."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.counts import contribution
from margent.counts.capacity import slots_for
from margent.counts.contribution import KeptRows
from margent.counts.identity import Identity
from margent.counts.source import StreamedCounts
from margent.errors import MargentError, TableError
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import marginal_sensitivity_squared
from margent.schema.codec import Codec
from margent.schema.fields import Category, Identifier, PersonUnit, Schema
from margent.tables.snapshot import CHANGED

KEYS = bytes(range(32)), bytes(range(32, 64))


@dataclass
class Rows:
    """A table of ids and row numbers, cut into batches."""

    ids: Sequence[str]
    marks: Sequence[int]
    cut: int = 7
    passes: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.passes += 1
        table = pa.table({"id": pa.array(self.ids, pa.string()), "mark": pa.array(self.marks, pa.int64())})
        yield from table.to_batches(max_chunksize=self.cut)


def kept(rows: Rows, most: int, people: int = 1000, keys: tuple[bytes, bytes] = KEYS) -> list[tuple[str, int]]:
    bounded = KeptRows(rows, Identity("id", ("",), "string", key=keys[0]), most, people, key=keys[1])
    passes = [
        [pair for batch in bounded.batches() for pair in zip(*(c.to_pylist() for c in batch.columns), strict=True)]
        for _ in range(2)
    ]
    assert passes[0] == passes[1], "every pass gives the same rows"
    return passes[0]


ids = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "", "a "]), max_size=60)


@given(ids, st.integers(1, 5), st.integers(1, 70))
@settings(deadline=None, max_examples=60)
def test_min_k_n_rows_of_each_person_are_kept_in_their_order(names: list[str], most: int, cut: int) -> None:
    found = kept(Rows(names, range(len(names)), cut), most)
    assert [mark for _, mark in found] == sorted(mark for _, mark in found)
    assert all(names[mark] == name for name, mark in found)
    count = Counter(name for name, _ in found)
    assert count == Counter({name: min(most, n) for name, n in Counter(names).items() if name})


Selector = Callable[[Sequence[str], Sequence[int], int], list[tuple[str, int]]]


def ours(names: Sequence[str], marks: Sequence[int], most: int) -> list[tuple[str, int]]:
    return kept(Rows(names, marks), most)


def by_global_position(names: Sequence[str], marks: Sequence[int], most: int) -> list[tuple[str, int]]:
    """The planted bug: rows are ranked by a pseudo-random number of their place in the table."""
    priority = np.random.default_rng(5).random(4096)
    best = {
        name: sorted((priority[place], place) for place in range(len(names)) if names[place] == name)[:most]
        for name in set(names)
    }
    return sorted(((name, marks[place]) for name, group in best.items() for _, place in group), key=lambda x: x[1])


def by_first_come(names: Sequence[str], marks: Sequence[int], most: int) -> list[tuple[str, int]]:
    """Another: rows are kept as long as the table of everybody has room, which one person can use up."""
    found: list[tuple[str, int]] = []
    for name, mark in zip(names, marks, strict=True):
        if sum(1 for other, _ in found if other == name) < most and len(found) < 12:
            found.append((name, mark))
    return found


def others_changed(select: Selector, most: int, rows_of_person: int, seed: int) -> bool:
    """Whether a person with so many rows, put in at random places, changes which rows of anybody else are kept."""
    rng = np.random.default_rng(seed)
    names = [f"p{number}" for number in rng.integers(0, 20, 80)]
    without = list(zip(names, range(80), strict=True))
    table = [("new", 1000 + number) for number in range(rows_of_person)] + without
    # The others keep their order among themselves.
    keys = np.concatenate([rng.random(rows_of_person), np.sort(rng.random(80))])
    table = [table[place] for place in np.argsort(keys, kind="stable")]
    before = select(names, range(80), most)
    after = select([name for name, _ in table], [mark for _, mark in table], most)
    mine = [mark for name, mark in after if name == "new"]
    assert len(mine) <= most
    return [pair for pair in after if pair[0] != "new"] != before


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("rows_of_person", [1, 2, 10, 100])
def test_a_person_more_changes_nobody_elses_rows(rows_of_person: int, most: int) -> None:
    assert not any(others_changed(ours, most, rows_of_person, seed) for seed in range(10))


@pytest.mark.parametrize("planted", [by_global_position, by_first_come])
def test_selections_by_which_persons_affect_each_other_are_caught(planted: Selector) -> None:
    assert any(others_changed(planted, 1, rows, seed) for rows in (1, 10) for seed in range(10))


def test_every_k_of_a_persons_rows_are_equally_likely() -> None:
    """2,000 persons of 5 rows, 2 kept: 10 choices; chi-square with 9 degrees, false alarm 1e-6 at 45.1."""
    rng = np.random.default_rng(1)
    names = rng.permutation(np.repeat(np.arange(2000), 5)).astype(str).tolist()
    keys = Identity("id", (), "string").key, Identity("id", (), "string").key
    found = kept(Rows(names, range(10_000), 999), 2, keys=keys)
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    chosen: dict[str, list[int]] = {}
    for name, mark in found:
        chosen.setdefault(name, []).append(places[name].index(mark))
    counts = Counter(tuple(each) for each in chosen.values())
    assert set(counts) <= set(itertools.combinations(range(5), 2))
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 45.1
    # The planted bug, the first two rows always, would give 18,000.
    assert (2000 - 200) ** 2 / 200 + 9 * 200 > 45.1


def test_more_persons_than_planned_are_done_range_by_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    names = rng.integers(0, 9000, 20_000).astype(str).tolist()
    roomy = kept(Rows(names, range(20_000), 4096), 2, people=10_000)
    tables: list[int] = []
    original = contribution.PersonTable.empty
    monkeypatch.setattr(
        contribution.PersonTable, "empty", staticmethod(lambda slots: tables.append(slots) or original(slots))
    )
    monkeypatch.setattr(contribution, "ROWS_AT_ONCE", 1024)
    assert kept(Rows(names, range(20_000), 4096), 2, people=1) == roomy
    assert set(tables) == {slots_for(1)}, "memory stays as planned"
    assert len(tables) > 9000 / slots_for(1)


def test_pseudonyms_beyond_the_memory_go_to_a_file_without_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(contribution, "IN_MEMORY", 1000)
    listed: list[list[Path]] = []
    original = contribution.take_out

    def watched(*arguments: Any) -> None:
        listed.append(list(tmp_path.iterdir()))
        original(*arguments)

    monkeypatch.setattr(contribution, "take_out", watched)
    rows = Rows([f"patient-{number % 300}" for number in range(1000)], range(1000))
    bounded = KeptRows(rows, Identity("id", (), "string"), 1, folder=tmp_path)
    assert sum(batch.num_rows for batch in bounded.batches()) == 300
    assert rows.passes == 2
    assert listed
    assert not any(listed), "while it is in use the file has no name"
    assert not list(tmp_path.iterdir())


def test_what_is_spilled_holds_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    class Watched(tempfile.SpooledTemporaryFile):  # type: ignore[type-arg]
        def write(self, data: Any) -> int:
            written.append(bytes(data))
            return super().write(data)

    monkeypatch.setattr(contribution.tempfile, "SpooledTemporaryFile", Watched)
    kept(Rows(["CANARY-1234567890"] * 3 + ["", "other"], range(5)), 2)
    spilled = b"".join(written)
    assert len(spilled) == 2 * 16 * 5 / 2
    assert not any(piece in spilled for piece in (b"CANARY", b"1234", b"other"))


def test_a_full_disk_ends_the_run_in_fixed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device: CANARY")

    monkeypatch.setattr(contribution.tempfile, "SpooledTemporaryFile", full)
    with pytest.raises(TableError, match="16 bytes each") as caught:
        kept(Rows(["a"], [1]), 1)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_fault_of_ours_shows_no_cell() -> None:
    class Broken(Identity):
        def pseudonyms(self, batch: pa.RecordBatch) -> NDArray[np.uint64]:
            raise ValueError("CANARY")

    with pytest.raises(MargentError, match="internal fault") as caught:
        list(KeptRows(Rows(["a"], [1]), Broken("id", (), "string"), 1).batches())
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("ids", [["a", "b", "c"] * 4, ["a", "b", "c"], ["b"], []])
def test_a_table_that_has_more_or_fewer_rows_after_the_first_look_is_refused(ids: list[str]) -> None:
    rows = Rows(["a", "b"], [0, 1], cut=1)
    bounded = KeptRows(rows, Identity("id", (), "string"), 1)
    assert sum(batch.num_rows for batch in bounded.batches()) == 2
    rows.ids, rows.marks = ids, range(len(ids))
    with pytest.raises(TableError, match="changed") as caught:
        list(bounded.batches())
    assert str(caught.value) == CHANGED
    assert "file" not in CHANGED, "it may be a database's, or a frame"


def test_a_pass_that_is_left_halfway_is_no_change() -> None:
    rows = Rows(["a", "b", "c"], range(3), cut=1)
    bounded = KeptRows(rows, Identity("id", (), "string"), 1)
    left = bounded.batches()
    next(left)
    left.close()
    assert sum(batch.num_rows for batch in bounded.batches()) == 3


SCHEMA = Schema(
    [Category("a", ["x", "y"], required=True), Category("b", ["u", "v", "w"], required=True), Identifier("id")],
    unit=PersonUnit("id", 2),
)


@dataclass
class People:
    table: list[tuple[str, str, str]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        names = ["a", "b", "id"]
        columns = [pa.array([row[place] for row in self.table], pa.string()) for place in range(3)]
        yield from pa.table(columns, names=names).to_batches(max_chunksize=13)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_whole_person_moves_a_stack_of_marginals_by_at_most_what_is_declared(most: int) -> None:
    """D and D plus a person of 1 .. 100 rows: squared L2 over m tables at most m k^2, and exactly that at its worst."""
    cliques = [("a",), ("b",), ("a", "b")]
    rng, worst = np.random.default_rng(4), 0
    limit = len(cliques) * int(marginal_sensitivity_squared(Neighbors("add-remove", most)))

    def stack(table: list[tuple[str, str, str]]) -> NDArray[np.int64]:
        identity = Identity("id", ("",), "string", key=KEYS[0])
        counts = StreamedCounts(KeptRows(People(table), identity, most, 100, key=KEYS[1]), Codec(SCHEMA))
        return np.concatenate([each.ravel() for each in counts.count(cliques)])

    for rows, alike in itertools.product((1, 2, 3, 7, 100), (False, True)):
        base = [("xy"[rng.integers(2)], "uvw"[rng.integers(3)], f"p{rng.integers(12)}") for _ in range(40)]
        person = [("xy"[rng.integers(2)], "uvw"[rng.integers(3)], "new") for _ in range(rows)]
        person = [("x", "w", "new")] * rows if alike else person
        places = np.argsort(np.concatenate([np.sort(rng.random(40)), rng.random(rows)]), kind="stable")
        both = [(base + person)[place] for place in places]
        change = stack(both) - stack(base)
        worst = max(worst, int((change**2).sum()))
        assert (change >= 0).all()
        assert change[:2].sum() == min(rows, most)
    assert worst == limit
    assert math.isqrt(worst // len(cliques)) == most


def sizes_of(names: Sequence[str], most: int, people: int = 1000) -> list[int]:
    rows = Rows(names, range(len(names)))
    return KeptRows(rows, Identity("id", ("",), "string", key=KEYS[0]), most, people, key=KEYS[1]).sizes().tolist()


@given(ids, st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_sizes_are_those_of_the_kept_rows(names: list[str], most: int) -> None:
    count = Counter(name for name, _ in kept(Rows(names, range(len(names))), most))
    assert sizes_of(names, most) == [list(count.values()).count(size) for size in range(1, most + 1)]


def test_sizes_add_up_over_ranges_of_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"p{place % 300}" for place in range(700)]
    whole = sizes_of(names, 4)
    monkeypatch.setattr(contribution, "slots_for", lambda people: 64)
    assert sizes_of(names, 4, people=10) == whole == [0, 200, 100, 0]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_person_moves_one_size_by_one(most: int) -> None:
    """All tables of up to five rows of three people, each of them left out: the registered sensitivity is reached."""
    largest = 0
    for length in range(6):
        for names in itertools.product("abc", repeat=length):
            for gone in set(names):
                change = np.subtract(sizes_of(names, most), sizes_of([n for n in names if n != gone], most))
                assert (change >= 0).all()
                largest = max(largest, int(change.sum()))
    assert largest == 1
