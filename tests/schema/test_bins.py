"""Bins in exact arithmetic, against the words of their definition."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.bins import Cuts, bin_of, cut
from margent.schema.codec import Codec
from margent.schema.fields import Date, DateTime, Integer, Number, Schema, Time, YearMonth

EPOCH = date(1970, 1, 1)


def days_of(cuts: Cuts) -> list[str]:
    return [(EPOCH + timedelta(days=int(start))).isoformat() for start in cuts.starts]


@settings(max_examples=300, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**40), st.integers(1, 300))
def test_equal_bins_of_whole_numbers(low: int, span: int, count: int) -> None:
    high = min(low + span, 2**63 - 1)
    values = high - low + 1
    if count > values:
        with pytest.raises(ValueError, match=f"at most {values:,}"):
            cut(Integer("x", low, high, bins=count))
        return
    cuts = cut(Integer("x", low, high, bins=count))
    assert cuts.starts == tuple(low + (i * values) // count for i in range(count))
    assert sum(cuts.count) == values
    assert max(cuts.count) - min(cuts.count) <= 1
    ends = [*cuts.starts[1:], high + 1]
    for place, (start, end) in enumerate(zip(cuts.starts, ends, strict=True)):
        assert bin_of(cuts, start) == place == bin_of(cuts, end - 1)
    assert bin_of(cuts, low - 1) == 0
    assert bin_of(cuts, high + 1) == count - 1


@settings(max_examples=300, deadline=None)
@given(
    st.decimals(-1000, 1000, places=2, allow_nan=False),
    st.decimals("0.01", 1000, places=2, allow_nan=False),
    st.integers(1, 40),
)
def test_equal_bins_of_numbers(low: Decimal, span: Decimal, count: int) -> None:
    field = Number("x", low, low + span, bins=count)
    cuts = cut(field)
    width = Fraction(span) / count
    assert cuts.starts == tuple(Fraction(low) + i * width for i in range(count))
    ends = [*cuts.starts[1:], Fraction(low + span)]
    for place, (start, end) in enumerate(zip(cuts.starts, ends, strict=True)):
        first = cuts.first[place] * cuts.grid.unit
        last = (cuts.first[place] + cuts.count[place] - 1) * cuts.grid.unit
        assert start <= first <= last <= end
        assert bin_of(cuts, first) == bin_of(cuts, last) == place
        assert cuts.count[place] >= 99


def test_widths_start_at_the_minimum_and_the_last_bin_may_be_partial() -> None:
    assert cut(Integer("age", 0, 100, bins={"width": 10})).starts == tuple(range(0, 100, 10))
    assert cut(Integer("age", 0, 100, bins={"width": 10})).count[-1] == 11
    assert cut(Integer("age", 17, 90, bins={"width": 10})).starts == (17, 27, 37, 47, 57, 67, 77, 87)
    assert cut(Integer("age", 17, 90, bins={"width": 10})).count[-1] == 4
    assert cut(Number("x", 0.1, 0.75, bins={"width": 0.2})).starts == (
        Fraction(1, 10),
        Fraction(3, 10),
        Fraction(1, 2),
        Fraction(7, 10),
    )
    assert cut(Integer("x", 5, 5, bins={"width": 3})).starts == (5,)
    assert days_of(cut(Date("d", "2020-01-01", "2020-01-20", bins={"width": 7}))) == [
        "2020-01-01",
        "2020-01-08",
        "2020-01-15",
    ]
    assert len(cut(Time("t", bins={"width": 3600})).starts) == 24


def test_edges_are_half_open_and_the_last_bin_is_closed() -> None:
    cuts = cut(Integer("gain", 0, 99, bins=[0, 1, 50, 99]))
    assert [bin_of(cuts, value) for value in (-3, 0, 1, 49, 50, 98, 99, 1000)] == [0, 0, 1, 1, 2, 2, 2, 2]
    assert cuts.count == (1, 49, 50)
    numbers = cut(Number("x", 0, 1, bins=[0, 0.3, 1]))
    assert [bin_of(numbers, Fraction(text)) for text in ("0.2999999", "0.3", "1", "2")] == [0, 1, 1, 1]


def test_calendar_bins_of_dates() -> None:
    assert days_of(cut(Date("d", "2020-02-10", "2020-05-01", bins="month"))) == [
        "2020-02-10",
        "2020-03-01",
        "2020-04-01",
        "2020-05-01",
    ]
    assert days_of(cut(Date("d", "2020-02-10", "2020-12-31", bins="quarter"))) == [
        "2020-02-10",
        "2020-04-01",
        "2020-07-01",
        "2020-10-01",
    ]
    weeks = cut(Date("d", "2020-02-12", "2020-03-01", bins="week"))
    assert days_of(weeks) == ["2020-02-12", "2020-02-17", "2020-02-24"]
    assert days_of(cut(Date("d", "0001-01-01", "9999-12-31", bins="year")))[1] == "0002-01-01"
    assert len(cut(Date("d", "0001-01-01", "9999-12-31", bins="year")).starts) == 9999
    assert len(cut(YearMonth("m", "1999-11", "2004-02", bins="quarter")).starts) == 18
    with pytest.raises(ValueError, match="does not cut a date"):
        cut(Date("d", "2020-02-10", "2020-05-01", bins="hour"))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "America/Havana"])
@pytest.mark.parametrize("period", ["hour", "day", "month"])
def test_calendar_bins_of_instants_follow_the_clock(zone: str, period: str) -> None:
    # Sao Paulo skipped midnights, Havana repeated them, Lord Howe changes by half an hour.
    cuts = cut(DateTime("t", "2017-09-25T00:00:00", "2018-04-10T00:00:00", time_zone=zone, bins=period))
    clock = ZoneInfo(zone)

    def period_of(instant: int) -> tuple[int, ...]:
        here = datetime.fromtimestamp(instant, clock)
        parts = (here.year, here.month, here.day, here.hour, offset_of(here))
        return parts[: {"hour": 5, "day": 3, "month": 2}[period]]

    def offset_of(here: datetime) -> int:
        # An hour that comes twice is two hours.
        return int((here.utcoffset() or timedelta()).total_seconds())

    assert list(cuts.starts) == sorted(set(cuts.starts))
    for start in cuts.starts[1:]:
        assert period_of(int(start)) != period_of(int(start) - 1)
    if period != "hour":
        assert len(cuts.starts) == len({period_of(t) for t in range(int(cuts.starts[0]), int(cuts.maximum) + 1, 600)})


def test_empty_bins_and_too_many_are_refused() -> None:
    with pytest.raises(ValueError, match="bin 1 of 2 holds no value"):
        cut(Integer("x", 0, 9, bins=[0, 1, 9]), {0})
    with pytest.raises(SchemaError, match="1,000,000"):
        Schema([Integer("x", 0, 2**40, bins=2_000_000)], unit="row")
    with pytest.raises(SchemaError, match="1,000,000"):
        Schema([Integer("x", 0, 2**40, bins={"width": 1})], unit="row")
    with pytest.raises(SchemaError, match="1,000,000"):
        Schema([DateTime("x", "1800-01-01", "2299-01-01", bins="hour")], unit="row")
    with pytest.raises(SchemaError, match="2\\^63"):
        Schema([Integer("x", -(2**63), 2**63 - 1, bins=1)], unit="row")
    whole = Codec(Schema([Integer("x", -(2**63), 2**63 - 1, bins=2)], unit="row"))
    out: list[Any] = whole.decode(np.resize([0, 1], 200).reshape(-1, 1).astype(np.int32), seed=1)["x"].to_pylist()
    assert all(value < 0 for value in out[::2])
    assert all(value >= 0 for value in out[1::2])
    assert len(set(out)) == 200
