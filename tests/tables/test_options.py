"""Options are checked all at once, and nothing of the dialect is guessed."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import TableError, UsageError
from margent.tables.blocks import utf8_blocks
from margent.tables.options import ENCODINGS, FILE_SUFFIXES, TEXT_KINDS, ReadOptions, kind_of_path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimiter": "ab"}, "delimiter"),
        ({"delimiter": ""}, "delimiter"),
        ({"delimiter": "¦"}, "delimiter"),
        ({"delimiter": "\n"}, "delimiter"),
        ({"quote": "\r"}, "quote"),
        ({"delimiter": "'", "quote": "'"}, "differ"),
        ({"encoding": "rot13"}, "latin-1"),
        ({"encoding": "no\0such"}, "encoding"),
        ({"max_record_bytes": 0}, "max_record_bytes"),
        ({"max_record_bytes": 2**40}, "max_record_bytes"),
        ({"kind": "xlsx"}, "parquet"),
    ],
)
def test_what_is_off_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ReadOptions(**options)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        ReadOptions(delimiter="ab", encoding="klingon", kind="doc")
    assert all(word in str(caught.value) for word in ("delimiter", "klingon", "doc"))


def test_a_tab_can_be_typed() -> None:
    assert ReadOptions(delimiter="\\t").delimiter == ReadOptions(delimiter="tab").delimiter == "\t"


def test_kinds_come_from_the_name_or_the_option() -> None:
    for kind, suffix in FILE_SUFFIXES.items():
        assert kind_of_path(Path("x" + suffix.upper()), ReadOptions()) == kind
    assert kind_of_path(Path("x.dat"), ReadOptions(kind="tsv")) == "tsv"
    with pytest.raises(TableError, match=r"x\.dat.*\.csv"):
        kind_of_path(Path("x.dat"), ReadOptions())
    for suffix in (".csv.bz2", ".csv.xz", ".zip", ".tar.gz"):
        with pytest.raises(TableError, match=r"unpack the file, or compress it as \.csv\.gz"):
            kind_of_path(Path("x" + suffix), ReadOptions())
    assert len(TEXT_KINDS) == 6


@settings(max_examples=20, deadline=None)
@given(content=st.binary(max_size=40), block=st.integers(1, 5))
@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_no_bytes_stop_a_decoder_and_cuts_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, content: bytes, block: int
) -> None:
    path = tmp_path_factory.mktemp("decode") / "x.csv"
    path.write_bytes((codecs.BOM_UTF16_LE if encoding == "utf-16" else b"") + content)
    whole = b"".join(utf8_blocks(path, "csv", encoding))
    assert b"".join(utf8_blocks(path, "csv", encoding, block)) == whole
    if encoding == "utf-8":
        assert whole == content
    elif encoding == "iso8859-1":
        assert whole.decode() == content.decode("latin-1")


def test_undecodable_bytes_equal_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"\x81\x80\x8d")
    text = b"".join(utf8_blocks(path, "csv", "cp1252"))
    assert text == b"\xff\xe2\x82\xac\xff"
    with pytest.raises(UnicodeDecodeError):
        text.decode()
