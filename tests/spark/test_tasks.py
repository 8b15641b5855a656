"""What Spark's tasks do, without Spark: any cut of the rows into tasks and batches gives the same counts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.counts import spark_tables
from margent.counts.contribution import KeptRows
from margent.counts.identity import Identity, encrypted
from margent.counts.kernel import MAX_CELLS
from margent.counts.source import StreamedCounts
from margent.counts.spark_people import bounded_rows, named_persons
from margent.counts.spark_tables import (
    CHUNK_CELLS,
    add_packed,
    chunks,
    coded_rows,
    counted_tables,
    packed_counts,
    request_text,
    schema_as_sent,
    summed_chunks,
)
from margent.counts.spark_texts import counted_texts, gathered_texts
from margent.schema.codec import Codec
from margent.schema.domain import Merge
from margent.tables import gathering
from margent.tables.source import open_table
from margent.tables.spark_forms import PACKED, Columns, packed_rows
from margent.tables.spark_pieces import FAULT, TaskFault, received, unpacked
from tests.spark.tables import SCHEMA, typed_table

Batches = Iterable[pa.RecordBatch]
NAMES = tuple(SCHEMA.columns_read)


def parts_of(table: pa.Table, tasks: int, cut: int) -> list[list[pa.RecordBatch]]:
    """Rows dealt to so many tasks, in batches of ``cut`` rows."""
    dealt = [table.take(pa.array(range(task, table.num_rows, tasks), pa.int64())) for task in range(tasks)]
    return [part.to_batches(max_chunksize=cut) for part in dealt]


def by_place(parts: Iterable[Batches]) -> Iterator[pa.RecordBatch]:
    """The pieces of all tasks in the order of their places, as Spark hands them to the tasks that sum."""
    kinds = pa.schema([("kind", pa.string()), ("place", pa.int64()), ("data", pa.binary())])
    table = pa.Table.from_batches([batch for part in parts for batch in part], kinds)
    yield from table.sort_by("place").to_batches(max_chunksize=4)


@given(st.integers(0, 80), st.integers(1, 5), st.integers(1, 40), st.booleans(), st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_every_cut_into_tasks_and_batches_counts_as_one_table_does(
    rows: int, tasks: int, cut: int, packed: bool, seed: int
) -> None:
    table = typed_table(rows, seed).select(NAMES)
    codec = Codec(SCHEMA)
    merges = {
        "age": Merge("age", tuple(code // 2 for code in range(codec.domain.size("age")))),
        "beside": Merge("word", (0, *(1 for _ in range(codec.domain.size("word") - 1)))),
    }
    cliques = [(), *((name,) for name in codec.domain.names), ("word", "age", "beside"), ("age", "sex")]
    with open_table(table, SCHEMA) as source:
        expected = StreamedCounts(source, codec).count(cliques, merges)
    parts: list[Batches] = list(parts_of(table, tasks, cut))
    if packed:
        parts = [packed_rows(Columns(NAMES), part) for part in parts]
    coded = [coded_rows(schema_as_sent(SCHEMA), PACKED if packed else Columns(NAMES), part) for part in parts]
    request = request_text(codec.domain, cliques, merges, MAX_CELLS)
    summed = summed_chunks(by_place(counted_tables(request, part) for part in coded))
    total = np.zeros(CHUNK_CELLS, np.int64)
    for piece in received(summed):
        assert piece.place == 0
        add_packed(piece.data, total)
    assert np.array_equal(total[: sum(each.size for each in expected)], np.concatenate([x.ravel() for x in expected]))


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.sampled_from([2, 300, 70_000, 2**33]),
    st.sampled_from([0.0, 0.02, 0.5, 1.0]),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=80)
def test_tables_are_put_together_again_from_their_chunks(sizes: list[int], top: int, filled: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [rng.integers(0, top, size) * (rng.random(size) < filled) for size in sizes]
    flat = np.concatenate(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_tables, "CHUNK_CELLS", 16)
        total = np.zeros(16 * (len(flat) // 16 + 1), np.int64)
        for piece in chunks(tables):
            add_packed(piece.data, total[16 * piece.place : 16 * piece.place + 16])
    assert np.array_equal(total[: len(flat)], flat)
    assert len(packed_counts(flat)) <= 2 + 8 * len(flat)


def test_few_counts_in_many_cells_are_sent_by_place_and_full_tables_whole() -> None:
    few, full = np.zeros(10_000, np.int64), np.full(10_000, 70_000)
    few[[5, 7]] = 3
    assert len(packed_counts(few)) == 2 + 4 + 2 * 5
    assert len(packed_counts(full)) == 2 + 4 * 10_000


def persons_table(ids: Sequence[str], cells: Sequence[str | None]) -> pa.Table:
    return pa.table({"c0": pa.array(ids, pa.string()), "c1": pa.array(cells, pa.string())})


def sorted_and_counted(marked: pa.Table) -> pa.Table:
    """Rows of one task as Spark hands them over: persons together, their rows by cells and with their number."""
    persons = list(zip(marked["person_high"].to_pylist(), marked["person_low"].to_pylist(), strict=True))
    cells = [
        [nulls_first(cell) for cell in row] for row in zip(*marked.select([0, 1]).to_pydict().values(), strict=True)
    ]
    order = sorted(range(len(persons)), key=lambda place: (persons[place], cells[place]))
    rows = Counter(persons)
    marked = marked.append_column("person_rows", pa.array([rows[person] for person in persons], pa.int64()))
    return marked.take(pa.array(order, pa.int64()))


def kept_by_tasks(
    table: pa.Table, most: int, tasks: int, cut: int, keys: tuple[bytes, bytes], seed: int
) -> tuple[list[tuple[str, str | None]], list[int]]:
    """Rows in any order to any tasks, brought together and sorted as Spark does, bounded."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    parts = parts_of(table.take(pa.array(order, pa.int64())), tasks, cut)
    who = ("id", ("",), "string", keys[0])
    marked = [batch for part in parts for batch in named_persons(who, ("id", "cell"), part)]
    if not marked:
        return [], [0] * most
    together = pa.Table.from_batches(marked)
    rows: list[tuple[str, str | None]] = []
    sizes = np.zeros(most, np.int64)
    # Two reducing tasks, by the low word's parity.
    low = np.array(together["person_low"].to_pylist(), dtype=np.int64)
    for parity in (0, 1):
        mine = together.filter(pa.array(low % 2 == parity))
        mine = sorted_and_counted(mine)
        for piece in received(bounded_rows(keys[1], most, ("id", "cell"), mine.to_batches(max_chunksize=cut))):
            if piece.kind == "rows":
                block = unpacked(piece.data)
                rows += zip(*(column.to_pylist() for column in block.columns), strict=True)
            else:
                sizes += np.frombuffer(piece.data, np.int64)
    return sorted(rows, key=repr), sizes.tolist()


def kept_by_definition(
    ids: Sequence[str], cells: Sequence[str | None], most: int, keys: tuple[bytes, bytes]
) -> list[tuple[str, str | None]]:
    """Person by person, rows in the order of their cells: with r left, keep this one if floor(r u / 2^64) < free."""
    found = []
    for person in sorted(set(ids) - {""}):
        words = Identity("id", ("",), "string", keys[0]).pseudonyms(pa.RecordBatch.from_pydict({"id": [person]}))
        own = sorted((cell for name, cell in zip(ids, cells, strict=True) if name == person), key=nulls_first)
        free = min(len(own), most)
        for place, cell in enumerate(own):
            left = len(own) - place
            block = words ^ np.array([[0, left]], dtype=np.uint64)
            if left * int(encrypted(keys[1], block)[0, 0]) >> 64 < free:
                free -= 1
                found.append((person, cell))
        assert free == 0
    return sorted(found, key=repr)


def nulls_first(cell: str | None) -> tuple[bool, str]:
    """As Spark sorts."""
    return cell is not None, cell or ""


KEYS = bytes(range(32)), bytes(range(32, 64))
WHO = ("id", ("",), "string", KEYS[0])
some_ids = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "", "a "]), max_size=70)


@given(some_ids, st.integers(1, 6), st.integers(1, 4), st.integers(1, 30), st.integers(0, 9), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_kept_rows_are_those_of_the_definition_in_any_order_and_cut(
    ids: list[str], most: int, tasks: int, cut: int, kinds: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    cells = [None if mark == kinds else f"cell {mark}" for mark in rng.integers(0, kinds + 1, len(ids))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "BLOCK_ROWS", cut)
        rows, sizes = kept_by_tasks(persons_table(ids, cells), most, tasks, cut, KEYS, seed)
    assert rows == kept_by_definition(ids, cells, most, KEYS)
    held = [min(most, ids.count(name)) for name in set(ids) - {""}]
    assert sizes == [held.count(size) for size in range(1, most + 1)]


@pytest.mark.parametrize("seed", range(6))
def test_a_person_more_changes_nobody_elses_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = [f"p{number}" for number in rng.integers(0, 12, 80)]
    cells = [f"{number}" for number in rng.integers(0, 1000, 80)]
    before, _ = kept_by_tasks(persons_table(ids, cells), 2, 3, 7, KEYS, seed)
    more = persons_table([*ids, *["new"] * 30], [*cells, *(f"new {number}" for number in range(30))])
    after, _ = kept_by_tasks(more, 2, 2, 5, KEYS, seed + 1)
    assert [row for row in after if row[0] != "new"] == before
    assert len(after) == len(before) + 2


def test_every_pair_of_a_persons_rows_is_kept_as_often_as_every_other() -> None:
    """Ten pairs: a chi-square of 9 degrees of freedom passes 33.7 once in 10^4 runs (the keys are fixed)."""
    tallies = dict.fromkeys(itertools.combinations("vwxyz", 2), 0)
    persons = 3000
    table = persons_table([f"p{n}" for n in range(persons) for _ in range(5)], list("vwxyz") * persons)
    rows, _ = kept_by_tasks(table, 2, 1, 4096, KEYS, 0)
    for _, group in itertools.groupby(sorted(rows), key=lambda row: row[0]):
        tallies[tuple(sorted(str(cell) for _, cell in group))] += 1  # type: ignore[index]
    expected = persons / 10
    assert sum((count - expected) ** 2 / expected for count in tallies.values()) < 33.7


@given(some_ids, st.integers(1, 6), st.integers(0, 9), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_a_file_whose_rows_are_in_the_order_of_their_cells_keeps_the_same_rows(
    ids: list[str], most: int, kinds: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    cells = sorted(f"cell {mark}" for mark in rng.integers(0, kinds + 1, len(ids)))
    batch = pa.RecordBatch.from_pydict({"id": ids, "cell": cells})
    local = KeptRows(OneBatch(batch), Identity(*WHO), most, people=100, key=KEYS[1])
    kept = [row for found in local.batches() for row in zip(*found.to_pydict().values(), strict=True)]
    rows, sizes = kept_by_tasks(persons_table(ids, cells), most, 3, 7, KEYS, seed)
    assert rows == sorted(kept, key=repr)
    assert sizes == local.sizes().tolist()


@dataclass(frozen=True)
class OneBatch:
    """A table of one batch, as often as it is read."""

    batch: pa.RecordBatch

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield self.batch


def marked_rows(ids: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches(named_persons(WHO, ("id", "cell"), persons_table(ids, ids).to_batches()))


def bounded_in_single_rows(rows: pa.Table) -> None:
    list(received(bounded_rows(KEYS[1], 1, ("id", "cell"), rows.to_batches(max_chunksize=1))))


def test_persons_that_come_twice_are_a_fault_and_not_kept_twice() -> None:
    backwards = sorted_and_counted(marked_rows(["a", "b", "a"])).sort_by([("person_high", "descending")])
    with pytest.raises(TaskFault, match="out of order"):
        bounded_in_single_rows(backwards)


@pytest.mark.parametrize("left_out", [0, 1, 2, 3, 4])
def test_a_row_that_is_lost_between_counting_and_keeping_is_a_fault(left_out: int) -> None:
    rows = sorted_and_counted(marked_rows(["a", "b", "a", "b", "b"]))
    bounded_in_single_rows(rows)
    fewer = rows.filter(pa.array([place != left_out for place in range(5)]))
    for cut in (1, 2, 5):
        with pytest.raises(TaskFault, match="not together"):
            list(received(bounded_rows(KEYS[1], 1, ("id", "cell"), fewer.to_batches(max_chunksize=cut))))


SECRET = "canary-93"


class BrokenCodec:
    domain = Codec(SCHEMA).domain

    def encode(self, batch: pa.RecordBatch) -> Any:
        raise ValueError(f"no value: {SECRET}")


def test_a_fault_in_a_task_travels_by_name_through_every_later_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tables, "codec_of", lambda text: BrokenCodec())
    table = typed_table(5).select(NAMES)
    found = list(coded_rows("{}", Columns(NAMES), table.to_batches()))
    assert SECRET not in str(found[0].to_pylist())
    request = request_text(Codec(SCHEMA).domain, [("sex",)], {}, MAX_CELLS)
    counted = list(counted_tables(request, found))
    for batches in (found, counted, list(summed_chunks(counted))):
        assert [batch["kind"].to_pylist() for batch in batches] == [[FAULT]]
        with pytest.raises(TaskFault, match=r"^ValueError$"):
            list(received(batches))


def test_faults_of_pseudonyms_and_texts_are_met_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise KeyError(SECRET)

    monkeypatch.setattr(Identity, "pseudonyms", fails)
    table = persons_table(["a", "b"], [SECRET, "x"])
    marked = list(named_persons(WHO, ("id", "cell"), table.to_batches()))
    assert SECRET not in str([batch.to_pylist() for batch in marked])
    with pytest.raises(TaskFault, match=r"^KeyError$"):
        list(received(bounded_rows(KEYS[1], 1, ("id", "cell"), marked)))
    texts = list(counted_texts("no such column", (), Columns(("id", "cell")), table.to_batches()))
    with pytest.raises(TaskFault, match=r"^KeyError$"):
        list(received(gathered_texts(texts)))


def test_what_may_pass_with_a_second_try_is_raised_for_spark_to_try_again() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        raise MemoryError
        yield

    for task in (partial(packed_rows, Columns(NAMES)), summed_chunks):
        with pytest.raises(MemoryError):
            list(task(broken()))


def test_texts_of_tasks_add_up() -> None:
    table = pa.table({"c0": ["x", "y", "x", "", "NA", "two\nlines", None, "x"]})
    counted = [
        batch for part in parts_of(table, 2, 2) for batch in counted_texts("name", ("NA",), Columns(("name",)), part)
    ]
    total: dict[bytes, int] = {}
    for piece in received(counted):
        total[piece.data] = total.get(piece.data, 0) + piece.place
    assert total == {b"x": 3, b"y": 1}
    blocks = [unpacked(piece.data) for piece in received(gathered_texts(counted))]
    assert sum(sum(block["place"].to_pylist()) for block in blocks) == 4


def test_blocks_are_closed_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"c0": ["x" * 50] * 100})
    sizes = [block.num_rows for block in gathering.gathered(table.to_batches(max_chunksize=9))]
    assert sizes == [100]
    monkeypatch.setattr(gathering, "TEXT_BYTES", 1000)
    sizes = [block.num_rows for block in gathering.gathered(table.to_batches(max_chunksize=9))]
    assert sum(sizes) == 100
    assert max(sizes) <= 36
