"""Every reader against damaged files: a typed error or a good answer, in bounded memory and time; never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from margent import read_schema
from margent.errors import SchemaError, TableError
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.tables.options import ReadOptions
from margent.tables.source import open_table
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.hostile.mutations import rewritten
from tests.hostile.trials import overwriting, tried
from tests.sizes import LONG_AUDIT, rounds


def test_schema_files(scratch: Path) -> None:
    path = scratch / "s.json"

    whole = json.dumps(SCHEMA, indent=1).encode()
    with overwriting(path) as write:

        def attempt(data: bytes) -> None:
            write(data)
            read_schema(path)

        tried("schema", whole, attempt, rounds(3000, 900_000), SchemaError)
        tried("schema that stays JSON", whole, attempt, rounds(300, 100_000), SchemaError, rewritten)


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
    codec = Codec(schema)
    number = 0

    with overwriting(path) as write:

        def attempt(data: bytes) -> None:
            nonlocal number
            number += 1
            write(data)
            with open_table(path, schema, ReadOptions()) as source:
                for batch in source.batches():
                    # Odd cells have audits of their own (`test_messages`, the door's neighbors): in a long one, fewer.
                    if LONG_AUDIT and number % 16:
                        continue
                    codes = codec.encode(batch)
                    for name, column in zip(codec.domain.names, codes, strict=True):
                        assert not len(column) or int(column.max()) < codec.domain.size(name)

        tried(kind, table_bytes(kind, scratch), attempt, rounds(count, 1_000_000), (SchemaError, TableError))


def test_a_planted_reader_is_caught(tmp_path: Path) -> None:
    """The harness sees a crash of an untyped kind, and a reader that refuses nothing."""
    with pytest.raises(AssertionError, match="raised"):
        tried("planted", b'{"a": 1}', json.loads, 200, SchemaError)
    with pytest.raises(AssertionError, match="nothing was refused"):
        tried("planted", b"{}", len, 20, SchemaError)
