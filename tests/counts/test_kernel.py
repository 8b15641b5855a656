"""The counting kernel against a slow and obvious count, at block boundaries and at the edges of its types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.counts.kernel import MAX_CELLS, Tally, checked_cells
from margent.counts.source import CodedCounts
from margent.errors import MargentError, PlanError
from margent.machine import BLOCK_ROWS, CACHED_ROWS
from margent.schema.domain import Clique, Domain, Merge

NAMES = ("a", "b", "c", "d")
TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)


def slow_counts(
    columns: Sequence[Any], domain: Domain, clique: Clique, merges: Mapping[str, Merge]
) -> NDArray[np.int64]:
    """One row at a time, one Python integer at a time."""
    table = np.zeros(domain.merged(merges).shape(clique), dtype=np.int64)
    cells: Counter[tuple[int, ...]] = Counter()
    for row in range(len(columns[0])):
        cell = []
        for name in clique:
            code = int(columns[domain.position[name]][row])
            cell.append(merges[name].groups[code] if name in merges else code)
        cells[tuple(cell)] += 1
    for place, count in cells.items():
        table[place] = count
    return table


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Any], Domain, list[Clique], dict[str, Merge]]:
    width = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 7, 255, 300, 1000]), min_size=width, max_size=width))
    domain = Domain(NAMES[:width], tuple(sizes))
    rows = draw(st.integers(0, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for size in sizes:
        kinds = [kind for kind in TYPES if size <= np.iinfo(kind).max + 1]
        columns.append(generator.integers(0, size, rows).astype(draw(st.sampled_from(kinds))))
    subsets = st.lists(st.sampled_from(domain.names), unique=True, max_size=3).map(tuple)
    cliques = draw(st.lists(subsets.filter(lambda clique: domain.cells(clique) <= 10**6), max_size=5))
    merges = {}
    for name in draw(st.lists(st.sampled_from(domain.names), unique=True, max_size=2)):
        size = domain.size(name)
        groups = generator.permutation(np.arange(size) % draw(st.integers(1, min(size, 4))))
        merges[name] = Merge(name, tuple(int(group) for group in groups))
    return columns, domain, cliques, merges


@settings(max_examples=200, deadline=None)
@given(problems())
def test_tables_equal_the_slow_count(
    problem: tuple[list[Any], Domain, list[Clique], dict[str, Merge]],
) -> None:
    columns, domain, cliques, merges = problem
    for merged in ({}, merges):
        tables = CodedCounts(columns, domain).count(cliques, merged)
        assert len(tables) == len(cliques)
        for clique, table in zip(cliques, tables, strict=True):
            assert table.dtype == np.int64
            assert table.shape == domain.merged(merged).shape(clique)
            np.testing.assert_array_equal(table, slow_counts(columns, domain, clique, merged))


@pytest.mark.parametrize("rows", [0, 1, CACHED_ROWS - 1, CACHED_ROWS, CACHED_ROWS + 1, BLOCK_ROWS + 3])
def test_block_boundaries(rows: int) -> None:
    domain = Domain(("a", "b"), (3, 5))
    columns = [(np.arange(rows) % 3).astype(np.uint8), (np.arange(rows) // 3 % 5).astype(np.uint16)]
    total, pair = CodedCounts(columns, domain).count([(), ("b", "a")])
    assert total.shape == ()
    assert int(total) == rows
    expected = np.zeros((5, 3), dtype=np.int64)
    np.add.at(expected, (columns[1], columns[0]), 1)
    np.testing.assert_array_equal(pair, expected)


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 65_536),
        (65_536, 1),
        (2, 32_768),
        (256, 256),
        (255, 257),
        (2, 32_769),
        (65_537, 1),
        (300, 300),
        (1, 1),
    ],
)
def test_the_last_cell_of_every_width_of_packing(sizes: tuple[int, int]) -> None:
    domain = Domain(("a", "b"), sizes)
    columns = [np.array([0, size - 1, size - 1], dtype=np.uint32) for size in sizes]
    (pair,) = CodedCounts(columns, domain).count([("a", "b")])
    expected = np.zeros(sizes, dtype=np.int64)
    np.add.at(expected, tuple(columns), 1)
    np.testing.assert_array_equal(pair, expected)


@pytest.mark.parametrize("size", [2, 90, 91, 120, 256, 257, 600])
@pytest.mark.parametrize("common", [False, True])
def test_lanes_no_lanes_and_wide_tables_count_the_same(size: int, common: bool) -> None:
    """Tables of 4 to 360,000 cells around the limits of lanes and of 16 bits, in full and in short blocks."""
    generator = np.random.default_rng(size)
    rows = 2 * CACHED_ROWS + 33
    columns = [generator.integers(0, size, rows).astype(np.uint16) for _ in range(2)]
    if common:
        columns = [np.where(generator.random(rows) < 0.9, 0, column).astype(np.uint16) for column in columns]
    domain = Domain(("a", "b"), (size, size))
    pair, swapped = CodedCounts(columns, domain).count([("a", "b"), ("b", "a")])
    expected = np.zeros((size, size), dtype=np.int64)
    np.add.at(expected, tuple(columns), 1)
    np.testing.assert_array_equal(pair, expected)
    np.testing.assert_array_equal(swapped, expected.T)


def test_threads_that_add_at_once_lose_no_row() -> None:
    generator = np.random.default_rng(5)
    domain = Domain(NAMES, (3, 40, 300, 2))
    columns = [generator.integers(0, size, 5000).astype(np.uint16) for size in domain.sizes]
    cliques: list[Clique] = [(), ("a",), ("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "d"), ("d",)]
    tally = Tally(domain, cliques, threads=4)
    with ThreadPoolExecutor(8) as workers:
        for done in [workers.submit(tally.add, columns, 5000) for _ in range(60)]:
            done.result()
    for table, once in zip(tally.tables(), CodedCounts(columns, domain).count(cliques), strict=True):
        np.testing.assert_array_equal(table, 60 * once)


def test_a_code_past_the_end_is_seen_in_a_column_of_one_code() -> None:
    tally = Tally(Domain(("a", "b"), (1, 4)), [("a", "b")])
    with pytest.raises(MargentError, match="a code past the end in column 'a'"):
        tally.add([np.array([0, 1], np.uint8), np.zeros(2, np.uint8)], 2)


def test_blocks_add_and_tables_are_independent() -> None:
    domain = Domain(("a",), (2,))
    tally = Tally(domain, [("a",), ("a",)])
    for _ in range(3):
        tally.add([np.array([0, 1, 1], dtype=np.uint8)], 3)
    first, second = tally.tables()
    assert first.tolist() == second.tolist() == [3, 6]
    assert not np.shares_memory(first, second)


def test_a_total_needs_no_column() -> None:
    tally = Tally(Domain((), ()), [()])
    tally.add([], 7)
    assert tally.tables()[0].tolist() == 7


@pytest.mark.parametrize("cells", [(2**32, 2**32), (2**16,) * 4, (2**14, 2**14), (3**40, 1)])
def test_domains_beyond_the_cap_are_refused_before_anything_is_allocated(cells: tuple[int, ...]) -> None:
    domain = Domain(NAMES[: len(cells)], cells)
    with pytest.raises(PlanError, match=f"the cap is {MAX_CELLS}"):
        Tally(domain, [("a",) if cells[0] > MAX_CELLS else (), domain.names])
    assert checked_cells(domain, (), 1) == 1


def test_the_cap_is_the_plan_s_and_counts_merged_columns() -> None:
    domain = Domain(("a", "b"), (10, 10))
    columns = [np.array([9], dtype=np.uint8)] * 2
    merge = Merge("a", (0,) * 5 + (1,) * 5)
    source = CodedCounts(columns, domain, max_cells=20)
    with pytest.raises(PlanError, match="a, b has 100 cells, and the cap is 20"):
        source.count([("a", "b")])
    assert source.count([("a", "b")], {"a": merge})[0].shape == (2, 10)


def test_a_code_past_the_end_is_an_internal_fault_and_grows_nothing() -> None:
    domain = Domain(("a", "b"), (3, 4))
    merge = Merge("a", (0, 0, 1))
    for merges in ({}, {"a": merge}):
        for bad in (3, 7, 255):
            tally = Tally(domain, [("a", "b")], merges)
            codes = np.zeros(BLOCK_ROWS + 5, dtype=np.uint8)
            codes[-1] = bad
            with pytest.raises(MargentError, match="internal fault: a code past the end in column 'a'") as caught:
                tally.add([codes, np.zeros_like(codes)], codes.size)
            assert str(bad) not in str(caught.value)
            assert tally.tables()[0].shape == (domain.merged(merges).size("a"), 4)


@pytest.mark.parametrize(
    "column", [np.array([-1, 0]), np.array([0.0, 1.0]), np.array([0], np.uint8), np.zeros((2, 1), np.uint8)]
)
def test_codes_are_unsigned_and_as_long_as_the_batch(column: Any) -> None:
    tally = Tally(Domain(("a",), (2,)), [("a",)])
    with pytest.raises(MargentError, match="misshapen codes in column 'a'"):
        tally.add([column], 2)
    with pytest.raises(MargentError, match="another number of columns"):
        tally.add([], 2)


def test_what_is_no_clique_or_merge_is_refused() -> None:
    domain = Domain(("a", "b"), (3, 4))
    with pytest.raises(ValueError, match="once"):
        Tally(domain, [("a", "a")])
    with pytest.raises(ValueError, match="does not fit"):
        Tally(domain, [("a",)], {"a": Merge("b", (0, 0, 1))})
    with pytest.raises(ValueError, match="does not fit"):
        Tally(domain, [("a",)], {"a": Merge("a", (0, 0, 1, 1))})


def test_a_tally_does_not_show_its_counts() -> None:
    tally = Tally(Domain(("a",), (2,)), [("a",)])
    tally.add([np.full(79_193, 1, dtype=np.uint8)], 79_193)
    assert repr(tally) == object.__repr__(tally)
