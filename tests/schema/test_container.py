"""Declared column types that can never hold a value of their field are refused, all at once, before any charge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import margent
from margent.errors import SchemaError
from margent.privacy import ledger
from margent.schema.codec import Codec
from margent.schema.container import container_faults, stored_type
from margent.schema.fields import (
    Boolean,
    Category,
    Date,
    DateTime,
    Dropped,
    Identifier,
    Integer,
    Number,
    PersonUnit,
    Schema,
    Time,
    Year,
    YearMonth,
)

FIELDS = {
    "string": Category("x", ["a", "b"]),
    "integer": Integer("x", 0, 9),
    "number": Number("x", 0, 9, bins=3),
    "boolean": Boolean("x"),
    "date": Date("x", "2020-01-01", "2020-12-31", bins="month"),
    "naive": DateTime("x", "2020-01-01", "2020-12-31", bins="month"),
    "zoned": DateTime("x", "2020-01-01", "2020-12-31", bins="month", time_zone="UTC"),
    "time": Time("x", "00:00:00", "23:59:59", bins="hour"),
    "year": Year("x", 2000, 2030),
    "yearmonth": YearMonth("x", "2020-01", "2020-12"),
}
ODD = {
    "list": pa.list_(pa.int64()),
    "struct": pa.struct([("a", pa.int64())]),
    "list in a dictionary": pa.dictionary(pa.int8(), pa.list_(pa.string())),
    "duration": pa.duration("s"),
    "interval": pa.month_day_nano_interval(),
}
PLAIN = [pa.int64(), pa.uint8(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.decimal128(9, 2), pa.null()]
SECONDS = {"time": pa.time32("s"), "day": pa.date32(), "wall": pa.timestamp("us"), "instant": pa.timestamp("us", "UTC")}
READABLE = {
    "string": {"time", "day", "wall", "instant"},
    "integer": set(),
    "number": set(),
    "boolean": set(),
    "date": {"day", "wall"},
    "naive": {"day", "wall"},
    "zoned": {"day", "wall", "instant"},
    "time": {"time"},
    "year": {"day", "wall"},
    "yearmonth": {"day", "wall"},
}


def faults_of(field: Any, kind: Any) -> list[str]:
    return [str(fault) for fault in container_faults(Schema([field], unit="row"), pa.schema([("x", kind)]))]


@pytest.mark.parametrize("kind", FIELDS)
def test_what_has_no_code_is_refused_and_plain_types_never(kind: str) -> None:
    for name, odd in ODD.items():
        if (name, kind) == ("duration", "integer"):
            assert faults_of(FIELDS[kind], odd) == [], "a whole number of its unit"
            continue
        (said,) = faults_of(FIELDS[kind], odd)
        assert str(odd) in said
        assert said.startswith("x: ")
        assert "margent.role" in said
    for plain in PLAIN:
        assert faults_of(FIELDS[kind], plain) == []
        assert faults_of(FIELDS[kind], pa.dictionary(pa.int32(), plain)) == []


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("kind", FIELDS)
def test_a_type_is_refused_just_where_the_codec_reads_no_cell_of_it(kind: str, name: str) -> None:
    """2020-05-05 00:00:03 (or three seconds) is a value of every field that can read the type at all."""
    field, arrow = FIELDS[kind], SECONDS[name]
    if kind == "string":
        texts = ["2020-05-05", "2020-05-05T00:00:03", "2020-05-05T00:00:03Z", "00:00:03"]
        field = Category("x", texts)
    seconds = 3 if name == "time" else 1588636803
    cells = pa.array([seconds // 86400 if name == "day" else seconds], pa.int32() if name in ("time", "day") else None)
    column = cells.cast(arrow) if name in ("time", "day") else cells.cast(pa.timestamp("s")).cast(arrow)
    (codes,) = Codec(Schema([field], unit="row")).encode(pa.RecordBatch.from_arrays([column], names=["x"]))
    missing = Codec(Schema([field], unit="row")).layouts[0].null
    read = int(codes[0]) != missing
    assert read == (name in READABLE[kind])
    assert (faults_of(field, arrow) == []) == read


def test_only_columns_that_are_read_are_looked_at() -> None:
    nested = pa.schema([("id", ODD["list"]), ("note", ODD["list"]), ("other", ODD["list"]), ("age", pa.int64())])
    fields = [Identifier("id"), Dropped("note"), Integer("age", 0, 9)]
    assert container_faults(Schema(fields, unit="row"), nested) == []
    by_person = Schema(fields, unit=PersonUnit("id", 2))
    assert [fault.pointer for fault in container_faults(by_person, nested)] == ["id"]


def test_the_stored_type_is_the_innermost() -> None:
    assert stored_type(pa.dictionary(pa.int8(), pa.list_(pa.int8()))) == pa.list_(pa.int8())
    assert stored_type(pa.run_end_encoded(pa.int32(), pa.string())) == pa.string()
    assert stored_type(pa.uuid()) == pa.binary(16)


def as_parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def as_feather(table: pa.Table, folder: Path) -> Any:
    pyarrow.feather.write_feather(table, folder / "t.feather")
    return folder / "t.feather"


def as_polars(table: pa.Table, folder: Path) -> Any:
    return pl.from_arrow(table)


def as_reader(table: pa.Table, folder: Path) -> Any:
    return table.to_reader()


def as_pandas(table: pa.Table, folder: Path) -> Any:
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("wrap", [as_parquet, as_feather, as_polars, as_reader, as_pandas, lambda table, _: table])
def test_every_typed_table_is_refused_with_all_faults_and_nothing_charged(
    wrap: Callable[[pa.Table, Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a charge was made")

    monkeypatch.setattr(ledger.Ledger, "spend", spend)
    moment = pa.array([0], pa.int64())
    table = pa.table(
        {
            "tags": pa.array([["a"]]),
            "span": moment.cast(pa.duration("us")),
            "at": moment.cast(pa.timestamp("us", "UTC")),
            "age": moment.cast(pa.timestamp("us")),
            "sex": ["F"],
        }
    )
    schema = Schema(
        [
            Category("tags", ["a"]),
            Number("span", 0, 9, bins=3),
            Date("at", "2020-01-01", "2020-12-31", bins="month"),
            Integer("age", 0, 9),
            Category("sex", ["F", "M"]),
            Category("ward", ["A", "B"]),
        ],
        unit="row",
    )
    with pytest.raises(SchemaError) as caught:
        margent.synthesize(wrap(table, tmp_path), schema, budget=margent.Budget(1))
    assert [fault.pointer for fault in caught.value.faults] == ["ward", "tags", "span", "at", "age"]
