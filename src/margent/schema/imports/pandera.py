"""Schemas of pandera in their JSON form, ``schema.to_json()``: checks as keys of a column, or (older) apart.

{"schema_type": "dataframe", "columns": {"age": {"dtype": "int64", "nullable": true,
 "in_range": {"min_value": 0, "max_value": 110, "include_min": true, "include_max": true}}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from margent.errors import Fault
from margent.schema.imports.dtypes import type_of_dtype
from margent.schema.imports.facts import ColumnFacts
from margent.schema.imports.imported import Imported, imported
from margent.schema.parts import FieldType
from margent.schema.strict_json import kind_of, step

SOURCE = "a pandera schema"
_NO_CHECKS = (
    "title", "description", "dtype", "nullable", "checks", "name", "unique", "coerce", "required", "regex", "default",
    "report_duplicates", "drop_invalid_rows",
)  # fmt: skip
_LOWER = ("greater_than_or_equal_to", "ge", "greater_than", "gt")
_UPPER = ("less_than_or_equal_to", "le", "less_than", "lt")
_STRICT = ("greater_than", "gt", "less_than", "lt")


def tells_pandera(document: Any) -> bool:
    """Whether a JSON document is of this kind."""
    return isinstance(document, Mapping) and document.get("schema_type") == "dataframe" and "columns" in document


def from_pandera(document: Any, subject: str) -> Imported:
    """The draft that a data frame schema gives: types, ranges and lists; other checks are told and left out.

    Raises: SchemaError with JSON pointers.
    """
    columns = document.get("columns") if isinstance(document, Mapping) else None
    pairs: list[tuple[Any, Any, str]] = []
    faults: list[Fault] = []
    notes: list[Fault] = []
    if isinstance(columns, Mapping):
        pairs = [(name, said, step("/columns", name)) for name, said in columns.items()]
    elif isinstance(columns, list):
        names = [said.get("name") if isinstance(said, Mapping) else None for said in columns]
        pairs = [
            (name, said, step("/columns", place)) for place, (name, said) in enumerate(zip(names, columns, strict=True))
        ]
    else:
        faults.append(Fault("/columns", 'expected an object column -> {"dtype", ...}'))
    found: list[tuple[str, ColumnFacts]] = []
    for name, said, place in pairs:
        if not isinstance(said, Mapping):
            faults.append(Fault(place, f"expected an object, found {kind_of(said)}"))
        elif not isinstance(name, str):
            faults.append(Fault(place, "its name is not one text; name each column with one"))
        elif said.get("regex") is True:
            notes.append(Fault(place, "stands for all columns whose names match; left out: name them one by one"))
        else:
            found.append((place, _column(name, said, place, notes)))
    document = document if isinstance(document, Mapping) else {}
    for key in ("index", "checks", "multiindex"):
        if document.get(key):
            notes.append(Fault(f"/{key}", "is not taken over; rules between columns are in docs/rules.md"))
    return imported(found, SOURCE, subject, notes=notes, faults=faults)


@dataclass
class _Known:
    """What the checks of one column say so far."""

    kind: FieldType | None
    low: Any = None
    high: Any = None
    values: list[Any] | None = None
    notes: list[Fault] = field(default_factory=list)


def _column(name: str, said: Mapping[str, Any], place: str, notes: list[Fault]) -> ColumnFacts:
    dtype = said.get("dtype")
    kind, zone = type_of_dtype(dtype) if isinstance(dtype, str) else (None, None)
    texts = {key: said[key] for key in ("title", "description") if isinstance(said.get(key), str)}
    required = said.get("nullable", False) is False and said.get("required", True) is True
    if dtype is not None and kind is None and dtype not in ("object", "category"):
        notes.append(Fault(step(place, "dtype"), "is a type that is not known here"))
    known = _Known(kind)
    for check, value, where in _checks(said, place, notes):
        _take(known, check, value, where)
    notes += known.notes
    values = None if known.values is None else [(value, None) for value in known.values]
    if values and kind == "string":
        values = [(value if isinstance(value, str) else repr(value), None) for value, _ in values]
    if said.get("unique") is True and kind in ("string", "integer") and values is None:
        return ColumnFacts(name, kind, "identifier", **texts)
    ranged = values is None and kind not in ("string", "boolean")
    return ColumnFacts(
        name,
        kind,
        values=values,
        minimum=_day(kind, known.low) if ranged else None,
        maximum=_day(kind, known.high) if ranged else None,
        required=required,
        time_zone=zone,
        **texts,
    )


def _checks(said: Mapping[str, Any], place: str, notes: list[Fault]) -> list[tuple[str, Any, str]]:
    """Every check as its name, its statistics and its place."""
    found = [(key, value, step(place, key)) for key, value in said.items() if key not in _NO_CHECKS]
    given, where = said.get("checks"), step(place, "checks")
    if isinstance(given, Mapping):
        found += [(key, value, step(where, key)) for key, value in given.items()]
    elif isinstance(given, list):
        for number, entry in enumerate(given):
            options = entry.get("options") if isinstance(entry, Mapping) else None
            check = options.get("check_name") if isinstance(options, Mapping) else None
            if isinstance(check, str):
                rest = {key: value for key, value in entry.items() if key != "options"}
                found.append((check, rest, step(where, number)))
            else:
                notes.append(Fault(step(where, number), "is a check without a name; left out"))
    elif given is not None:
        notes.append(Fault(where, f"expected checks, found {kind_of(given)}; left out"))
    return found


def _take(known: _Known, check: str, value: Any, where: str) -> None:
    """Add what one check says, or a note that it is not read."""
    if isinstance(value, Mapping):
        stats = {key: each for key, each in value.items() if key not in ("options", "ignore_na", "raise_warning")}
        single = next(iter(stats.values())) if len(stats) == 1 else None
    else:
        stats, single = {}, value
    if check == "isin" and isinstance(single, list) and all(isinstance(each, str | int | float) for each in single):
        allowed = set(single)
        known.values = single if known.values is None else [each for each in known.values if each in allowed]
    elif check in ("eq", "equal_to") and isinstance(single, str | int | float):
        known.values = [single]
    elif check in ("in_range", "between") and "min_value" in stats and "max_value" in stats:
        _bound(known, stats["min_value"], stats.get("include_min") is not False, where, lower=True)
        _bound(known, stats["max_value"], stats.get("include_max") is not False, where, lower=False)
    elif check in (*_LOWER, *_UPPER) and single is not None:
        _bound(known, single, check not in _STRICT, where, lower=check in _LOWER)
    else:
        known.notes.append(Fault(where, "is a check that a schema of values cannot hold; left out"))


def _bound(known: _Known, value: Any, closed: bool, where: str, *, lower: bool) -> None:
    if not closed:
        if known.kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
            value += 1 if lower else -1
        else:
            known.notes.append(Fault(where, "excludes its bound; the bound itself is taken"))
    old = known.low if lower else known.high
    try:
        tighter = old is None or (value > old if lower else value < old)
    except TypeError:
        tighter = True
    if tighter and lower:
        known.low = value
    elif tighter:
        known.high = value


def _day(kind: FieldType | None, value: Any) -> Any:
    """A moment's text as this kind of column wants it: pandera writes days with a clock time."""
    return value[:10] if kind == "date" and isinstance(value, str) else value
