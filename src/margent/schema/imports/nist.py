"""``parameters.json`` of the NIST differential-privacy challenges, and the table schemas of SDNist in the same shape.

{"schema": {"AGE": {"dtype": "uint8", "kind": "numeric", "min": 0, "max": 135}, ...},
 "runs": [{"epsilon": 1.0, "delta": 1e-9, "max_records": 1000, "max_records_per_individual": 7}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.errors import Fault
from margent.schema.imports.dtypes import type_of_dtype
from margent.schema.imports.facts import ColumnFacts
from margent.schema.imports.imported import Imported, imported
from margent.schema.parts import FieldType
from margent.schema.strict_json import kind_of, step

SOURCE = "the parameters of a NIST challenge"
_KNOWN = ("dtype", "kind", "values", "names", "min", "max", "bins", "has_null", "null_value", "description", "format")
_KINDS: Mapping[str, FieldType | None] = {
    "numeric": None,
    "categorical": None,
    "geo": None,
    "date": "date",
    "datetime": "datetime",
    "time": "time",
}


def tells_nist(document: Any) -> bool:
    """Whether a JSON document is of this kind: an object ``schema`` whose members have dtypes."""
    columns = document.get("schema") if isinstance(document, Mapping) else None
    return isinstance(columns, Mapping) and any(
        isinstance(column, Mapping) and ("dtype" in column or "kind" in column) for column in columns.values()
    )


def from_nist(document: Any, subject: str) -> Imported:
    """The draft that the parameters give; who is protected is taken where they name it.

    With ``max_records_per_individual`` 1 a row is a person; with more, the one column of kind ``id`` tells them apart.

    Raises: SchemaError with JSON pointers.
    """
    faults: list[Fault] = []
    notes: list[Fault] = []
    columns = document.get("schema") if isinstance(document, Mapping) else None
    if not isinstance(columns, Mapping):
        faults.append(Fault("/schema", 'expected an object column -> {"dtype", "values" or "min" and "max"}'))
        columns = {}
    found: list[tuple[str, ColumnFacts]] = []
    for name, said in columns.items():
        place = step("/schema", name)
        if isinstance(said, Mapping):
            found.append((place, _column(name, said, place, notes)))
        else:
            faults.append(Fault(place, f"expected an object, found {kind_of(said)}"))
    unit = _unit(document, found, notes) if isinstance(document, Mapping) else None
    return imported(found, SOURCE, subject, notes=notes, faults=faults, unit=unit)


def _column(name: str, said: Mapping[str, Any], place: str, notes: list[Fault]) -> ColumnFacts:
    notes += [Fault(step(place, key), "is not understood; left out") for key in said if key not in _KNOWN]
    word, dtype = said.get("kind"), said.get("dtype")
    kind, zone = type_of_dtype(dtype) if isinstance(dtype, str) else (None, None)
    description = said.get("description")
    if not isinstance(description, str):
        description = None
    if word == "id":
        return ColumnFacts(name, "integer" if kind == "integer" else "string", "identifier", description=description)
    if isinstance(word, str) and word in _KINDS:
        kind = _KINDS[word] or kind
    elif word is not None:
        notes.append(Fault(step(place, "kind"), f"one of {', '.join(_KINDS)}, id is expected; left out"))
    values, missing = _values(said, place, notes), _null(said)
    low, high, bins = said.get("min"), said.get("max"), said.get("bins")
    if isinstance(bins, list) and len(bins) >= 2 and values is None:
        low, high = (bins[0] if low is None else low), (bins[-1] if high is None else high)
    if kind is None and values is None and _is_number(low) and _is_number(high):
        # A dtype such as object says nothing of numbers beside a text for "no value"; their bounds do.
        kind = "integer" if isinstance(low, int) and isinstance(high, int) else "number"
        notes.append(Fault(place, f"its type is read off its bounds: {kind}; correct it if that is wrong"))
    elif kind == "string" and values is None and (low is not None or high is not None):
        kind = None
    values = [pair for pair in values if str(pair[0]) not in missing] if values is not None else None
    return ColumnFacts(
        name,
        None if values and kind == "string" and not all(isinstance(value, str) for value, _ in values) else kind,
        values=values or None,
        minimum=low if values is None else None,
        maximum=high if values is None else None,
        bins=bins if values is None else None,
        missing=missing,
        spelling={"format": said["format"]} if isinstance(said.get("format"), str) else {},
        time_zone=zone,
        description=description,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(said: Mapping[str, Any], place: str, notes: list[Fault]) -> list[tuple[Any, str | None]] | None:
    given, names = said.get("values"), said.get("names")
    if given is None:
        return None
    if isinstance(given, Mapping):
        return [(code, label if isinstance(label, str) else None) for code, label in given.items()]
    if not isinstance(given, list) or not all(isinstance(value, str | int | float | None) for value in given):
        notes.append(Fault(step(place, "values"), "expected a list of values; left out"))
        return None
    labels: list[str | None] = [None] * len(given)
    if isinstance(names, list) and len(names) == len(given) and all(isinstance(name, str) for name in names):
        labels = list(names)
    elif isinstance(names, Mapping):
        told = [names.get(str(value)) for value in given]
        labels = [label if isinstance(label, str) else None for label in told]
    elif names is not None:
        notes.append(Fault(step(place, "names"), "expected one name a value; left out"))
    return [(value, label) for value, label in zip(given, labels, strict=True) if value is not None]


def _null(said: Mapping[str, Any]) -> dict[str, str | None]:
    token = said.get("null_value")
    if said.get("has_null") is False or isinstance(token, bool) or not isinstance(token, str | int | float):
        return {}
    return {str(token): None}


def _unit(document: Mapping[str, Any], found: list[tuple[str, ColumnFacts]], notes: list[Fault]) -> Any:
    runs = document.get("runs")
    if runs is None:
        return None
    key = "max_records_per_individual"
    told = isinstance(runs, list) and all(
        isinstance(run, Mapping) and isinstance(run.get(key), int | None) for run in runs
    )
    most = {run.get(key) for run in runs} if told else set()
    if runs:
        notes.append(Fault("/runs", "epsilon, delta and numbers of records are options of a run; left out"))
    rows = most.pop() if len(most) == 1 else None
    if rows is None or isinstance(rows, bool) or not 1 <= rows < 2**31:
        return None
    if rows == 1:
        return "row"
    persons = [facts.name for _, facts in found if facts.role == "identifier"]
    if len(persons) == 1:
        return {"field": persons[0], "maxRows": rows}
    notes.append(
        Fault("/runs", f"a person has at most {rows} rows, but no single column of kind id tells persons apart")
    )
    return None
