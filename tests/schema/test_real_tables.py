"""Every shared real table: its schema loads, and its cells get the codes that a slow second reading gives them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margent.schema.codec import Codec
from margent.schema.read import read_schema
from tests.conftest import SHARED
from tests.schema.oracle import SlowField

TABLES = sorted(path.parent.name for path in SHARED.glob("data/*/schema.json"))
SAMPLE = 1500

pytestmark = pytest.mark.skipif(not TABLES, reason="the shared real tables are not beside this checkout")


def table_of(folder: Path, rows: int) -> tuple[pa.RecordBatch, dict[str, list[str | None]]]:
    """A sample of the table as the codec gets it, and its cells as plain texts."""
    path = next(path for path in folder.iterdir() if path.name.endswith((".parquet", ".csv.gz")))
    rng = np.random.default_rng(5)
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        chosen = np.sort(rng.choice(table.num_rows, min(rows, table.num_rows), replace=False))
        sample = table.take(pa.array(chosen)).combine_chunks()
        texts = {name: [as_text(value) for value in sample[name].to_pylist()] for name in sample.column_names}
        return sample.to_batches()[0], texts
    with gzip.open(path, "rb") as packed:
        header, *lines = csv.reader(io.TextIOWrapper(packed, "utf-8", newline=""))
    chosen = np.sort(rng.choice(len(lines), min(rows, len(lines)), replace=False))
    columns: dict[str, list[str | None]] = {
        name: [lines[row][place] for row in chosen] for place, name in enumerate(header)
    }
    raw = [pa.array([str(cell).encode() for cell in column], pa.binary()) for column in columns.values()]
    return pa.RecordBatch.from_arrays(raw, names=header), columns


def as_text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


@pytest.mark.parametrize("name", TABLES)
def test_codes_of_a_real_table_are_those_of_a_slow_second_reading(name: str) -> None:
    document = json.loads((SHARED / "data" / name / "schema.json").read_text())
    codec = Codec(read_schema(SHARED / "data" / name / "schema.json"))
    batch, texts = table_of(SHARED / "data" / name, SAMPLE)
    coded = codec.encode(batch)
    slow = {
        field["name"]: SlowField(field, document.get("missingValues", [""]))
        for field in document["fields"]
        if field.get("margent", {}).get("role", "model") == "model"
    }
    assert list(slow) == list(codec.domain.names)
    for (column, reading), codes in zip(slow.items(), coded, strict=True):
        assert codes.tolist() == [reading.code(cell) for cell in texts[column]], column
        if column in codec.unlisted_codes:
            # The schemas were made for these tables: hardly a cell falls outside.
            assert np.mean(codes == codec.unlisted_codes[column]) <= 0.01, column


def test_every_shared_schema_was_found() -> None:
    assert len(TABLES) >= 18
