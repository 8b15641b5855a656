"""Metadata of the Synthetic Data Vault: V1 (``columns`` with ``sdtype``), and older ones (``fields`` with ``type``).

{"METADATA_SPEC_VERSION": "V1", "tables": {"guests": {"primary_key": "email", "columns": {"city": {"sdtype":
"categorical"}}}}}, and with a single table its members at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.errors import Fault, SchemaError, UsageError
from margent.schema.imports.facts import ColumnFacts
from margent.schema.imports.imported import Imported, chosen_table, imported
from margent.schema.strict_json import kind_of, step

SOURCE = "SDV metadata"
_KNOWN = (
    "sdtype", "type", "subtype", "pii", "pii_category", "order", "datetime_format", "format", "regex_format", "regex",
    "computer_representation",
)  # fmt: skip
_CLOCK = ("%H", "%I", "%M", "%S", "%f", "%p", "%X", "%c", "%z")


def tells_sdv(document: Any) -> bool:
    """Whether a JSON document is of this kind: its columns have an sdtype, or (old) its tables' fields a type."""
    if not isinstance(document, Mapping):
        return False
    if "METADATA_SPEC_VERSION" in document:
        return True
    tables = document.get("tables")
    inner = list(tables.values()) if isinstance(tables, Mapping) else [document]
    return any(
        isinstance(column, Mapping) and isinstance(column.get(word), str)
        for table in inner
        if isinstance(table, Mapping)
        for key, word in (("columns", "sdtype"), ("fields", "type"))
        if isinstance(table.get(key), Mapping)
        for column in table[key].values()
    )


def from_sdv(document: Any, subject: str, table: str | None = None) -> Imported:
    """The draft of one table; its kinds of columns are known, their values and bounds are not.

    Raises: SchemaError with JSON pointers; UsageError where the table must be named.
    """
    chosen, place = _chosen(document, subject, table)
    faults: list[Fault] = []
    key = "columns" if "columns" in chosen else "fields"
    columns = chosen.get(key)
    if not isinstance(columns, Mapping):
        raise SchemaError([Fault(step(place, key), 'expected an object column -> {"sdtype": ...}')], subject)
    notes = _table_notes(chosen, place)
    keys = _keys(chosen)
    found: list[tuple[str, ColumnFacts]] = []
    for name, said in columns.items():
        where = step(step(place, key), name)
        if isinstance(said, Mapping):
            found.append((where, _column(name, said, where, notes, key=name in keys)))
        else:
            faults.append(Fault(where, f"expected an object, found {kind_of(said)}"))
    return imported(found, SOURCE, subject, notes=notes, faults=faults)


def _chosen(document: Any, subject: str, table: str | None) -> tuple[Mapping[str, Any], str]:
    if not isinstance(document, Mapping):
        raise SchemaError([Fault("", f"expected an object, found {kind_of(document)}")], subject)
    tables = document.get("tables")
    if tables is None:
        if table is not None:
            raise UsageError(f"--table {table}: {subject} describes one table without a name; leave it out")
        return document, ""
    if not isinstance(tables, Mapping) or not all(isinstance(each, Mapping) for each in tables.values()):
        raise SchemaError([Fault("/tables", "expected an object table -> its description")], subject)
    name = chosen_table(list(tables), subject, table)
    return tables[name], step("/tables", name)


def _keys(chosen: Mapping[str, Any]) -> set[str]:
    """The columns that are unique in the table."""
    keys: set[str] = set()
    more = chosen.get("alternate_keys")
    for name in [chosen.get("primary_key"), *(more if isinstance(more, list) else [])]:
        if isinstance(name, str):
            keys.add(name)
    return keys


def _table_notes(chosen: Mapping[str, Any], place: str) -> list[Fault]:
    notes = []
    sequence = chosen.get("sequence_key")
    if isinstance(sequence, str):
        where = step(place, "sequence_key")
        notes.append(
            Fault(where, f"{sequence!r} tells apart who has several rows: think of it when you answer the unit")
        )
    if isinstance(chosen.get("primary_key"), list):
        notes.append(Fault(step(place, "primary_key"), "is made of several columns; left out"))
    for key in ("column_relationships", "constraints"):
        if chosen.get(key):
            notes.append(Fault(step(place, key), "is not taken over; rules between columns are in docs/rules.md"))
    return notes


def _column(name: str, said: Mapping[str, Any], place: str, notes: list[Fault], *, key: bool) -> ColumnFacts:
    notes += [Fault(step(place, other), "is not understood; left out") for other in said if other not in _KNOWN]
    sort = said.get("sdtype", said.get("type"))
    sub = said.get("computer_representation", said.get("subtype"))
    word = sub.lower() if isinstance(sub, str) else ""
    if key or sort == "id":
        whole = word.startswith(("int", "uint"))
        return ColumnFacts(name, "integer" if whole else "string", "identifier")
    if said.get("pii") is True:
        notes.append(Fault(place, "is marked as telling who somebody is; it is left out of the table"))
        return ColumnFacts(name, "string", "drop")
    if sort == "boolean":
        return ColumnFacts(name, "boolean")
    if sort == "categorical":
        order = said.get("order")
        if isinstance(order, list) and order and all(isinstance(value, str | int | float) for value in order):
            texts = [value if isinstance(value, str) else repr(value) for value in order]
            return ColumnFacts(name, values=[(value, None) for value in texts], ordered=True)
        return ColumnFacts(name, "string")
    if sort == "numerical":
        if word.startswith(("int", "uint")):
            return ColumnFacts(name, "integer")
        return ColumnFacts(name, "number", decimals=None if word.startswith(("float", "double")) else "todo")
    if sort == "datetime":
        given = said.get("datetime_format", said.get("format"))
        written = given if isinstance(given, str) else None
        day = written is not None and not any(part in written for part in _CLOCK)
        plain = written in (None, "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")
        return ColumnFacts(name, "date" if day else "datetime", spelling={} if plain else {"format": written})
    if isinstance(sort, str) and sort not in ("unknown", "other", "text"):
        notes.append(
            Fault(place, f"is of the kind {sort!r}, which tells who or where somebody is; left out of the table")
        )
        return ColumnFacts(name, "string", "drop")
    return ColumnFacts(name)
