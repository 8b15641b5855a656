"""Folders of files: which files are one table, what their folders' names say, and what changes between passes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from table_schemas import CANARY, bytes_of, names_only, read_rows, rows_of

from margent.errors import MargentError, SchemaError, TableError
from margent.tables import folders
from margent.tables.declared import declared_columns
from margent.tables.options import ReadOptions
from margent.tables.snapshot import CHANGED
from margent.tables.source import open_table
from margent.tables.write import write_table


def write(path: Path, cells: list[Any], name: str = "a", kind: Any = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({name: pa.array(cells, kind)})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path)
    else:
        path.write_text("".join(f"{cell}\n" for cell in [name, *cells]))
    return path


def declared_of(path: Path) -> Any:
    return declared_columns(path, ReadOptions())


def test_files_come_in_the_order_of_their_paths_and_hidden_ones_do_not_count(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", [3])
    write(tmp_path / "a" / "y.parquet", [2])
    write(tmp_path / "a" / "x.parquet", [1])
    write(tmp_path / "c" / "z.pq.parquet", [4])
    for hidden in ("_metadata", ".part.parquet", "_temporary/0.parquet", ".hidden/1.parquet", "a/_SUCCESS"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_bytes(b"not parquet")
    (tmp_path / "README.md").write_text("what this is")
    assert read_rows(tmp_path, "a") == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv", "tsv"])
def test_folders_named_key_value_give_columns_as_text(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / "year=2020" / "sex=F" / f"1.{suffix}", [1, 2])
    write(tmp_path / "year=2020" / "sex=__HIVE_DEFAULT_PARTITION__" / f"1.{suffix}", [3])
    write(tmp_path / "year=2021" / "sex=a%2Fb %C3%A9" / f"1.{suffix}", [4])
    with open_table(tmp_path, names_only("sex", "a", "year")) as source:
        found = [
            (sex, str(a if not isinstance(a, bytes) else a.decode()), year.decode())
            for batch in source.batches()
            for sex, a, year in zip(
                bytes_of(batch.column("sex")),
                batch.column("a").to_pylist(),
                bytes_of(batch.column("year")),
                strict=True,
            )
        ]
        assert source.columns == ("a", "year", "sex")
        assert source.kind == suffix
    assert found == [
        (b"F", "1", "2020"),
        (b"F", "2", "2020"),
        (None, "3", "2020"),
        ("a/b é".encode(), "4", "2021"),
    ]
    # Where the schema does not name them they are no columns, and where it names nothing else rows still count.
    assert len(read_rows(tmp_path, "a")) == 4
    with open_table(tmp_path, names_only("year", dropped=("a",))) as source:
        assert [row[0] for row in rows_of(source)] == ["2020", "2020", "2020", "2021"]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow", "csv", "tsv.gz", "csv.zst"])
def test_a_value_that_is_no_utf8_is_a_cell_whatever_the_files_are(tmp_path: Path, suffix: str) -> None:
    """A folder's name is a cell, and no cell may stop a run."""
    for place, value in enumerate([b"F", b"\xff", b"%FE", "é".encode()]):
        folder = tmp_path / os.fsdecode(b"k=" + value)
        try:
            folder.mkdir()
        except OSError:
            pytest.skip("this file system takes no names but UTF-8")
        write_table(folder / f"0.{suffix}", suffix, iter([pa.table({"a": [str(place)]})]))
    assert declared_of(tmp_path)[0] == ("a", "k")
    with open_table(tmp_path, names_only("k", dropped=("a",))) as source:
        for _ in range(2):
            cells = [bytes(cell) for batch in source.batches() for cell in as_bytes(batch.column(0))]
            assert sorted(cells) == sorted([b"F", b"\xff", b"\xfe", "é".encode()])


def as_bytes(column: Any) -> list[Any]:
    return column.to_pylist() if pa.types.is_binary(column.type) else bytes_of(column)


def test_a_draft_has_the_columns_of_the_names(tmp_path: Path) -> None:
    write(tmp_path / "year=2020" / "1.parquet", [1])
    names, declared = declared_columns(tmp_path, ReadOptions())
    assert names == ("a", "year")
    assert declared.field("year").type == pa.string()
    write(tmp_path / "t" / "year=2020" / "1.csv", [1])
    assert declared_columns(tmp_path / "t", ReadOptions()) == (("a", "year"), None)


def test_values_in_the_names_of_folders_are_in_no_message(tmp_path: Path) -> None:
    secret = f"id={CANARY}"
    write(tmp_path / "one" / "id=0" / "1.parquet", [1])
    write(tmp_path / "one" / secret / "1.parquet", ["x"])
    write(tmp_path / "two" / "id=0" / "1.parquet", [1])
    write(tmp_path / "two" / secret / "1.parquet", ["x"], name="b")
    write(tmp_path / "three" / "id=0" / "1.parquet", [1])
    (tmp_path / "three" / secret).mkdir()
    (tmp_path / "three" / secret / "1.parquet").write_bytes(b"no parquet")
    write(tmp_path / "four" / "id=0" / "1.csv", [1])
    write(tmp_path / "four" / secret / "1.csv", [])
    (tmp_path / "four" / secret / "1.csv").write_bytes(b"")
    write(tmp_path / "five" / "id=0" / "1.parquet", [1])
    write(tmp_path / "five" / secret / f"x={CANARY}" / "1.parquet", [1])
    write(tmp_path / "six" / secret / secret / "1.parquet", [1])
    write(tmp_path / "seven" / secret / "1.feather", [1])
    (tmp_path / "seven" / secret / "1.feather").write_bytes(b"FEA1....")
    (tmp_path / "eight" / secret).mkdir(parents=True)
    (tmp_path / "eight" / secret / "1.parquet").symlink_to(tmp_path / "nowhere.parquet")
    (tmp_path / "nine" / secret / "1.parquet").mkdir(parents=True)
    os.mkfifo(tmp_path / "nine" / secret / "2.csv")
    write(tmp_path / "ten" / secret / "1.parquet", [1])
    (tmp_path / "ten" / secret / "loop").symlink_to(tmp_path / "ten", target_is_directory=True)
    write(tmp_path / "eleven" / secret / "1.parquet", [1])
    (tmp_path / "eleven" / secret / "_delta_log").mkdir()
    expected = {
        "one": "id=*/1.parquet, column a: its type is not the one in id=*/1.parquet",
        "two": "id=*/1.parquet: its columns are not those of id=*/1.parquet",
        "three": "id=*/1.parquet: cannot be read as Parquet",
        "four": "id=*/1.csv: the file has no header line",
        "five": "id=*/x=*/1.parquet beside id=*/1.parquet",
        "six": "twice: id=*/id=*/1.parquet",
        "seven": "id=*/1.feather: Feather version 1",
        "eight": "id=*/1.parquet: there is no such file",
        "nine": "id=*/2.csv: not a regular file",
        "ten": "ten: holds a link to another folder",
        "eleven": "eleven: this is a table of Delta",
    }
    for folder, message in expected.items():
        with pytest.raises(MargentError) as caught:
            open_table(tmp_path / folder, names_only("a", "id"))
        assert message in str(caught.value)
        assert CANARY not in str(caught.value) + repr(caught.value.__context__)


@pytest.mark.parametrize("ask", [lambda path: open_table(path, names_only("a", "id")), declared_of])
def test_a_file_that_cannot_be_opened_hangs_on_no_message(
    ask: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write(tmp_path / f"id={CANARY}" / "1.parquet", [1])

    def refused(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(written))

    monkeypatch.setattr(folders, "declared_types", refused)
    with pytest.raises(TableError, match="cannot be opened: Permission denied") as caught:
        ask(tmp_path)
    assert CANARY not in f"{caught.value} {caught.value.__context__}"


def test_a_first_line_that_may_be_a_row_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    (tmp_path / "year=2020" / "1.csv").write_text(f"{CANARY}\n")
    with pytest.raises(SchemaError) as caught:
        open_table(tmp_path, names_only("a", "year"))
    assert CANARY not in str(caught.value)
    assert "--no-header" in str(caught.value)


def test_without_headers_columns_are_those_of_the_schema_less_the_folders(tmp_path: Path) -> None:
    for year in ("2020", "2021"):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "1.csv").write_text("1,x\n2,y\n")
    with open_table(tmp_path, names_only("n", "year", "s"), ReadOptions(header=False)) as source:
        assert rows_of(source) == [
            (b"1", "2020", b"x"),
            (b"2", "2020", b"y"),
            (b"1", "2021", b"x"),
            (b"2", "2021", b"y"),
        ]


def test_a_column_both_inside_and_in_the_name_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a=1" / "1.parquet", [1])
    with pytest.raises(SchemaError, match="occurs 2 times"):
        open_table(tmp_path, names_only("a"))


def test_several_kinds_are_told_apart_by_option(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", [1])
    write(tmp_path / "2.csv", [2])
    with pytest.raises(TableError, match=r"several kinds \(csv, parquet\)"):
        open_table(tmp_path, names_only("a"))
    assert read_rows(tmp_path, "a", kind="csv") == [(b"2",)]
    assert read_rows(tmp_path, "a", kind="parquet") == [(1,)]
    with pytest.raises(TableError, match="no file that can be read as a table of kind feather"):
        open_table(tmp_path, names_only("a"), ReadOptions(kind="feather"))


@pytest.mark.parametrize(("mark", "tool"), [("_delta_log", "Delta"), (".hoodie", "Hudi"), ("metadata", "Iceberg")])
def test_folders_that_hold_rows_of_earlier_versions_are_refused(tmp_path: Path, mark: str, tool: str) -> None:
    write(tmp_path / "data" / "1.parquet", [1])
    (tmp_path / mark).mkdir()
    (tmp_path / mark / "v1.metadata.json").write_text("{}")
    with pytest.raises(TableError, match=f"table of {tool}"):
        open_table(tmp_path, names_only("a"))


def test_links_to_folders_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "t" / "1.parquet", [1])
    (tmp_path / "t" / "loop").symlink_to(tmp_path / "t", target_is_directory=True)
    with pytest.raises(TableError, match="not followed"):
        open_table(tmp_path / "t", names_only("a"))


@pytest.mark.parametrize("change", ["add", "remove", "replace", "touch", "rename", "grow", "folder"])
def test_whatever_changes_in_the_folder_ends_the_pass_with_fixed_text(tmp_path: Path, change: str) -> None:
    table = tmp_path / "t"
    for part in ("1.parquet", "k=1.parquet", "z.parquet"):
        write(table / part, [1])
    with open_table(table, names_only("a")) as source:
        assert rows_of(source) == [(1,)] * 3
        changed = {
            "add": lambda: write(table / "2.parquet", [1]),
            "remove": (table / "z.parquet").unlink,
            "replace": lambda: write(tmp_path / "other.parquet", [1]).replace(table / "z.parquet"),
            "touch": lambda: os.utime(table / "z.parquet", ns=(1, 1)),
            "rename": lambda: (table / "z.parquet").rename(table / "y.parquet"),
            "grow": lambda: write(table / "z.parquet", [1, 2, 3]),
            "folder": lambda: write(table / "k=1" / "1.parquet", [1]),
        }
        changed[change]()
        with pytest.raises(TableError) as caught:
            rows_of(source)
        assert str(caught.value) == CHANGED


def test_a_change_in_the_middle_of_a_pass_is_seen_at_its_end(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / f"{part}.parquet", [part])
    with open_table(tmp_path, names_only("a")) as source:
        batches = source.batches()
        assert next(batches).column("a").to_pylist() == [0]
        write(tmp_path / "9.parquet", [9])
        with pytest.raises(TableError) as caught:
            list(batches)
        assert str(caught.value) == CHANGED


def test_what_other_files_and_new_hidden_ones_do_is_no_change(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", [1])
    with open_table(tmp_path, names_only("a")) as source:
        assert rows_of(source) == [(1,)]
        (tmp_path / "_SUCCESS").touch()
        (tmp_path / "notes.md").write_text("x")
        assert rows_of(source) == [(1,)]
