"""Every reader against damaged files: a typed error or a good answer, in bounded memory and time; never a crash."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from margent import Budget, read_release, read_schema, synthesize
from margent.errors import MargentError, SchemaError, TableError, TranscriptError
from margent.schema.read import schema_from_json
from margent.tables.options import ReadOptions
from margent.tables.source import open_table
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.hostile.mutations import mutated, rounds

SECONDS = 5.0
MEBIBYTES = 600


def tried(
    name: str, seed_file: bytes, attempt: Callable[[bytes], object], count: int, allowed: type[MargentError]
) -> None:
    """``count`` damaged copies of a file: each is read or refused; how many of each is checked to be sensible."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    rng = np.random.default_rng(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for number in range(count):
        damaged = mutated(seed_file, rng)
        started = time.process_time()
        try:
            attempt(damaged)
        except allowed:
            refused += 1
        except BaseException as fault:
            raise AssertionError(f"{name}: input {number} of seed {seed} raised {type(fault).__name__}") from fault
        assert time.process_time() - started < SECONDS, f"{name}: input {number} of seed {seed} took too long"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEBIBYTES, f"{name}: {grown:.0f} MiB more at the peak, seed {seed}"
    assert refused > 0, f"{name}: nothing was refused: the mutations do no damage"


def test_schema_files(scratch: Path) -> None:
    path = scratch / "s.json"

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        read_schema(path)

    tried("schema", json.dumps(SCHEMA, indent=1).encode(), attempt, rounds(3300, 430_000), SchemaError)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    table = write_csv(folder / "t.csv", people_rows(100))
    made = synthesize(table, schema_from_json(SCHEMA), budget=Budget(3), seed=1, rows=20)
    return made.save(folder / "OUT")


@pytest.mark.parametrize("victim", ["measurements/transcript.json", "measurements/answers.i64", "summary.json"])
def test_release_folders(victim: str, release: Path, scratch: Path) -> None:
    import shutil

    copy = scratch / "copy"
    shutil.copytree(release, copy)
    original = (copy / victim).read_bytes()

    def attempt(data: bytes) -> None:
        (copy / victim).write_bytes(data)
        read_release(copy)

    tried(victim, original, attempt, rounds(600, 60_000), TranscriptError)


def table_bytes(kind: str, folder: Path) -> bytes:
    path = folder / f"t.{kind}"
    rows = people_rows(60)
    if kind == "csv":
        return write_csv(path, rows).read_bytes()
    columns = {field["name"]: [row[place] for row in rows] for place, field in enumerate(SCHEMA["fields"])}
    table = pa.table(columns | {"age": [int(age) for age in columns["age"]]})
    if kind == "parquet":
        pa.parquet.write_table(table, path)
    elif kind == "feather":
        pa.feather.write_feather(table, path)
    else:
        import gzip

        path.write_bytes(gzip.compress(write_csv(folder / "plain.csv", rows).read_bytes()))
    return path.read_bytes()


@pytest.mark.parametrize(("kind", "count"), [("csv", 2500), ("csv.gz", 600), ("parquet", 900), ("feather", 900)])
def test_tables(kind: str, count: int, scratch: Path) -> None:
    """A damaged table is refused by its container, or read: cells never stop a run (then they are unlisted)."""
    schema = schema_from_json(SCHEMA)
    path = scratch / f"damaged.{kind}"
    from margent.schema.codec import Codec

    codec = Codec(schema)

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        with open_table(path, schema, ReadOptions()) as source:
            for batch in source.batches():
                codes = codec.encode(batch)
                for name, column in zip(codec.domain.names, codes, strict=True):
                    assert not len(column) or int(column.max()) < codec.domain.size(name)

    tried(kind, table_bytes(kind, scratch), attempt, rounds(count, 80 * count), (SchemaError, TableError))  # type: ignore[arg-type]


def test_a_planted_reader_is_caught(tmp_path: Path) -> None:
    """The harness sees a crash of an untyped kind, and a reader that refuses nothing."""
    with pytest.raises(AssertionError, match="raised"):
        tried("planted", b'{"a": 1}', json.loads, 200, SchemaError)
    with pytest.raises(AssertionError, match="nothing was refused"):
        tried("planted", b"{}", len, 20, SchemaError)
