"""What is written comes back cell by cell, in the same bytes every time, or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_schemas import CASES, read_rows

from margent.errors import TableError, UsageError
from margent.tables.options import FILE_SUFFIXES, TEXT_KINDS, ReadOptions
from margent.tables.write import write_table

CELLS = st.text(alphabet='ab,;\t"\r\n é', max_size=4)
TABLE = pa.table({"a": ["x", None, 'q"'], "b": ["1", "", "é,"]})


def blocks(table: pa.Table, rows: int) -> list[pa.Table]:
    return [table.slice(start, rows) for start in range(0, max(table.num_rows, 1), rows)]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)))
def test_text_comes_back_through_the_csv_module_and_our_reader(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[str]]
) -> None:
    names = [f'n,"{place}' for place in range(len(table[0]))]
    columns = pa.table({name: list(column) for name, column in zip(names, zip(*table, strict=True), strict=True)})
    path = tmp_path_factory.mktemp("write") / "t.csv"
    write_table(path, "csv", iter(blocks(columns, 2)))
    text = path.read_bytes().decode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == [names, *table]
    assert read_rows(path, *names) == [tuple(cell.encode() for cell in row) for row in table]
    assert text == "".join(",".join(minimally_quoted(cell, row) for cell in row) + "\n" for row in [names, *table])


def minimally_quoted(cell: str, row: list[str]) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if set(cell) & set(',"\r\n') or row == [""] else cell


def test_golden_bytes(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", "csv", iter([TABLE]))
    assert (tmp_path / "t.csv").read_bytes() == 'a,b\nx,1\n,\n"q""","é,"\n'.encode()
    write_table(tmp_path / "t.tsv", "tsv", iter([TABLE]), options=ReadOptions(quote="'", header=False))
    assert (tmp_path / "t.tsv").read_bytes() == 'x\t1\n\t\nq"\té,\n'.encode()
    single = pa.table({"a": ["", None, "x"]})
    write_table(tmp_path / "s.csv", "csv", iter([single]))
    assert (tmp_path / "s.csv").read_bytes() == b'a\n""\n""\nx\n'


def test_without_a_quote_character_cells_are_still_safe(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", "csv", iter([TABLE]), options=ReadOptions(delimiter=";", quote=None))
    assert (tmp_path / "t.csv").read_bytes() == 'a;b\nx;1\n;\n"q""";é,\n'.encode()


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not beside this checkout")
def test_the_header_comes_back_byte_for_byte(tmp_path: Path) -> None:
    header = next(CASES.glob("07*/input.csv")).read_bytes().split(b"\n")[0].rstrip(b"\r")
    names = next(csv.reader([header.decode()]))
    write_table(tmp_path / "t.csv", "csv", iter([pa.table({name: ["1"] for name in names})]))
    assert (tmp_path / "t.csv").read_bytes().split(b"\n")[0] == header


@pytest.mark.parametrize("kind", sorted(FILE_SUFFIXES))
@pytest.mark.parametrize("rows", [0, 5])
def test_every_kind_comes_back_and_is_the_same_every_time(tmp_path: Path, kind: str, rows: int) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 1], pa.int8()), ["lo", "hi"], ordered=True)
    typed = pa.table({"a": ["x", "y", None, "é", ""], "n": pa.array([1, None, 3, 4, 5], pa.int16()), "c": words})
    plain = pa.table({"a": typed["a"], "n": typed["n"].cast(pa.string()), "c": words.cast(pa.string())})
    table = (plain if kind in TEXT_KINDS else typed).slice(0, rows)
    paths = [tmp_path / f"{place}{FILE_SUFFIXES[kind]}" for place in range(2)]
    for path in paths:
        write_table(path, kind, iter(blocks(table, 2)), table.schema)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    found = read_rows(paths[0], "a", "n", "c")
    expected = [tuple(row.values()) for row in table.to_pylist()]
    if kind in TEXT_KINDS:
        expected = [tuple((cell or "").encode() for cell in row) for row in expected]
    assert found == expected


@pytest.mark.parametrize("kind", FILE_SUFFIXES)
def test_names_that_are_no_utf8_can_be_written_to_and_read(tmp_path: Path, kind: str) -> None:
    """A release is written after its charge: what the system takes as a name must do."""
    folder = tmp_path / os.fsdecode(b"OUT\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes no names but UTF-8")
    write_table(folder / f"t{FILE_SUFFIXES[kind]}", kind, iter([TABLE]))
    assert len(read_rows(folder / f"t{FILE_SUFFIXES[kind]}", "a", "b")) == 3


def test_slices_and_nulls_of_any_offset(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(["p", None, "q", "rr", None, "s"]), "b": pa.array(list("uvwxyz"))}).slice(1, 4)
    write_table(tmp_path / "t.csv", "csv", iter([table.slice(0, 3), table.slice(3)]))
    assert read_rows(tmp_path / "t.csv", "a", "b") == [(b"", b"v"), (b"q", b"w"), (b"rr", b"x"), (b"", b"y")]


def test_bytes_under_a_null_are_not_written(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2, 4, 6], dtype=np.int32))
    buffers = [pa.py_buffer(bytes([0b101])), offsets, pa.py_buffer(b"aabbcc")]
    hidden = pa.Array.from_buffers(pa.string(), 3, buffers)
    assert hidden.to_pylist() == ["aa", None, "cc"]
    write_table(tmp_path / "t.csv", "csv", iter([pa.table({"a": hidden, "b": ["1", "2", "3"]})]))
    assert (tmp_path / "t.csv").read_bytes() == b"a,b\naa,1\n,2\ncc,3\n"


def test_gzip_holds_neither_time_nor_name(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv.gz", "csv.gz", iter([TABLE]))
    header = (tmp_path / "t.csv.gz").read_bytes()[:10]
    assert header[3] == 0  # no name
    assert header[4:8] == bytes(4)  # no time
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).startswith(b"a,b\n")


def test_no_table_at_all_needs_its_columns_declared(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", "csv", iter([]), TABLE.schema)
    assert (tmp_path / "t.csv").read_bytes() == b"a,b\n"
    with pytest.raises(ValueError, match="declared"):
        write_table(tmp_path / "t.csv", "csv", iter([]))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_a_block_of_other_columns_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="declared"):
        write_table(tmp_path / f"t.{kind}", kind, iter([TABLE, pa.table({"a": [1.5]})]))


def test_what_the_disk_refuses_is_a_table_error(tmp_path: Path) -> None:
    for kind in ("csv", "parquet", "arrow"):
        with pytest.raises(TableError, match="cannot be written"):
            write_table(tmp_path / "none" / "t", kind, iter([TABLE]))
    with pytest.raises(UsageError, match="xlsx"):
        write_table(tmp_path / "t.xlsx", "xlsx", iter([TABLE]))


@pytest.mark.skipif(os.name == "nt", reason="file modes are those of POSIX")
def test_the_file_has_the_modes_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_table(tmp_path / "t.csv", "csv", iter([TABLE]))
    finally:
        os.umask(before)
    assert (tmp_path / "t.csv").stat().st_mode & 0o777 == 0o640
