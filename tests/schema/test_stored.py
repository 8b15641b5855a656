"""Declared column types are kept just where they hold every value of the field, and never tell of rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.release.spark import spark_type
from margent.schema.codec import Codec
from margent.schema.fields import Boolean, Category, Date, DateTime, Identifier, Integer, Number, Schema, Time
from margent.schema.stored import schema_of_texts, stored_schema, stored_table, type_texts
from margent.tables.write import write_table

LETTERS = Category("x", ["a", "b"])
MANY = Category("x", [f"c{place}" for place in range(200)])
NARROW = pa.dictionary(pa.int8(), pa.string())


def kept(field: Any, declared: Any) -> Any:
    codec = Codec(Schema([field], unit="row"))
    return stored_schema(codec, pa.schema([("x", declared)])).field("x").type


KEPT = [
    (Integer("x", 0, 255), pa.uint8()),
    (Integer("x", -128, 127), pa.int8()),
    (Integer("x", 0, 9), pa.uint64()),
    (Integer("x", 0, 9), pa.duration("us")),
    (Integer("x", 0, 99), pa.decimal128(2, 0)),
    (Integer("x", 0, 99), pa.decimal256(60, 3)),
    (Integer("x", -5, 99), pa.decimal256(76, 58)),
    (Integer("x", 0, 9), pa.decimal256(76, 75)),
    (Integer("x", 0, 0), pa.decimal256(76, 76)),
    (Integer("x", 0, 10, special={"255": "more"}), pa.uint8()),
    (Number("x", 0, 5, bins=5, decimals=1), pa.float32()),
    (Number("x", 0, 5, bins=5, decimals=1), pa.float16()),
    (Number("x", 0, "99.99", bins=5, decimals=2), pa.decimal128(4, 2)),
    (Number("x", -1, 9, bins=5, decimals=2), pa.decimal64(12, 4)),
    (LETTERS, pa.string()),
    (LETTERS, pa.large_string()),
    (LETTERS, pa.string_view()),
    (LETTERS, NARROW),
    (LETTERS, pa.dictionary(pa.uint32(), pa.large_string())),
    (Date("x", "2020-01-01", "2020-12-31", bins="month"), pa.date64()),
    (Date("x", "2020-01-01", "2020-12-31", bins="month"), pa.timestamp("ns")),
    (DateTime("x", "0001-01-01", "9999-12-31", bins="year"), pa.timestamp("ms")),
    (DateTime("x", "1700-01-01", "2200-12-31", bins="year"), pa.timestamp("ns")),
    (DateTime("x", "2020-01-01", "2020-12-31", bins="year", time_zone="UTC"), pa.timestamp("s", "UTC")),
    (Time("x", "00:00:00", "23:59:59", bins="hour"), pa.time64("ns")),
    (Identifier("x"), pa.large_string()),
    (Identifier("x"), pa.int64()),
]

NOT_KEPT = [
    (Integer("x", 0, 256, bins=4), pa.uint8(), pa.int64()),
    (Integer("x", -1, 5), pa.uint64(), pa.int64()),
    (Integer("x", 0, 9, special={"-9": "refused"}), pa.uint8(), pa.int64()),
    (Integer("x", 0, 9, special=["<5"]), pa.uint8(), pa.string()),
    (Integer("x", 0, 100), pa.decimal128(2, 0), pa.int64()),
    # One missing cell makes pandas write whole numbers as floats: both are written alike.
    (Integer("x", 0, 9), pa.float64(), pa.int64()),
    (Integer("x", 0, 9), pa.null(), pa.int64()),
    (Number("x", 0, 9, bins=3), pa.int64(), pa.float64()),
    (Boolean("x"), pa.int64(), pa.bool_()),
    (Identifier("x"), pa.float64(), pa.int64()),
    (Identifier("x"), pa.int16(), pa.int64()),
    (Boolean("x"), pa.string(), pa.bool_()),
    (LETTERS, pa.int64(), pa.dictionary(pa.int32(), pa.string())),
    (Number("x", 0, 5000, bins=5, decimals=3), pa.float32(), pa.float64()),
    (Number("x", 0, 100, bins=5, decimals=2), pa.decimal128(4, 2), pa.float64()),
    (Number("x", 0, 9, bins=5, decimals=2), pa.decimal128(12, 1), pa.float64()),
    # Arrow has decimals with more digits after the point than in all; Parquet and Spark have none.
    (Integer("x", 0, 0), pa.decimal128(2, 5), pa.int64()),
    (Number("x", 0, "0.002", bins=2, decimals=3), pa.decimal128(3, 5), pa.float64()),
    (Number("x", 0, "0.5", bins=5, decimals=1), pa.decimal128(38, 2**31 - 1), pa.float64()),
    (Number("x", 0, 9, bins=5, decimals=1, special=["0.125"]), pa.decimal128(12, 1), pa.float64()),
    (Number("x", 0, 9, bins=5, decimals=1, special=["99999999"]), pa.float32(), pa.float64()),
    # The width of indices and the order come from the list, not from the values that occurred.
    (MANY, NARROW, pa.dictionary(pa.int16(), pa.string())),
    (LETTERS, pa.dictionary(pa.int16(), pa.string(), ordered=True), NARROW),
    (DateTime("x", "0001-01-01", "9999-12-31", bins="year"), pa.timestamp("ns"), pa.timestamp("us")),
    (Date("x", "1500-01-01", "2020-12-31", bins="year"), pa.timestamp("ns"), pa.date32()),
    (
        DateTime("x", "2020-01-01", "2020-12-31", bins="year", time_zone="UTC"),
        pa.timestamp("ms", "Europe/Berlin"),
        pa.timestamp("ms", "UTC"),
    ),
]


@pytest.mark.parametrize(("field", "declared"), KEPT, ids=lambda item: str(item)[:40])
def test_a_type_that_holds_every_value_is_kept(field: Any, declared: Any) -> None:
    assert kept(field, declared) == declared


@pytest.mark.parametrize(("field", "declared", "written"), NOT_KEPT, ids=lambda item: str(item)[:40])
def test_any_other_is_the_schemas_own(field: Any, declared: Any, written: Any) -> None:
    assert kept(field, declared) == written


def test_without_a_container_and_for_absent_columns_the_schemas_types_hold() -> None:
    codec = Codec(Schema([Integer("x", 0, 9), LETTERS.__class__("y", "string", listed=LETTERS.listed)], unit="row"))
    assert stored_schema(codec, None) == codec.arrow_schema
    assert stored_schema(codec, pa.schema([("z", pa.int8())])) == codec.arrow_schema


def test_a_date_written_as_base_plus_difference_may_leave_its_own_bounds() -> None:
    """So that nanoseconds, which reach from 1678 to 2261 only, are not kept for it."""
    base = Date("x", "2020-01-01", "2200-12-31", bins="year")
    later = Date("y", relative_to={"field": "x", "unit": "day", "minimum": 0, "maximum": 200})
    declared = pa.schema([("x", pa.timestamp("ns")), ("y", pa.timestamp("ns"))])
    made = stored_schema(Codec(Schema([base, later], unit="row")), declared)
    assert made.types == [pa.timestamp("ns"), pa.date32()]


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("nullable", [False, True])
def test_a_column_is_nullable_where_schema_or_container_say_so(required: bool, nullable: bool) -> None:
    codec = Codec(Schema([Integer("x", 0, 9, required=required)], unit="row"))
    declared = pa.schema([pa.field("x", pa.int8(), nullable=nullable)])
    assert stored_schema(codec, declared).field("x").nullable is (nullable or not required)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KEPT), st.integers(0, 2**32))
def test_no_value_changes_on_the_way(case: tuple[Any, Any], seed: int) -> None:
    """What is written in the declared type has the codes, and (numbers) the digits, that were drawn."""
    field, declared = case
    codec = Codec(Schema([field], unit="row"))
    size = codec.domain.sizes[0] if codec.domain.names else 0
    codes = np.zeros((40, 0), dtype=int)
    if size:
        codes = np.arange(40).reshape(-1, 1) % size
        codes = np.where(codec.sampleable["x"][codes], codes, 0)
    own = codec.decode(codes, seed)
    written = stored_table(own, stored_schema(codec, pa.schema([("x", declared)])))
    assert written.schema.field("x").type == declared
    if size:
        (again,) = codec.encode(written.combine_chunks().to_batches()[0])
        assert again.tolist() == codes[:, 0].tolist()
    if field.type == "number":
        exact = [None if cell is None else Decimal(repr(cell)) for cell in own["x"].to_pylist()]
        digits = 10 ** (field.decimals or 0)
        for wanted, cell in zip(exact, written["x"].to_pylist(), strict=True):
            assert (wanted is None) == (cell is None)
            assert cell is None or round(float(cell) * digits) == wanted * digits


def test_types_are_read_back_from_their_texts() -> None:
    kinds = {f"c{place}": declared for place, (_, declared) in enumerate(KEPT)}
    kinds |= {f"d{place}": written for place, (_, _, written) in enumerate(NOT_KEPT)}
    kinds |= {"zone": pa.timestamp("us", "Europe/Vienna"), "wide": pa.decimal256(70, 5), "flag": pa.bool_()}
    schema = pa.schema([pa.field(name, kind, nullable=name[0] == "c") for name, kind in kinds.items()])
    assert schema_of_texts(type_texts(schema)) == schema


_INDICES = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_UNITS = ("s", "ms", "us", "ns")
EVERY_TYPE = [
    *_INDICES,
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(), pa.date32(), pa.date64()),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(5)),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), *map(pa.duration, _UNITS)),
    *(pa.timestamp(unit, tz=zone) for unit in _UNITS for zone in (None, "UTC", "Europe/Berlin")),
    *(pa.dictionary(index, text) for index in _INDICES for text in (pa.string(), pa.large_string(), pa.int64())),
    *(pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.month_day_nano_interval()),
    *(pa.run_end_encoded(pa.int32(), kind) for kind in (pa.int64(), pa.string())),
    *(pa.decimal32(9, scale) for scale in (-3, 0, 7, 8, 9, 10)),
    *(pa.decimal64(18, scale) for scale in (-3, 0, 16, 17, 18, 19)),
    *(pa.decimal128(digits, scale) for digits in (3, 38) for scale in (-3, 0, 3, 5, 19, 20, 36, 37, 38, 39, 2**31 - 1)),
    *(pa.decimal256(76, scale) for scale in (-(2**31), -1, 0, 19, 38, 56, 57, 58, 66, 73, 74, 75, 76, 77, 2**31 - 1)),
]
EVERY_FIELD = [
    Integer("x", 0, 0),
    Integer("x", -5, 300, bins=5),
    Integer("x", -(2**62), 2**62, bins=5),
    Number("x", 0, "0.002", bins=2, decimals=3),
    Number("x", 0, 5, bins=5, decimals=0),
    Number("x", -1, 1, bins=5, decimals=9),
    LETTERS,
    MANY,
    Boolean("x"),
    Date("x", "0001-01-01", "9999-12-31", bins="year"),
    Date("x", "1678-01-01", "2261-12-31", bins="year"),
    DateTime("x", "0001-01-01", "9999-12-31", bins="year"),
    DateTime("x", "1850-01-01", "2261-12-31", bins="year", time_zone="Europe/Berlin"),
    Time("x", "00:00:00", "23:59:59", bins="hour"),
    Identifier("x"),
]


@pytest.mark.parametrize("field", EVERY_FIELD, ids=lambda item: f"{item.type} {item.minimum}")
def test_whatever_a_container_declares_the_table_is_written(field: Any, tmp_path: Path) -> None:
    """It is written after the charge: what fails there is an answer paid for and lost."""
    codec = Codec(Schema([field], unit="row"))
    codes = np.zeros((12, 0), dtype=int)
    if codec.domain.names:
        codes = np.arange(12).reshape(-1, 1) % codec.domain.sizes[0]
        codes = np.where(codec.sampleable["x"][codes], codes, 0)
    own, seen = codec.decode(codes, 1), set()
    for declared in EVERY_TYPE:
        written = stored_schema(codec, pa.schema([("x", declared)]), len(codes))
        if written in seen:
            continue
        seen.add(written)
        table = stored_table(own, written)
        assert table.num_rows == 12
        for kind in ("parquet", "arrow"):
            write_table(tmp_path / kind, kind, iter([table]), written)
        target = pa.schema([("x", spark_type(written.field("x").type, codec.arrow_schema.field("x").type))])
        assert stored_table(own, target).schema == target
    assert codec.arrow_schema in seen


def test_odd_texts_are_no_type() -> None:
    texts = ("", "list<item: int8>", "timestamp[h]", "decimal128(x, 2)", "decimal128(9, 2", "uint")
    odd = {text: text for text in texts}
    assert len(schema_of_texts(odd)) == 0


@pytest.mark.parametrize("digits", ["77, 2", "9, 10", "3000000000, 2", "9, -77", "9, -3000000000", "9" * 5000 + ", 2"])
def test_a_decimal_that_there_is_not_is_refused(digits: str) -> None:
    with pytest.raises(ValueError, match=r"^$|digits"):
        schema_of_texts({"x": f"decimal128({digits})"})


def test_a_missing_cell_does_not_change_what_pandas_files_lead_to() -> None:
    """Neighboring frames: one row more, whose cells are missing, turns integers into floats and words into objects."""
    schema = Schema([Integer("n", 0, 9), Category("w", ["a", "b"]), Integer("gone", 0, 3)], unit="row")
    whole = pd.DataFrame({"n": [1, 2], "w": pd.Categorical(["a", "b"]), "gone": [1, 1]})
    gappy = pd.DataFrame({"n": [1, 2, None], "w": pd.Categorical(["a", "b", None]), "gone": [1, 1, None]})
    declared = [pa.Table.from_pandas(frame, preserve_index=False).schema for frame in (whole, gappy)]
    assert declared[0] != declared[1]
    first, second = (stored_schema(Codec(schema), each) for each in declared)
    assert first.equals(second)
