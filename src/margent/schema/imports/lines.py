"""The lines of a CSV text as dictionaries, or every fault of its form at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from margent.errors import Fault, SchemaError
from margent.schema.strict_json import MAX_BYTES

CellsOfLine = tuple[int, dict[str, str]]


def utf8_text(content: bytes, subject: str) -> str:
    """The text of a file's bytes, without a byte order mark.

    Raises: SchemaError where it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError([Fault("", "not UTF-8 text; save it as UTF-8")], subject) from None


def csv_lines(text: str, subject: str) -> tuple[list[str], list[CellsOfLine]]:
    """The header, and each further line that is not blank with its number, cells by the header's names.

    Cells are separated as `delimiter_of` tells.

    Raises: SchemaError naming lines.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter_of(text))
    rows: list[tuple[int, list[str]]] = []
    limit = csv.field_size_limit(MAX_BYTES)  # a long list of values is one cell
    try:
        # A record is named by the line it begins on.
        first = 1
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((first, row))
            first = reader.line_num + 1
    except csv.Error:
        raise SchemaError(
            [Fault(f"line {reader.line_num}", "is not CSV with commas (or semicolons) and double quotes")], subject
        ) from None
    finally:
        csv.field_size_limit(limit)
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    faults = [Fault("line 1", f"the column {name!r} is named twice") for name in _doubled(header)]
    found: list[CellsOfLine] = []
    for number, row in rows[1:]:
        if len(row) > len(header):
            faults.append(
                Fault(f"line {number}", f"has {len(row)} cells, the header {len(header)}; quote cells with commas")
            )
            continue
        found.append((number, dict(zip(header, [*row, *[""] * (len(header) - len(row))], strict=True))))
    if faults:
        raise SchemaError(faults, subject)
    return header, found


def delimiter_of(text: str) -> str:
    """What separates the cells of a description: a comma, or a semicolon where the header has no comma.

    Spreadsheets set to a language that writes 0,5 save CSV with semicolons.

    >>> delimiter_of("name,type\\n"), delimiter_of("name;type\\n")
    (',', ';')
    """
    header = next((line for line in text[:100_000].splitlines() if line.strip()), "")
    return ";" if ";" in header and "," not in header else ","


def _doubled(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if name and names.count(name) > 1})
