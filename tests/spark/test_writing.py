"""Synthetic tables drawn by Spark: the release's own rows, one block a task, whatever happens to tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margent import Budget, Category, Integer, Release, Schema, from_transcript, synthesize
from margent.errors import UsageError
from margent.release import spark as drawing
from margent.synthesizers.blocks import block_rows
from tests.spark.tables import SCHEMA, typed_table
from tests.spark.test_counts import dying

BUDGET = Budget(epsilon=5)
SMALL = Schema([Category("sex", ["F", "M"]), Integer("age", 0, 99, bins={"width": 10})], unit="row")


def small(rows: int) -> Release:
    rng = np.random.default_rng(1)
    table = pa.table({"sex": rng.choice(["F", "M"], 500), "age": rng.integers(0, 100, 500)})
    return synthesize(table, SMALL, budget=BUDGET, method="independent", rows=rows, seed=3)


def spelled(table: pa.Table) -> list[list[str]]:
    return [[str(cell) for cell in column.to_pylist()] for column in table.columns]


def test_blocks_are_drawn_a_task_each_and_again_where_a_task_is_killed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = block_rows(2) + 100
    release = small(rows)
    assert release.records.blocks.count == 2
    marker = tmp_path / "killed"
    monkeypatch.setattr(drawing, "drawn_blocks", dying(marker, drawing.drawn_blocks))
    frame = release.to_spark(spark)
    assert frame.rdd.getNumPartitions() == 2
    frame.write.parquet(str(tmp_path / "drawn"))
    assert marker.exists()
    assert len(list((tmp_path / "drawn").glob("part-*.parquet"))) == 2, "a file a block"
    found = spark.read.parquet(str(tmp_path / "drawn")).groupBy("sex", "age").count().toArrow()
    made = pa.concat_tables(list(release.blocks()))
    made = made.set_column(0, "sex", made["sex"].cast(pa.string()))
    expected = made.group_by(["sex", "age"]).aggregate([([], "count_all")]).rename_columns(["sex", "age", "count"])
    assert rows_of(found) == rows_of(expected)


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    return sorted(zip(*spelled(table), strict=True))


def test_every_type_is_drawn_as_it_is_written(spark: Any) -> None:
    release = synthesize(typed_table(300), SCHEMA, budget=BUDGET, method="independent", rows=80, seed=2)
    drawn = release.to_spark(spark)
    kinds = dict(drawn.dtypes)
    assert (kinds["sex"], kinds["born"], kinds["wall"]) == ("string", "date", "timestamp_ntz")
    assert kinds["instant"] == "timestamp"
    found, expected = drawn.toArrow(), release.table
    assert found.column_names == expected.column_names
    for name in found.column_names:
        if name == "instant":
            moments = [column.cast(pa.timestamp("us", "UTC")) for column in (found[name], expected[name])]
            assert moments[0].equals(moments[1])
        else:
            assert spelled(found.select([name])) == spelled(expected.select([name])), name


def test_records_under_conditions_and_empty_tables_are_frames_too(spark: Any) -> None:
    release = small(50)
    asked = from_transcript(
        release.transcript, budget=BUDGET, synthesizer="independent", where=["sex=F"], rows=7, seed=1
    )
    assert {row.sex for row in asked.to_spark(spark).collect()} == {"F"}
    assert small(0).to_spark(spark).count() == 0


def test_without_a_session_there_is_no_frame() -> None:
    with pytest.raises(UsageError, match="no Spark session"):
        small(5).to_spark("local[2]")
