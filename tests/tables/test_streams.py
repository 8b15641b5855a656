"""Frames and streams in memory: one rule for every library, no cell decides for another, streams spool."""

from __future__ import annotations

import datetime
import decimal
import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_schemas import CANARY, bytes_of, names_only, read_rows, rows_of

from margent.errors import SchemaError, TableError, UsageError
from margent.tables import pandas_rows
from margent.tables.options import ReadOptions
from margent.tables.snapshot import UNREADABLE
from margent.tables.source import open_table
from margent.tables.streams import Spool

TABLE = pa.table({"n": [1, 2, None], "s": ["x", None, "z"], "c": pa.array(["p", "q", "p"]).dictionary_encode()})
ROWS = [("x", 1, "p"), (None, 2, "q"), ("z", None, "p")]


def one_shot(table: pa.Table = TABLE, *, fail: bool = False) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=2)
        if fail:
            raise ValueError(CANARY)

    return pa.RecordBatchReader.from_batches(table.schema, batches())


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (TABLE, "pyarrow"),
        (TABLE.to_batches()[0], "pyarrow"),
        (one_shot(), "pyarrow"),
        (TABLE.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get), "pandas"),
        (TABLE.to_pandas(types_mapper=pd.ArrowDtype), "pandas"),
        (pl.from_arrow(TABLE), "polars"),
        (duckdb.from_arrow(TABLE), "duckdb"),
    ],
    ids=["Table", "RecordBatch", "reader", "pandas", "pandas-arrow", "polars", "duckdb"],
)
def test_every_library_gives_the_same_rows(table: object, kind: str) -> None:
    with open_table(table, names_only("s", "n", "c")) as source:
        assert source.kind == kind
        assert source.columns == ("n", "s", "c")
        assert rows_of(source) == ROWS
        assert rows_of(source) == ROWS
        together = list(zip(source.batches(), source.batches(), strict=True))
        assert all(one.equals(two) for one, two in together)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pl.LazyFrame({"a": [1]}), r"\.collect\(\)"),
        (3, "type int"),
        ([{"a": 1}], "type list"),
        ((batch for batch in TABLE.to_batches()), "from_batches"),
        (None, "NoneType"),
    ],
)
def test_what_is_no_table_is_named(table: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_table(table, names_only("a"))


def test_a_type_that_arrow_lacks_is_told_of() -> None:
    wide = pl.DataFrame({"a": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(TableError, match="128-bit integers"):
        open_table(wide, names_only("a"))


def test_a_column_alone_is_no_table() -> None:
    for series in (pl.Series("a", [CANARY]), pd.Series([CANARY], name="a")):
        with pytest.raises(TableError, match="Series") as caught:
            open_table(series, names_only("a"))
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize("wrap", [pa.table, pd.DataFrame, pl.DataFrame, lambda columns: one_shot(pa.table(columns))])
def test_differences_and_nested_columns_are_refused(wrap: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        open_table(wrap({"Age": [1], "b": [2]}), names_only("age", "c"))
    assert len(caught.value.faults) == 4
    if wrap is not pd.DataFrame:  # a pandas column of objects declares nothing
        with pytest.raises(SchemaError, match=r"tags.*list"):
            open_table(wrap({"tags": [["x"]]}), names_only("tags"))


# --- pandas


def test_pandas_names_and_dtypes_that_cannot_be_read() -> None:
    with pytest.raises(SchemaError, match="column 2: the name is of type int"):
        open_table(pd.DataFrame({"a": [1], 7: [2]}), names_only("a"))
    with pytest.raises(SchemaError, match="positions 1 and 2"):
        open_table(pd.DataFrame([[1, 2]], columns=["a", "a"]), names_only("a"))
    with pytest.raises(SchemaError, match=r"z.*complex128"):
        open_table(pd.DataFrame({"z": [1j]}), names_only("z"))
    with pytest.raises(SchemaError, match=r"span.*interval"):
        open_table(pd.DataFrame({"span": pd.interval_range(0, 2)}), names_only("span"))
    sparse = pd.DataFrame({"z": pd.arrays.SparseArray([77.5j, 1j], fill_value=77.5j)})
    with pytest.raises(SchemaError, match=r"z.*Sparse\[complex128\]") as caught:
        open_table(sparse, names_only("z"))
    assert "77.5" not in str(caught.value)  # a dtype may hold a cell


def test_the_index_is_not_read_but_hinted_at() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="id"))
    assert read_rows(frame, "a") == [(1,), (2,)]
    with pytest.raises(SchemaError, match=r"reset_index"):
        open_table(frame, names_only("id", "a"))


def test_pandas_dtypes() -> None:
    frame = pd.DataFrame(
        {
            "u8": pd.array([1, None], dtype="UInt8"),
            "f": [0.5, float("nan")],
            "b": pd.array([True, None], dtype="boolean"),
            "s": pd.array(["x", None], dtype="string[python]"),
            "t": pd.to_datetime(["2020-01-02", None]),
            "z": pd.to_datetime(["2020-01-02T00:00Z", None]).tz_convert("Europe/Berlin"),
            "c": pd.Categorical(["lo", None], categories=["lo", "hi"], ordered=True),
            "m": pd.Categorical([12, None], categories=pd.Index(["x", 12, 12.5], dtype=object)),
            "p": pd.PeriodIndex(["2020-01", None], freq="M"),
            "sparse": pd.arrays.SparseArray([1.0, float("nan")]),
        }
    )
    with open_table(frame, names_only(*frame.columns)) as source:
        (batch,) = source.batches()
    assert [str(field.type) for field in batch.schema][:4] == ["uint8", "double", "bool", "large_string"]
    assert batch.schema.field("c").type.ordered
    assert batch.column("c").dictionary.to_pylist() == ["lo", "hi"]
    first, second = batch.to_pylist()
    assert first["s"] == "x"
    assert first["m"] == "12"
    assert first["p"] == "2020-01"
    assert first["t"] == datetime.datetime(2020, 1, 2)
    assert first["z"].utcoffset() == datetime.timedelta(hours=1)
    assert set(second.values()) == {None}


OBJECTS: list[tuple[Any, bytes | None]] = [
    ("é", "é".encode()),
    ("\ud800", b"\xed\xa0\x80"),
    (b"\xff\x00", b"\xff\x00"),
    (12, b"12"),
    (12.0, b"12"),
    (0.1, b"0.1"),
    (float("inf"), b"inf"),
    (float("nan"), None),
    (None, None),
    (pd.NA, None),
    (pd.NaT, None),
    (True, b"true"),
    (np.int8(-3), b"-3"),
    (np.float32(0.5), b"0.5"),
    (decimal.Decimal("1.20"), b"1.20"),
    (datetime.date(2020, 1, 2), b"2020-01-02"),
    (datetime.datetime(2020, 1, 2, 3), b"2020-01-02T03:00:00"),
    (datetime.time(3, 4), b"03:04:00"),
    (10**5000, b"\xff"),
    ([1, 2], b"\xff"),
    ({"a": 1}, b"\xff"),
    (object(), b"\xff"),
    (pd.Interval(0, 1), b"\xff"),
]


def object_frame(cells: list[Any]) -> pd.DataFrame:
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return pd.DataFrame({"a": pd.Series(column, dtype=object)})


def cells_of(frame: pd.DataFrame) -> list[bytes | None]:
    with open_table(frame, names_only("a")) as source:
        return [cell for batch in source.batches() for cell in bytes_of(batch.column("a"))]


def test_categories_are_made_into_text_once_however_many_slices_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of them would be gone through with every block of rows."""
    made: list[object] = []
    monkeypatch.setattr(pandas_rows, "BATCH_ROWS", 2)
    monkeypatch.setattr(pandas_rows, "_cell_text", lambda cell: made.append(cell) or str(cell).encode())
    words = pd.Index(["x", 12, 12.5], dtype=object)
    frame = pd.DataFrame({"a": pd.Categorical([12, None, "x", 12.5, 12.5, 12, "x"], categories=words)})
    with open_table(frame, names_only("a")) as source:
        made.clear()
        cells = [cell for _ in range(2) for batch in source.batches() for cell in batch.column("a").to_pylist()]
    assert cells == ["12", None, "x", "12.5", "12.5", "12", "x"] * 2
    assert made == list(words)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, len(OBJECTS) - 1), max_size=6))
def test_objects_become_text_cell_by_cell_whatever_stands_beside_them(places: list[int]) -> None:
    frame = object_frame([OBJECTS[place][0] for place in places])
    assert cells_of(frame) == [OBJECTS[place][1] for place in places]


def test_an_object_whose_methods_fail_is_a_cell_like_any_other() -> None:
    class Hostile(str):
        def encode(self, *_: Any) -> bytes:
            raise RuntimeError(CANARY)

    assert cells_of(object_frame([Hostile("x"), "y"])) == [b"\xff", b"y"]


# --- one-shot streams


def test_a_stream_may_be_refused_by_option() -> None:
    with pytest.raises(UsageError, match="spool"):
        open_table(one_shot(), names_only("s", "n", "c"), ReadOptions(spool=False))


def test_nothing_is_read_from_a_stream_before_the_first_pass(tmp_path: Path) -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        read.append(1)
        yield from TABLE.to_batches()

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with open_table(reader, names_only("s", "n", "c"), ReadOptions(spool_folder=tmp_path)) as source:
        assert read == []
        assert rows_of(source) == ROWS
        assert read == [1]


@pytest.mark.skipif(os.name == "nt", reason="modes and unnamed files are those of POSIX")
def test_the_copy_is_the_operator_s_alone_and_has_no_name(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else None
    spool = Spool(tmp_path)
    spool.fill(one_shot, TABLE.schema, ("s",))
    assert spool.file is not None
    status = os.fstat(spool.file.fileno())
    assert status.st_mode & 0o077 == 0
    assert status.st_nlink == 0
    assert status.st_size > 0
    assert list(tmp_path.iterdir()) == []
    assert [batch.to_pydict() for batch in spool.batches()] == [{"s": ["x", None]}, {"s": ["z"]}]
    spool.close()
    gc.collect()
    if before is not None:
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_batch_of_any_length_is_copied_in_pieces(tmp_path: Path) -> None:
    """DuckDB gives a million rows at once, a reader perhaps its whole table: a pass must not hold that."""
    rows = 150_000
    batch = pa.record_batch({"n": pa.array(range(rows), pa.int64())})
    spool = Spool(tmp_path)
    spool.fill(lambda: pa.RecordBatchReader.from_batches(batch.schema, iter([batch])), batch.schema, ("n",))
    pieces = list(spool.batches())
    assert [piece.num_rows for piece in pieces] == [65_536, 65_536, rows - 2 * 65_536]
    assert [value for piece in pieces for value in piece["n"].to_pylist()] == list(range(rows))
    spool.close()


def test_dictionaries_that_differ_between_batches_are_spooled(tmp_path: Path) -> None:
    batches = [pa.record_batch({"c": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["z", None])]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert read_rows(reader, "c") == [("a",), ("b",), ("z",), (None,)]


def test_an_empty_stream_is_a_table() -> None:
    assert read_rows(pa.RecordBatchReader.from_batches(TABLE.schema, iter([])), "s", "n", "c") == []


def test_a_stream_that_breaks_off_ends_in_fixed_text_every_time() -> None:
    with open_table(one_shot(fail=True), names_only("s", "n", "c")) as source:
        for _ in range(2):
            with pytest.raises(TableError) as caught:
                rows_of(source)
            assert str(caught.value) == UNREADABLE
            assert caught.value.__context__ is None
            assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_folder_for_copies_that_is_not_there_is_refused_on_opening(tmp_path: Path) -> None:
    options = ReadOptions(spool_folder=tmp_path / "none")
    with pytest.raises(TableError, match="nothing was charged"):
        open_table(one_shot(), names_only("s", "n", "c"), options)


@pytest.mark.parametrize("bad", ["z", "1"])
def test_a_query_of_duckdb_runs_in_the_first_pass_and_not_on_opening(bad: str) -> None:
    """A cell on which the query fails must not show before the charge."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('1', 'x'), (?, 'y')) v(a, b)", [bad])
    relation = connection.sql("SELECT CAST(a AS INT) AS a, b FROM t")
    with open_table(relation, names_only("a", "b")) as source:
        if bad == "1":
            assert len(rows_of(source)) == 2
            return
        for _ in range(2):
            with pytest.raises(TableError) as caught:
                rows_of(source)
            assert str(caught.value) == UNREADABLE


@pytest.mark.parametrize("table", [pa.table({"a": [CANARY]}), pd.DataFrame({"a": [CANARY]}), one_shot()])
def test_a_source_shows_no_cell(table: object) -> None:
    names = ("s", "n", "c") if isinstance(table, pa.RecordBatchReader) else ("a",)
    with open_table(table, names_only(*names)) as source:
        rows_of(source)
        assert CANARY not in repr(source)


HYGIENE = """
import sys
from pathlib import Path
import pyarrow as pa
sys.path.insert(0, {folder!r})
from table_schemas import names_only
from margent.tables.source import open_table
from margent.tables.frames import to_kind
from margent.tables.write import write_table
table = pa.Table.from_arrays([pa.nulls(3, pa.int64())], names=["a"])  # pa.array would import pandas itself
with open_table(table, names_only("a")) as source:
    assert len(list(source.batches())) == 1
with open_table(table.to_reader(), names_only("a")) as source:
    assert len(list(source.batches())) == 1
assert to_kind(table, "pyarrow") is table
for kind in ("csv", "parquet", "feather"):
    path = Path(sys.argv[1]) / f"t.{{kind}}"
    write_table(path, kind, iter([table.cast(pa.schema([("a", pa.string())]))]))
    with open_table(path, names_only("a")) as source:
        assert sum(batch.num_rows for batch in source.batches()) == 3
print(sorted({{"pandas", "polars", "duckdb"}} & set(sys.modules)))
"""


def test_arrow_tables_and_files_import_no_other_frame_library(tmp_path: Path) -> None:
    code = HYGIENE.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
