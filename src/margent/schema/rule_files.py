"""The mapping of a functional dependency in a file of its own, beside the schema file: ``{"file": "counties.csv"}``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from margent.errors import Fault
from margent.schema.code_file import checked_file
from margent.schema.parts import MAX_CODES
from margent.schema.strict_json import Members, step


def with_mapping(rule: Any, pointer: str, faults: list[Fault], folder: Path | None) -> Any:
    """The rule with its mapping written out, if that stands in a file; ``mappingFile`` then records file and SHA-256.

    The file is CSV whose header names the determinants, in the rule's order, and then the column. An empty cell stands
    for the empty text where the column has that value, and else for a missing cell, as in the table.
    """
    mapping = rule.get("mapping") if isinstance(rule, Mapping) else None
    if not isinstance(mapping, Mapping) or "file" not in mapping or not set(mapping) <= {"file", "sha256"}:
        return rule
    given, column = rule.get("determines"), rule.get("column")
    if not isinstance(given, list | tuple) or not isinstance(column, str):
        return rule  # what is wrong with these is said where the rule is read
    members = Members(mapping, step(pointer, "mapping"), faults)
    found = checked_file(members, folder, 'expected lines, or {"file": "mapping.csv"}')
    if found is None:
        return {**rule, "mapping": []}
    content, record = found
    lines = _lines(content, [*given, column], members)
    return {**rule, "mapping": lines, "mappingFile": {"file": record.file, "sha256": record.sha256}}


def _lines(content: bytes, header: list[Any], members: Members) -> list[list[str]]:
    lines: list[list[str]] = []
    try:
        rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        if next(rows, []) != header:
            members.fault("file", f"its first line must be the header: {','.join(map(str, header))}")
            return []
        for row in rows:
            if len(row) != len(header):
                members.fault("file", f"line {rows.line_num} has {len(row)} cells, the header {len(header)}")
                return []
            if len(lines) > MAX_CODES:
                members.fault("file", f"has more than {MAX_CODES:,} lines")
                return []
            lines.append(row)
    except UnicodeDecodeError:
        members.fault("file", "is not UTF-8 text; save it as UTF-8")
    except csv.Error:
        members.fault("file", "is not CSV")
    return lines
