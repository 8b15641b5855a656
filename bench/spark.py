"""Spark local[2] against the local engine: all pairs of a Parquet file, equal to the last count.

Run: python bench/spark.py [--rows 1000000] [--columns 30] [--parts 8] [--passes 1] [--persons] [--both]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from margent.counts.engines import counts_of, kept_rows
from margent.schema.fields import Category, Identifier, Integer, PersonUnit, Schema
from margent.tables.source import open_table

PART_ROWS = 250_000


def schema_of(columns: int, *, persons: bool) -> Schema:
    fields: list[Any] = [
        Integer(f"c{place:02}", 0, 999, bins=20)
        if place % 3
        else Category(f"c{place:02}", [f"v{n}" for n in range(12)])
        for place in range(columns)
    ]
    return Schema([*fields, Identifier("id")], unit=PersonUnit("id", 3) if persons else "row")


def write(folder: Path, schema: Schema, rows: int, parts: int) -> None:
    for part in range(parts):
        rng = np.random.default_rng(part)
        name = folder / f"part-{part:03}.parquet"
        left = rows * (part + 1) // parts - rows * part // parts
        writer: pq.ParquetWriter | None = None
        while left > 0:
            size = min(left, PART_ROWS)
            table = pa.table({field.name: cells(field, size, rng) for field in schema.fields})
            writer = writer or pq.ParquetWriter(name, table.schema)
            writer.write_table(table)
            left -= size
        if writer is not None:
            writer.close()


def cells(field: Any, rows: int, rng: np.random.Generator) -> pa.Array:
    if field.type == "integer":
        return pa.array(rng.integers(0, 1000, rows), pa.int32())
    if field.role == "identifier":
        return pa.array(rng.integers(0, max(1, rows // 2), rows)).cast(pa.string())
    return pa.array([f"v{n}" for n in range(13)]).take(pa.array(rng.integers(0, 13, rows)))


def spent_by_all() -> float:
    """CPU seconds of this process and all below it, Java and Python workers included."""
    tick, found = os.sysconf("SC_CLK_TCK"), {os.getpid(): 0.0}
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / tick
    grown = True
    while grown:
        below = {pid for pid, (parent, _) in stats.items() if parent in found and pid not in found}
        found |= dict.fromkeys(below, 0.0)
        grown = bool(below)
    return sum(stats[pid][1] for pid in found if pid in stats)


def timed(name: str, count: Callable[[], list[Any]]) -> tuple[list[Any], float, float]:
    wall, cpu = time.perf_counter(), spent_by_all()
    tables = count()
    wall, cpu = time.perf_counter() - wall, spent_by_all() - cpu
    print(f"{name}: {wall:.1f} s, {cpu:.1f} CPU seconds", flush=True)
    return tables, wall, cpu


def session() -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]").appName("bench")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=30)
    options.add_argument("--parts", type=int, default=8)
    options.add_argument("--passes", type=int, default=1, help="requests for the same tables")
    options.add_argument("--persons", action="store_true", help="at most three rows of each person")
    options.add_argument("--both", action="store_true", help="also by Spark's own rows, as tables that are not plain")
    chosen = options.parse_args()
    schema = schema_of(chosen.columns, persons=chosen.persons)
    names = [field.name for field in schema.modelled]
    pairs = [(), *((name,) for name in names), *itertools.combinations(names, 2)]
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name) / "table", Path(name) / "small"
        for made, rows in ((folder, chosen.rows), (small, 1000 * chosen.parts)):
            made.mkdir()
            write(made, schema, rows, chosen.parts)

        def count(table: Any) -> list[Any]:
            with open_table(table, schema) as source:
                rows = kept_rows(source, schema, chosen.rows, None) or source
                counts = counts_of(rows, schema)
                return [counts.count(pairs) for _ in range(chosen.passes)][-1]

        spark = session()
        timed("spark, starting its workers", lambda: count(spark.read.parquet(str(small))))
        local, wall, cpu = timed("local engine", lambda: count(folder))
        far, spark_wall, spark_cpu = timed("spark local[2]", lambda: count(spark.read.parquet(str(folder))))
        same = all(np.array_equal(a, b) for a, b in zip(local, far, strict=True))
        told = (
            f"{int(local[0]):,} and {int(far[0]):,} rows kept" if chosen.persons else f"equal to the last count: {same}"
        )
        print(f"{len(pairs)} tables x {chosen.rows:,} rows: {spark_wall / wall:.1f} times as long, {told}")
        print(f"CPU seconds: {spark_cpu / cpu:.1f} times as many")
        if chosen.both:
            spark.conf.set("spark.margent.wholeFileBytes", "0")
            count(spark.read.parquet(str(small)))
            _, rows_wall, rows_cpu = timed("spark local[2], its rows", lambda: count(spark.read.parquet(str(folder))))
            print(f"{rows_wall / wall:.1f} times as long, {rows_cpu / cpu:.1f} times the CPU seconds")


if __name__ == "__main__":
    main()
