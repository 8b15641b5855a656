"""Run-end encoded columns and dictionaries are coded as the same values spelled out, whatever container they are in."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pytest

from margent import Category, Date, Integer, Number, Schema
from margent.counts.identity import Identity
from margent.counts.texts import batch_texts
from margent.internal.inspection import inspect
from margent.machine import TEXT_BYTES
from margent.schema.codec import Codec
from margent.schema.public_draft import draft_from_public_data
from margent.tables import fitting
from margent.tables.source import open_table

ENDS = [2, 3, 7, 8]
PLACES = [0, 0, 1, 2, 2, 2, 2, 3]
WORDS = ["F", "M", None, "a text of more than twelve letters"]
TEXTS = pa.array(WORDS)
MOMENTS = pa.array([0, 1_600_000_000, None, 7], pa.timestamp("s"))
VIEWS = pa.array(["F", "M", WORDS[3]], pa.string_view())
VALUES = {
    "string": TEXTS,
    "large_string": TEXTS.cast(pa.large_string()),
    "string_view": TEXTS.cast(pa.string_view()),
    "binary": TEXTS.cast(pa.binary()),
    "binary_view": TEXTS.cast(pa.binary_view()),
    "dictionary": TEXTS.dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), VIEWS),
    "dictionary with a null": TEXTS.dictionary_encode(null_encoding="encode"),
    "json": pa.ExtensionArray.from_storage(pa.json_(pa.string()), TEXTS),
    "json of views": pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), TEXTS.cast(pa.string_view())),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16, None, b"c" * 16], pa.binary(16))),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, None, -1], pa.int8())),
    "bytes": pa.array([b"F", b"M", None, b"x"], pa.binary(1)),
    "integer": pa.array([1, 2, None, 3]),
    "unsigned": pa.array([1, 2, None, 3], pa.uint16()),
    "float": pa.array([1.0, float("nan"), None, 3.5]),
    "half": pa.array([1, 2, None, 3], pa.float16()),
    "boolean": pa.array([True, False, None, True]),
    "decimal": pa.array([decimal.Decimal(1), decimal.Decimal(2), None, decimal.Decimal(3)], pa.decimal32(5, 0)),
    "date": MOMENTS.cast(pa.date32()),
    "time": pa.array([1, 2, None, 3], pa.time32("s")),
    "timestamp": MOMENTS,
    "null": pa.nulls(4),
}  # fmt: skip


def spelled(values: Any) -> Any:
    """The same cells without runs, dictionaries or extension types."""
    if isinstance(values.type, pa.BaseExtensionType):
        return spelled(values.storage)
    if pa.types.is_dictionary(values.type):
        values = pa.array(values.to_pylist(), pa.string())
    if values.type in (pa.string_view(), pa.binary_view()):
        values = values.cast(pa.string() if values.type == pa.string_view() else pa.binary())
    return values.take(pa.array(PLACES))


def runs(values: Any, width: Any = None) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array(ENDS, width or pa.int32()), values)


def field_of(values: Any) -> Any:
    kind = spelled(values).type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Date("x", "1970-01-01", "2029-12-31", bins="year")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Number("x", 0, 4, bins=4, decimals=1)
    return Category("x", [word for word in WORDS if word] + ["true", "00:00:02"])


def in_memory(table: pa.Table, folder: Path) -> Any:
    return table


def as_reader(table: pa.Table, folder: Path) -> Any:
    return table.to_reader()


def as_file(table: pa.Table, folder: Path) -> Any:
    with pa.ipc.new_file(folder / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    return folder / "t.arrow"


def as_stream(table: pa.Table, folder: Path) -> Any:
    with pa.ipc.new_stream(folder / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    return folder / "t.arrow"


def as_feather(table: pa.Table, folder: Path) -> Any:
    pyarrow.feather.write_feather(table, folder / "t.feather")
    return folder / "t.feather"


CONTAINERS = pytest.mark.parametrize("wrap", [in_memory, as_reader, as_file, as_stream, as_feather])
Wrap = Callable[[pa.Table, Path], Any]


@CONTAINERS
@pytest.mark.parametrize("name", VALUES)
def test_runs_of_anything_are_coded_as_their_values(name: str, wrap: Wrap, tmp_path: Path) -> None:
    values = VALUES[name]
    schema = Schema([field_of(values)], unit="row")
    codec, identity = Codec(schema), Identity("x", ("",), "string")
    plainly = pa.RecordBatch.from_arrays([spelled(values)], names=["x"])
    (codes,) = codec.encode(plainly)
    for width in (pa.int16(), pa.int64()):
        with open_table(wrap(pa.table({"x": runs(values, width)}), tmp_path), schema) as table:
            (batch,) = table.batches()
        np.testing.assert_array_equal(codec.encode(batch)[0], codes)
        np.testing.assert_array_equal(identity.pseudonyms(batch), identity.pseudonyms(plainly))
        assert counted(batch) == counted(plainly)
        for start, length in [(0, 0), (0, 2), (1, 3), (2, 1), (3, 5), (7, 1)]:
            part = pa.table({"x": runs(values, width).slice(start, length)})
            with open_table(part, schema) as table:
                found = [codec.encode(batch)[0] for batch in table.batches()]
            np.testing.assert_array_equal(np.concatenate([codes[:0], *found]), codes[start : start + length])
    direct = pa.RecordBatch.from_arrays([runs(values)], names=["x"])
    np.testing.assert_array_equal(codec.encode(direct)[0], codes)


def counted(batch: pa.RecordBatch) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for text, count in zip(*batch_texts(batch, "x"), strict=True):
        found[text] += count
    return found


@pytest.mark.parametrize("name", ["date", "string"])
def test_missing_dates_inside_of_runs_and_dictionaries_are_missing(name: str) -> None:
    """Of a date relative to another too: a null in a dictionary is as good as one beside it."""
    dates = ["2020-01-01", "2020-01-31", None, "2020-03-01"]
    values = (
        pa.array(dates)
        if name == "string"
        else pa.array([date and datetime.date.fromisoformat(date) for date in dates])
    )
    base = Date("base", "2020-01-01", "2020-12-31", bins="month")
    apart = {"field": "base", "unit": "day", "minimum": 0, "maximum": 100}
    late = Date("x", None, None, bins={"width": 10}, relative_to=apart)
    codec = Codec(Schema([base, late], unit="row"))
    bases = pa.array(["2020-01-01"] * 8)

    def codes(column: Any) -> list[list[int]]:
        batch = pa.RecordBatch.from_arrays([bases, column], names=["base", "x"])
        return [found.tolist() for found in codec.encode(batch)]

    assert codes(runs(values)) == codes(values.take(pa.array(PLACES)).dictionary_encode(null_encoding="encode"))
    if name == "date":
        assert codes(runs(values)) == codes(values.take(pa.array(PLACES)))


def test_a_long_text_is_held_once_however_long_its_run_is(tmp_path: Path) -> None:
    """65,536 rows of a megabyte each would be 64 GiB."""
    long = pa.array(["F" * 2**20])
    schema = Schema([Category("x", ["F"])], unit="row")
    for values in (long, long.cast(pa.string_view()), long.dictionary_encode()):
        column = pa.RunEndEncodedArray.from_arrays(pa.array([200_000], pa.int32()), values)
        with open_table(as_file(pa.table({"x": column}), tmp_path), schema) as table:
            for batch in table.batches():
                assert Codec(schema).encode(batch)[0].sum() == batch.num_rows
                assert sum(batch_texts(batch, "x")[1]) == batch.num_rows


TAKEN = pa.array([3, None, 0, 2, 3, 1], pa.uint8())


@pytest.mark.parametrize("name", VALUES)
def test_slices_are_read_without_what_their_dictionaries_have_beside(name: str) -> None:
    """Values that are unused, met twice, or null; with each slice a long dictionary would be coded anew."""
    values, schema = VALUES[name], Schema([field_of(VALUES[name])], unit="row")
    codec, identity = Codec(schema), Identity("x", ("",), "string")
    firsts = pa.array([PLACES.index(place) for place in range(4)])  # `spelled` repeats the four values
    cells = spelled(values).take(firsts).take(TAKEN)
    for many in (values, runs(values)) if "dictionary" not in name else (values,):
        places = TAKEN if many is values else firsts.take(TAKEN).cast(pa.uint8())
        column = pa.DictionaryArray.from_arrays(places, many)
        for start, length in [(0, 6), (0, 3), (1, 3), (2, 1), (1, 1), (5, 1), (0, 0)]:
            expected = pa.RecordBatch.from_arrays([cells.slice(start, length)], names=["x"])
            with open_table(pa.table({"x": column.slice(start, length)}), schema) as table:
                for batch in table.batches():
                    assert len(batch.column("x").dictionary) <= length
                    np.testing.assert_array_equal(codec.encode(batch)[0], codec.encode(expected)[0])
                    np.testing.assert_array_equal(identity.pseudonyms(batch), identity.pseudonyms(expected))
                    assert counted(batch) == counted(expected)


def views_of_one_text(letters: int, rows: int) -> Any:
    """Texts that lie in one another, each one letter shorter than the one before."""
    views = np.zeros((rows, 4), np.int32)
    views[:, 0] = letters - np.arange(rows)
    views[:, 1] = int.from_bytes(b"FFFF", "little")
    buffers = [None, pa.py_buffer(views), pa.py_buffer(b"F" * letters)]
    return pa.Array.from_buffers(pa.string_view(), rows, buffers)


LETTERS, MANY = 40_000, 20_000
SHARING: dict[str, Callable[[], Any]] = {
    "views": lambda: views_of_one_text(LETTERS, MANY),
    "bytes": lambda: views_of_one_text(LETTERS, MANY).view(pa.binary_view()),
    "json": lambda: pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), views_of_one_text(LETTERS, MANY)),
    "dictionary of views": lambda: pa.DictionaryArray.from_arrays(np.arange(MANY), views_of_one_text(LETTERS, MANY)),
    "runs of views": lambda: pa.RunEndEncodedArray.from_arrays(
        np.arange(1, MANY + 1), views_of_one_text(LETTERS, MANY)
    ),
}
REPEATED: dict[str, Callable[[], Any]] = {
    "dictionary": lambda: pa.DictionaryArray.from_arrays(np.zeros(MANY, np.int32), pa.array(["F" * LETTERS])),
    "bytes of one length": lambda: pa.RunEndEncodedArray.from_arrays(
        [MANY], pa.array([b"F" * LETTERS], pa.binary(LETTERS))
    ),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays([MANY], pa.array(["F" * LETTERS])),
}


@pytest.mark.parametrize("wrap", [in_memory, as_reader, as_file])
@pytest.mark.parametrize("name", SHARING | REPEATED)
def test_texts_that_share_their_bytes_are_spelled_out_a_few_rows_at_a_time(
    name: str, wrap: Wrap, tmp_path: Path
) -> None:
    """They are 400 to 800 MB when they do not share; where one text is repeated, files keep it once."""
    if name == "json" and wrap is as_file:
        pytest.skip("pyarrow does not write it")
    column = (SHARING | REPEATED)[name]()
    lengths = LETTERS - np.arange(MANY) if name in SHARING else np.full(MANY, LETTERS)
    with open_table(wrap(pa.table({"x": column}), tmp_path), Schema([Category("x", ["F"])], unit="row")) as table:
        found = []
        for batch in table.batches():
            assert batch.nbytes <= 1.25 * TEXT_BYTES
            (cells,) = batch.columns
            texts = cells.dictionary if pa.types.is_dictionary(cells.type) else cells
            sizes = pc.binary_length(texts)
            found.append(sizes.take(cells.indices) if texts is not cells else sizes)
    np.testing.assert_array_equal(pa.chunked_array(found).to_numpy(), lengths)


def test_one_row_may_be_larger_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "TEXT_BYTES", 3)
    texts = ["four", None, "1", "22", "333", "", "seven77", "8"]
    for column in (pa.array(texts, pa.string_view()), pa.array(texts).dictionary_encode()):
        size = fitting.plain_bytes if column.type == pa.string_view() else fitting.spelled_bytes
        parts = list(fitting.fitting(pa.record_batch({"x": column}), size))
        assert [cell for part in parts for cell in part.column("x").to_pylist()] == texts
        lengths = [[len(cell or "") for cell in part.column("x").to_pylist()] for part in parts]
        assert all(sum(each) <= 3 or len(each) == 1 for each in lengths)
        assert len(parts) < len(texts)


def test_a_text_in_a_dictionary_is_inspected_and_drafted_as_it_is_held() -> None:
    """Once: 65,536 rows of a megabyte each would be 64 GiB."""
    column = pa.DictionaryArray.from_arrays(
        np.array([0, 1, 2, 1] * 16_384, np.int32), pa.array(["F" * 2**20, "7", None])
    )
    (inspected,) = inspect(pa.table({"x": column}), Schema([Integer("x", 0, 5)], unit="row")).document["columns"]
    assert inspected["clippedAbove"] == 32_768
    (drafted,) = draft_from_public_data([pa.record_batch({"x": column})], unit="row").document["fields"]
    assert drafted["categories"] == ["7", "F" * 2**20]


def test_a_number_in_a_dictionary_of_texts_is_inspected() -> None:
    table = pa.table({"x": pa.array(["1", "9", None, "-3"]).dictionary_encode()})
    (column,) = inspect(table, Schema([Integer("x", 0, 5)], unit="row")).document["columns"]
    assert (column["clippedBelow"], column["clippedAbove"]) == (1, 1)


def test_dictionaries_in_a_dictionary_are_read_where_arrow_reads_them(tmp_path: Path) -> None:
    inner = TEXTS.dictionary_encode()
    outer = pa.array(PLACES)
    schema = Schema([Category("x", [word for word in WORDS if word])], unit="row")
    expected = Codec(schema).encode(pa.RecordBatch.from_arrays([TEXTS.take(outer)], names=["x"]))[0]
    run_in_it = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), inner)
    for values, wraps in ((inner, [in_memory, as_reader]), (run_in_it, [in_memory, as_reader, as_file, as_feather])):
        table = pa.table({"x": pa.DictionaryArray.from_arrays(outer, values)})
        for wrap in wraps:
            with open_table(wrap(table, tmp_path), schema) as opened:
                (batch,) = opened.batches()
            np.testing.assert_array_equal(Codec(schema).encode(batch)[0], expected)
            assert counted(batch)[b"F"] == 2
