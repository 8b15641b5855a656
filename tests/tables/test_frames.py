"""The caller's kind of frame keeps types, order of categories and missing cells."""

from __future__ import annotations

import datetime

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from margent.errors import UsageError
from margent.tables.frames import to_kind

TABLE = pa.table(
    {
        "i": pa.array([1, None, 3]),
        "u": pa.array([1, None, 3], pa.uint8()),
        "b": pa.array([True, None, False]),
        "f": pa.array([0.5, None, 1.5]),
        "s": pa.array(["x", None, "z"]),
        "d": pa.array([datetime.date(2020, 1, 2), None, datetime.date(1850, 1, 1)]),
        "t": pa.array([datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), None, None], pa.timestamp("us", "UTC")),
        "c": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), ["lo", "hi"], ordered=True),
    }
)


def test_pandas() -> None:
    frame = to_kind(TABLE, "pandas")
    assert isinstance(frame, pd.DataFrame)
    assert [str(dtype) for dtype in frame.dtypes[["i", "u", "b", "f", "c"]]] == [
        "Int64",
        "UInt8",
        "boolean",
        "float64",
        "category",
    ]
    assert frame["d"].dtype.kind == "M"
    assert frame["d"][2] == pd.Timestamp("1850-01-01")
    assert str(frame["t"].dtype).endswith("UTC]")
    assert list(frame["c"].cat.categories) == ["lo", "hi"]
    assert frame["c"].cat.ordered
    assert frame.isna().sum().tolist() == [1, 1, 1, 1, 1, 1, 2, 1]
    assert len(to_kind(TABLE.slice(0, 0), "pandas")) == 0


def test_polars_pyarrow_and_duckdb() -> None:
    frame = to_kind(TABLE, "polars")
    assert isinstance(frame, pl.DataFrame)
    assert frame["i"].to_list() == [1, None, 3]
    assert frame["c"].to_list() == ["hi", None, "lo"]
    assert to_kind(TABLE, "pyarrow") is TABLE
    relation = to_kind(TABLE, "duckdb")
    assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert relation.aggregate("sum(i), count(*)").fetchall() == [(4, 3)]


def test_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="pandas, polars, pyarrow, duckdb"):
        to_kind(TABLE, "spark")
