"""Tables that come with types: the schema decides which types the synthetic table has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margent
from tests.cases.made_up import REQUIRED, listed, ranged, schema_file


def typed_frame(rows: int = 200) -> pd.DataFrame:
    place = np.arange(rows)
    moments = pd.to_datetime("2022-03-27T00:30:00Z") + pd.to_timedelta(place, unit="D")
    words = ["never", "rarely", "often"]
    return pd.DataFrame(
        {
            "small": pd.Series([None if row % 5 == 0 else row % 8 for row in place], dtype="UInt8"),
            "signed": pd.Series(place % 11 - 5, dtype="Int16"),
            "half": np.where(place % 7 == 0, np.nan, place % 9 / 2).astype("float32"),
            "flag": pd.Series([None if row % 6 == 0 else bool(row % 2) for row in place], dtype="boolean"),
            "word": pd.Series([None if row % 9 == 0 else "uv"[row % 2] for row in place], dtype="string"),
            "often": pd.Categorical([words[1 + row % 2] for row in place], categories=words, ordered=True),
            "mixed": pd.Series([(5, 5.0, "5", "5A")[row % 4] for row in place], dtype=object),
            "gone": np.full(rows, np.nan),
            "at": pd.Series(moments).dt.tz_convert("Europe/Vienna"),
        }
    )


TYPED = [
    ranged("small", "integer", 0, 9),
    ranged("signed", "integer", -5, 5, required=True),
    ranged("half", "number", 0, 5, bins=10, decimals=1),
    {"name": "flag", "type": "boolean"},
    listed("word", ["u", "v"]),
    listed("often", ["never", "rarely", "often"], categoriesOrdered=True, constraints=REQUIRED),
    listed("mixed", ["5", "5A"], constraints=REQUIRED),
    ranged("gone", "integer", 0, 3),
    ranged("at", "datetime", "2022-01-01T00:00:00Z", "2022-12-31T23:59:59Z", bins="month", timeZone="Europe/Vienna"),
]


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet"])
def test_typed_tables_get_their_types_from_the_schema(kind: str, tmp_path: Path) -> None:
    frame, schema = typed_frame(), margent.read_schema(schema_file(tmp_path, TYPED))
    table: Any = frame
    if kind != "pandas":
        # Arrow has no columns of mixed objects: there the mixed one is a number.
        numbers = pa.Table.from_pandas(frame.assign(mixed=5.0), preserve_index=False)
        table = pl.from_arrow(numbers) if kind == "polars" else tmp_path / "t.parquet"
        if kind == "parquet":
            pq.write_table(numbers, table)
    release = margent.synthesize(table, schema, budget=margent.Budget(8), rows=500, seed=2)
    made = release.to_pandas()
    kinds = {name: str(dtype) for name, dtype in made.dtypes.items()}
    assert kinds["small"] == kinds["signed"] == kinds["gone"] == "Int64"
    assert kinds["half"] == "float64"
    assert kinds["flag"] == "boolean"
    assert made["often"].dtype == frame["often"].dtype
    assert kinds["at"].endswith("Europe/Vienna]")
    assert release.table.schema.field("signed").nullable is False
    assert made["signed"].between(-5, 5).all()
    assert made["gone"].isna().mean() > 0.8
    assert 0.05 < made["small"].isna().mean() < 0.4
    assert set(made["mixed"]) <= {"5", "5A"}
    inside = made["at"].dropna().dt.tz_convert("UTC")
    assert inside.between(pd.Timestamp("2022-01-01", tz="UTC"), pd.Timestamp("2023-01-01", tz="UTC")).all()
