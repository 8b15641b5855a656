"""Streamed counts: any batches, any split into passes, the same tables as from codes in memory."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.counts.kernel import Codes
from margent.counts.source import CodedCounts, StreamedCounts
from margent.errors import MargentError, PlanError
from margent.machine import BLOCK_ROWS
from margent.schema.domain import Domain, Merge

DOMAIN = Domain(("a", "b", "c"), (2, 3, 5))
CLIQUES = [(), ("a",), ("b", "c"), ("a", "b", "c"), ("c",)]


@dataclass
class CountedBatches:
    """Batches of integers; keeps count of the passes."""

    table: pa.Table
    cuts: Sequence[int]
    passes: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.passes += 1
        start = 0
        for size in [*self.cuts, self.table.num_rows]:
            yield from self.table.slice(start, size).combine_chunks().to_batches()
            start += size


@dataclass
class Plain:
    """A codec of columns that hold their codes already."""

    domain: Domain = DOMAIN
    fail: str = ""
    sizes: list[int] = field(default_factory=list)

    def encode(self, batch: pa.RecordBatch) -> list[Codes]:
        if self.fail:
            raise KeyError(self.fail)
        self.sizes.append(batch.num_rows)
        return [batch.column(name).to_numpy().astype(np.uint16) for name in self.domain.names]


def random_codes(rows: int, seed: int = 1) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [generator.integers(0, size, rows).astype(np.uint16) for size in DOMAIN.sizes]


def streamed(columns: Sequence[Any], cuts: Sequence[int] = (), **caps: Any) -> tuple[StreamedCounts, CountedBatches]:
    source = CountedBatches(pa.table(dict(zip(DOMAIN.names, columns, strict=True))), cuts)
    return StreamedCounts(source, Plain(), **caps), source


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 30), st.lists(st.integers(0, 8), max_size=6), st.integers(1, 60), st.booleans())
def test_batches_and_passes_do_not_matter(rows: int, cuts: list[int], cells_at_once: int, merged: bool) -> None:
    columns = random_codes(rows)
    merges = {"c": Merge("c", (0, 1, 0, 2, 1))} if merged else {}
    counts, source = streamed(columns, cuts, cells_at_once=cells_at_once)
    expected = CodedCounts(columns, DOMAIN).count(CLIQUES, merges)
    for table, right in zip(counts.count(CLIQUES, merges), expected, strict=True):
        np.testing.assert_array_equal(table, right)
    sizes = [DOMAIN.merged(merges).cells(clique) for clique in CLIQUES]
    assert source.passes <= len(CLIQUES)
    assert (source.passes == 1) == (sum(sizes) <= cells_at_once)


def test_a_request_is_cut_into_passes_in_order() -> None:
    counts, source = streamed(random_codes(10), cells_at_once=32)
    counts.count(CLIQUES)  # 1 + 2 + 15 | 30 | 5 cells
    assert source.passes == 3
    assert counts.count([]) == []
    assert source.passes == 3


def test_a_table_beyond_the_cap_is_refused_before_any_pass() -> None:
    counts, source = streamed(random_codes(10), max_cells=29)
    with pytest.raises(PlanError, match="a, b, c has 30 cells"):
        counts.count(CLIQUES)
    assert source.passes == 0


def test_small_batches_are_counted_together_and_long_ones_in_pieces() -> None:
    columns = random_codes(3 * BLOCK_ROWS + 17)
    counts, _ = streamed(columns, [10] * 50 + [BLOCK_ROWS - 1, 1, 2 * BLOCK_ROWS])
    for table, right in zip(counts.count(CLIQUES), CodedCounts(columns, DOMAIN).count(CLIQUES), strict=True):
        np.testing.assert_array_equal(table, right)


def test_a_fault_of_the_codec_takes_no_cell_along() -> None:
    counts = StreamedCounts(streamed(random_codes(3))[1], Plain(fail="canary-7f3a"))
    with pytest.raises(MargentError, match=r"could not be coded \(KeyError\)") as caught:
        counts.count(CLIQUES)
    assert caught.value.exit_code == 1
    assert caught.value.__context__ is None
    assert "canary-7f3a" not in "".join(traceback.format_exception(caught.value))


def test_sources_show_no_data() -> None:
    counts, _ = streamed(random_codes(3), max_cells=10, cells_at_once=20)
    assert repr(counts) == "StreamedCounts(max_cells=10, cells_at_once=20)"
    assert repr(CodedCounts(random_codes(3), DOMAIN, 10)) == f"CodedCounts(domain={DOMAIN!r}, max_cells=10)"


def test_codes_of_different_lengths_are_no_table() -> None:
    with pytest.raises(ValueError, match="one array a column"):
        CodedCounts([np.zeros(2, np.uint8), np.zeros(3, np.uint8), np.zeros(2, np.uint8)], DOMAIN)
    with pytest.raises(ValueError, match="one array a column"):
        CodedCounts([np.zeros(2, np.uint8)], DOMAIN)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_counts_the_same(threads: int) -> None:
    columns = random_codes(9 * BLOCK_ROWS + 17)
    source = streamed(columns, [BLOCK_ROWS] * 7 + [5])[1]
    counts = StreamedCounts(source, Plain(), threads=threads)
    for table, right in zip(counts.count(CLIQUES), CodedCounts(columns, DOMAIN).count(CLIQUES), strict=True):
        np.testing.assert_array_equal(table, right)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_on_a_thread_takes_no_cell_along(threads: int) -> None:
    source = streamed(random_codes(2 * BLOCK_ROWS), [BLOCK_ROWS])[1]
    counts = StreamedCounts(source, Plain(fail="canary-7f3a"), threads=threads)
    with pytest.raises(MargentError, match=r"could not be coded \(KeyError\)") as caught:
        counts.count(CLIQUES)
    assert "canary-7f3a" not in "".join(traceback.format_exception(caught.value))


MERGES = {"c": Merge("c", (0, 1, 0, 2, 1))}
OTHER = {"c": Merge("c", (0, 0, 0, 1, 1))}


def test_kept_tables_are_asked_for_again_without_a_pass() -> None:
    columns = random_codes(50)
    counts, source = streamed(columns, kept_cells=60)
    expected = CodedCounts(columns, DOMAIN)

    def passes(cliques: list[tuple[str, ...]], merges: dict[str, Merge]) -> int:
        before = source.passes
        for _ in range(2):
            for table, right in zip(counts.count(cliques, merges), expected.count(cliques, merges), strict=True):
                np.testing.assert_array_equal(table, right)
        return source.passes - before

    assert passes([("a",), ("b", "c")], {}) == 1  # 2 + 15 cells
    assert passes([("b", "c")], MERGES) == 1  # merged, it is another table: 9 cells
    assert passes([("b", "c")], OTHER) == 1  # and by another merge again another: 6 cells
    assert passes([("a",), ("b",)], MERGES) == 1  # what is not merged is the same: ("a",) is kept, and 3 new cells
    assert passes([("a", "b", "c")], {}) == 2  # 30 cells more than there is room for: not kept, none of it
    assert passes([("b", "c"), ("a",)], OTHER) == 0


def test_a_kept_table_cannot_be_written_to() -> None:
    counts, _ = streamed(random_codes(50), kept_cells=100)
    (table,) = counts.count([("a", "b")])
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 7


def test_nothing_is_kept_unless_room_is_given() -> None:
    counts, source = streamed(random_codes(50))
    counts.count(CLIQUES)
    counts.count(CLIQUES)
    assert source.passes == 2
