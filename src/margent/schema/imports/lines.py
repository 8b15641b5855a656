"""The lines of a CSV text as dictionaries, or every fault of its form at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from margent.errors import Fault, SchemaError
from margent.schema.strict_json import MAX_BYTES

CellsOfLine = tuple[int, dict[str, str]]


def csv_lines(text: str, subject: str) -> tuple[list[str], list[CellsOfLine]]:
    """The header, and each further line that is not blank with its number, cells by the header's names.

    Raises: SchemaError naming lines.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
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
            [Fault(f"line {reader.line_num}", "is not CSV with commas and double quotes")], subject
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


def _doubled(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if name and names.count(name) > 1})
