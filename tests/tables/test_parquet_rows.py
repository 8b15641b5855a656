"""Parquet files whose dictionaries hold long texts, whose columns give dictionaries up, and that share beginnings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_schemas import names_only
from tests.peaks import STEADY, alone

from margent import Category, Schema
from margent.machine import TEXT_BYTES
from margent.schema.codec import Codec
from margent.tables import parquet_rows
from margent.tables.arrow_file import arrow_file
from margent.tables.gathering import gathered
from margent.tables.parquet_rows import parquet_batches
from margent.tables.source import open_table

ROWS = 65_536
READ = """
import sys
sys.path.insert(0, {folder!r})
from table_schemas import names_only
from margent.counts.texts import batch_texts
from margent.tables.source import open_table
with open_table(sys.argv[1], names_only("x")) as source:
    print(sum(sum(batch_texts(batch, "x")[1]) for batch in source.batches()))
"""


def of_one_text(letters: int, rows: int = ROWS) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["F" * letters]))


def plain_file(path: Path, column: Any, **options: Any) -> Path:
    pq.write_table(pa.table({"x": column}), path, store_schema=False, **options)
    return path


def json_file(path: Path, letters: int) -> Path:
    text = of_one_text(letters, 2_000).cast(pa.string())
    pq.write_table(pa.table({"x": pa.ExtensionArray.from_storage(pa.json_(pa.string()), text)}), path)
    return path


@pytest.mark.parametrize("form", ["text", "bytes", "folder", "json"])
def test_a_long_text_in_a_dictionary_is_held_once(form: str, tmp_path: Path) -> None:
    """65,536 rows of a megabyte each would be 64 GiB, and the file has a thousand bytes."""
    path, rows = tmp_path / "t.parquet", ROWS
    if form == "json":
        json_file(path, 2**19)
        rows = 2_000
    else:
        column = of_one_text(2**20)
        plain_file(path, column.cast(pa.dictionary(pa.int32(), pa.binary())) if form == "bytes" else column)
    where = tmp_path if form == "folder" else path
    done = alone(READ.format(folder=str(Path(__file__).parent)), str(where), allocators=STEADY)
    assert int(done.printed) == rows
    assert done.peak < 2**29


def test_long_texts_come_a_few_rows_at_a_time(tmp_path: Path) -> None:
    """Not in a dictionary, and behind one that the writer gave up."""
    long = pa.array([f"{row:06}" * 20_000 for row in range(2_000)])
    for options in ({"use_dictionary": False}, {"dictionary_pagesize_limit": 2**20}):
        path = plain_file(tmp_path / "t.parquet", long, **options)
        with open_table(path, names_only("x")) as source:
            batches = [(batch.nbytes, batch.column("x").to_pylist()) for batch in source.batches()]
        assert [text for _, texts in batches for text in texts] == long.to_pylist()
        assert max(size for size, _ in batches) <= TEXT_BYTES + 2**20


def test_bytes_of_one_length_come_a_few_rows_at_a_time(tmp_path: Path) -> None:
    wide = pa.repeat(pa.scalar(b"F" * 2**20, pa.binary(2**20)), 200)
    path = plain_file(tmp_path / "t.parquet", wide)
    with open_table(path, names_only("x")) as source:
        assert {batch.num_rows for batch in source.batches()} <= set(range(TEXT_BYTES // 2**20 + 1))


def columns_of(seed: int) -> dict[str, Any]:
    """Columns of few texts and of many, short and long, with nulls, some beginning with them."""
    rng = np.random.default_rng(seed)
    few = [None, *("few" * size for size in (1, 3, 40))]
    many = [None if place % 7 == 0 else f"{place:05}" * int(rng.integers(1, 12)) for place in range(900)]
    late = [None] * 100 + [few[place % 3] for place in range(500)] + [f"late{place}" for place in range(300)]
    kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.json_(pa.string()))
    found: dict[str, Any] = {"a": pa.array([few[place] for place in rng.integers(0, 4, 900)], kinds[seed % 4])}
    found["b.c"] = pa.array(many, kinds[(seed + 1) % 4])
    found["late"] = pa.array(late, kinds[(seed + 2) % 4])
    json = pa.array([few[place] for place in rng.integers(0, 4, 900)], pa.string())
    return found | {"j": pa.ExtensionArray.from_storage(kinds[4], json), "n": pa.array(rng.integers(0, 9, 900))}


@pytest.mark.parametrize("seed", range(12))
def test_every_row_comes_once_in_order_however_the_file_is_written(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits so small that dictionaries are kept, given up, and read again in the middle of a row group."""
    # Beside "b.c" a column "b" of which a part has that path.
    nested = {"b": pa.array([{"c": str(place % 5)} for place in range(900)])}
    table = pa.table(columns_of(seed) | (nested if seed % 2 else {}))
    path = tmp_path / "t.parquet"
    pages = 2 ** (seed % 5 + 4)
    options = {"dictionary_pagesize_limit": 16 * pages, "data_page_size": pages, "write_batch_size": 8}
    pq.write_table(table, path, row_group_size=(900, 250, 130)[seed % 3], **options)
    monkeypatch.setattr(parquet_rows, "_LONG", 30)
    monkeypatch.setattr(parquet_rows, "BLOCK_ROWS", 20)
    monkeypatch.setattr(parquet_rows, "TEXT_BYTES", 2_000)
    monkeypatch.setattr(parquet_rows, "block_rows", lambda columns: 64)
    wanted = ["n", "late", "b.c", "a", "j"]
    with pa.OSFile(str(path)) as source:
        batches = list(parquet_batches(source, wanted, ([], ["late"], wanted)[seed // 2 % 3]))
        assert not source.closed
    for name in wanted:
        cells = [cell for batch in batches for cell in batch.column(name).to_pylist()]
        plain = table.column(name).combine_chunks()
        assert cells == (plain.storage if name == "j" else plain).to_pylist()
    assert max(batch.num_rows for batch in batches) <= 64


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_listed_texts_in_any_encoding_are_read(encoding: str, tmp_path: Path) -> None:
    """Of some encodings pyarrow makes no dictionary."""
    options = {"use_dictionary": False, "column_encoding": {"x": encoding}}
    path = plain_file(tmp_path / "t.parquet", pa.array(["F", "M", None, "F"] * 1_000), **options)
    schema = Schema([Category("x", ["F", "M"])], unit="row")
    with open_table(path, schema) as source:
        codes = np.concatenate([Codec(schema).encode(batch)[0] for batch in source.batches()])
    assert codes.tolist() == [0, 1, 2, 0] * 1_000


def test_texts_that_share_beginnings_come_a_few_rows_at_a_time(tmp_path: Path) -> None:
    """Each says but how it goes on: a thousand bytes are as many texts of any length."""
    options = {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}}
    path = plain_file(tmp_path / "t.parquet", of_one_text(2**10).cast(pa.string()), **options)
    with open_table(path, names_only("x")) as source:
        assert max(batch.nbytes for batch in source.batches()) <= TEXT_BYTES + 2**21


def test_a_listed_column_of_many_texts_is_not_one_dictionary(tmp_path: Path) -> None:
    """A writer gives such a dictionary up; pyarrow would go on with it to the row group's end."""
    many = pa.array([f"text {row}" for row in range(600_000)])
    path = plain_file(tmp_path / "t.parquet", many, row_group_size=len(many), dictionary_pagesize_limit=2**16)
    with pa.OSFile(str(path)) as source:
        batches = [batch.column("x") for batch in parquet_batches(source, ["x"], ["x"])]
    assert [cell for column in batches for cell in column.to_pylist()] == many.to_pylist()
    kept = [len(column.dictionary) for column in batches if pa.types.is_dictionary(column.type)]
    assert max(kept) < 3 * ROWS


def test_blocks_are_gathered_of_batches_of_one_form_each() -> None:
    text = pa.array(["a", "b", None])
    batches = [pa.record_batch({"x": column}) for column in (text, text, text.dictionary_encode(), text)]
    blocks = list(gathered(batches))
    assert [block.num_rows for block in blocks] == [6, 3, 3]
    assert [cell for block in blocks for cell in block.column("x").to_pylist()] == text.to_pylist() * 4


def test_dictionaries_that_are_none_are_given_up_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that grows only when the first was given up, behind rows without any value."""
    table = pa.table({"a": [f"a{row}" for row in range(900)], "b": [None] * 200 + [f"b{row}" for row in range(700)]})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False)
    monkeypatch.setattr(parquet_rows, "BLOCK_ROWS", 20)
    monkeypatch.setattr(parquet_rows, "block_rows", lambda columns: 64)
    with arrow_file(tmp_path / "t.parquet") as source:
        batches = list(parquet_batches(source, ["a", "b"], ["a", "b"]))
    kept = [column for batch in batches for column in batch.columns if pa.types.is_dictionary(column.type)]
    assert 0 < max(len(column.dictionary) for column in kept) <= 2 * 64
    assert [row for batch in batches for row in batch.to_pylist()] == table.to_pylist()


def test_one_long_text_does_not_part_a_table_into_crumbs(tmp_path: Path) -> None:
    """All rows of its row group are read a few at a time, and put together again."""
    texts = ["F" * 2**21, *(str(row) for row in range(50_000))]
    path = plain_file(tmp_path / "t.parquet", pa.array(texts), dictionary_pagesize_limit=2**22)
    with open_table(path, names_only("x")) as source:
        batches = [batch.column("x").to_pylist() for batch in source.batches()]
    assert [text for batch in batches for text in batch] == texts
    assert len(batches) < 5


def test_a_column_whose_description_is_damaged_is_refused_and_ends_no_process(tmp_path: Path) -> None:
    """Arrow counts the levels of a column against its description; what finds them wrong must be able to say so."""
    whole = plain_file(tmp_path / "t.parquet", pa.array(["F", None] * 30)).read_bytes()
    # In the footer's schema: bytes of any length, that may be missing, called "x"; as if none could be missing.
    optional, required = b"\x15\x0c\x25\x02\x18\x01x", b"\x15\x0c\x25\x00\x18\x01x"
    assert whole.count(optional) == 1
    (tmp_path / "t.parquet").write_bytes(whole.replace(optional, required))
    code = [sys.executable, "-c", READ.format(folder=str(Path(__file__).parent)), str(tmp_path / "t.parquet")]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "TableError" in done.stderr
