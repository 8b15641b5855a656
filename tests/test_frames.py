"""Any Arrow stream comes in, and the caller's kind goes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margent import (
    Boolean,
    Budget,
    BudgetError,
    Category,
    Integer,
    Schema,
    SchemaError,
    TableSynthesizer,
    UsageError,
    synthesize,
)

SCHEMA = Schema(
    [Category("sex", ["F", "M"], ordered=True), Integer("age", 0, 30, required=False), Boolean("smoker")], unit="row"
)


def arrow_table(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(1)
    age = [None if row % 9 == 0 else int(value) for row, value in enumerate(rng.integers(0, 31, rows))]
    return pa.table(
        {
            "sex": pa.array(np.array(["F", "M"])[rng.integers(0, 2, rows)]),
            "age": pa.array(age, pa.int64()),
            "smoker": pa.array(rng.integers(0, 2, rows).astype(bool)),
        }
    )


def as_kind(kind: str) -> Any:
    table = arrow_table()
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    return table


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_the_callers_kind_comes_back(kind: str) -> None:
    frame = as_kind(kind)
    made = TableSynthesizer(SCHEMA, epsilon=5).fit(frame).sample(50, seed=1)
    assert type(made) is type(frame)
    columns = list(made.columns) if kind != "pyarrow" else made.column_names
    assert columns == ["sex", "age", "smoker"]
    assert len(made) == 50


def test_pandas_types_come_from_the_schema() -> None:
    release = synthesize(as_kind("pandas"), SCHEMA, budget=Budget(epsilon=5), rows=400, seed=1)
    frame = release.to_pandas()
    assert str(frame["age"].dtype) == "Int64"
    assert frame["age"].isna().any()
    assert list(frame["sex"].cat.categories) == ["F", "M"]
    assert frame["sex"].cat.ordered
    assert str(frame["smoker"].dtype).startswith("bool")


def test_a_second_fit_is_refused_and_sampling_is_free() -> None:
    synthesizer = TableSynthesizer(SCHEMA, epsilon=1)
    with pytest.raises(UsageError, match="fit"):
        synthesizer.sample(3)
    synthesizer.fit(arrow_table())
    assert synthesizer.sample(9, seed=2).equals(synthesizer.sample(9, seed=2))
    with pytest.raises(BudgetError, match="spent"):
        synthesizer.fit(arrow_table())


def test_a_stream_that_can_be_read_once_is_enough() -> None:
    reader = arrow_table().to_reader()
    release = synthesize(reader, SCHEMA, budget=Budget(epsilon=1), rows=5)
    assert release.table.num_rows == 5


@pytest.mark.parametrize("thing", [3, None, [1, 2], {"a": 1}, object()])
def test_what_is_no_table_is_refused(thing: object) -> None:
    with pytest.raises(UsageError):
        synthesize(thing, SCHEMA, budget=Budget(epsilon=1))


@pytest.mark.parametrize(
    ("schema", "budget", "words"),
    [("schema.json", Budget(epsilon=1), r"read_schema"), (SCHEMA, 1, r"Budget\(epsilon=1\)"), (None, None, "schema")],
)
def test_what_is_no_schema_and_no_budget_is_refused_with_the_next_step(schema: Any, budget: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        synthesize(arrow_table(), schema, budget=budget)
    with pytest.raises(SchemaError, match="one text"):
        Category("sex", "FM")


def test_a_release_shows_itself_briefly_and_gives_arrow_where_the_table_was_a_file(tmp_path: Path) -> None:
    pq.write_table(arrow_table(), tmp_path / "t.parquet")
    release = synthesize(tmp_path / "t.parquet", SCHEMA, budget=Budget(epsilon=1), rows=5)
    assert len(repr(release)) < 300
    assert "5 synthetic rows" in repr(release)
    assert type(release.to_kind()) is pa.Table
    assert list(release.to_kind("polars").columns) == ["sex", "age", "smoker"]
