"""Whole files inside of tasks, without Spark: put together from any lines, and read as Spark would read them."""

from __future__ import annotations

import datetime as dt
import io
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.counts.spark_tables import coded_rows, schema_as_sent
from margent.errors import TableError
from margent.schema.codec import Codec
from margent.schema.fields import Category, Integer, Schema
from margent.schema.read import schema_from_json
from margent.tables import spark_files
from margent.tables.columnar import listed_columns
from margent.tables.source import open_table
from margent.tables.spark_calendar import same_in_both_calendars
from margent.tables.spark_files import SEPARATOR, WholeFiles, examined, whole_files
from margent.tables.spark_pieces import FAULT, TaskFault, received, unpacked
from margent.tables.spark_types import cast_to
from tests.spark.tables import FIELDS, SCHEMA, typed_table

SECRET = "canary-93"
KINDS = pa.schema([typed_table(0).schema.field(name) for name in SCHEMA.columns_read])
KINDS = KINDS.set(KINDS.names.index("word"), pa.field("word", pa.string()))


TEXT = pa.string()


def lines_of(contents: Sequence[bytes], cut: int, kind: Any = TEXT) -> Iterator[pa.RecordBatch]:
    """What Spark hands over of files: lines with a zero behind each, ``cut`` in a batch, beside the files' lengths."""
    found = [(line, len(content)) for content in contents for line in _split(content)]
    for start in range(0, len(found), cut):
        lines, lengths = zip(*found[start : start + cut], strict=True)
        raw = pa.array(lines, pa.binary() if kind == TEXT else pa.large_binary())
        yield pa.RecordBatch.from_arrays([raw.view(kind), pa.array(lengths, pa.int64())], names=["value", "length"])


def _split(content: bytes) -> list[bytes]:
    zero = SEPARATOR.encode()
    lines = content.split(zero)
    return [line + zero for line in (lines[:-1] if lines[-1] == b"" else lines)]


def parquet(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def rows_of(form: WholeFiles, contents: Sequence[bytes]) -> list[dict[str, Any]]:
    return [row for block in form.blocks(lines_of(contents, 3)) for row in block.to_pylist()]


@given(
    st.lists(st.binary(min_size=1, max_size=9).map(lambda raw: bytes(b"0\n0\xff"[n % 4] for n in raw)), max_size=5),
    st.integers(1, 9),
    st.sampled_from([pa.string(), pa.large_string()]),
)
@settings(deadline=None, max_examples=200)
def test_any_files_are_put_together_from_any_lines(contents: list[bytes], cut: int, kind: Any) -> None:
    assert [bytes(found) for found in whole_files(lines_of(contents, cut, kind))] == contents


def test_lines_that_are_no_whole_files_are_a_fault() -> None:
    content = b"one0two0three"
    # A file that is one byte shorter than told would get a zero there: not what a Parquet file ends with.
    for wrong in ([content[:-2]], [content + b"0more"], [content + b"more"], [content[:3]]):
        batches = [
            pa.RecordBatch.from_arrays([batch.column(0), pa.array([len(content)] * batch.num_rows)], ["a", "b"])
            for batch in lines_of(wrong, 2)
        ]
        with pytest.raises(TableError):
            list(whole_files(batches))
    (sound,) = lines_of([content], 5)
    other = pa.RecordBatch.from_arrays([sound.column(0), pa.array([len(content), 9, 9])], names=["a", "b"])
    with pytest.raises(TableError):
        list(whole_files([other]))


def test_one_file_is_held_at_a_time() -> None:
    form = WholeFiles(pa.schema([("a", pa.int64())]), (), exact=False)
    content = parquet(pa.table({"a": np.random.default_rng(1).integers(0, 2**60, 500_000)}))
    (lines,) = lines_of([content], 10**6)
    tracemalloc.start()
    rows = sum(block.num_rows for block in form.blocks(lines for _ in range(4)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 2_000_000
    assert len(content) < peak < 1.9 * len(content)


@pytest.mark.parametrize("row_group_size", [7, 1000])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_files_are_coded_as_the_local_engine_codes_them(row_group_size: int, use_dictionary: bool) -> None:
    form = WholeFiles(KINDS, listed_columns(SCHEMA), exact=False)
    tables = [typed_table(rows, seed) for seed, rows in enumerate((50, 0, 81))]
    how = {"row_group_size": row_group_size, "use_dictionary": use_dictionary, "coerce_timestamps": "us"}
    contents = [parquet(table, **how) for table in tables]
    codec = Codec(SCHEMA)
    expected = [np.concatenate(parts) for parts in zip(*map(codec.encode, batches_of(tables)), strict=True)]
    coded = [
        unpacked(piece.data) for piece in received(coded_rows(schema_as_sent(SCHEMA), form, lines_of(contents, 2)))
    ]
    for place, codes in enumerate(expected, start=1):
        assert np.array_equal(codes, np.concatenate([block.column(place).to_numpy() for block in coded]))


def batches_of(tables: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        with open_table(table, SCHEMA) as source:
            yield from source.batches()


def test_a_column_that_a_file_lacks_is_all_nulls_and_names_follow_sparks_rule() -> None:
    kinds = pa.schema([("Age", pa.int32()), ("sex", pa.string())])
    files = [parquet(pa.table({"AGE": pa.array([1], pa.int32())})), parquet(pa.table({"sex": ["F"], "more": [1]}))]
    found = rows_of(WholeFiles(kinds, ("sex",), exact=False), files)
    assert found == [{"Age": 1, "sex": None}, {"Age": None, "sex": "F"}]
    assert rows_of(WholeFiles(kinds, (), exact=True), files)[0] == {"Age": None, "sex": None}
    twice = parquet(pa.table({"age": pa.array([1], pa.int32()), "AGE": pa.array([2], pa.int32())}))
    with pytest.raises(TableError):
        rows_of(WholeFiles(kinds, (), exact=False), [twice])


def test_columns_below_others_are_not_taken_for_columns() -> None:
    nested = pa.table({"a": pa.array([{"b": 1}]), "c": ["x"]})
    found = rows_of(
        WholeFiles(pa.schema([("a.b", pa.int64()), ("c", pa.string())]), (), exact=False), [parquet(nested)]
    )
    assert found == [{"a.b": None, "c": "x"}]
    with pytest.raises(TableError):
        rows_of(WholeFiles(pa.schema([("a", pa.int64())]), (), exact=False), [parquet(nested)])


def test_what_spark_casts_is_cast_and_what_it_refuses_is_a_fault() -> None:
    instant, wall = pa.timestamp("us", "UTC"), pa.timestamp("us")
    for file, declared in [
        (pa.int8(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.large_string(), pa.string()),
        (pa.binary(4), pa.binary()),
        (pa.decimal128(5, 2), pa.decimal128(9, 2)),
        (pa.decimal128(5, 2), pa.decimal128(9, 3)),
        (pa.timestamp("ms", "Europe/Berlin"), instant),
        (pa.timestamp("ms"), wall),
    ]:
        assert cast_to(file, declared, old=False) is None, file
    for file, declared, old in [
        (pa.float32(), pa.float64(), False),
        (pa.int32(), pa.float64(), False),
        (pa.duration("us"), pa.int64(), False),
        (pa.uint64(), pa.decimal128(20, 0), False),
        (pa.null(), pa.string(), False),
        (pa.timestamp("ns"), instant, True),
    ]:
        assert cast_to(file, declared, old=old) == declared, file
    for file, declared, old in [
        (pa.int64(), pa.int32(), False),
        (pa.uint32(), pa.int32(), False),
        (pa.int64(), pa.float64(), False),
        (pa.string(), pa.int32(), False),
        (pa.int32(), pa.string(), False),
        (pa.decimal128(9, 2), pa.decimal128(9, 3), False),
        (pa.decimal128(9, 3), pa.decimal128(9, 2), False),
        (wall, instant, False),
        (instant, wall, False),
        (pa.timestamp("ns", "UTC"), instant, False),
        (pa.timestamp("ns"), wall, True),
        (pa.list_(pa.int64()), pa.int64(), False),
    ]:
        with pytest.raises(TableError):
            cast_to(file, declared, old=old)


def test_old_timestamps_are_instants_however_late() -> None:
    moments = [dt.datetime(9999, 12, 31, 23), dt.datetime(1500, 1, 1), dt.datetime(2020, 3, 29, 0, 30), None]
    content = parquet(pa.table({"t": pa.array(moments, pa.timestamp("us"))}), use_deprecated_int96_timestamps=True)
    form = WholeFiles(pa.schema([("t", pa.timestamp("us", "UTC"))]), (), exact=False)
    (block,) = form.blocks(lines_of([content], 2))
    assert block.schema.field("t").type == pa.timestamp("us", "UTC")
    assert [None if cell is None else cell.replace(tzinfo=None) for cell in block["t"].to_pylist()] == moments


def test_a_damaged_file_is_told_by_a_name_alone() -> None:
    table = pa.table({"word": [SECRET] * 1000, "n": np.arange(1000)})
    schema = Schema([Category("word", [SECRET]), Integer("n", 0, 999, bins=4)], unit="row")
    form = WholeFiles(pa.schema([("word", pa.string()), ("n", pa.int64())]), ("word",), exact=False)
    content = bytearray(parquet(table, compression="snappy"))
    rng = np.random.default_rng(5)
    told = set()
    for _ in range(60):
        damaged = bytearray(content)
        start = int(rng.integers(4, len(damaged) - 8))
        damaged[start : start + 8] = rng.bytes(8)
        for batch in coded_rows(schema_as_sent(schema), form, lines_of([bytes(damaged)], 4)):
            told |= {
                data for kind, data in zip(*map(pa.Array.to_pylist, batch.columns[::2]), strict=True) if kind == FAULT
            }
    assert told == {b"TableError"}
    with pytest.raises(TableError) as caught:
        list(form.blocks(lines_of([bytes(content[:-9])], 4)))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_memory_that_runs_out_is_for_spark_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> Iterator[pa.RecordBatch]:
        raise MemoryError
        yield

    monkeypatch.setattr(spark_files, "parquet_batches", none_left)
    form = WholeFiles(pa.schema([("a", pa.int64())]), (), exact=False)
    schema = Schema([Integer("a", 0, 9)], unit="row")
    with pytest.raises(MemoryError):
        list(coded_rows(schema_as_sent(schema), form, lines_of([parquet(pa.table({"a": [1]}))], 4)))


def test_a_footer_tells_whether_a_file_can_be_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    form = WholeFiles(pa.schema([("a", pa.int64())]), (), exact=False)
    table = pa.table({"a": np.arange(1000)})

    def told(content: bytes) -> list[str]:
        return [piece.kind for piece in received(examined(form, lines_of([content], 2)))]

    assert told(parquet(table)) == told(parquet(table, compression="none")) == ["sound"]
    for wrong in (table.cast(pa.schema([("a", pa.string())])), pa.table({"a": [1.5]})):
        with pytest.raises(TaskFault, match="TableError"):
            told(parquet(wrong))
    monkeypatch.setattr(spark_files, "_LONGEST_STORED", 999)
    assert told(parquet(table)) == ["sound"]
    with pytest.raises(TaskFault, match="TableError"):
        told(parquet(table, compression="none", use_dictionary=False))


def with_field(**changes: Any) -> Schema:
    """The schema of all types, of which the field that is named is another."""
    fields = [field | changes if field["name"] == changes["name"] else field for field in FIELDS]
    fields = [{key: value for key, value in field.items() if value is not None} for field in fields]
    return schema_from_json({"fields": fields, "margent": {"unit": "row"}})


def test_days_that_calendars_number_differently_are_left_to_spark() -> None:
    assert same_in_both_calendars(SCHEMA, KINDS)
    day = {"name": "born", "constraints": {"minimum": "1583-01-01", "maximum": "1999-12-31"}}
    instant = {"name": "instant", "constraints": {"minimum": "1901-01-01T00:00:00", "maximum": "2020-12-31T23:59:59"}}
    assert same_in_both_calendars(with_field(**day), KINDS)
    assert same_in_both_calendars(with_field(**instant), KINDS)
    assert same_in_both_calendars(with_field(name="born", missingValues=["", "unknown", "9999-12-31"]), KINDS)
    assert same_in_both_calendars(with_field(name="age", missingValues=["", "-1"]), KINDS)
    assert same_in_both_calendars(with_field(name="stamp", categories=["2020-03-29T00:30:00Z", "none"]), KINDS)
    others: list[dict[str, Any]] = [
        day | {"constraints": {"minimum": "1582-12-31", "maximum": "1999-12-31"}},
        instant | {"constraints": {"minimum": "1900-12-31T23:59:59", "maximum": "2020-12-31T23:59:59"}},
        {"name": "born", "missingValues": ["", "0001-01-01"]},
        {"name": "born", "missingValues": ["", "31.12.1500"]},
        {"name": "stamp", "categories": ["1899-12-31T00:00:00Z"]},
        {"name": "stamp", "categories": None, "margent": {"openSet": True}},
        {"name": "wall", "type": "year", "constraints": {"minimum": 800, "maximum": 2000}, "margent": {"bins": 5}},
    ]
    for other in others:
        assert not same_in_both_calendars(with_field(**other), KINDS), other
    to = {"field": "born", "unit": "day", "minimum": 0, "maximum": 9}
    relative = {"name": "gone", "type": "date", "margent": {"relativeTo": to}}
    both = KINDS.append(pa.field("gone", pa.date32()))
    assert not same_in_both_calendars(with_field(**relative), both)
