"""From a table in Spark to a release: the API, the command, what is bought, and what is refused before any charge."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margent
from margent import Budget, Category, Dropped, Identifier, Integer, PersonUnit, Schema, pipeline, synthesize
from margent.cli import run
from margent.errors import MargentError, SchemaError, TableError, UsageError
from margent.privacy import ledger
from margent.privacy.curator import DataCurator
from margent.schema.read import schema_from_json
from margent.tables import spark_session
from margent.tables.address import table_named
from margent.tables.declared import declared_columns
from margent.tables.options import ReadOptions
from margent.tables.source import open_table
from margent.tables.spark_session import spark_name
from tests.spark.tables import FIELDS, SCHEMA, typed_table

SECRET = "canary-93"
AGES = Schema([Integer("age", 0, 99, bins=5)], unit="row")


@pytest.fixture
def no_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a charge was made")

    monkeypatch.setattr(ledger.Ledger, "spend", spend)


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    path = tmp_path / "typed.parquet"
    pq.write_table(typed_table(400), path, coerce_timestamps="us")
    return path


def quiet(count: int, scale_squared: Any) -> Any:
    """No noise at all: what is written then follows the exact counts."""
    return np.zeros(count, np.int64)


def test_a_frame_and_its_file_give_the_same_release(
    spark: Any, typed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "DataCurator", partial(DataCurator, noise=quiet))
    made = [
        synthesize(table, SCHEMA, budget=Budget(epsilon=3), method="independent", rows=50, seed=4)
        for table in (typed, spark.read.parquet(str(typed)))
    ]
    assert made[0].table.equals(made[1].table)
    assert made[1].kind == "spark"
    assert made[1].to_pandas().shape == (50, len(SCHEMA.output_columns))
    folder = made[1].save(tmp_path / "OUT")
    assert (folder / "synthetic.parquet").exists()
    kinds = {field.name: str(field.type) for field in pq.read_schema(folder / "synthetic.parquet")}
    assert kinds["years"] == "int8", "as the table declares it"
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_what_is_bought_and_persons_work_in_one_run(spark: Any) -> None:
    fields = [
        {"name": "town", "type": "string", "margent": {"openSet": {"maxCategories": 6}}},
        {
            "name": "income",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 1000},
            "margent": {"bins": {"quantiles": 4, "grid": 50}},
        },
        {"name": "id", "type": "string", "margent": {"role": "identifier"}},
    ]
    schema = schema_from_json({"fields": fields, "margent": {"unit": {"field": "id", "maxRows": 2, "sizes": True}}})
    frame = spark.range(6000).selectExpr(
        "array('Ulm', 'Bonn', 'Aachen')[id % 3] AS town", "int(id % 700) AS income", "string(id % 2500) AS id"
    )
    budget = Budget(8, "1e-6", delta_for_atoms="1e-7")
    release = synthesize(frame, schema, budget=budget, method="independent", rows=100, seed=1)
    assert set(release.table["town"].to_pylist()) <= {"Aachen", "Bonn", "Ulm", "other", None}
    assert {"Aachen", "Bonn", "Ulm"} <= set(release.table["town"].to_pylist())
    assert release.transcript.sizes is not None
    sizes = release.transcript.sizes.counts
    assert abs(int(sizes[0])) < 300, "2,500 persons have two rows or three"
    assert abs(int(sizes[1]) - 2500) < 300


def test_the_command_reads_by_name(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spark.range(300).selectExpr("int(id % 100) AS age").write.saveAsTable("ages", mode="overwrite")
    drafted = tmp_path / "draft.json"
    assert run(["schema", "draft", "spark:table:ages", "-o", str(drafted)]) == 0
    (field,) = json.loads(drafted.read_text())["fields"]
    assert (field["name"], field["type"]) == ("age", "integer")
    schema = tmp_path / "schema.json"
    field |= {"constraints": {"minimum": 0, "maximum": 99}, "margent": {"bins": 5}}
    schema.write_text(json.dumps({"fields": [field], "margent": {"unit": "row"}}))
    arguments = ["synthesize", "spark:table:ages", "--schema", str(schema), "--epsilon", "1", "--single-release"]
    assert run([*arguments, "--strict", "--rows", "20", "-o", str(tmp_path / "OUT"), "-q"]) == 0
    assert pq.read_table(tmp_path / "OUT" / "synthetic.parquet").num_rows == 20
    assert run(["inspect", "spark:table:ages", "--schema", str(schema), "-o", str(tmp_path / "IN")]) == 0
    inspected = json.loads((tmp_path / "IN" / "INTERNAL-inspection.json").read_text())
    assert inspected["rows"] == 300
    capsys.readouterr()


def test_strict_names_the_columns_the_local_engine_names(spark: Any, typed: Path, no_charge: None) -> None:
    said = []
    for table in (typed, spark.read.parquet(str(typed)).repartition(3)):
        with pytest.raises(SchemaError) as caught:
            synthesize(table, SCHEMA, budget=Budget(epsilon=1), strict=True)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "DATA-DEPENDENT" in said[0]


def test_strict_persons_are_counted_from_the_rows_that_were_checked(spark: Any) -> None:
    schema = Schema([Integer("age", 0, 99, bins=5), Identifier("id")], unit=PersonUnit("id", 3))
    frame = spark.range(500).selectExpr("int(id % 100) AS age", "string(id % 40) AS id")
    release = synthesize(frame, schema, budget=Budget(epsilon=50), method="independent", strict=True)
    assert abs(release.rows - 120) < 40


def test_declared_types_are_those_of_the_file(spark: Any, typed: Path) -> None:
    frame = spark.read.parquet(str(typed))
    names, declared = declared_columns(frame, ReadOptions())
    assert names == tuple(frame.columns)
    assert declared is not None
    file = pq.read_schema(typed)
    told = {name: declared.field(name).type for name in names}
    told |= {"word": pa.string()}
    plain = {pa.dictionary(pa.int32(), pa.string()): pa.string()}
    for name in set(names) - {"gone"}:
        assert told[name] == plain.get(file.field(name).type, file.field(name).type), name


def test_a_cell_on_which_spark_fails_is_in_no_error(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    frame = spark.createDataFrame([(SECRET,)], "word string").selectExpr("CAST(word AS int) AS age")
    with pytest.raises(TableError, match="could not finish a pass") as caught:
        synthesize(frame, AGES, budget=Budget(epsilon=1), rows=5)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert SECRET not in str(seen)
        assert seen.__cause__ is None
        seen = seen.__context__
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err


def test_what_is_no_table_is_refused_before_any_charge(
    spark: Any, tmp_path: Path, no_charge: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(table: Any, kind: type[MargentError], words: str, schema: Schema = AGES) -> None:
        with pytest.raises(kind, match=words):
            synthesize(table, schema, budget=Budget(epsilon=1), rows=5)

    refused("spark://host:7077", UsageError, "address of a cluster")
    refused("spark:csv:/data/people.csv", UsageError, "declares no types")
    refused("spark:", UsageError, "spark:table:NAME")
    refused("spark:table:no_such_table", TableError, "finds no such table")
    refused(f"spark:{tmp_path / 'nothing'}", TableError, "finds no such table")
    refused(spark.readStream.format("rate").load(), UsageError, "streaming")
    refused(spark.range(3), SchemaError, "the schema has this column and the table does not")
    refused(spark.range(3).selectExpr("id AS age", "id AS age"), SchemaError, "occurs 2 times")
    refused(spark.range(3).selectExpr("array(id) AS age"), SchemaError, "Spark's type array<bigint>")
    refused(spark.range(3).selectExpr("current_timestamp() AS age"), SchemaError, "no cell could be read")
    dropped = Schema([Integer("age", 0, 99, bins=5), Dropped("more")], unit="row")
    with open_table(spark.range(3).selectExpr("id AS age", "map(1, id) AS more"), dropped) as opened:
        assert opened.columns == ("age", "more")
    spark.conf.set("spark.margent.snapshot", "nowhere")
    refused(spark.range(3).toDF("age"), UsageError, "spark.margent.snapshot must be one of")
    spark.conf.unset("spark.margent.snapshot")
    monkeypatch.setattr(spark_session, "VERSION", "0.0.other")
    refused(spark.range(3).toDF("age"), TableError, f"they have version {margent.__version__}.*Nothing was charged")


def test_workers_without_margent_are_found_out_before_any_charge(
    spark: Any, no_charge: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: Any) -> Any:
        import margent_of_another_machine  # noqa: F401

    monkeypatch.setattr(spark_session, "_probed", lambda version, batches: absent())
    with pytest.raises(TableError, match="a task that only imports margent failed"):
        synthesize(spark.range(3).toDF("age"), AGES, budget=Budget(epsilon=1), rows=5)


def test_frames_of_other_interfaces_are_told_how_to_go_on() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})()
    with pytest.raises(UsageError, match=r"frame.to_spark\(\)"):
        open_table(frame, AGES)


def test_names_of_other_tables_are_nobodys_of_spark() -> None:
    assert [spark_name(name) for name in ("people.csv", Path("spark:x"), 5, "sparks:x")] == [None] * 4
    assert table_named("spark:s3a://bucket/people") == "spark:s3a://bucket/people"


def test_nothing_of_spark_is_imported_for_other_tables() -> None:
    code = (
        "import sys, pyarrow, margent\n"
        "schema = margent.Schema([margent.Integer('a', 0, 9)], unit='row')\n"
        "margent.synthesize(pyarrow.table({'a': [1]}), schema, budget=margent.Budget(epsilon=1), rows=1)\n"
        "sys.exit(str({'pyspark', 'py4j'} & set(sys.modules) or 0) if {'pyspark', 'py4j'} & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_made_tables_cover_every_type_that_a_schema_can_have() -> None:
    assert {str(field["type"]) for field in FIELDS} >= {"string", "boolean", "integer", "number", "date", "datetime"}
    assert Category("x", ["a"]).type == "string"
