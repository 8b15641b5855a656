"""CSV and TSV files: what is refused on opening, what is not, and what happens when reading breaks off."""

from __future__ import annotations

import csv
import gzip
import io
import os
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from table_schemas import CANARY, CASES, names_only, read_rows, rows_of

from margent.errors import SchemaError, TableError
from margent.tables.declared import declared_columns
from margent.tables.header_line import first_record
from margent.tables.options import ReadOptions
from margent.tables.snapshot import CHANGED, CLOSED, UNREADABLE
from margent.tables.source import open_table
from margent.tables.text import _BEHIND, _OPEN, TextFile

needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not beside this checkout")


def written(folder: Path, content: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refusal(path: Path, *names: str, **options: object) -> str:
    with pytest.raises((TableError, SchemaError)) as caught:
        open_table(path, names_only(*names), ReadOptions(**options))  # type: ignore[arg-type]
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_columns_are_matched_by_name_and_given_in_the_schema_s_order(tmp_path: Path) -> None:
    path = written(tmp_path, b"b,note,a\n1,x,2\n")
    with open_table(path, names_only("a", "b", dropped=("note", "gone"))) as source:
        assert (source.kind, source.columns) == ("csv", ("b", "note", "a"))
        assert rows_of(source) == rows_of(source) == [(b"2", b"1")]
        assert next(source.batches()).schema == pa.schema([("a", pa.binary()), ("b", pa.binary())])


def test_the_header_s_faults_come_all_at_once(tmp_path: Path) -> None:
    text = refusal(written(tmp_path, b"age,Sex,age,,extra\n"), "age", "sex", "height")
    assert "6 faults" in text
    assert "age: the column name occurs 2 times, at positions 1 and 3" in text
    assert "sex: the schema has this column and the table does not; the nearest it has: 'Sex'" in text
    assert "height: the schema has this column" in text
    assert 'extra: the table has this column and the schema does not: add it there with "role": "drop"' in text
    assert "column 4: the table has a column without a name" in text


@pytest.mark.parametrize(("sign", "typed"), [(";", ";"), ("\t", r"\t"), ("|", "|")])
def test_another_delimiter_is_hinted_at(tmp_path: Path, sign: str, typed: str) -> None:
    path = written(tmp_path, f'ward{sign}"cost"\nNorth{sign}1,5\n'.encode())
    assert f'did you mean --delimiter "{typed}"?' in refusal(path, "ward", "cost")
    assert read_rows(path, "ward", "cost", delimiter=typed) == [(b"North", b"1,5")]


@pytest.mark.parametrize("line", [f"{CANARY},7,x", f"{CANARY}", f"{CANARY};7;x", f"7,7,{CANARY}"])
def test_a_first_line_that_may_be_a_row_is_not_shown(tmp_path: Path, line: str) -> None:
    (tmp_path / "t.csv").write_text(f"{line}\n")
    with pytest.raises(SchemaError, match=r"none of which is a column of the schema.*--no-header") as caught:
        open_table(tmp_path / "t.csv", names_only("a", "b", "c"))
    assert CANARY not in str(caught.value)
    assert "'a', 'b', 'c'" in str(caught.value)
    # Half of the names, whatever their case, and the line is a header: all differences are listed.
    (tmp_path / "t.csv").write_text("A ,c,y\n")
    with pytest.raises(SchemaError, match="y: the table has this column"):
        open_table(tmp_path / "t.csv", names_only("a", "b", "c"))


def test_a_first_line_with_few_names_is_counted_and_not_shown(tmp_path: Path) -> None:
    """A cell of a row may be spelled like a column: a value "sex" of a column of questions, say."""
    text = refusal(written(tmp_path, f"sex,{CANARY},42,{CANARY}\n".encode()), "sex", "age", "ward")
    assert "header: 3 of the first line's 4 cells are no columns of the schema" in text
    assert "--no-header" in text
    assert "age: the schema has this column and the table does not" in text
    assert CANARY not in text
    assert "42" not in text
    text = refusal(written(tmp_path, f"{CANARY};sex;42\n".encode()), "sex", "age")
    assert "header: it is one column that holds" in text
    assert CANARY not in text


def test_only_what_can_be_a_name_is_shown_as_one(tmp_path: Path) -> None:
    frame = pa.table([pa.array([1])] * 4, names=["age", "odd\r" + CANARY, CANARY * 30, "odd\r" + CANARY])
    with pytest.raises(SchemaError) as caught:
        open_table(frame, names_only("age", "odd " + CANARY))
    assert [fault.pointer for fault in caught.value.faults] == ["column 2", "odd " + CANARY, "column 2", "column 3"]
    assert str(caught.value).count(CANARY) == 1


OPEN = b'id,age,sex,when,"pay\n'


@pytest.mark.parametrize(
    "rows",
    [
        b"",
        f"17,42,F,2010-01-01,12.5\n{CANARY},99,M,2011-01-01,13.5\n".encode(),
        f'17,42,F,2010-01-01,"12.5"\n{CANARY},99,M\n'.encode(),
        f'17,42,"\n{CANARY},99\n'.encode(),
        b'"' * 7 + b"\xff" + b"x,y\n" * 2**18,
        b"x" * 2**20,
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_quote_that_its_line_does_not_close_shows_no_row(tmp_path: Path, rows: bytes, end: bytes) -> None:
    """The same words whatever follows, with a schema and without one, in a file and in a folder."""
    path = written(tmp_path, OPEN.replace(b"\n", end) + rows)
    text = refusal(path, "id", "age", "sex", "when", "pay")
    assert text == f"{path}: {_OPEN}"
    with pytest.raises(TableError) as caught:
        declared_columns(path, ReadOptions())
    assert str(caught.value) == text
    assert "pay" not in text
    assert CANARY not in text
    (tmp_path / "t").mkdir()
    path.rename(tmp_path / "t" / "0.csv")
    assert refusal(tmp_path / "t", "id", "age") == f"0.csv: {_OPEN}"


def test_letters_behind_a_closing_quote(tmp_path: Path) -> None:
    path = written(tmp_path, b'id,"pay"s,age\n1,2,3\n')
    assert _BEHIND in refusal(path, "id", "pay", "age")
    with pytest.raises(TableError, match="letters behind"):
        declared_columns(path, ReadOptions())
    # A schema may have such a name; and a schema's names tell which delimiter was meant.
    assert read_rows(path, "id", "pays", "age") == [(b"1", b"2", b"3")]
    assert 'did you mean --delimiter ";"?' in refusal(written(tmp_path, b'"id";"age"\n'), "id", "age")


def test_names_of_the_schema_may_go_over_several_lines(tmp_path: Path) -> None:
    """Only so far as the schema says: what differs is a row, and no word depends on how."""
    names = ("a\r\nb", 'c\n"d"\n', "e")
    path = written(tmp_path, b'"a\r\nb",e,"c\n""d""\n"\n1,2,3\n')
    assert read_rows(path, *names) == [(b"1", b"3", b"2")]
    assert declared_columns(path, ReadOptions(), names)[0] == ("a\r\nb", "e", 'c\n"d"\n')
    said = {
        refusal(written(tmp_path, b'e,"a\r\n' + rows), *names)
        for rows in (b"", b"b", b'b"x,y\n', b'b""",c\n', b"\xffb\n", b'B"\n', b'"', b"b\n" * 2**19)
    }
    assert said == {f"{path}: {_OPEN}"}


@given(st.text('a,"; \r\n', max_size=14), st.sampled_from(['"', None]))
@example('\r\n"a""", "b"c\r\n', '"')
def test_headers_are_read_as_the_csv_module_reads_them(text: str, quote: str | None) -> None:
    found = first_record(text, ",", quote)
    style = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), quotechar=quote or '"', quoting=style)
    names: list[str] = next((names for names in reader if names), [])
    if found.fault in ("", "behind", "none"):
        assert list(found.names) == names
        assert not set("".join(names)) & set("\r\n")
        behind = io.StringIO(text[found.length :], newline="")
        left = csv.reader(behind, quotechar=quote or '"', quoting=style)
        assert [row for row in left if row] == [row for row in reader if row]
    # Where the schema has them, names over several lines are read too.
    again = first_record(text, ",", quote, names)
    assert again.fault or list(again.names) == names


@pytest.mark.parametrize("rows", [b"", CANARY.encode() + b",1\n", b'"\xff\n,,,\0\r' * 9])
def test_rows_change_nothing_about_a_refusal(tmp_path: Path, rows: bytes) -> None:
    text = refusal(written(tmp_path, b"a,c\n" + rows), "a", "b")
    assert text == refusal(written(tmp_path, b"a,c\n"), "a", "b")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no header line"),
        (b"\n\r\n\n", "no header line"),
        (b"\xef\xbb\xbf", "no header line"),
        (b"M\xfcnster,b\n", "latin-1"),
        ("a,b\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\xff\xfe\n", "Excel"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "gzip"),
        (b'"' + b"a" * 2**21, "header is longer"),
        (b'"a\n' + b"b,\n" * 2**19, "opens a quoted name"),
        (b'"a', "opens a quoted name"),
        (b"ab," * 2**18 + b"c\n", "header is longer"),
    ],
)
def test_files_without_a_readable_header(tmp_path: Path, content: bytes, words: str) -> None:
    text = refusal(written(tmp_path, content), "a", "b")
    assert words in text
    assert "t.csv" in text


def test_containers_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.csv", "a")
    assert "no file that can be read as a table of kind csv" in refusal(tmp_path, "a", kind="csv")
    assert "cannot be read as csv.gz" in refusal(written(tmp_path, b"a,b\n", "t.csv.gz"), "a")
    assert "cannot be read as tsv.zst" in refusal(written(tmp_path, b"a,b\n", "t.tsv.zst"), "a")
    assert "cannot be read as csv in utf-16" in refusal(written(tmp_path, b"a,b\n"), "a", encoding="utf-16")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in refusal(tmp_path / "pipe.csv", "a")


def test_a_file_without_header_takes_the_schema_s_columns(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf1,2\n3\n")
    assert read_rows(path, "a", "b", header=False) == [(b"1", b"2"), (None, None)]
    assert read_rows(written(tmp_path, b""), "a", "b", header=False) == []


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\r\n"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_marks_and_line_ends_of_the_header(tmp_path: Path, start: bytes, end: bytes) -> None:
    path = written(tmp_path, start + b'"x""y", lead' + end + b"1,2" + end + b"3,4")
    assert read_rows(path, 'x"y', " lead") == [(b"1", b"2"), (b"3", b"4")]


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zst", "tsv.gz", "tab.zst"])
def test_compressed_files_of_several_members(tmp_path: Path, kind: str) -> None:
    sign = b"," if kind.startswith("csv") else b"\t"
    halves = [b"a,b\n1,2\n3".replace(b",", sign), b",4\n".replace(b",", sign)]
    packed = [
        gzip.compress(half, mtime=0) if kind.endswith("gz") else pa.compress(half, "zstd", asbytes=True)
        for half in halves
    ]
    path = written(tmp_path, b"".join(packed), f"t.{kind}")
    assert read_rows(path, "a", "b") == [(b"1", b"2"), (b"3", b"4")]


@pytest.mark.parametrize(
    ("encoding", "content"),
    [(name, "city,n\nMünster,3\nKöln,5\n".encode(name)) for name in ("latin-1", "cp1252", "utf-16", "utf-16-be")],
)
def test_declared_encodings(tmp_path: Path, encoding: str, content: bytes) -> None:
    path = written(tmp_path, content)
    assert read_rows(path, "city", "n", encoding=encoding) == [
        ("Münster".encode(), b"3"),
        ("Köln".encode(), b"5"),
    ]


def test_undecodable_bytes_do_not_stop_and_touch_their_cell_only(tmp_path: Path) -> None:
    path = written(tmp_path, b"city,n\nM\xfcnster,3\nBonn,9\n")
    assert read_rows(path, "city", "n") == [(b"M\xfcnster", b"3"), (b"Bonn", b"9")]
    path = written(tmp_path, "a,b\nx,".encode("utf-16-le") + b"\x00\xd8" + "\ny,2\n".encode("utf-16-le"))
    first, second = read_rows(path, "a", "b", encoding="utf-16-le")
    assert first[0] == b"x"
    with pytest.raises(UnicodeDecodeError):
        first[1].decode()
    assert second == (b"y", b"2")


def assert_fixed_text(failure: pytest.ExceptionInfo[TableError], text: str) -> None:
    error = failure.value
    assert str(error) == text
    assert "stays spent" in text
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_file_that_breaks_off_ends_in_fixed_text(tmp_path: Path, kind: str) -> None:
    rows = b"".join(b"%s-%d,%d\n" % (CANARY.encode(), n, n * n % 7919) for n in range(400_000))
    content = b"a,b\n" + rows
    packed = gzip.compress(content, 1) if kind == "gz" else pa.compress(content, "zstd", asbytes=True)
    path = written(tmp_path, packed[: len(packed) // 2], f"t.csv.{kind}")
    with open_table(path, names_only("a", "b")) as source:
        with pytest.raises(TableError) as failure:
            rows_of(source)
        assert_fixed_text(failure, UNREADABLE)


def test_a_damaged_checksum_is_noticed(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"a\n" + os.urandom(100_000).hex().encode(), mtime=0))
    packed[-6] ^= 1
    with open_table(written(tmp_path, bytes(packed), "t.csv.gz"), names_only("a")) as source:
        with pytest.raises(TableError) as failure:
            rows_of(source)
        assert_fixed_text(failure, UNREADABLE)


def change_size(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"3,4\n")


def change_time(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replace(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    status = path.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [change_size, change_time, replace, Path.unlink])
def test_a_file_that_changes_between_passes_ends_in_fixed_text(tmp_path: Path, change: object) -> None:
    path = written(tmp_path, b"a,b\n1,2\n")
    with open_table(path, names_only("a", "b")) as source:
        assert rows_of(source) == [(b"1", b"2")]
        change(path)  # type: ignore[operator]
        with pytest.raises(TableError) as failure:
            rows_of(source)
        assert_fixed_text(failure, CHANGED)


def test_a_file_that_changes_during_a_pass_ends_in_fixed_text(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n1,2\n")
    with open_table(path, names_only("a", "b")) as source:
        batches = source.batches()
        next(batches)
        change_size(path)
        with pytest.raises(TableError) as failure:
            list(batches)
        assert_fixed_text(failure, CHANGED)


def test_a_closed_table_says_so(tmp_path: Path) -> None:
    with open_table(written(tmp_path, b"a\n1\n"), names_only("a")) as source:
        pass
    source.close()
    with pytest.raises(TableError) as failure:
        rows_of(source)
    assert str(failure.value) == CLOSED


def test_passes_may_overlap(tmp_path: Path) -> None:
    with open_table(written(tmp_path, b"a\n" + b"1\n" * 200_000), names_only("a")) as source:
        sizes = [(one.num_rows, two.num_rows) for one, two in zip(source.batches(), source.batches(), strict=True)]
        assert sum(size for size, _ in sizes) == 200_000
        assert all(size == other <= 65_536 for size, other in sizes)


@pytest.mark.parametrize("block_bytes", [1, 7, 64])
def test_block_sizes_do_not_matter_to_a_file(tmp_path: Path, block_bytes: int) -> None:
    path = written(tmp_path, b'\xef\xbb\xbf"a\n",b\r\n1,"2\r\n"\r\n\r\n3\r\n5,6')
    with open_table(path, names_only("a\n", "b")) as source:
        read = source.read.__self__  # type: ignore[attr-defined]
        assert isinstance(read, TextFile)
        assert rows_of(source) == [(b"1", b"2\r\n"), (None, None), (b"5", b"6")]
        pieces = [row for batch in read.batches(block_bytes) for row in batch.to_pylist()]
        assert [tuple(row.values()) for row in pieces] == rows_of(source)


@needs_cases
def test_shared_cases() -> None:
    def case(name: str) -> Path:
        return next(CASES.glob(f"{name}*/input.csv"))

    ward = ("ward", "height_m", "cost")
    assert 'did you mean --delimiter ";"?' in refusal(case("01"), *ward)
    assert read_rows(case("01"), *ward, delimiter=";")[0] == (b"North", b"1,72", b"1.204,50")
    assert read_rows(case("02"), "patient_kind", "visits")[0] == (b"new", b"1")
    city = read_rows(case("03"), "city", "n", encoding="latin-1")
    assert {row[0].decode() for row in city} == {"Münster", "Köln", "Bonn"}
    answers = [row[0] for row in read_rows(case("04"), "answer", "score")]
    assert answers == [b"yes, mostly", b"no\nnever", b'she said "maybe"', b"yes, mostly"]
    assert "positions 1 and 3" in refusal(case("05"), "age", "sex")
    odd = ["Marital status", "<b>pay</b>", "count", "select", "naïve é", "a,b", 'x"y', "col.1", "col_1"]
    rows = read_rows(case("07"), *odd, "__index__", " lead")
    assert rows[1] == (b"married", b"20", b"2", b"B", b"0", b"1", b"0", b"2", b"1", b"6", b"1")
    zips = [row[0] for row in read_rows(case("08"), "zip", "code6", "birth_ddmmyyyy")]
    assert zips == [b"02116", b"00501", b"10001", b"02116"]
    assert read_rows(case("35"), "sex", "age") == []
    assert "no header line" in refusal(next(CASES.glob("35*/input_zero_bytes.csv")), "sex", "age")
