"""A plain Table Schema (Data Package version 2) of the released table, for tools that know nothing of Margent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"


def table_schema(document: Mapping[str, Any]) -> dict[str, Any]:
    """The Table Schema of a schema document: the written columns, without Margent's own block.

    Special codes become missing values with labels, which is how version 2 spells them.

    Privacy: none: a schema is public.

    >>> field = {"name": "age", "type": "integer", "margent": {"bins": 5, "special": {"-9": "refused"}}}
    >>> table_schema({"fields": [field, {"name": "note", "type": "string", "margent": {"role": "drop"}}]})["fields"]
    [{'name': 'age', 'type': 'integer', 'missingValues': ['', {'value': '-9', 'label': 'refused'}]}]
    """
    written = written_fields(document)
    names = {field["name"] for field in written}
    plain = {key: value for key, value in document.items() if key not in ("margent", "fields", "$schema", "name")}
    for key in ("primaryKey", "foreignKeys"):
        if key in plain and not _columns_of(key, plain[key]) <= names:
            del plain[key]
    everywhere = document.get("missingValues", [""])
    return {"$schema": PROFILE} | plain | {"fields": [_plain(field, everywhere) for field in written]}


def written_fields(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The fields whose columns are written: all but those left out of the table."""
    return [field for field in document["fields"] if field.get("margent", {}).get("role") != "drop"]


def special_codes(field: Mapping[str, Any]) -> list[dict[str, str]]:
    """The special codes of a field, each with its label where it has one."""
    given = field.get("margent", {}).get("special", [])
    pairs = given.items() if isinstance(given, Mapping) else ((each["value"], each.get("label")) for each in given)
    return [{"value": text} | ({"label": label} if label else {}) for text, label in pairs]


def _plain(field: Mapping[str, Any], everywhere: list[Any]) -> dict[str, Any]:
    plain = {key: value for key, value in field.items() if key != "margent"}
    if codes := special_codes(field):
        plain["missingValues"] = [*plain.get("missingValues", everywhere), *codes]
    return plain


def _columns_of(key: str, value: Any) -> set[str]:
    """The table's own columns that a key speaks of."""
    named = [value] if key == "primaryKey" else [each.get("fields") for each in value if isinstance(each, Mapping)]
    columns: set[str] = set()
    for each in named:
        columns |= {each} if isinstance(each, str) else {name for name in each or () if isinstance(name, str)}
    return columns
