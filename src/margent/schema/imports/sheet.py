"""A CSV sheet with one line a column -> a schema, or a draft where something is left open.

The header names columns of `COLUMNS`, in any order. A line of type ``table`` is about the whole table.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from margent.errors import Fault, SchemaError
from margent.schema.block_json import read_missing
from margent.schema.draft import Draft
from margent.schema.fields import DEFAULT_MISSING
from margent.schema.imports.cells import unguarded
from margent.schema.imports.imported import Imported, subject_name
from margent.schema.imports.lines import csv_lines
from margent.schema.imports.sheet_cells import COLUMNS, TABLE, field_of_cells
from margent.schema.open_fields import open_faults
from margent.schema.read import schema_from_json
from margent.schema.strict_json import Members, parse_strict
from margent.schema.todos import TODO, field_todos

SOURCE = "a sheet with one line a column"


def tells_sheet(header: Any) -> bool:
    """Whether a CSV's header is that of a sheet: name and type, and nothing that a sheet does not know."""
    names = {cell.strip() for cell in header}
    return {"name", "type"} <= names <= set(COLUMNS)


def from_sheet(text: str, subject: str) -> Imported:
    """The schema that a sheet stands for; cells that are needed and empty are questions.

    Raises: SchemaError naming lines: what is wrong in the sheet, and what would be wrong in the schema.
    """
    header, lines = csv_lines(text, subject)
    faults: list[Fault] = []
    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            faults.append(Fault("line 1", f"the column {name!r} is not known" + (f"; {near[0]}?" if near else "")))
    if "name" not in header:
        faults.append(Fault("line 1", f"needs the column name; known are {', '.join(COLUMNS)}"))
    document: dict[str, Any] = {"missingValues": [""]}
    block: dict[str, Any] = {}
    fields: list[dict[str, Any]] = []
    numbers: list[int] = []
    for number, guarded_cells in lines:
        cells = {name: unguarded(cell) for name, cell in guarded_cells.items()}
        if cells.get("type", "").strip().lower() == TABLE:
            _table(cells, f"line {number}", document, block, faults)
        else:
            fields.append(field_of_cells(cells, f"line {number}", faults))
            numbers.append(number)
    if not fields and not faults:
        faults.append(Fault("", "describes no column; give one line a column"))
    block.setdefault("unit", TODO)
    block.setdefault("provenance", f"imported from {SOURCE}, {subject_name(subject)}")
    document |= {"fields": fields, "margent": block}
    draft = Draft(document)
    if not faults:
        faults = _schema_faults(draft, numbers, Path(subject).parent)
    if faults:
        raise SchemaError(faults, subject)
    return Imported(draft, SOURCE)


def _table(
    cells: Mapping[str, str], where: str, document: dict[str, Any], block: dict[str, Any], faults: list[Fault]
) -> None:
    if block:
        faults.append(Fault(where, "is a second line about the table; keep one"))
        return
    document |= {key: cells[key] for key in ("name", "title", "description") if cells.get(key)}
    made = field_of_cells({"name": "x", "type": "boolean"} | {
        key: cells[key] for key in ("missing", "missingLabels") if cells.get(key)
    }, where, faults)  # fmt: skip
    document |= {"missingValues": made["missingValues"]} if "missingValues" in made else {}
    unit, rows = cells.get("unit", ""), cells.get("maxRows", "").strip()
    if rows and not (rows.isascii() and rows.isdigit() and len(rows) < 10):
        faults.append(Fault(f"{where}, maxRows", "is how many rows of a person are kept: a whole number"))
    elif rows:
        block["unit"] = {"field": unit, "maxRows": int(rows)}
    elif unit.strip() in ("row", TODO, ""):
        block["unit"] = unit.strip() or TODO
    else:
        faults.append(Fault(f"{where}, maxRows", f"how many rows of each person in {unit!r} are kept? a whole number"))
    if not cells.get("more"):
        return
    try:
        more = parse_strict(cells["more"].encode(), "")
    except SchemaError as error:
        faults += [Fault(f"{where}, more", str(fault)) for fault in error.faults]
        return
    if not isinstance(more, Mapping) or not isinstance(more.get("margent", {}), Mapping) or "fields" in more:
        faults.append(Fault(f"{where}, more", "is a JSON object with further keys of the table"))
        return
    block |= more.get("margent", {})
    document |= {key: value for key, value in more.items() if key != "margent"}


def _schema_faults(draft: Draft, numbers: Sequence[int], folder: Path) -> list[Fault]:
    """What would be wrong in the schema whatever the answers to its questions are, each at the sheet's line.

    Files of values are looked for in the folder.
    """
    fields, found = draft.document["fields"], list[Fault]()
    try:
        schema_from_json(draft.document, folder=folder)
    except SchemaError as error:
        asked = set(draft.todos)
        found += [fault for fault in error.faults if fault not in asked]
    if draft.todos:
        tokens = read_missing(Members(draft.document, "", []), "missingValues") or DEFAULT_MISSING
        before: set[str] = set()
        for place, field in enumerate(fields):
            faults = open_faults(field, tokens, folder) if field_todos(field, "") else []
            found += [Fault(f"/fields/{place}{fault.pointer}", fault.message) for fault in faults]
            if field["name"] in before:
                found.append(Fault(f"/fields/{place}/name", f"{field['name']!r} has a line before; names must differ"))
            before.add(field["name"])
    return [Fault(_line(fault.pointer, numbers), fault.message) for fault in found]


def _line(pointer: str, numbers: Sequence[int]) -> str:
    parts = pointer.split("/")
    if len(parts) > 2 and parts[1] == "fields" and parts[2].isdigit() and int(parts[2]) < len(numbers):
        return f"line {numbers[int(parts[2])]} ({pointer})"
    return pointer
