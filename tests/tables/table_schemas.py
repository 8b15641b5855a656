"""The part of a schema that opening a table needs, and short ways to open, read and compare."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from margent.tables.options import ReadOptions
from margent.tables.source import open_table

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
CANARY = "canary-7f3a"
DECLARED = ReadOptions(query_is_row_wise=True)
HOSTILE = [
    'a"b',
    "x'; DROP TABLE t; --",
    '"; DROP TABLE t; --',
    "é中\u202e",
    "select",
    "a.b",
    " ",
    "a\nb",
    "(select content from read_text('/etc/hostname'))",
    "$1",
    "?",
    "%s",
    "a\\b",
    '"',
    '""',
    "--",
    "/*",
    "{a}",
    "\ufeffa",
    "a" * 300,
]
"""Names that databases must take for nothing but names."""


@dataclass(frozen=True)
class NamedField:
    name: str
    role: str = "model"
    type: str = "string"
    listed: None = None


@dataclass(frozen=True)
class NamesOnly:
    fields: tuple[NamedField, ...]
    columns_read: tuple[str, ...]


def names_only(*names: str, dropped: tuple[str, ...] = ()) -> Any:
    fields = [NamedField(name) for name in names] + [NamedField(name, "drop") for name in dropped]
    return NamesOnly(tuple(fields), names)


def rows_of(source: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in source.batches() for row in batch.to_pylist()]


def bytes_of(column: Any) -> list[bytes | None]:
    """Cells of a text column as they are, UTF-8 or not."""
    assert column.type == pa.large_string()
    cells: list[bytes | None] = column.view(pa.large_binary()).to_pylist()
    return cells


def read_rows(table: Any, *names: str, **options: Any) -> list[tuple[Any, ...]]:
    with open_table(table, names_only(*names), ReadOptions(**options)) as source:
        rows = rows_of(source)
        assert rows_of(source) == rows, "a second pass must give the same rows"
        return rows


def csv_module_rows(
    body: bytes, width: int, delimiter: str = ",", quote: str | None = '"'
) -> list[tuple[bytes | None, ...]]:
    """What Python's csv module makes of the bytes, with our rule for records of another width."""
    reader = csv.reader(
        io.StringIO(body.decode("latin-1"), newline=""),
        delimiter=delimiter,
        quotechar=quote or '"',
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
    )
    rows: list[tuple[bytes | None, ...]] = []
    for cells in reader:
        record = [""] if not cells and width == 1 else cells
        if record:
            whole = len(record) == width
            rows.append(tuple(cell.encode("latin-1") for cell in record) if whole else (None,) * width)
    return rows


def limited_rows(body: bytes, width: int, limit: int) -> list[tuple[bytes | None, ...]]:
    """The same with a limit on the bytes of a record, one record at a time from the rest of the text."""
    rows: list[tuple[bytes | None, ...]] = []
    rest = body.decode("latin-1")
    while rest:
        lines = list(io.StringIO(rest, newline=""))
        taken = next(
            count
            for count in range(1, len(lines) + 1)
            if count == len(lines) or len(list(csv.reader([*lines[:count], "end"]))) == 2
        )
        record = "".join(lines[:taken])
        closed = len(list(csv.reader([*lines[:taken], "end"]))) == 2
        ending = len(record) - len(record.rstrip("\r\n")) if closed else 0
        ending = min(ending, 2 if record.endswith("\r\n") else 1)
        if len(record) - ending > limit:
            rows.append((None,) * width)
            taken = 1
        else:
            rows += csv_module_rows(record.encode("latin-1"), width)
        rest = "".join(lines[taken:])
    return rows
