"""CSV and TSV files: the header is read on opening, the records in every pass, all of it as raw bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from margent.errors import TableError
from margent.machine import block_rows
from margent.tables.blocks import BLOCK_BYTES, utf8_blocks, without
from margent.tables.header import check_columns
from margent.tables.header_line import first_record, one_byte_a_letter
from margent.tables.opened import OpenTable
from margent.tables.options import ReadOptions
from margent.tables.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

_BOM = "\ufeff".encode()
_HEADER_BYTES = 2**19
_HEAD_BYTES = 2**20
_OPEN = (
    "the first line opens a quoted name and does not close it, so it is not shown: close the quote there, or say "
    "--quote '' where quotes mean nothing. Only a name that the schema has with its line ends may go over several"
)
_BEHIND = (
    "the first line has letters behind the closing quote of a name, so it is not shown: double the quotes inside of a "
    "name, or check --delimiter and --quote"
)


def open_text(path: Path, kind: str, schema: Schema, options: ReadOptions) -> OpenTable:
    """A text file whose header agrees with the schema; nothing is looked at beyond the header.

    Privacy: none spent; the text of every error depends on the header, the schema and the options alone.
    Raises: TableError when the container or header cannot be read, SchemaError when the header differs.
    """
    snapshot = Snapshot.of(path)
    if options.header:
        columns, body = text_header(path, kind, options, [field.name for field in schema.fields])
        check_columns(columns, schema, delimiter=options.delimiter_of(kind))
    else:
        columns, body = (
            tuple(field.name for field in schema.fields),
            text_body(path, kind, options),
        )
    file = TextFile(snapshot, kind, options, columns, tuple(schema.columns_read), body)
    return OpenTable(kind, columns, file.wanted, file.batches)


def text_header(
    path: Path, kind: str, options: ReadOptions, listed: Sequence[str] = (), shown: str | None = None
) -> tuple[tuple[str, ...], int]:
    """The column names that a text file's first record gives, and the bytes up to its end; messages say ``shown``.

    ``listed`` are the names of the schema, where there is one: only they may hold line ends.

    Privacy: none spent; only the header is looked at, and no message shows any of it or depends on what follows.
    Raises: TableError when the container or header cannot be read.
    """
    called = str(path) if shown is None else shown
    head = _head(path, kind, options.encoding, called)
    text = head[_mark(head) :]
    found = first_record(text.decode("latin-1"), options.delimiter_of(kind), options.quote, one_byte_a_letter(listed))
    if found.length > _HEADER_BYTES or (found.length == len(text) > _HEADER_BYTES):
        raise TableError(
            f"{called}: the header is longer than {_HEADER_BYTES} bytes; "
            "check the quote character and that the first line names the columns"
        )
    if found.fault == "none":
        raise TableError(f"{called}: the file has no header line")
    names = _decoded(found.names, called, options.encoding)
    if found.fault == "open":
        raise TableError(f"{called}: {_OPEN}")
    # A header of one cell is left to the schema's check, which says what delimiter would part it.
    if found.fault == "behind" and not (listed and len(names) == 1):
        raise TableError(f"{called}: {_BEHIND}")
    return names, _mark(head) + found.length


def text_body(path: Path, kind: str, options: ReadOptions, shown: str | None = None) -> int:
    """The bytes before the first record of a text file without a header: those of a byte order mark.

    Privacy: none spent; nothing but the mark is looked at.
    Raises: TableError when the container cannot be read.
    """
    return _mark(_head(path, kind, options.encoding, str(path) if shown is None else shown))


@dataclass(frozen=True)
class TextFile:
    """A text file whose header is known: its records begin behind the first ``body`` bytes of its UTF-8.

    Shapes: ``columns`` as in the file, ``wanted`` in the order of the batches.
    """

    snapshot: Snapshot
    kind: str
    options: ReadOptions
    columns: tuple[str, ...]
    wanted: tuple[str, ...]
    body: int

    def batches(self, block_bytes: int = BLOCK_BYTES) -> Iterator[pa.RecordBatch]:
        """One pass over the records.

        Privacy: private rows.
        Raises: TableError with fixed text when the file is not the one that was opened.
        """
        from margent.tables.records import Layout, parsed

        delimiter, limit = self.options.delimiter_of(self.kind), self.options.max_record_bytes
        layout = Layout(self.columns, self.wanted, delimiter, self.options.quote, limit)
        self.snapshot.check()
        blocks = utf8_blocks(self.snapshot.path, self.kind, self.options.encoding, block_bytes)
        with closing(blocks):
            yield from parsed(without(blocks, self.body), layout, block_rows(len(layout.wanted)))
        self.snapshot.check()


def _mark(head: bytes) -> int:
    """Bytes of a byte order mark."""
    return len(_BOM) if head.startswith(_BOM) else 0


def _head(path: Path, kind: str, encoding: str, called: str) -> bytes:
    """The first bytes of the file as UTF-8: enough for any header that is accepted."""
    head = b""
    readable = True
    try:
        with closing(utf8_blocks(path, kind, encoding, _HEAD_BYTES // 16)) as blocks:
            for block in blocks:
                head += block
                if len(head) >= _HEAD_BYTES:
                    break
    except Exception:
        # A container that breaks off behind its header is found, and told of, when its rows are read.
        readable = False
    if not readable and b"\n" not in head and b"\r" not in head:
        raise TableError(
            f"{called}: cannot be read as {kind} in {encoding}; check the file's name, its compression and the encoding"
        )
    return head


def _decoded(names: Sequence[str], called: str, encoding: str) -> tuple[str, ...]:
    try:
        return tuple(name.encode("latin-1").decode("utf-8") for name in names)
    except UnicodeDecodeError:
        pass
    start = names[0].encode("latin-1")[:2]
    if start in (b"\xff\xfe", b"\xfe\xff"):
        hint = "it begins like UTF-16: state that encoding"
    elif start == b"PK":
        hint = "it begins like an Excel workbook or a zip archive: save it as CSV"
    elif start == b"\x1f\x8b":
        hint = "it begins like a gzip file: its name should end in .gz"
    else:
        hint = "state its encoding, for instance latin-1 or cp1252"
    raise TableError(f"{called}: the header is not text in {encoding}; {hint}")
