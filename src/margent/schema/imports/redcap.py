"""REDCap data dictionaries: a CSV with one line a variable, with the headings of the web page or of the API.

Cells are those of REDCap's raw CSV export: dates are year first, a checkbox is one column of 0 and 1 for every choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from margent.errors import Fault
from margent.schema.imports.facts import ColumnFacts
from margent.schema.imports.imported import Imported, imported
from margent.schema.imports.lines import csv_lines
from margent.schema.parts import FieldType

SOURCE = "a REDCap data dictionary"

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": ("variable / field name", "field_name"),
    "form": ("form name", "form_name"),
    "sort": ("field type", "field_type"),
    "label": ("field label", "field_label"),
    "choices": (
        "choices, calculations, or slider labels", "choices or calculations", "select_choices_or_calculations",
    ),
    "validation": (
        "text validation type or show slider number", "text_validation_type_or_show_slider_number",
    ),
    "low": ("text validation min", "text_validation_min"),
    "high": ("text validation max", "text_validation_max"),
    "identifier": ("identifier?", "identifier"),
    "shown": ("branching logic (show field only if...)", "branching_logic"),
}  # fmt: skip

_YES_NO: Mapping[str, dict[str, Any]] = {
    "checkbox": {"trueValues": ["1", "Checked"], "falseValues": ["0", "Unchecked"]},
    "yesno": {"trueValues": ["1", "Yes"], "falseValues": ["0", "No"]},
    "truefalse": {"trueValues": ["1", "True"], "falseValues": ["0", "False"]},
}
_VALIDATIONS: Mapping[str, FieldType] = {"integer": "integer", "time": "time", "time_hh_mm_ss": "time"}
_NUMBER = re.compile(r"number(?:_([1-4])dp)?(_comma_decimal)?")
_MOMENT = re.compile(r"(date|datetime)(?:_seconds)?_(?:ymd|mdy|dmy)")
_MOVING = ("today", "now", "[")


def tells_redcap(header: Any) -> bool:
    """Whether a CSV's header is that of a data dictionary: it names variables and their field types."""
    names = {cell.strip().strip('"').lower() for cell in header}
    return all(names & set(_COLUMNS[key]) for key in ("name", "sort"))


def from_redcap(text: str, subject: str) -> Imported:
    """The draft that a data dictionary gives. Its first variable is the record's id, as in every project.

    Raises: SchemaError naming lines.
    """
    header, lines = csv_lines(text, subject)
    lower = {name.lower(): name for name in header}
    places = {key: next((lower[name] for name in names if name in lower), None) for key, names in _COLUMNS.items()}
    faults = [
        Fault("line 1", f"needs the column {_COLUMNS[key][0]!r}") for key in ("name", "sort") if places[key] is None
    ]
    notes: list[Fault] = []
    found: list[tuple[str, ColumnFacts]] = []
    forms: dict[str, None] = {}
    for number, cells in lines if not faults else ():
        said = {key: cells[place].strip() if place is not None else "" for key, place in places.items()}
        where = f"line {number}"
        if not said["name"]:
            faults.append(Fault(where, "has no variable name"))
            continue
        if said["form"]:
            forms.setdefault(said["form"])
        if not found:
            found.append((where, ColumnFacts(said["name"], "string", "identifier", description=said["label"])))
            continue
        found += [(where, facts) for facts in _columns(said, where, notes)]
    if forms:
        names = ", ".join(f"{form}_complete" for form in list(forms)[:5]) + (", ..." if len(forms) > 5 else "")
        notes.append(Fault("/", f"an export also has columns that no dictionary lists ({names}, events); add yours"))
    if found:
        notes.append(Fault("/", "required fields can be saved empty in REDCap; none is taken as required"))
    return imported(found, SOURCE, subject, notes=notes, faults=faults)


def _columns(said: Mapping[str, str], where: str, notes: list[Fault]) -> Iterator[ColumnFacts]:
    """The columns that one variable has in an export."""
    name, sort = said["name"], said["sort"].lower()
    if sort == "descriptive":
        notes.append(Fault(where, f"{name!r} is a text on the form and has no column; left out"))
        return
    shown = ""
    if said["shown"]:
        shown = f" (asked only if {said['shown']})"
        notes.append(Fault(where, f"{name!r} is asked only under a condition; a rule can say so (docs/rules.md)"))
    description = said["label"] + shown
    if said["identifier"].lower() in ("y", "yes"):
        notes.append(Fault(where, f"{name!r} is marked as identifying; it is left out of the table"))
        yield ColumnFacts(name, "string", "drop", description=description)
    elif sort == "checkbox":
        for code, label in _choices(said["choices"], where, notes):
            column = f"{name}___{re.sub('[^a-z0-9_]', '_', code.lower())}"
            yield ColumnFacts(
                column,
                "boolean",
                spelling=_YES_NO["checkbox"],
                description=": ".join(filter(None, (description, label))),
            )
    elif sort in _YES_NO:
        yield ColumnFacts(name, "boolean", spelling=_YES_NO[sort], description=description)
    elif sort in ("radio", "dropdown"):
        choices = _choices(said["choices"], where, notes)
        yield ColumnFacts(name, None if choices else "string", values=choices or None, description=description)
    else:
        yield replace(_typed(said, sort, where, notes), description=description)


def _typed(said: Mapping[str, str], sort: str, where: str, notes: list[Fault]) -> ColumnFacts:
    """A column of text, a number or a moment, by how REDCap validates it."""
    name, validation = said["name"], said["validation"].lower()
    if sort in ("notes", "file"):
        notes.append(Fault(where, f"{name!r} is free text or a file; it is left out of the table"))
        return ColumnFacts(name, "string", "drop")
    if sort in ("calc", "slider"):
        number = ColumnFacts(name, "number", decimals="todo") if sort == "calc" else ColumnFacts(name, "integer")
        slid = sort == "slider"
        low, high = (_bound(said[key], where, notes) for key in ("low", "high"))
        return replace(number, minimum=low or ("0" if slid else None), maximum=high or ("100" if slid else None))
    if sort == "sql":
        return ColumnFacts(name, "string")
    if sort != "text":
        notes.append(Fault(where, f"the field type {sort!r} of {name!r} is not known"))
        return ColumnFacts(name)
    low, high = (_bound(said[key], where, notes) for key in ("low", "high"))
    if moment := _MOMENT.fullmatch(validation):
        kind: FieldType = "date" if moment.group(1) == "date" else "datetime"
        return ColumnFacts(name, kind, minimum=low, maximum=high)
    if number_of := _NUMBER.fullmatch(validation):
        places, comma = number_of.groups()
        if comma:
            low, high = (bound and bound.replace(",", ".") for bound in (low, high))
        return ColumnFacts(
            name,
            "number",
            minimum=low,
            maximum=high,
            decimals=int(places) if places else "todo",
            spelling={"decimalChar": ","} if comma else {},
        )
    if validation in _VALIDATIONS:
        kind = _VALIDATIONS[validation]
        return ColumnFacts(name, kind, minimum=_clock(kind, low), maximum=_clock(kind, high))
    if validation:
        notes.append(Fault(where, f"{name!r} is text of the kind {validation!r}; it is left out of the table"))
        return ColumnFacts(name, "string", "drop")
    return ColumnFacts(name, "string")


def _clock(kind: FieldType, bound: str | None) -> str | None:
    return f"{bound}:00" if kind == "time" and bound and bound.count(":") == 1 else bound


def _bound(text: str, where: str, notes: list[Fault]) -> str | None:
    if text.lower().startswith(_MOVING):
        notes.append(Fault(where, "a bound that moves (today, now, another field) is no fixed bound; left out"))
        return None
    return text or None


def _choices(text: str, where: str, notes: list[Fault]) -> list[tuple[str, str | None]]:
    """The codes and labels of ``1, Yes | 2, No`` (older files: one a line)."""
    found = []
    for part in re.split(r"\||\\n|\n", text):
        code, comma, label = part.partition(",")
        if not part.strip():
            continue
        if not code.strip() or not comma:
            notes.append(Fault(where, "has a choice that is not of the form code, label; left out"))
            continue
        found.append((code.strip(), label.strip() or None))
    if not found:
        notes.append(Fault(where, "lists no choices"))
    return found
