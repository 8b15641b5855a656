"""Counts of tables in Spark are those of the local engine, to the last one, whatever happens to tasks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.counts import spark as spark_counts
from margent.counts import spark_people, spark_tables
from margent.counts.contribution import KeptRows
from margent.counts.engines import counts_of, kept_rows, texts_of
from margent.counts.spark import SparkCounts
from margent.counts.spark_people import KeptSparkRows
from margent.errors import MargentError, PlanError, TableError
from margent.schema.codec import Codec
from margent.schema.domain import Merge
from margent.schema.fields import Category, Identifier, Integer, PersonUnit, Schema
from margent.schema.read import schema_from_json
from margent.schema.settled import grid_schema
from margent.tables.source import open_table
from tests.spark.tables import SCHEMA, typed_table
from tests.spark.test_tasks import KEYS, kept_by_definition, nulls_first

NAMES = SCHEMA.columns_read
CLIQUES = [(), *((name,) for name in NAMES), *itertools.combinations(NAMES, 2)]


def written(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path, coerce_timestamps="us")
    return path


def counts(table: Any, schema: Schema = SCHEMA, cliques: Any = CLIQUES) -> list[Any]:
    with open_table(table, schema) as source:
        kept = kept_rows(source, schema, None, None)
        return counts_of(kept or source, schema).count(cliques)


def all_equal(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_all_ways_of_naming_a_table_count_as_the_local_engine_does(spark: Any, tmp_path: Path) -> None:
    path = written(typed_table(300), tmp_path / "t.parquet")
    expected = counts(path)
    frame = spark.read.parquet(str(path))
    assert all_equal(counts(f"spark:{path}"), expected)
    # Rows in many parts, columns in another order.
    order = np.random.default_rng(2).permutation(len(frame.columns))
    numbered = frame.toDF(*(f"n{place}" for place in range(len(frame.columns))))
    turned = numbered.select(*(f"n{place}" for place in order)).toDF(*(frame.columns[place] for place in order))
    assert all_equal(counts(turned.repartition(7)), expected)


def test_names_that_spark_takes_for_one_another_are_told_apart(spark: Any) -> None:
    names = ["a.b", "A.B", "a.b`", "`a"]
    schema = Schema([Integer(name, 0, 9) for name in names], unit="row")
    frame = spark.range(10).selectExpr("id", "9 - id", "id % 2", "id % 5").toDF(*names)
    found = counts(frame, schema, [(name,) for name in names])
    assert [table[:10].tolist() for table in found] == [[1] * 10, [1] * 10, [5, 5, *[0] * 8], [2] * 5 + [0] * 5]


@given(st.integers(0, 60), st.integers(0, 999), st.integers(1, 4))
@settings(deadline=None, max_examples=3)
def test_made_tables_count_the_same(spark: Any, tmp_path_factory: Any, rows: int, seed: int, parts: int) -> None:
    path = written(typed_table(rows, seed), tmp_path_factory.mktemp("made") / "t.parquet")
    frame = spark.read.parquet(str(path)).repartition(parts)
    assert all_equal(counts(frame), counts(path))


def test_merges_passes_and_many_chunks_change_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema(
        [Integer("a", 0, 699, bins={"width": 1}), Integer("b", 0, 699, bins={"width": 1}), Category("c", ["x", "y"])],
        unit="row",
    )
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.integers(0, 700, 5000), "b": rng.integers(0, 700, 5000), "c": ["x", "y"] * 2500})
    path = written(table, tmp_path / "t.parquet")
    merges = {"half": Merge("a", tuple(code // 2 for code in range(Codec(schema).domain.size("a"))))}
    cliques = [("a", "b"), ("c",), ("half", "c"), ("b", "a"), ("a",), ()]
    monkeypatch.setattr(spark_counts, "_STREAMED_CELLS", 2**17)
    with open_table(path, schema) as local, open_table(f"spark:{path}", schema) as far:
        expected = counts_of(local, schema).count(cliques, merges)
        found = SparkCounts(far, schema, task_cells=1500)
        assert all_equal(found.count(cliques, merges), expected)
        with pytest.raises(PlanError, match="the cap is 1000"):
            SparkCounts(far, schema, max_cells=1000).count([("a", "b")])
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0, "nothing is left on the executors"
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "10000", "the session is as it was"


def dying(marker: Path, task: Any) -> Any:
    """The task, whose first attempt hands on what it made and then kills its worker."""

    def run(*arguments: Any) -> Iterator[pa.RecordBatch]:
        yield from task(*arguments)
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os._exit(1)

    return run


@pytest.mark.parametrize("stage", ["coded_rows", "counted_tables", "summed_chunks"])
def test_a_task_that_is_killed_and_tried_again_counts_once(
    stage: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(typed_table(200), tmp_path / "t.parquet")
    marker = tmp_path / "killed"
    monkeypatch.setattr(spark_counts, stage, dying(marker, getattr(spark_tables, stage)))
    cliques = [(), ("sex",), ("sex", "age")]
    frame = spark.read.parquet(str(path)).repartition(3)
    found = counts(frame, cliques=cliques)
    assert all_equal(found, counts(path, cliques=cliques))
    assert marker.exists(), "a task was killed"


PERSONS = Schema([Category("cell", [f"{n}" for n in range(9)]), Identifier("id")], unit=PersonUnit("id", 2))


def people(rows: int, seed: int) -> tuple[list[str], list[str | None]]:
    rng = np.random.default_rng(seed)
    ids = [f"p{n}" if n else "" for n in rng.integers(0, 40, rows)]
    return ids, [None if n == 9 else f"{n}" for n in rng.integers(0, 10, rows)]


def people_file(path: Path, ids: list[str], cells: list[str | None]) -> Path:
    return written(pa.table({"id": pa.array(ids), "cell": pa.array(cells, pa.string())}), path)


COLUMNS = ("id", "cell")


def bounded(frame: Any, most: int, schema: Schema = PERSONS) -> tuple[list[Any], list[int], list[Any]]:
    """Kept rows, sizes, and counts of a frame of persons, under fixed keys."""
    schema = replace(schema, unit=PersonUnit("id", most))
    with open_table(frame, schema) as source:
        kept = kept_rows(source, schema, None, None)
        assert isinstance(kept, (KeptSparkRows, KeptRows))
        kept.identity, kept.key = replace(kept.identity, key=KEYS[0]), KEYS[1]
        tables = counts_of(kept, schema).count([(), ("cell",)])
        rows = [pair for batch in kept.batches() for pair in zip(*(batch[n].to_pylist() for n in COLUMNS), strict=True)]
        return sorted(rows, key=repr), kept.sizes().tolist(), tables


def test_kept_rows_are_those_of_the_definition_in_any_order_of_the_table(spark: Any, tmp_path: Path) -> None:
    ids, cells = people(400, 1)
    cells = [cell or "0" for cell in cells]
    frame = spark.read.parquet(str(people_file(tmp_path / "p.parquet", ids, cells)))
    rows, sizes, tables = bounded(frame.repartition(5), 2)
    assert rows == kept_by_definition(ids, cells, 2, KEYS)
    assert sum(sizes) == len(set(ids) - {""})
    assert sum(size * count for size, count in enumerate(sizes, start=1)) == tables[0] == len(rows)
    again, _, _ = bounded(frame.orderBy("cell", ascending=False).coalesce(1), 2)
    assert again == rows


def test_the_local_engine_keeps_the_same_rows_of_a_file_that_is_in_the_order_of_its_cells(
    spark: Any, tmp_path: Path
) -> None:
    ids, cells = people(500, 4)
    order = sorted(range(len(cells)), key=lambda row: nulls_first(cells[row]))
    ids, cells = [ids[row] for row in order], [cells[row] for row in order]
    path = people_file(tmp_path / "p.parquet", ids, cells)
    for most in (1, 3, 12):
        local, far = bounded(path, most), bounded(spark.read.parquet(str(path)).repartition(4), most)
        assert far[:2] == local[:2]
        assert all_equal(far[2], local[2])
        assert len(far[0]) < sum(1 for name in ids if name), "some have more"


def test_where_nobody_has_too_many_rows_all_rows_with_an_id_are_counted(spark: Any, tmp_path: Path) -> None:
    ids, cells = people(200, 2)
    path = people_file(tmp_path / "p.parquet", ids, cells)
    schema = replace(PERSONS, unit=PersonUnit("id", 200))
    local = counts(path, schema, [(), ("cell",)])
    assert all_equal(counts(f"spark:{path}", schema, [(), ("cell",)]), local)
    assert local[0] == sum(1 for name in ids if name)


def test_a_killed_task_keeps_the_same_rows(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, cells = people(300, 3)
    cells = [cell or "0" for cell in cells]
    frame = spark.read.parquet(str(people_file(tmp_path / "p.parquet", ids, cells))).repartition(4)
    for stage in ("named_persons", "bounded_rows"):
        marker = tmp_path / stage
        with monkeypatch.context() as patch:
            patch.setattr(spark_people, stage, dying(marker, getattr(spark_people, stage)))
            rows, _, _ = bounded(frame, 3)
        assert marker.exists()
        assert rows == kept_by_definition(ids, cells, 3, KEYS)


def test_grids_and_texts_are_those_of_the_local_engine(spark: Any, tmp_path: Path) -> None:
    fields = [
        {"name": "town", "type": "string", "margent": {"openSet": True}},
        {
            "name": "income",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 1000},
            "margent": {"bins": {"quantiles": 5, "grid": 100}},
        },
    ]
    schema = schema_from_json({"fields": fields, "margent": {"unit": "row"}})
    rng = np.random.default_rng(3)
    towns = [
        None if n == 7 else ["Ulm", "Ulm ", "", "é", "two\nlines", "x" * 300, f"only {place}", "B"][n]
        for place, n in enumerate(rng.integers(0, 8, 300))
    ]
    path = written(pa.table({"town": towns, "income": rng.integers(-9, 1100, 300)}), tmp_path / "t.parquet")
    found = []
    for table in (path, spark.read.parquet(str(path)).repartition(4)):
        with open_table(table, schema) as source:
            grid = counts_of(source, grid_schema(schema)).count([("income",)])
            blocks = list(texts_of(source, schema).texts("town"))
            texts = {text: int(count) for names, each in blocks for text, count in zip(names, each, strict=True)}
            assert sum(len(names) for names, _ in blocks) == len(texts), "every text comes once"
            found.append((grid[0].tolist(), texts))
    assert found[0] == found[1]
    assert len(found[0][1]) > 20


def test_a_frame_that_draws_anew_whenever_it_is_computed_is_drawn_once(spark: Any) -> None:
    schema = Schema([Integer("a", 0, 255)], unit="row")
    frame = spark.range(500).selectExpr("int(rand() * 256) AS a")
    first, second = (frame.selectExpr("sum(a)").first()[0] for _ in range(2))
    with open_table(frame, schema) as source:
        found = counts_of(source, schema)
        assert all_equal(found.count([("a",)]), found.count([("a",)]))
    unseeded = spark.range(500).selectExpr("int(pmod(xxhash64(uuid()), 256)) AS a")
    with open_table(unseeded, schema) as source:
        source.several = True  # type: ignore[attr-defined]
        looks = [counts_of(source, schema).count([("a",)]) for _ in range(2)]
        assert all_equal(*looks)
    assert first == second, "rand() has a seed of its own once it is planned"


def test_the_rows_are_not_computed_twice_by_mistake(spark: Any) -> None:
    schema = Schema([Integer("a", 0, 9)], unit="row")
    with open_table(spark.range(5).toDF("a"), schema) as source:
        counts_of(source, schema).count([("a",)])
        with pytest.raises(MargentError, match="looked at once"):
            counts_of(source, schema).count([("a",)])
        with pytest.raises(MargentError, match="looked at once"):
            list(source.batches())


def test_a_snapshot_that_is_lost_ends_the_run(spark: Any) -> None:
    schema = Schema([Integer("a", 0, 9)], unit="row")
    with open_table(spark.range(5).toDF("a"), schema) as source:
        found = counts_of(source, schema)
        found.count([("a",)])
        for held in list(spark.sparkContext._jsc.getPersistentRDDs().values()):
            held.unpersist(True)
        with pytest.raises(TableError, match="could not finish a pass") as caught:
            found.count([("a",)])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_reliable_checkpoint_is_deleted_at_the_end(spark: Any) -> None:
    schema = Schema([Integer("a", 0, 9)], unit="row")
    folder = Path(spark.conf.get("spark.checkpoint.dir"))
    spark.conf.set("spark.margent.snapshot", "checkpoint")
    try:
        with open_table(spark.range(50).selectExpr("id % 10 AS a"), schema) as source:
            assert counts_of(source, schema).count([("a",)])[0].tolist()[:10] == [5] * 10
            assert list(folder.rglob("rdd-*"))
        assert not list(folder.rglob("rdd-*"))
    finally:
        spark.conf.unset("spark.margent.snapshot")
