"""The same through Spark Connect, where the driver is another process and only DataFrames cross."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.conftest import why_not

PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from pyspark.sql import SparkSession
from margent import Budget, Identifier, Integer, PersonUnit, Schema, TableError, synthesize
from margent.counts.engines import counts_of, kept_rows
from margent.tables.source import open_table
from tests.spark.tables import SCHEMA, typed_table
import pyarrow.parquet as pq

file = sys.argv[1]
pq.write_table(typed_table(200), file, coerce_timestamps="us")
builder = SparkSession.builder.remote("local[2]")
for key, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.local.dir": sys.argv[2],
                   "spark.sql.artifact.isolation.enabled": "false"}.items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
assert type(session).__module__.startswith("pyspark.sql.connect")
found = []
ways = []
for table in (file, session.read.parquet(file), f"spark:{file}"):
    with open_table(table, SCHEMA) as source:
        ways.append(type(getattr(source, "form", None)).__name__)
        counts = counts_of(source, SCHEMA)
        names = counts.domain.names
        found.append(counts.count([(), *((name,) for name in names), names[:2]]))
assert all(np.array_equal(one, other) for each in found[1:] for one, other in zip(found[0], each, strict=True))
assert ways == ["NoneType", "Columns", "WholeFiles"], ways
keyed = sys.argv[2] + "/keyed"
session.range(9).selectExpr("int(id) AS age", "id % 2 AS part").write.partitionBy("part").parquet(keyed)
with open_table(f"spark:{keyed}", Schema([Integer("age", 0, 9), Integer("part", 0, 1)], unit="row")) as source:
    assert type(source.form).__name__ == "Columns"
persons = Schema([Integer("age", 0, 99, bins=5), Identifier("id")], unit=PersonUnit("id", 3))
rows = session.range(500).selectExpr("int(id % 100) AS age", "string(id % 40) AS id")
with open_table(rows, persons) as source:
    kept = kept_rows(source, persons, None, None)
    assert int(counts_of(kept, persons).count([()])[0]) == 120
    assert kept.sizes().tolist() == [0, 0, 40]
words = session.createDataFrame([("canary-93",)], "word string").selectExpr("CAST(word AS int) AS age")
try:
    synthesize(words, Schema([Integer("age", 0, 99, bins=5)], unit="row"), budget=Budget(epsilon=1), rows=5)
except TableError as error:
    assert "canary" not in str(error) and error.__context__ is None and error.__cause__ is None
    print("as it should be")
session.stop()
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")
@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("grpc", "grpc_status", "zstandard")),
    reason="Spark Connect's own packages are not installed (pyspark[connect])",
)
def test_counts_persons_and_faults_through_spark_connect(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "t.parquet"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "as it should be" in done.stdout
