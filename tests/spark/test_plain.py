"""Which tables are read as whole files, and that these count as Spark's own rows and the local engine's do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margent import Budget, synthesize
from margent.counts import spark as spark_counts
from margent.counts import spark_tables
from margent.counts.engines import counts_of
from margent.errors import TableError, UsageError
from margent.schema.fields import Category, Dropped, Integer, PersonUnit, Schema
from margent.schema.read import schema_from_json
from margent.tables import spark as spark_rows
from margent.tables import spark_plain
from margent.tables.source import open_table
from margent.tables.spark_files import WholeFiles, whole_files
from margent.tables.spark_forms import Columns
from margent.tables.spark_pieces import PIECES, Piece, pieces
from margent.tables.spark_plain import SIZE_SETTING, _settings, _Table
from margent.tables.spark_session import collected, well_batched
from tests.spark.tables import SCHEMA, typed_table
from tests.spark.test_counts import CLIQUES, all_equal, counts, dying

SECRET = "canary-93"
AGES = Schema([Integer("age", 0, 99, bins=5), Category("sex", ["F", "M"]), Dropped("more")], unit="row")


def written(folder: Path, tables: Sequence[pa.Table], **how: Any) -> Path:
    folder.mkdir(parents=True)
    for place, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{place}.parquet", **how)
    return folder


@pytest.fixture
def ages(tmp_path: Path) -> Path:
    return written(tmp_path / "ages", [pa.table({"age": [1, 2], "sex": ["F", "M"], "more": [n, n]}) for n in (5, 6)])


@pytest.fixture
def workers_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether workers have margent is looked at elsewhere."""
    monkeypatch.setattr(spark_rows, "require_workers", lambda session: None)


def whole(table: Any, schema: Schema = AGES) -> bool:
    """Whether a table goes as whole files."""
    with open_table(table, schema) as source:
        form = source.form  # type: ignore[attr-defined]
    assert isinstance(form, WholeFiles | Columns)
    return isinstance(form, WholeFiles)


def by_rows(spark: Any, table: Any, schema: Schema, cliques: Any = CLIQUES) -> list[Any]:
    """Counts by Spark's own way."""
    spark.conf.set(SIZE_SETTING, "0")
    try:
        assert not whole(table, schema)
        return counts(table, schema, cliques)
    finally:
        spark.conf.unset(SIZE_SETTING)


def test_whole_files_count_as_rows_and_as_the_local_engine_do(spark: Any, tmp_path: Path) -> None:
    tables = [typed_table(rows, rows) for rows in (300, 0, 171)]
    # What Spark or Hadoop could take for a pattern or an escape.
    folder = written(tmp_path / "a b%20[1]{x,y}", tables, coerce_timestamps="us", row_group_size=64)
    escaped = "".join(f"\\{letter}" if letter in "[]{}" else letter for letter in str(folder))
    expected = counts(folder)
    for table in (spark.read.parquet(escaped), f"spark:{escaped}"):
        assert whole(table, SCHEMA)
        assert all_equal(counts(table), expected)
    assert all_equal(by_rows(spark, f"spark:{escaped}", SCHEMA), expected)
    with open_table(f"spark:{escaped}", SCHEMA) as source:
        source.several = True  # type: ignore[attr-defined]
        assert sum(batch.num_rows for batch in source.batches()) == 471
        assert all_equal(counts_of(source, SCHEMA).count(CLIQUES), expected)
    for setting in ("maxPartitionBytes", "minPartitionNum"):
        assert spark.conf.get(f"spark.sql.files.{setting}", None) in (None, "134217728b")


def test_moments_that_spark_wrote_in_any_way_are_those_it_reads(spark: Any, tmp_path: Path) -> None:
    moments = {"minimum": "2019-01-01T00:00:00", "maximum": "2021-12-31T23:59:59"}
    days = {"minimum": "2020-01-01", "maximum": "2020-12-31"}
    fields = [
        {"name": "wall", "type": "datetime", "constraints": moments, "margent": {"bins": "week"}},
        {"name": "instant", "type": "datetime", "constraints": moments, "margent": {"bins": "week", "timeZone": "UTC"}},
        {"name": "day", "type": "date", "constraints": days, "margent": {"bins": "month"}},
        {"name": "text", "type": "string", "categories": ["2020-03-29T00:00:00Z"]},
    ]
    schema = schema_from_json({"fields": fields, "margent": {"unit": "row"}})
    frame = spark.range(400).selectExpr(
        "timestamp_ntz'2020-03-29 00:00:00' + make_dt_interval(0, int(id % 90) * 25) AS wall",
        "timestamp_micros(1585440000000000 + id * 60000000000) AS instant",
        "date_add(CASE WHEN id % 9 = 0 THEN date'1582-10-01' ELSE date'2020-01-01' END, int(id)) AS day",
        "CASE WHEN id % 7 > 0 THEN timestamp_micros(1585440000000000) END AS text",
    )
    settings = ("outputTimestampType", "datetimeRebaseModeInWrite", "int96RebaseModeInWrite")
    ways = [
        ("INT96", "CORRECTED"),
        ("INT96", "LEGACY"),
        ("TIMESTAMP_MICROS", "LEGACY"),
        ("TIMESTAMP_MILLIS", "CORRECTED"),
    ]
    for kind, mode in ways:
        for name, value in zip(settings, (kind, mode, mode), strict=True):
            spark.conf.set(f"spark.sql.parquet.{name}", value)
        frame.coalesce(1).write.parquet(str(tmp_path / "t"), mode="append")
    for name in settings:
        spark.conf.unset(f"spark.sql.parquet.{name}")
    cliques = [(), ("wall",), ("instant",), ("day",), ("text",)]
    assert whole(f"spark:{tmp_path / 't'}", schema)
    found = counts(f"spark:{tmp_path / 't'}", schema, cliques)
    assert all_equal(found, by_rows(spark, f"spark:{tmp_path / 't'}", schema, cliques))
    assert found[0] == 400 * len(ways)


def test_columns_that_files_lack_or_hold_in_a_narrower_type(spark: Any, tmp_path: Path) -> None:
    wide = pa.table({"age": pa.array([7, 80, None], pa.int64()), "sex": ["F", "M", None], "rate": [0.1, 0.2, None]})
    narrow = pa.table({"rate": pa.array([0.1, 9.0], pa.float32()), "AGE": pa.array([3, 50], pa.int8())})
    folder = written(tmp_path / "t", [wide, narrow])
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}, "margent": {"bins": 5}},
        {"name": "sex", "type": "string", "categories": ["F", "M"]},
        {"name": "rate", "type": "string", "categories": ["0.1", "0.2", "0.10000000149011612"]},
    ]
    schema = schema_from_json({"fields": fields, "margent": {"unit": "row"}})
    frame = spark.read.schema("age bigint, sex string, rate double").parquet(str(folder))
    assert whole(frame, schema)
    cliques = [(), ("age",), ("sex",), ("rate",), ("age", "sex")]
    found = counts(frame, schema, cliques)
    assert found[0] == 5
    assert found[3].tolist()[:3] == [1, 1, 1]
    assert all_equal(found, by_rows(spark, frame, schema, cliques))


def test_files_that_are_named_twice_are_read_twice(spark: Any, ages: Path) -> None:
    frame = spark.read.parquet(str(ages), f"{ages}/part-1.parquet")
    assert whole(frame)
    found = counts(frame, AGES, [(), ("age",)])
    assert all_equal(found, by_rows(spark, frame, AGES, [(), ("age",)]))
    assert found[0] == frame.count() == 6


@pytest.mark.usefixtures("workers_known")
def test_what_is_no_plain_table_goes_sparks_own_way(spark: Any, ages: Path, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(ages))
    spark.read.parquet(str(ages)).write.saveAsTable("plain_ages", format="parquet", mode="overwrite")
    schema = Schema([*AGES.fields[:2], Integer("more", 0, 9)], unit="row")
    for table in (frame, f"spark:parquet:{ages}", f"spark:{ages}/part-*.parquet", "spark:table:plain_ages"):
        assert whole(table, schema), table
    assert whole(frame.select("sex", "age"))
    assert whole(spark.read.option("mergeSchema", "true").parquet(str(ages)).drop("more"))
    keyed = tmp_path / "keyed"
    frame.write.partitionBy("more").parquet(str(keyed))
    for table in (
        frame.where("age = 1"),
        frame.withColumn("more", frame["more"] + 1),
        frame.withColumnRenamed("more", "less").withColumnRenamed("less", "more").selectExpr("age", "sex", "1 AS more"),
        frame.limit(3),
        frame.sample(0.5),
        frame.distinct(),
        frame.union(frame),
        frame.repartition(2),
        frame.selectExpr("age", "sex", "int(rand() * 9) AS more"),
        spark.createDataFrame([(1, "F", 5)], frame.schema),
        spark.read.parquet(str(keyed)),
        f"spark:{keyed}",
        spark.read.option("ignoreCorruptFiles", "true").parquet(str(ages)),
        spark.read.option("pathGlobFilter", "*-0.parquet").parquet(str(ages)),
    ):
        assert not whole(table, schema), table
    persons = Schema([*schema.fields[:2], Category("more", ["5", "6"])], unit=PersonUnit("more", 2))
    assert not whole(frame, persons)


@pytest.mark.usefixtures("workers_known")
def test_files_and_settings_decide_as_well(spark: Any, ages: Path, tmp_path: Path) -> None:
    def under(**conf: str) -> bool:
        names = {name: f"spark.{name.replace('_', '.')}" for name in conf}
        for name, value in conf.items():
            spark.conf.set(names[name], value)
        try:
            return whole(f"spark:{ages}")
        finally:
            for name in names.values():
                spark.conf.unset(name)

    largest = max(path.stat().st_size for path in ages.iterdir())
    assert under(margent_wholeFileBytes=str(largest))
    assert not under(margent_wholeFileBytes=str(largest - 1))
    assert not under(margent_wholeFileBytes="0")
    assert not under(sql_files_ignoreCorruptFiles="true")
    assert not under(sql_parquet_inferTimestampNTZ_enabled="false")
    with pytest.raises(UsageError, match="must be a number of bytes"):
        under(margent_wholeFileBytes="256m")
    for name, taken in (("a.parquet", True), ("000000_0", True), ("b.gz", False), ("c.parquet.gz", False)):
        place = tmp_path / f"n{name}" / name
        place.parent.mkdir()
        shutil.copy(ages / "part-0.parquet", place)
        assert whole(f"spark:{place.parent}") is taken, name


@pytest.mark.usefixtures("workers_known")
def test_few_columns_of_many_and_few_files_for_many_tasks_go_sparks_own_way(
    spark: Any, ages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Schema([Integer("age", 0, 99, bins=5), Dropped("sex"), Dropped("more")], unit="row")
    assert not whole(f"spark:{ages}", one)
    for slots, taken in ((2, True), (4, True), (5, False)):
        monkeypatch.setattr(spark_plain, "_slots", lambda session, slots=slots: slots)
        assert whole(f"spark:{ages}") is taken


@pytest.mark.parametrize("wrong", ["damaged", "cut", "other type", "gone"])
def test_files_that_cannot_be_read_end_the_run_with_fixed_text(
    wrong: str, spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"age": np.arange(5000) % 100, "sex": [SECRET, "M"] * 2500})
    folder = written(tmp_path / "t", [table.slice(0, 100), table])
    path = folder / "part-1.parquet"
    frame = spark.read.schema("age bigint, sex string").parquet(str(folder))
    with open_table(frame, AGES) as source:
        assert isinstance(source.form, WholeFiles)  # type: ignore[attr-defined]
        raw = path.read_bytes()
        if wrong == "damaged":
            path.write_bytes(raw[:200] + bytes(byte ^ 0x5A for byte in raw[200:2000]) + raw[2000:])
        elif wrong == "cut":
            path.write_bytes(raw[:-100])
        elif wrong == "gone":
            path.unlink()
        else:
            pq.write_table(table.set_column(0, "age", pa.array([SECRET] * 5000)), path)
        with pytest.raises(TableError, match="could not finish a pass") as caught:
            counts_of(source, AGES).count([("age",)])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err


def test_a_release_is_made_from_whole_files_that_are_read_again_after_a_kill(
    spark: Any, ages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema([*AGES.fields[:2], Integer("more", 0, 9)], unit="row")
    marker = tmp_path / "killed"
    monkeypatch.setattr(spark_counts, "coded_rows", dying(marker, spark_tables.coded_rows))
    with open_table(f"spark:{ages}", schema) as source:
        assert counts_of(source, schema).count([(), ("age", "more")])[0] == 4
    assert marker.exists()
    release = synthesize(f"spark:{ages}", schema, budget=Budget(epsilon=90), method="independent", strict=True)
    assert abs(release.rows - 4) < 4
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


def hashed(batches: Any) -> Any:
    import hashlib

    return pieces(lambda: (Piece("hash", 0, hashlib.sha256(content).digest()) for content in whole_files(batches)))


def test_every_byte_arrives_wherever_sparks_buffers_end(spark: Any, tmp_path: Path) -> None:
    """Separators at and around 64 KiB, where the reader of lines fills its buffer again."""
    import hashlib

    rng = np.random.default_rng(7)
    contents = [rng.bytes(200_000), b"0" * 65_537 + b"PAR1", b"\r\n\r\n\xff\xfe\x00" * 30_000, b"PAR1" * 100_000 + b"0"]
    for edge in (2**16, 2**17):
        for shift in range(-3, 4):
            contents.append(b"x" * (edge + shift) + b"000" + b"y" * 9 + b"0" * (shift + 4) + b"PAR1")
    contents += [rng.choice([48, 10], 150_000).astype(np.uint8).tobytes() + b"PAR1"] * 2
    folder = tmp_path / "bytes"
    folder.mkdir()
    for place, content in enumerate(contents):
        (folder / f"{place:02}.parquet").write_bytes(content)
    form = WholeFiles(pa.schema([]), (), exact=False, settings=_settings([len(each) for each in contents], 2))
    with well_batched(spark, form):
        found = collected(_Table([str(folder)], 1).lines(spark).mapInArrow(hashed, PIECES))
    assert sorted(piece.data for piece in found) == sorted(hashlib.sha256(each).digest() for each in contents)
