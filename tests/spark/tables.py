"""A table of every type that Spark and Parquet share, with cells that no schema value stands for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from margent.schema.fields import Schema
from margent.schema.read import schema_from_json

FIELDS: list[dict[str, Any]] = [
    {"name": "sex", "type": "string", "categories": ["F", "M", "é"]},
    {"name": "a.b`c", "type": "string", "categories": ["x", "y"]},
    {"name": "flag", "type": "boolean"},
    {
        "name": "age",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 99},
        "margent": {"bins": {"width": 20}},
    },
    {"name": "years", "type": "integer", "constraints": {"minimum": 0, "maximum": 5}},
    {"name": "price", "type": "number", "constraints": {"minimum": 0, "maximum": 10}, "margent": {"bins": 4}},
    {"name": "rate", "type": "number", "constraints": {"minimum": -1, "maximum": 1}, "margent": {"bins": 4}},
    {
        "name": "born",
        "type": "date",
        "constraints": {"minimum": "1990-01-01", "maximum": "1999-12-31"},
        "margent": {"bins": "year"},
    },
    {
        "name": "wall",
        "type": "datetime",
        "constraints": {"minimum": "2020-01-01T00:00:00", "maximum": "2020-12-31T23:59:59"},
        "margent": {"bins": 6},
    },
    {
        "name": "instant",
        "type": "datetime",
        "constraints": {"minimum": "2020-01-01T00:00:00", "maximum": "2020-12-31T23:59:59"},
        "margent": {"bins": 6, "timeZone": "Europe/Berlin"},
    },
    {"name": "stamp", "type": "string", "categories": ["2020-03-29 00:30:00.000000Z", "2020-03-29T00:30:00Z"]},
    {"name": "word", "type": "string", "categories": ["low", "high"]},
    {"name": "number", "type": "string", "categories": ["1", "2", "3"]},
    {"name": "gone", "type": "string", "margent": {"role": "drop"}},
]
SCHEMA: Schema = schema_from_json({"fields": FIELDS, "margent": {"unit": "row"}})


def typed_table(rows: int, seed: int = 1) -> pa.Table:
    """Rows of every type: values of the schema, others, out of bounds, and missing ones."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[place] for place in rng.integers(0, len(values), rows)], kind)

    days = [dt.date(1989, 12, 31), dt.date(1990, 1, 1), dt.date(1995, 6, 5), dt.date(2040, 1, 1), None]
    start = dt.datetime(2020, 1, 1)
    moments = [start + dt.timedelta(hours=int(hour)) for hour in rng.integers(-100, 9000, 40)]
    columns = {
        "gone": pa.array([[1, 2]] * rows, pa.list_(pa.int64())),
        "sex": some(["F", "M", "é", "m", "", "F ", None, "\0"], pa.string()),
        "a.b`c": some([b"x", b"y", b"\xff\xfe", b""], pa.binary()),
        "flag": some([True, False, None], pa.bool_()),
        "years": some([0, 1, 5, 6, -1, None], pa.int8()),
        "age": some([0, 19, 20, 99, 100, -7, 2**40, None], pa.int64()),
        "price": some([Decimal("0.00"), Decimal("2.50"), Decimal("9.99"), Decimal("99.10"), None], pa.decimal128(9, 2)),
        "rate": some([0.0, -0.0, 0.5, -1.0, float("nan"), float("inf"), None], pa.float64()),
        "born": some(days, pa.date32()),
        "wall": some([*moments, None], pa.timestamp("us")),
        "instant": some([*moments, None], pa.timestamp("us", "UTC")),
        "stamp": some([dt.datetime(2020, 3, 29, 0, 30), dt.datetime(2020, 3, 29, 1, 30)], pa.timestamp("us", "UTC")),
        "word": some(["low", "high", "other"], pa.string()).dictionary_encode(),
        "number": some([1, 2, 3, 4, None], pa.int16()),
    }
    return pa.table(columns)
