"""Single cells whose right code is known by hand: exact edges, canonical texts, absent cells, large numbers."""

from __future__ import annotations

import datetime as dt
import re
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from margent.schema.cells import UNREADABLE, canonical_texts, plain
from margent.schema.codec import Codec
from margent.schema.fields import (
    Boolean,
    Category,
    Date,
    DateTime,
    Integer,
    Number,
    Schema,
    Time,
    Year,
    YearMonth,
)
from margent.schema.formats import BLANKS
from margent.schema.parts import Field, Spelling
from margent.schema.positions import spelled_number


def codes(field: Field, cells: list[Any], kind: Any = None) -> list[int]:
    """Codes of raw texts (checked against the reading of one text at a time), or of typed cells of a given type."""
    raw = [cell.encode() if isinstance(cell, str) and kind is None else cell for cell in cells]
    column = pa.array(raw, kind or pa.binary())
    codec = Codec(Schema([field], unit="row"))
    found: list[int] = codec.encode(pa.RecordBatch.from_arrays([column], names=[field.name]))[0].tolist()
    (layout,) = codec.layouts
    for cell, code in zip(cells, found, strict=True):
        if kind is None and isinstance(cell, str):
            slow = layout.code_of(cell)
            assert code == (layout.fallback if slow is None else slow)
    return found


def test_edges_are_compared_digit_by_digit() -> None:
    field = Number("x", 0, 1, bins=[0, 0.1, 0.3, 0.7, 1])
    near = [
        "0.3",
        "0.30",
        "3e-1",
        "0.29999999999999999",
        "0.30000000000000001",
        "0.2999999999999999999999999999999999999",
    ]
    assert codes(field, near) == [2, 2, 2, 1, 2, 1]
    assert codes(field, [0.1, 0.3, 0.7, np.nextafter(0.3, 0)], pa.float64()) == [1, 2, 3, 1]
    assert codes(field, [0.1, 0.3, 0.7], pa.float32()) == [1, 2, 3]
    assert codes(field, [np.float16(0.1), np.float16(0.3), np.float16(0.7)], pa.float16()) == [1, 2, 3]
    assert codes(field, [Decimal("0.3"), Decimal("0.2999")], pa.decimal128(9, 4)) == [2, 1]
    thirds = Number("x", 0, 1, bins=3)
    assert codes(thirds, ["0.3333333333333333", "0.3333333333333334", "0.33333333333333333333333333"]) == [0, 1, 0]
    assert codes(thirds, [1 / 3, np.nextafter(1 / 3, 1)], pa.float64()) == [0, 1]


def test_numbers_are_clipped_and_only_nonsense_is_unlisted() -> None:
    field = Number("x", 0, 10, bins=5, required=True)
    assert codes(field, ["-1", "11", "1e999999999", "-inf", "INF", "1e-999999999"]) == [0, 4, 4, 0, 4, 0]
    assert codes(field, ["NaN", "", "1,5", "0x1", "1_0", "--1", "1e", ".", "9" * 2000]) == [5] * 9
    assert codes(field, ["5.", ".5", "+5", "005", " 5\t", "5e0", "-0"]) == [2, 0, 2, 2, 2, 2, 0]
    assert codes(field, [np.inf, -np.inf, np.nan, None], pa.float64()) == [4, 0, 5, 5]
    assert codes(field, [2**63, 0], pa.uint64()) == [4, 0]


def test_whole_numbers_from_every_type() -> None:
    field = Integer("x", 0, 9)
    assert codes(field, ["7", "7.0", "7e0", "70e-1", "7.5", "1e30", "-1e30", "inf"]) == [7, 7, 7, 7, 10, 9, 0, 10]
    assert codes(field, [7.0, 7.5, 1e300, -1e300, np.inf, np.nan], pa.float64()) == [7, 10, 9, 0, 10, 10]
    assert codes(field, [2**64 - 1, 3], pa.uint64()) == [9, 3]
    assert codes(field, [True, False, None], pa.bool_()) == [1, 0, 10]
    assert codes(field, [Decimal("7.00"), Decimal("7.50")], pa.decimal128(9, 2)) == [7, 10]
    assert codes(field, ["7", "x", None], pa.string()) == [7, 10, 10]
    assert codes(field, [dt.date(2020, 1, 1)], pa.date32()) == [10]
    large = Integer("x", 2**63 - 3, 2**63 - 1)
    assert codes(large, [2**64 - 1, 2**63 - 2], pa.uint64()) == [2, 1]
    assert codes(large, [str(2**63 - 2), str(2**64)]) == [1, 2]


def test_spelled_numbers() -> None:
    german = Number("x", 0, 10_000, bins=10, decimal_char=",", group_char=".")
    assert codes(german, ["1.204,50", "1204,50", "1204.5", "9.999", "12.04"]) == [1, 1, 10, 9, 10]
    money = Integer("x", 0, 100, bare_number=False)
    assert codes(money, ["$5", "95 %", "EUR 7.-", "5 of 6", "-"]) == [5, 95, 7, 101, 101]
    grouped = Integer("x", 0, 2_000_000, bins=2, group_char=",")
    assert codes(grouped, ["1,234,567", "12,34,567", "1,5", "1234567"]) == [1, 1, 2, 1]


@given(
    st.text(st.sampled_from("01+-,. eE%$\u0661é\n\x85\0"), max_size=24),
    st.sampled_from([".", ",", "^", "]", "\\", "é"]),
    st.sampled_from([None, ",", "."]),
)
@example("5\n%", ".", None)
@example("%\n-.5\n7.%", ".", None)
def test_what_stands_around_a_number_is_what_a_search_for_it_leaves(text: str, decimal: str, group: str | None) -> None:
    """By definition: from the first number's start on, without what is neither digit nor decimal sign at the end."""
    spelling = Spelling(decimal_char=decimal, group_char=group, bare_number=False)
    stripped = text.strip(BLANKS)
    start = re.search(rf"[+-]?(?:{re.escape(decimal)})?[0-9]", stripped)
    left = None if start is None else re.sub(rf"[^0-9{re.escape(decimal)}]+$", "", stripped[start.start() :])
    expected = None if left is None else spelled_number(left, replace(spelling, bare_number=True))
    assert spelled_number(text, spelling) == expected


def test_long_texts_around_a_number_are_read_as_fast_as_others() -> None:
    """The thousand letters of a cell were gone through a thousand times: a block of such cells took 20 minutes."""
    for spelling, text in (
        (Spelling(bare_number=False), "1" + "a" * 998 + "2"),
        (Spelling(group_char=","), "1" + ",123" * 249 + "\n1"),
    ):
        started = time.process_time()
        for _ in range(1000):
            assert spelled_number(text, spelling) is None
        assert time.process_time() - started < 1


def test_absent_cells_are_unlisted_and_nulls_are_missing() -> None:
    field = Category("x", ["a", "other"], unlisted={"to": "other"})
    assert codes(field, ["a", "zzz", "", None]) == [0, 1, 2, 1]
    assert codes(field, ["a", "zzz", "", None], pa.string()) == [0, 1, 2, 2]
    folded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    codec = Codec(Schema([field], unit="row"))
    assert codec.encode(pa.RecordBatch.from_arrays([folded], names=["x"]))[0].tolist() == [0, 2, 2]
    required = Category("x", ["a"], required=True, unlisted={"to": "a"})
    assert codes(required, [None, "b"]) == [0, 0]


def test_missing_tokens_and_special_codes_match_by_value() -> None:
    field = Integer("x", -100, 100, special=["-9"], missing_values=["", "-99"])
    special, missing = 199, 200
    assert codes(field, ["-9", "-9.0", " -9", "-99", "-99.0", "", "-98"]) == [
        special,
        special,
        special,
        missing,
        missing,
        missing,
        1,
    ]
    assert codes(field, [-9, -99, None, 100], pa.int64()) == [special, missing, missing, 198]
    dates = Date("x", "2000-01-01", "2000-12-31", bins="month", missing_values=["9999-12-31"])
    assert codes(dates, ["9999-12-31", "2001-01-01"]) == [12, 11]
    assert codes(dates, [dt.date(9999, 12, 31), dt.date(9999, 12, 30)], pa.date32()) == [12, 11]
    required = Integer("x", 0, 9, required=True, missing_values=["5"])
    assert codes(required, ["5"]) == [5]


def test_missing_tokens_with_cells_of_their_own() -> None:
    tokens = ["", "NA", {"value": "-8", "label": "not asked"}, {"value": "-9"}]
    field = Category("x", ["a"], missing_values=tokens)
    assert codes(field, ["a", "", "NA", "-8", "-9", "b"]) == [0, 1, 1, 2, 3, 1]
    assert codes(field, [None], pa.string()) == [1]
    codec = Codec(Schema([field], unit="row"))
    assert codec.labels["x"] == ("a", "(missing)", "not asked", "(missing: -9)")
    assert codec.decode_text(np.arange(4).reshape(-1, 1), seed=0)["x"].to_pylist() == ["a", "NA", "-8", "-9"]


def test_typed_cells_compare_with_categories_as_text() -> None:
    zips = Category("x", ["02116", "501", "0501", "x"])
    # 501 is a category itself; 2116 is only the value of "02116".
    assert codes(zips, [2116, 501, 7], pa.int64()) == [0, 1, 4]
    assert codes(zips, [2116.0, 501.5], pa.float64()) == [0, 4]
    twice = Category("x", ["01", "001"])
    assert codes(twice, [1], pa.int64()) == [2]
    assert codes(Category("x", ["0.0", "3.258096"]), [0.0, 3.258096, -0.0], pa.float64()) == [0, 1, 0]
    assert codes(Category("x", ["True", "False"]), [True, False], pa.bool_()) == [0, 1]
    assert codes(Category("x", ["yes", "no"]), [True], pa.bool_()) == [2]
    assert codes(Category("x", ["2020-01-01"]), [dt.date(2020, 1, 1)], pa.date32()) == [0]
    assert codes(Category("x", ["2020-01-01T03:04:05"]), [dt.datetime(2020, 1, 1, 3, 4, 5)], pa.timestamp("ms")) == [0]
    assert codes(Category("x", [1, 2]), ["1", "1.0", " 2 ", "01", "1.5"]) == [0, 0, 1, 0, 2]
    assert codes(Boolean("x"), [1, 0, 2], pa.int8()) == [1, 0, 2]
    assert codes(Boolean("x"), ["1", " true ", "yes", b"\xff"]) == [1, 1, 2, 2]


def test_times_of_every_type() -> None:
    noon = dt.datetime(2020, 2, 1, 12, 0)
    day = Date("x", "2020-01-01", "2020-12-31", bins="month")
    assert codes(day, [noon, None], pa.timestamp("ns")) == [1, 12]
    assert codes(day, [noon], pa.timestamp("us", "UTC")) == [12]
    assert codes(day, ["2020-02-01T12:00:00", "2020-02-01"]) == [1, 1]
    moment = DateTime("x", "2020-01-01", "2020-12-31", bins="month")
    assert codes(moment, [dt.date(2020, 2, 1)], pa.date64()) == [1]
    assert codes(moment, [noon], pa.timestamp("s", "UTC")) == [12]
    zoned = DateTime("x", "2020-01-01", "2020-12-31", bins="month", time_zone="America/Chicago")
    late = dt.datetime(2020, 2, 1, 1, 0)
    assert codes(zoned, [late], pa.timestamp("s", "UTC")) == [0]
    assert codes(zoned, [late], pa.timestamp("s")) == [1]
    clock = Time("x", bins="hour")
    assert codes(clock, [dt.time(13, 5), None], pa.time64("us")) == [13, 24]
    assert codes(clock, [noon], pa.timestamp("s")) == [24]
    assert codes(clock, ["13:05", "13:05:59.9", "24:00:00", "1:05"]) == [13, 13, 24, 24]
    year = Year("x", 2000, 2020)
    assert codes(year, ["2020", "1999", "x"]) == [20, 0, 21]
    assert codes(year, [dt.date(2005, 6, 1)], pa.date32()) == [5]
    month = YearMonth("x", "2019-11", "2020-02")
    assert codes(month, ["2019-12", "2020-13", "2020-01-15"]) == [1, 4, 4]
    assert codes(month, [noon], pa.timestamp("s")) == [3]


def test_columns_of_odd_containers() -> None:
    field = Category("x", ["a", "b"])
    codec = Codec(Schema([field], unit="row"))

    def of(column: Any) -> list[int]:
        found: list[int] = codec.encode(pa.RecordBatch.from_arrays([column], names=["x"]))[0].tolist()
        return found

    values = pa.array(["b", "a", None, "c"])
    assert of(values) == [1, 0, 2, 2]
    assert of(values.cast(pa.large_string())) == [1, 0, 2, 2]
    assert of(values.cast(pa.string_view())) == [1, 0, 2, 2]
    assert of(values.dictionary_encode()) == [1, 0, 2, 2]
    assert of(pa.compute.run_end_encode(values)) == [1, 0, 2, 2]
    assert of(pa.array([b"b", b"a"], pa.binary(1))) == [1, 0]
    assert of(pa.nulls(2)) == [2, 2]
    assert of(pa.array([["a"], None])) == [2, 2]
    assert of(values.slice(1, 2)) == [0, 2]
    assert of(pa.array([], pa.string())) == []


def test_many_codes_need_wider_codes() -> None:
    names = [f"{i:05}" for i in range(70_000)]
    codec = Codec(Schema([Category("x", names)], unit="row"))
    column = pa.array([b"69999", b"00000", b"?"], pa.binary())
    (found,) = codec.encode(pa.RecordBatch.from_arrays([column], names=["x"]))
    assert found.dtype == np.uint32
    assert found.tolist() == [69_999, 0, 70_000]


def test_a_batch_without_the_column_is_a_fault_of_the_caller() -> None:
    codec = Codec(Schema([Category("x", ["a"])], unit="row"))
    with pytest.raises(KeyError):
        codec.encode(pa.RecordBatch.from_pydict({"y": ["a"]}))


def test_cells_of_one_length_get_offsets_that_no_number_of_rows_passes() -> None:
    """32-bit ones end at 2 GiB, so that the rows of a batch would decide whether a run goes on."""
    cells = pa.array([b"M", b"F", None], pa.binary(1))
    assert plain(cells).type == pa.large_binary()
    assert codes(Category("sex", ["F", "M"]), [b"M", b"F"], pa.binary(1)) == [1, 0]


def test_cells_of_a_kind_without_text_are_unreadable_and_nulls_stay_nulls() -> None:
    lists = pa.array([[1], None, [2]])
    assert canonical_texts(lists).to_pylist() == [UNREADABLE, None, UNREADABLE]
    assert canonical_texts(lists[:0]).to_pylist() == []
