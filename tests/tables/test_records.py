"""The record reader against Python's csv module, on any bytes, cut into blocks of any size."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_schemas import csv_module_rows, limited_rows

from margent.tables.records import Layout, parsed

SPICY = st.lists(st.sampled_from([b"a", b"b", b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xff", b" "]))
BODIES = st.one_of(SPICY.map(b"".join), st.binary(max_size=60))


def records(
    body: bytes,
    width: int,
    *,
    block: int = 4096,
    quote: str | None = '"',
    delimiter: str = ",",
    limit: int = 10**6,
    batch_rows: int = 1000,
) -> list[tuple[bytes | None, ...]]:
    names = tuple(f"c{place}" for place in range(width))
    layout = Layout(names, names, delimiter, quote, limit)
    blocks = iter([body[start : start + block] for start in range(0, len(body), block)])
    rows: list[tuple[bytes | None, ...]] = []
    for batch in parsed(blocks, layout, batch_rows):
        batch.validate(full=True)
        assert 0 < batch.num_rows <= batch_rows
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


@settings(max_examples=400, deadline=None)
@given(BODIES, st.integers(1, 3), st.sampled_from([1, 2, 3, 7, 4096]), st.sampled_from(['"', "'", None]))
def test_any_bytes_read_as_the_csv_module_reads_them(body: bytes, width: int, block: int, quote: str | None) -> None:
    assert records(body, width, block=block, quote=quote) == csv_module_rows(body, width, quote=quote)


@settings(max_examples=300, deadline=None)
@given(BODIES, st.integers(1, 3), st.integers(1, 6), st.integers(1, 3))
def test_overlong_records_cost_their_first_line_whatever_the_blocks_and_batches(
    body: bytes, width: int, limit: int, batch_rows: int
) -> None:
    expected = limited_rows(body, width, limit)
    for block in (1, 2, 7, 4096):
        assert records(body, width, limit=limit, block=block, batch_rows=batch_rows) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.text(alphabet='ab,"\r\né', max_size=5), min_size=2, max_size=2), max_size=8))
def test_what_the_csv_module_writes_comes_back(table: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows(table)
    assert records(text.getvalue().encode(), 2, block=7) == [tuple(cell.encode() for cell in row) for row in table]


@settings(max_examples=150, deadline=None)
@given(BODIES, BODIES, BODIES)
def test_texts_that_close_their_quotes_are_read_by_themselves(first: bytes, middle: bytes, last: bytes) -> None:
    mark = b"mark,mark\n"
    closed = [body + b"\n" for body in (first, middle) if records(body + b"\n" + mark, 2)[-1] == (b"mark",) * 2]
    together = records(b"".join([*closed, last]), 2, block=7)
    apart = [row for body in [*closed, last] for row in records(body, 2)]
    assert together == apart


def test_a_record_is_read_by_itself() -> None:
    good, bad = b"1,2\n", [b"1\n", b"1,2,3\n", b'a"b,c"\n', b"\xff\xfe,\0\n", b'"a"b",c\n', b",\n"]
    for record in bad:
        rows = records(good + record + good, 2, block=3)
        assert rows[0] == rows[2] == (b"1", b"2")
        assert len(rows) == 3


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b"1,2", [(b"1", b"2")]),
        (b"1,2\n", [(b"1", b"2")]),
        (b"1,2\r", [(b"1", b"2")]),
        (b"1,2\r\n3,4\r5,6\n7,8", [(b"1", b"2"), (b"3", b"4"), (b"5", b"6"), (b"7", b"8")]),
        (b"\n\r\n\n1,2\n\n\n", [(b"1", b"2")]),
        (b"1,", [(b"1", b"")]),
        (b",", [(b"", b"")]),
        (b"1,2,3\n4\n5,6\n", [(None, None), (None, None), (b"5", b"6")]),
        (b'"yes, mostly",3\n"no\nnever",1\n', [(b"yes, mostly", b"3"), (b"no\nnever", b"1")]),
        (b'"she said ""maybe""",2', [(b'she said "maybe"', b"2")]),
        (b'"ab"c,d\n', [(b"abc", b"d")]),
        (b'"left open,1\n2,3\n', [(None, None)]),
        (b'x,"left open\n2,3\n', [(b"x", b"left open\n2,3\n")]),
        (b"", []),
    ],
)
def test_golden_records(body: bytes, rows: list[tuple[bytes | None, ...]]) -> None:
    for block in (1, 4096):
        assert records(body, 2, block=block) == rows


def test_an_empty_line_is_a_record_of_a_single_column() -> None:
    for block in (1, 2, 4096):
        assert records(b"a\n\nb\r\n\r\n", 1, block=block) == [(b"a",), (b"",), (b"b",), (b"",)]


def test_records_over_the_limit_are_rows_of_absent_cells() -> None:
    body = b"1,2\n" + b"g" * 50_000 + b"\r\n3,4\n5," + b"6" * 8 + b"\n7," + b"8" * 9
    expected = [(b"1", b"2"), (None, None), (b"3", b"4"), (b"5", b"66666666"), (None, None)]
    for block in (7, 1000, 10**6):
        assert records(body, 2, block=block, limit=10) == expected


def test_a_quote_that_is_never_closed_costs_its_own_line() -> None:
    before, after = b"a,b\n" * 10, b"c,d\r\n" * 1000
    expected = [(b"a", b"b")] * 10 + [(None, None)] + [(b"c", b"d")] * 1000
    for block in (7, 100, 10**6):
        assert records(before + b'x,"y\n' + after, 2, block=block, limit=50) == expected


def test_a_giant_cell_under_the_limit_comes_whole() -> None:
    giant = b"x" * 300_000
    assert records(b'"' + giant + b'",1\n2,3', 2, block=4096) == [(giant, b"1"), (b"2", b"3")]


def test_only_wanted_columns_come_in_the_order_wanted() -> None:
    layout = Layout(("a", "b", "c"), ("c", "a"), "\t", None, 100)
    (batch,) = parsed(iter([b'1\t2\t"3\n4\t5\n']), layout)
    assert batch.schema.names == ["c", "a"]
    assert batch.to_pydict() == {"c": [b'"3', None], "a": [b"1", None]}
