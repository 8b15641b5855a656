"""A codebook as a CSV file -> the beginning of a schema.

One line a column, or one line a code: a line whose ``name`` is empty or that of the line above adds to it.
Several values, labels or missing tokens in one cell are separated by ``|``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from margent.errors import Fault, SchemaError
from margent.schema.draft import Draft, bounded_field, drafted
from margent.schema.imports.facts import wanted_bins
from margent.schema.imports.lines import csv_lines, utf8_text
from margent.schema.parts import FIELD_TYPES, TYPE_WORDS, Spelling
from margent.schema.positions import declared_scalar
from margent.schema.strict_json import load_bytes
from margent.schema.todos import TODO
from margent.schema.write import json_scalar

COLUMNS = ("name", "type", "minimum", "maximum", "values", "labels", "missing", "description")

_ROLES = {"id": "identifier", "identifier": "identifier", "key": "identifier", "drop": "drop"}


@dataclass
class _Entry:
    """The lines of one column."""

    line: int
    cells: dict[str, str]
    values: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def draft_from_codebook(path: str | Path) -> Draft:
    """A draft from a codebook with the columns of `COLUMNS`, of which only ``name`` must be there.

    What the codebook leaves open is a todo; who is protected always is.

    Privacy: none: a codebook is public documentation.
    Raises: SchemaError listing every fault with its line, once it is CSV with a header that can be read.
    """
    path = Path(path)
    faults: list[Fault] = []
    entries = _entries(path, faults)
    fields = [_field(entry, faults) for entry in entries]
    if not fields and not faults:
        faults.append(Fault("", "describes no column; give one line a column"))
    if faults:
        raise SchemaError(faults, str(path))
    return drafted(fields, provenance=f"the codebook {path.name}")


def _entries(path: Path, faults: list[Fault]) -> list[_Entry]:
    named, lines = csv_lines(utf8_text(load_bytes(path), str(path)), str(path))
    header = [cell.lower() for cell in named]
    if "name" not in header:
        faults.append(Fault("line 1", f"needs a header with the column name; known are {', '.join(COLUMNS)}"))
        return []
    for cell in header:
        if cell not in COLUMNS or header.count(cell) > 1:
            near = difflib.get_close_matches(cell, COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(COLUMNS)}"
            faults.append(Fault("line 1", f"the column {cell!r} is unknown or doubled; {hint}"))
    if faults:
        return []  # which cell is of which column is not known
    entries: dict[str, _Entry] = {}
    current: _Entry | None = None
    for number, found in lines:
        where = f"line {number}"
        cells = dict(zip(header, found.values(), strict=True))
        name = cells["name"]
        if name and (current is None or name != current.cells["name"]):
            if name in entries:
                faults.append(Fault(where, f"{name!r} has lines elsewhere too; put all its lines together"))
            current = entries.setdefault(name, _Entry(number, cells))
        elif current is None:
            faults.append(Fault(where, "has no name; the first line of a column needs one"))
            continue
        else:
            current.cells |= {key: cell for key, cell in cells.items() if cell and key != "name"}
        faults += _add_codes(current, cells, where)
    return list(entries.values())


def _add_codes(entry: _Entry, cells: Mapping[str, str], where: str) -> Iterator[Fault]:
    values, labels = (cells[key].split("|") if cells.get(key) else [] for key in ("values", "labels"))
    if labels and len(labels) != len(values):
        yield Fault(where, f"has {len(values)} values and {len(labels)} labels; give one label a value, or none")
        labels = []
    entry.values += values
    entry.labels += labels or [""] * len(values)


def _field(entry: _Entry, faults: list[Fault]) -> dict[str, Any]:
    name, word = entry.cells["name"], entry.cells.get("type", "").strip().lower()
    role = _ROLES.get(word)
    kind: str = "string" if role or (not word and entry.values) else TYPE_WORDS.get(word, TODO)
    if word and not role and kind == TODO and word != TODO:
        faults.append(Fault(f"line {entry.line}", f"the type {word!r} is not one of {', '.join(FIELD_TYPES)}"))
    if role is not None:
        made: dict[str, Any] = {"name": name, "type": kind, "margent": {"role": role}}
    elif kind == TODO:
        made = {"name": name, "type": TODO}
    elif entry.values:
        made = _listed(name, kind, entry, faults)
    elif kind == "string":
        made = {"name": name, "type": kind, "categories": TODO}
    elif kind == "boolean":
        made = {"name": name, "type": kind}
    else:
        low, high = (_scalar(kind, entry, key, faults) for key in ("minimum", "maximum"))
        made = bounded_field(name, kind, low, high)
        if wanted_bins(TYPE_WORDS[kind], made):
            made["margent"] = {"bins": TODO}
    if entry.cells.get("missing"):
        made["missingValues"] = entry.cells["missing"].split("|")
    if entry.cells.get("description"):
        made["description"] = entry.cells["description"]
    return made


def _listed(name: str, kind: str, entry: _Entry, faults: list[Fault]) -> dict[str, Any]:
    items: list[Any] = []
    for text, label in zip(entry.values, entry.labels, strict=True):
        value = _value(kind, text, f"line {entry.line}", faults)
        items.append({"value": value, "label": label} if label else value)
    if kind in ("string", "integer"):
        return {"name": name, "type": kind, "categories": items}
    return {"name": name, "type": kind, "constraints": {"enum": items}}


def _scalar(kind: str, entry: _Entry, key: str, faults: list[Fault]) -> Any:
    text = entry.cells.get(key, "").strip()
    return _value(kind, text, f"line {entry.line}", faults) if text else TODO


def _value(kind: str, text: str, where: str, faults: list[Fault]) -> Any:
    known = TYPE_WORDS[kind]
    try:
        return json_scalar(declared_scalar(known, text, Spelling()))
    except ValueError as error:
        other = "; leave the type empty where yes and no are spelled otherwise" if kind == "boolean" else ""
        faults.append(Fault(where, f"{text!r}: {error}{other}"))
        return text
