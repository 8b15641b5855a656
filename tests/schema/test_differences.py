"""Dates relative to other dates: exact differences, lengths that survive, order of decoding, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent import Budget, Schema, synthesize
from margent.errors import SchemaError
from margent.pipeline import from_transcript
from margent.schema.codec import Codec
from margent.schema.differences import differences, shifted
from margent.schema.read import schema_from_json
from margent.schema.write import schema_to_json

EPOCH = date(1970, 1, 1)
DAYS = st.integers(-100_000, 100_000)


def months_later(day: date, months: int) -> date:
    """The same day so many months later, or the last day of that month, in the standard library's calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


@given(base=DAYS, units=st.integers(-300, 300), unit=st.sampled_from(["month", "quarter", "year"]))
def test_months_are_those_of_the_calendar(base: int, units: int, unit: Any) -> None:
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    expected = (months_later(EPOCH + timedelta(days=base), units * months) - EPOCH).days
    assert shifted(np.array([base]), np.array([units]), "date", unit).tolist() == [expected]
    clock = shifted(np.array([base * 86_400 + 4567]), np.array([units]), "datetime", unit)
    assert clock.tolist() == [expected * 86_400 + 4567]


@given(
    base=DAYS,
    later=st.integers(-5000, 5000),
    second=st.integers(0, 86_399),
    kind=st.sampled_from(["date", "datetime"]),
    unit=st.sampled_from(["hour", "day", "week", "month", "quarter", "year"]),
)
def test_a_difference_is_the_one_whose_reach_holds_the_date(
    base: int, later: int, second: int, kind: Any, unit: Any
) -> None:
    if kind == "date" and unit == "hour":
        return
    size = 1 if kind == "date" else 86_400
    start = np.array([base * size + (second if kind == "datetime" else 0)])
    place = np.array([(base + later) * size + (86_399 - second if kind == "datetime" else 0)])
    units = differences(place, start, kind, unit)
    assert shifted(start, units, kind, unit)[0] <= place[0] < shifted(start, units + 1, kind, unit)[0]


def stay(unit: str = "day", low: int = 0, high: int = 30, kind: str = "date", **more: Any) -> dict[str, Any]:
    relative = {"field": "in", "unit": unit, "minimum": low, "maximum": high}
    block = {"relativeTo": relative} | more.pop("block", {})
    return {"name": "out", "type": kind, "margent": block} | more


ADMISSION = {
    "name": "in",
    "type": "date",
    "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
    "margent": {"bins": "month"},
}
MOMENT = {
    "name": "in",
    "type": "datetime",
    "constraints": {"minimum": "2020-01-01T00:00:00", "maximum": "2020-12-31T23:59:59"},
    "margent": {"bins": "week"},
}


def schema_of(*fields: dict[str, Any], **block: Any) -> Schema:
    return schema_from_json({"fields": list(fields), "margent": {"unit": "row"} | block})


def test_cells_become_codes_of_differences() -> None:
    codec = Codec(schema_of(ADMISSION, stay(block={"bins": [0, 1, 3, 8, 30]})))
    assert codec.labels["out"][:3] == ("0 days from in", "1 to 2 days from in", "3 to 7 days from in")
    rows = [
        ("2020-03-05", "2020-03-05", 0),
        ("2020-03-05", "2020-03-07", 1),
        ("2020-03-05", "2020-03-12", 2),
        ("2020-03-05", "2021-03-12", 3),  # beyond the maximum: the nearest bin
        ("2020-03-05", "2020-02-12", 0),  # before the minimum: likewise
        ("1990-03-05", "1990-03-06", 1),  # the base's own bounds do not matter
        ("", "2020-03-12", 4),
        ("no date", "2020-03-12", 4),
        ("2020-03-05", "", 4),
        ("2020-03-05", "?", 4),
        ("2020-03-05", "2020-02-30", 4),
    ]
    columns = {"in": [row[0].encode() for row in rows], "out": [row[1].encode() for row in rows]}
    batch = pa.RecordBatch.from_pydict(columns)
    assert codec.encode(batch)[1].tolist() == [row[2] for row in rows]
    coded = {name: pa.array(cells).dictionary_encode() for name, cells in columns.items()}
    assert codec.encode(pa.RecordBatch.from_pydict(coded))[1].tolist() == [row[2] for row in rows]
    absent = pa.RecordBatch.from_pydict({"in": [b"2020-01-01", None], "out": pa.array([None, b"2020-01-01"])})
    assert codec.encode(absent)[1].tolist() == [4, 4]


def test_typed_cells_are_read_as_text_is() -> None:
    codec = Codec(schema_of(ADMISSION, stay(block={"bins": [0, 1, 3, 8, 30]})))
    one = [date(2020, 3, 5), date(2020, 3, 5), None, date(2020, 3, 5)]
    other = [date(2020, 3, 7), None, date(2020, 3, 5), date(9999, 12, 31)]
    for kind in (pa.date32(), pa.date64(), pa.timestamp("us"), pa.string()):
        columns = [pa.array(cells, pa.date32()).cast(kind) for cells in (one, other)]
        batch = pa.RecordBatch.from_arrays(columns, names=["in", "out"])
        assert codec.encode(batch)[1].tolist() == [1, 4, 4, 3]
    nothing = pa.RecordBatch.from_arrays([pa.nulls(2), pa.nulls(2)], names=["in", "out"])
    assert codec.encode(nothing)[1].tolist() == [4, 4]


def test_a_null_is_missing_where_cells_are_typed_and_unlisted_where_a_record_lacks_it() -> None:
    tokens = ["?", {"value": "9999-12-31", "label": "still here"}]
    codec = Codec(schema_of(ADMISSION, stay(block={"unlisted": {"to": "9999-12-31"}}, missingValues=tokens)))
    missing, unlisted = (codec.labels["out"].index(each) for each in ("(missing)", "still here"))
    for kind in (pa.date32(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.null()):
        columns = [pa.array([date(2020, 3, 5)], pa.date32()), pa.nulls(1, kind)]
        assert codec.encode(pa.RecordBatch.from_arrays(columns, names=["in", "out"]))[1].tolist() == [missing], kind
    lacking = pa.RecordBatch.from_pydict({"in": [b"2020-03-05"], "out": pa.nulls(1, pa.binary())})
    assert codec.encode(lacking)[1].tolist() == [unlisted]


def test_a_missing_token_that_is_a_date_is_no_date() -> None:
    codec = Codec(
        schema_of(
            ADMISSION | {"missingValues": ["1900-01-01"]},
            stay(block={"bins": [0, 1, 30]}, missingValues=["", {"value": "9999-12-31", "label": "still here"}]),
        )
    )
    batch = pa.RecordBatch.from_pydict(
        {
            "in": [b"1900-01-01", b"2020-02-01", b"2020-02-01", b"2020-02-01"],
            "out": [b"1900-01-02", b"9999-12-31", b"", b"2020-02-01"],
        }
    )
    stand_alone, plain = codec.labels["out"].index("still here"), codec.labels["out"].index("(missing)")
    # Where there is no difference, the code is that of any cell that cannot be read: the first missing one.
    assert codec.encode(batch)[1].tolist() == [stand_alone, stand_alone, plain, 0]
    typed = pa.RecordBatch.from_pydict({"in": [date(2020, 2, 1)], "out": [date(9999, 12, 31)]})
    assert codec.encode(typed)[1].tolist() == [stand_alone]


CHAIN = [
    MOMENT,
    stay("hour", -3, 500, "datetime", block={"bins": {"width": 24}}),
    {
        "name": "bill",
        "type": "datetime",
        "format": "%d.%m.%Y %H:%M",
        "margent": {"relativeTo": {"field": "out", "unit": "month", "minimum": 0, "maximum": 40}},
    },
]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("text", [True, False])
def test_a_chain_is_decoded_in_its_order_and_read_back_whatever_the_order_of_the_fields(
    zone: str | None, text: bool
) -> None:
    fields = [dict(each) for each in reversed(CHAIN)]
    if zone is not None:
        fields = [each | {"margent": each["margent"] | {"timeZone": zone}} for each in fields]
    codec = Codec(schema_of(*fields))
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, size, 3000) for size in codec.domain.sizes], axis=1)
    names = codec.domain.names
    for name, code in codec.unlisted_codes.items():
        column = codes[:, names.index(name)]
        column[column == code] = 0
    decode = codec.decode_text if text else codec.decode
    table = decode(codes, 11)
    parts = pa.concat_tables([decode(codes[start : start + 700], 11, first_row=start) for start in range(0, 3000, 700)])
    assert parts == table
    again = np.stack(codec.encode(table.combine_chunks().to_batches()[0]), axis=1)
    layouts = {layout.field.name: layout for layout in codec.layouts}
    missing = np.zeros(3000, dtype=bool)
    for name in ("in", "out", "bill"):  # a date is missing where its base is
        missing |= codes[:, names.index(name)] >= layouts[name].values
        column = again[:, names.index(name)]
        assert (column[~missing] == codes[~missing, names.index(name)]).all()
        assert (column[missing] >= layouts[name].values).all()
        assert table.column(name).null_count == (0 if text else int(missing.sum()))


def test_lengths_of_stay_survive_in_a_release() -> None:
    schema = schema_of(
        ADMISSION | {"constraints": ADMISSION["constraints"] | {"required": True}},
        stay(constraints={"required": True}),
    )
    rng = np.random.default_rng(1)
    base = np.datetime64("2020-01-01") + rng.integers(0, 366, 3000)
    length = rng.choice([1, 2, 20], 3000, p=[0.6, 0.3, 0.1])
    table = pa.table({"in": pa.array(base), "out": pa.array(base + length)})
    release = synthesize(table, schema, budget=Budget(5), seed=1, rows=3000)
    made = release.table.to_pandas()
    days = (made["out"] - made["in"]).map(lambda each: each.days).to_numpy()
    assert days.min() >= 0
    shares = [float((days == each).mean()) for each in (1, 2, 20)]
    assert np.abs(np.array(shares) - [0.6, 0.3, 0.1]).max() < 0.05


def test_a_base_that_a_rule_links_is_the_one_that_is_written() -> None:
    other = ADMISSION | {"name": "booked"}
    schema = schema_of(other, ADMISSION, stay(), rules=[{"order": ["booked", "in"]}])
    codec = Codec(schema)
    codes = np.zeros((400, 3), dtype=np.int64)
    codes[:, 2] = np.arange(400) % 31
    made = codec.decode(codes, 4).to_pandas()
    assert (made["booked"] <= made["in"]).all()
    assert (made["out"] - made["in"]).map(lambda each: each.days).tolist() == codes[:, 2].tolist()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"order": ["in", "out"]}, "codes of 'out'"),
        ({"never": {"pay": 0, "flag": "a"}}, "spikes"),
        ({"order": ["fee", "cost"]}, "decode"),
    ],
)
def test_rules_do_not_speak_of_what_they_cannot_keep(rule: dict[str, Any], said: str) -> None:
    number = {"type": "integer", "constraints": {"minimum": 0, "maximum": 9}}
    fields = [
        ADMISSION,
        stay(),
        number | {"name": "pay", "margent": {"spikes": [0], "bins": 2}},
        number | {"name": "fee", "margent": {"bins": 2, "decode": "midpoint"}},
        number | {"name": "cost"},
        {"name": "flag", "type": "string", "categories": ["a", "b"]},
    ]
    with pytest.raises(SchemaError, match=said):
        schema_of(*fields, rules=[rule])


def test_a_condition_on_a_difference_counts_its_units_and_spikes_lie_in_ranges() -> None:
    schema = schema_of(ADMISSION, stay(block={"bins": [0, 1, 3, 8, 30], "spikes": [5, 14]}))
    day = np.datetime64("2020-02-01") + np.arange(400) % 9
    table = pa.table({"in": pa.array(day), "out": pa.array(day + np.arange(400) % 16)})
    release = synthesize(table, schema, budget=Budget(5), seed=1, rows=10)
    for where, allowed in (
        ("out=0", {0}),
        ("out=5", {5}),
        ("out=3..7", {3, 4, 5, 6, 7}),
        ("out=1..7", {1, 2, 3, 4, 5, 6, 7}),
    ):
        made = from_transcript(
            release.transcript, budget=Budget(5), synthesizer="descent", rows=60, seed=1, where=[where]
        )
        frame = made.table.to_pandas()
        assert set((frame["out"] - frame["in"]).dropna().map(lambda each: each.days)) <= allowed, where


def test_order_is_kept_although_the_base_is_finer_than_what_is_written() -> None:
    fields = [MOMENT, stay("hour", 0, 4, "datetime", format="%Y-%m-%d %H:%M")]
    codec = Codec(schema_of(*fields))
    codes = np.zeros((500, 2), dtype=np.int64)
    table = codec.decode(codes, 5).to_pydict()
    for begin, end in zip(table["in"], table["out"], strict=True):
        assert isinstance(begin, datetime)
        assert begin <= end


@settings(max_examples=60, deadline=None)
@given(
    unit=st.sampled_from(["day", "week", "month", "quarter", "year"]),
    low=st.integers(-20, 20),
    width=st.integers(0, 300),
    bins=st.sampled_from([None, 3, {"width": 7}, {"quantiles": 4}]),
    spikes=st.sampled_from([[], [0], [3, 5]]),
    decode=st.sampled_from([None, "midpoint", "tail"]),
)
def test_json_and_any_declaration_that_is_accepted_works(
    unit: str, low: int, width: int, bins: Any, spikes: list[int], decode: Any
) -> None:
    block = {"bins": bins, "spikes": spikes, "decode": decode}
    block = {key: value for key, value in block.items() if value}
    try:
        schema = schema_of(ADMISSION, stay(unit, low, low + width, block=block))
    except SchemaError:
        return
    assert schema_from_json(schema_to_json(schema)) == schema
    if bins == {"quantiles": 4}:
        return
    codec = Codec(schema)
    codes = np.zeros((codec.domain.sizes[1], 2), dtype=np.int64)
    codes[:, 1] = np.arange(len(codes))
    for decoded in (codec.decode_text(codes, 1), codec.decode(codes, 1)):
        assert codec.encode(decoded.to_batches()[0])[1].tolist() == codes[:, 1].tolist()


def test_differences_may_reach_to_the_end_of_the_last_year_of_zones() -> None:
    zoned = {"timeZone": "Europe/Berlin"}
    base = MOMENT | {"margent": MOMENT["margent"] | zoned}
    base["constraints"] = {"minimum": "2300-06-01T00:00:00", "maximum": "2300-12-01T00:00:00"}
    assert schema_of(base, stay(high=20, kind="datetime", block=zoned))
    with pytest.raises(SchemaError, match="reach beyond the years 1800 to 2300"):
        schema_of(base, stay(high=40, kind="datetime", block=zoned))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([ADMISSION, stay("hour")], "counted in one of day, week"),
        ([MOMENT, stay()], "must be a modeled date"),
        ([ADMISSION, stay(low=5, high=4)], "minimum is above maximum"),
        ([ADMISSION, stay(high=10**9)], "within 100,000,000 units"),
        ([ADMISSION, stay("year", high=9000)], "reach beyond the years 1 to 9999"),
        ([ADMISSION, stay(constraints={"required": True})], "make that required"),
        ([ADMISSION, stay(constraints={"minimum": "2020-01-01"})], "the difference has the bounds"),
        ([ADMISSION, stay(high=400)], "above 256 it needs margent.bins"),
        ([ADMISSION, stay(block={"bins": "month"})], "does not cut"),
        ([ADMISSION, stay(block={"bins": ["2020-01-01", "2020-01-31"]})], "whole number"),
        ([ADMISSION, stay(block={"spikes": [31]})], "outside of minimum and maximum"),
        ([ADMISSION | {"margent": {"role": "drop"}}, stay()], "must be a modeled date"),
        ([stay() | {"name": "in"}], "leads back to itself"),
        (
            [
                stay(block={"relativeTo": {"field": "out", "unit": "day", "minimum": 0, "maximum": 9}})
                | {"name": "in"},
                stay(),
            ],
            "leads back to itself",
        ),
        ([ADMISSION, stay() | {"type": "integer"}], "only a date or datetime"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_read(fields: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema_of(*fields)
