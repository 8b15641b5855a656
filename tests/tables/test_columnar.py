"""Parquet, Feather and Arrow files: columns by name, types declared, fixed text when reading breaks off."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from table_schemas import CANARY, CASES, bytes_of, names_only, read_rows, rows_of

from margent import Category, DateTime, Schema
from margent.errors import SchemaError, TableError
from margent.schema.codec import Codec
from margent.tables.snapshot import CHANGED, UNREADABLE
from margent.tables.source import open_table

TABLE = pa.table({"b": ["x", None, "z"], "n.o": [1, 2, 3], "n": [0.5, None, 1.5]})
EXPECTED = [(1, "x", 0.5), (2, None, None), (3, "z", 1.5)]


def as_parquet(path: Path, table: pa.Table = TABLE) -> Path:
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=2)
    return path.with_suffix(".parquet")


def as_folder(path: Path, table: pa.Table = TABLE) -> Path:
    path.mkdir()
    pq.write_table(table.slice(0, 1), path / "part-0.parquet")
    pq.write_table(table.slice(1).select(table.schema.names[::-1]), path / "part-1.parquet")
    (path / "_SUCCESS").touch()
    (path / ".part-0.crc").touch()
    return path


def as_feather(path: Path, table: pa.Table = TABLE) -> Path:
    pyarrow.feather.write_feather(table, path.with_suffix(".feather"), chunksize=2)
    return path.with_suffix(".feather")


def as_stream(path: Path, table: pa.Table = TABLE) -> Path:
    with pa.ipc.new_stream(path.with_suffix(".arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path.with_suffix(".arrow")


WRITERS = pytest.mark.parametrize("write", [as_parquet, as_folder, as_feather, as_stream])


@WRITERS
def test_columns_by_name_in_the_schema_s_order(tmp_path: Path, write: object) -> None:
    path = write(tmp_path / "t")  # type: ignore[operator]
    assert read_rows(path, "n.o", "b", "n") == EXPECTED
    with open_table(path, names_only("n", dropped=("b", "n.o"))) as source:
        assert source.columns == ("b", "n.o", "n")
        assert source.kind == {"": "parquet"}.get(path.suffix, path.suffix[1:])
        assert rows_of(source) == [(0.5,), (None,), (1.5,)]


@WRITERS
def test_an_empty_table_is_a_table(tmp_path: Path, write: object) -> None:
    path = write(tmp_path / "t", TABLE.slice(0, 0))  # type: ignore[operator]
    assert read_rows(path, "n.o", "b", "n") == []


@WRITERS
def test_faults_of_the_columns_come_all_at_once(tmp_path: Path, write: object) -> None:
    path = write(tmp_path / "t")  # type: ignore[operator]
    with pytest.raises(SchemaError) as caught:
        open_table(path, names_only("B", "n", "age"))
    assert len(caught.value.faults) == 4
    assert "'b'" in str(caught.value)


def test_duplicate_names_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match="positions 1 and 2"):
        open_table(tmp_path / "t.parquet", names_only("a"))


def test_nested_columns_are_named_with_their_types_unless_dropped(tmp_path: Path) -> None:
    table = pa.table({"id": [1], "tags": [["x"]], "point": [{"x": 1}]})
    path = as_parquet(tmp_path / "t", table)
    with pytest.raises(SchemaError) as caught:
        open_table(path, names_only("id", "tags", "point", "Tags"))
    # Differences of the header and of the types come together.
    assert [fault.pointer for fault in caught.value.faults] == ["Tags", "tags", "point"]
    assert "list<" in str(caught.value)
    assert "struct<" in str(caught.value)
    with open_table(path, names_only("id", dropped=("tags", "point"))) as source:
        assert rows_of(source) == [(1,)]


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow"])
def test_what_is_not_the_container_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a,b\n" + CANARY.encode())
    with pytest.raises(TableError, match="cannot be read as") as caught:
        open_table(tmp_path / name, names_only("a"))
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(TableError, match="cannot be read as"):
        open_table(tmp_path / name, names_only("a"))


def test_the_first_feather_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.feather").write_bytes(b"FEA1....")
    with pytest.raises(TableError, match="version 1"):
        open_table(tmp_path / "t.feather", names_only("a"))


def test_files_of_a_folder_are_alike_and_there_are_some(tmp_path: Path) -> None:
    folder = as_folder(tmp_path / "t")
    pq.write_table(TABLE.rename_columns(["b", "n.o", "m"]), folder / "part-2.parquet")
    pq.write_table(TABLE.set_column(2, "n", pa.array([1, 2, 3])), folder / "part-3.parquet")
    with pytest.raises(SchemaError) as caught:
        open_table(folder, names_only("n.o", "b", "n"))
    assert [fault.pointer for fault in caught.value.faults] == ["part-2.parquet", "part-3.parquet, column n"]
    (tmp_path / "none").mkdir()
    with pytest.raises(TableError, match="no file that can be read"):
        open_table(tmp_path / "none", names_only("a"))


def large(rows: int = 200_000) -> pa.Table:
    return pa.table({"a": pa.array([f"{CANARY}-{n}" for n in range(rows)])})


@pytest.mark.parametrize("write", [as_feather, as_stream])
def test_a_file_that_breaks_off_ends_in_fixed_text(tmp_path: Path, write: object) -> None:
    path = write(tmp_path / "t", large(2000))  # type: ignore[operator]
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    # A Feather file is found by its end, so that stays; the stream form is cut inside a batch.
    damage = bytes(2000) + content[middle + 2000 :] if write is as_feather else b""
    path.write_bytes(content[:middle] + damage)
    with open_table(path, names_only("a")) as source, pytest.raises(TableError) as caught:
        rows_of(source)
    assert str(caught.value) == UNREADABLE
    assert caught.value.__context__ is None


def test_a_damaged_page_ends_in_fixed_text(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(large(), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[1000:5000] = bytes(4000)
    path.write_bytes(content)
    with open_table(path, names_only("a")) as source, pytest.raises(TableError) as caught:
        rows_of(source)
    assert str(caught.value) == UNREADABLE
    assert caught.value.__context__ is None


@WRITERS
def test_a_file_that_changes_between_passes(tmp_path: Path, write: object) -> None:
    path = write(tmp_path / "t")  # type: ignore[operator]
    with open_table(path, names_only("n.o", "b", "n")) as source:
        assert rows_of(source) == EXPECTED
        os.utime(max(path.iterdir()) if path.is_dir() else path, ns=(1, 1))
        with pytest.raises(TableError) as caught:
            rows_of(source)
    assert str(caught.value) == CHANGED


def test_batches_are_short_however_long_the_container_s_are(tmp_path: Path) -> None:
    pq.write_table(large(), tmp_path / "t.parquet")
    pyarrow.feather.write_feather(large(), tmp_path / "t.feather", chunksize=10**6)
    (whole,) = large().combine_chunks().to_batches()
    reader = pa.RecordBatchReader.from_batches(whole.schema, [whole])
    for table in (tmp_path / "t.parquet", tmp_path / "t.feather", large(), reader):
        with open_table(table, names_only("a")) as source:
            sizes = [batch.num_rows for batch in source.batches()]
        assert sum(sizes) == 200_000
        assert max(sizes) == 65_536


def test_types_arrive_in_plain_forms(tmp_path: Path) -> None:
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["r"]))
    views = pa.array(["v"]).cast(pa.string_view())
    words = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), views, ordered=True)
    moment = pa.array([datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)], pa.timestamp("us", "Europe/Berlin"))
    raw = pa.array([b"\xff", None], pa.binary())[:1]
    table = pa.table(
        {
            "uuid": uuid,
            "ends": ends,
            "view": views,
            "words": words,
            "none": pa.nulls(1),
            "at": moment,
            "raw": raw,
        }
    )
    with open_table(as_stream(tmp_path / "t", table), names_only(*table.schema.names)) as source:
        (batch,) = source.batches()
    assert [str(field.type) for field in batch.schema] == [
        "fixed_size_binary[16]",
        "dictionary<values=string, indices=int32, ordered=0>",
        "large_string",
        "dictionary<values=large_string, indices=int8, ordered=1>",
        "null",
        "timestamp[us, tz=Europe/Berlin]",
        "large_string",
    ]
    assert batch.column("words").to_pylist() == ["v"]
    assert bytes_of(batch.column("raw")) == [b"\xff"]


def test_timestamps_of_96_bits_are_read_beyond_the_years_that_nanoseconds_reach(tmp_path: Path) -> None:
    moments = [datetime.datetime(9999, 12, 31, 23), datetime.datetime(1500, 1, 1), None]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": pa.array(moments, pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=True)
    first, last = "2000-01-01T00:00:00", "2019-12-31T23:59:59"
    schema = Schema([DateTime("t", first, last, time_zone="naive", bins=2)], unit="row")
    with open_table(path, schema) as source:
        (batch,) = source.batches()
    assert batch["t"].to_pylist() == moments
    assert Codec(schema).encode(batch)[0].tolist() == [1, 0, 2]


def test_bytes_become_text_at_any_offset() -> None:
    cells = [b"a", None, b"bc", b"\xfe", None]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        table = pa.table({"raw": pa.array(cells, pa.binary()).cast(kind)}).slice(1, 3)
        with open_table(table, names_only("raw")) as source:
            assert [bytes_of(batch.column(0)) for batch in source.batches()] == [cells[1:4]]


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not beside this checkout")
def test_every_pandas_dtype_of_the_shared_case_is_read() -> None:
    path = next(CASES.glob("22*/input.parquet"))
    names = ("u8", "i16", "f32", "b", "s", "arrow_i", "arrow_s", "cat")
    with open_table(path, names_only(*names, dropped=("dur",))) as source:
        rows = rows_of(source)
    assert len(rows) == 4
    assert rows[0][:5] == (1, 1, 0.5, True, "x")
    schema = names_only(*names, "dur")
    with pytest.raises(SchemaError, match=r"dur: .*duration"):
        open_table(path, schema)


STORED = [{"use_dictionary": True}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 60}]


@pytest.mark.parametrize("written", STORED)
def test_texts_of_closed_lists_are_coded_alike_however_they_are_stored(written: dict[str, Any], tmp_path: Path) -> None:
    """With dictionaries, without, and where a dictionary grows too large within a row group; nulls and strangers."""
    texts = [["F", "M", None, "", "X", "M ", "other"][place * place % 7] for place in range(500)]
    many = [f"{place}" if place % 3 else "M" for place in range(500)]
    table = pa.table({"sex": texts, "many": many, "number": [text and len(text) for text in texts]})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=170, **written)
    fields = [Category("sex", ["F", "M"]), Category("many", ["M", "7"]), Category("number", ["1", "2"])]
    schema = Schema(fields, unit="row")
    codec = Codec(schema)
    with open_table(path, schema) as source:
        found = [codec.encode(batch) for batch in source.batches()]
        kinds = {str(column.type) for batch in source.batches() for column in batch.columns}
    assert any(kind.startswith("dictionary") for kind in kinds), "the file's own dictionaries are kept"
    whole = codec.encode(table.combine_chunks().to_batches()[0])
    for place, codes in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([part[place] for part in found]), codes)
