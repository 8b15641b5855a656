"""Data dictionaries of SDNist's excerpts.

{"SEX": {"description": "Person's gender", "values": {"1": "Male", "2": "Female"}},
 "POVPIP": {"description": "Income to poverty", "values": {"N": "N/A", "min": 0, "max": 500, "501": "above"}}}

Codes and bounds may also stand beside the description, without ``values``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.errors import Fault
from margent.schema.imports.facts import ColumnFacts
from margent.schema.imports.imported import Imported, imported
from margent.schema.strict_json import kind_of, step

SOURCE = "an SDNist data dictionary"
_WORDS = ("description", "link", "details", "values", "min", "max", "step_size")
_DETAILS = ("link", "details")


def tells_sdnist(document: Any) -> bool:
    """Whether a JSON document is of this kind: every member describes a column, most of them with values."""
    if not isinstance(document, Mapping) or not document:
        return False
    columns = list(document.values())
    return all(
        isinstance(column, Mapping) and isinstance(column.get("description"), str) for column in columns
    ) and any(isinstance(column.get("values"), Mapping) or "min" in column for column in columns)


def from_sdnist(document: Any, subject: str) -> Imported:
    """The draft that a dictionary gives; codes that are not applicable ("N/A ...") are missing tokens of their own.

    Raises: SchemaError with JSON pointers.
    """
    faults: list[Fault] = []
    notes: list[Fault] = []
    found: list[tuple[str, ColumnFacts]] = []
    if not isinstance(document, Mapping):
        faults.append(Fault("", f'expected an object column -> {{"description", "values"}}, found {kind_of(document)}'))
        document = {}
    for name, said in document.items():
        place = step("", name)
        if isinstance(said, Mapping):
            found.append((place, _column(name, said, place, notes)))
        else:
            faults.append(Fault(place, f"expected an object, found {kind_of(said)}"))
    return imported(found, SOURCE, subject, notes=notes, faults=faults)


def _column(name: str, said: Mapping[str, Any], place: str, notes: list[Fault]) -> ColumnFacts:
    description = said.get("description")
    given = said.get("values")
    if isinstance(given, list):
        members: dict[str, Any] = {str(value): None for value in given if isinstance(value, str | int | float)}
    elif isinstance(given, Mapping):
        members = dict(given)
    else:
        members = {}
        if given is not None:
            notes.append(Fault(step(place, "values"), f"expected an object code -> label, found {kind_of(given)}"))
    for key, value in said.items():
        if key not in _WORDS or key in ("min", "max", "step_size"):
            members.setdefault(key, value)
        elif key in _DETAILS:
            notes.append(Fault(step(place, key), "what it points to is not read; left out"))
    low, high, width = (members.pop(key, None) for key in ("min", "max", "step_size"))
    codes: dict[str, str | None] = {}
    for code, label in members.items():
        if label is None or isinstance(label, str):
            codes[code] = label
        else:
            notes.append(Fault(step(place, code), f"expected a label, found {kind_of(label)}; left out"))
    missing = {code: label for code, label in codes.items() if _not_applicable(code, label)}
    values = {code: label for code, label in codes.items() if code not in missing}
    told = description if isinstance(description, str) else None
    if low is None and high is None:
        pairs = list(values.items())
        return ColumnFacts(name, values=pairs or None, missing=missing, description=told)
    numbers = [value for value in (low, high, width) if value is not None]
    whole = all(isinstance(value, int) for value in numbers)
    decimals = len(repr(width).partition(".")[2]) if isinstance(width, float) and "e" not in repr(width) else None
    return ColumnFacts(
        name,
        "integer" if whole else "number",
        minimum=low,
        maximum=high,
        decimals=decimals if not whole else None,
        special={code: label or "" for code, label in values.items()},
        missing=missing,
        description=told,
    )


def _not_applicable(code: str, label: str | None) -> bool:
    return label is not None and label.strip().upper().startswith(("N/A", "NOT APPLICABLE")) and code.strip() != ""
