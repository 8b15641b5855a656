"""Formats against the standard library's strptime, offset tables against zoneinfo."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.schema.codec import Codec
from margent.schema.fields import Date, DateTime, Schema, Time
from margent.schema.formats import Moment, parse_iso, time_format
from margent.schema.zones import instant_of_wall, zone_named, zone_table

EPOCH = datetime(1970, 1, 1)
FORMATS = [
    "%Y-%m-%d %H:%M:%S",
    "%d%m%Y",
    "%m/%d/%Y",
    "%d %b %Y",
    "%B %d, %Y %I:%M %p",
    "%Y%j",
    "%y/%m/%d",
    "%H.%M on %d.%m.%Y",
    "%Y%m%d%H%M%S",
    "100%% %Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S.%f",
]


@pytest.mark.parametrize("pattern", FORMATS)
@settings(max_examples=60, deadline=None)
@given(st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31)))
def test_formats_read_what_the_standard_library_writes(pattern: str, moment: datetime) -> None:
    text = moment.strftime(pattern)
    parsed = time_format(pattern).parse(text)
    assert parsed is not None
    expected = datetime.strptime(text, pattern).replace(microsecond=0)
    assert EPOCH + timedelta(days=parsed.day, seconds=parsed.second) == expected


@pytest.mark.parametrize("pattern", FORMATS)
@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("0123456789-/:. TZapm"), max_size=20))
def test_formats_never_raise_and_never_read_more_than_the_standard_library(pattern: str, text: str) -> None:
    parsed = time_format(pattern).parse(text)
    if parsed is not None:
        datetime.strptime(text.strip(), pattern)


@pytest.mark.parametrize("pattern", ["%Q", "%-d", "%Y%Y", "%I:%M", "%Y %y", "%", "%m %b", "%j %d"])
def test_formats_outside_the_subset_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="%"):
        time_format(pattern)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-10-29T02:30:00+02:00", Moment(19659, 9000, 7200)),
        ("2023-10-29 02:30", Moment(19659, 9000, None)),
        ("2023-10-29T02:30:00.123456Z", Moment(19659, 9000, 0)),
        ("2023-10-29T02:30:00,5 -0330", Moment(19659, 9000, -12600)),
        ("2023-10-29", Moment(19659, 0, None)),
        (" 2023-10-29 ", Moment(19659, 0, None)),
        ("2023-02-29", None),
        ("0000-01-01", None),
        ("2023-10-29T24:00:00", None),
        ("2023-10-29T02:60:00", None),
        ("2023-10-29T02:30:00+25:00", None),
        ("29.10.2023", None),
        ("２023-10-29", None),
        ("2023-10-29\n2023", None),
    ],
)
def test_iso(text: str, expected: Moment | None) -> None:
    assert parse_iso("datetime", text) == expected


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
def test_offset_tables_agree_with_zoneinfo(name: str) -> None:
    first = int(datetime(1979, 6, 1, tzinfo=UTC).timestamp())
    last = int(datetime(1999, 6, 1, tzinfo=UTC).timestamp())
    table, zone = zone_table(name, first, last), zone_named(name)
    rng = np.random.default_rng(1)
    near = [change + shift for change in table.changes for shift in range(-7300, 7300, 100)]
    instants = np.array([*near, *rng.integers(first, last, 500).tolist()])
    offsets = table.offsets_at(instants)
    walls = instants + offsets
    for instant, offset, wall, read in zip(instants, offsets, walls, table.instants_of(walls), strict=True):
        known = datetime.fromtimestamp(instant, zone).utcoffset()
        assert known is not None
        assert offset == known.total_seconds()
        assert read == instant_of_wall(zone, int(wall))


def test_a_shifted_offset_table_would_be_noticed() -> None:
    table = zone_table("Europe/Berlin", 1679000000, 1699000000)
    wrong = type(table)(tuple(change + 3600 for change in table.changes), table.offsets)
    zone = ZoneInfo("Europe/Berlin")
    walls = np.array([change + shift for change in table.changes for shift in range(-7300, 14400, 100)])
    assert (wrong.instants_of(walls) != [instant_of_wall(zone, wall) for wall in walls.tolist()]).any()


def test_repeated_hours_are_told_apart_where_the_offset_is_written() -> None:
    codec = Codec(
        Schema(
            [DateTime("t", "2023-10-29T00:00:00", "2023-10-29T05:59:59", time_zone="Europe/Berlin", bins="hour")],
            unit="row",
        )
    )
    # Six hours on the clock and the one that came twice, then missing.
    assert codec.domain.sizes == (8,)
    texts = ["2023-10-29T02:30:00+02:00", "2023-10-29T02:30:00+01:00", "2023-10-29T02:30:00"]
    batch = pa.RecordBatch.from_arrays([pa.array([text.encode() for text in texts], pa.binary())], names=["t"])
    assert codec.encode(batch)[0].tolist() == [2, 3, 2]
    codes = np.resize(np.arange(8), 200).reshape(-1, 1).astype(np.int32)
    out = codec.decode_text(codes, seed=5).cast(pa.schema([("t", pa.binary())]))
    assert codec.encode(out.to_batches()[0])[0].tolist() == codes[:, 0].tolist()


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        (Date("d", "1999-12-30", "2000-01-03"), r"\d{4}-\d\d-\d\d"),
        (Date("d", "1999-12-30", "2000-01-03", format="%d %B %Y"), r"\d\d (December|January) \d{4}"),
        (Date("d", "1999-12-30", "2000-01-03", format="%y%j"), r"\d{5}"),
        (Time("d", bins="hour"), r"\d\d:\d\d:\d\d"),
        (Time("d", format="%I:%M %p", bins=4), r"\d\d:\d\d (AM|PM)"),
        (DateTime("d", "2020-01-01", "2020-02-01", time_zone="UTC", bins=3), r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        (
            DateTime("d", "2020-03-01", "2020-04-01", time_zone="Asia/Kolkata", format="%Y%m%d %H%z", bins="day"),
            r"\d{8} \d\d\+05:30",
        ),
    ],
)
def test_written_texts_have_the_declared_shape_and_read_back(field: object, shape: str) -> None:
    codec = Codec(Schema([field], unit="row"))  # type: ignore[list-item]
    values = codec.layouts[0].values
    codes = np.resize(np.arange(values), 500).reshape(-1, 1).astype(np.int32)
    texts = codec.decode_text(codes, seed=2)
    import re

    assert all(re.fullmatch(shape, text) for text in texts["d"].to_pylist())
    back = codec.encode(texts.cast(pa.schema([("d", pa.binary())])).combine_chunks().to_batches()[0])[0]
    assert back.tolist() == codes[:, 0].tolist()


def test_days_beyond_the_calendar_are_clipped() -> None:
    codec = Codec(Schema([Date("d", date(2020, 1, 1), date(2020, 1, 31))], unit="row"))
    wide = pa.array([-(2**31), 2**31 - 1, 18262], pa.int32()).cast(pa.date32())
    assert codec.encode(pa.RecordBatch.from_arrays([wide], names=["d"]))[0].tolist() == [0, 30, 0]
