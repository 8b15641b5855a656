"""The beginning of a schema, from names and declared types alone: what only people know is left as "todo"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from margent.errors import Fault
from margent.schema.container import stored_type
from margent.schema.todos import TODO, todo_faults
from margent.schema.zones import zone_named


@dataclass(frozen=True)
class Draft:
    """A schema document with open questions; it can be read as a schema once they are answered.

    Privacy: none: made from public facts only.
    """

    document: dict[str, Any]

    @property
    def todos(self) -> tuple[Fault, ...]:
        """The open questions, each with its JSON pointer."""
        return tuple(todo_faults(self.document))

    @property
    def text(self) -> str:
        """The file's text, one line a field, so that it can be edited like a list."""
        fields = ",\n".join(f"    {_json(field)}" for field in self.document["fields"])
        parts = [
            f"  {_json(key)}: [\n{fields}\n  ]" if key == "fields" else f"  {_json(key)}: {_json(value)}"
            for key, value in self.document.items()
        ]
        return "{\n" + ",\n".join(parts) + "\n}\n"


def drafted(fields: Sequence[dict[str, Any]], *, unit: Any = None, provenance: str | None = None) -> Draft:
    """A draft with these fields; who is protected is always for a person to say."""
    block: dict[str, Any] = {"unit": unit or TODO}
    if provenance is not None:
        block["provenance"] = provenance
    return Draft({"missingValues": [""], "fields": list(fields), "margent": block})


def draft_from_table(columns: Sequence[str], arrow_schema: Any | None = None) -> Draft:
    """A draft from a table's header and, for a typed container, its declared types.

    Never from values, bounds, dictionary values or null counts: those are private. A text file has no types. A column
    that is declared without nulls (NOT NULL in a database) is required.

    Privacy: none: header and container only.

    >>> draft = draft_from_table(["age"])
    >>> draft.document["fields"], [fault.pointer for fault in draft.todos]
    ([{'name': 'age', 'type': 'todo'}], ['/margent/unit', '/fields/0/type'])
    """
    if arrow_schema is None:
        return drafted([{"name": name, "type": TODO} for name in columns])
    found = {each.name: each for each in arrow_schema}
    return drafted(
        [_as_declared(_typed_field(name, found[name].type), nullable=found[name].nullable) for name in columns]
    )


def _as_declared(field: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    """The field, required where its column is declared without nulls and is modeled."""
    if nullable or field.get("margent", {}).get("role") == "drop":
        return field
    return field | {"constraints": {"required": True} | field.get("constraints", {})}


def _typed_field(name: str, declared: Any) -> dict[str, Any]:
    """A field drafted from the Arrow type its column declares."""
    import pyarrow as pa

    types, kind = pa.types, stored_type(declared)
    if types.is_null(kind) or types.is_duration(kind) or types.is_interval(kind):
        return {"name": name, "type": TODO}
    if types.is_nested(kind):
        return {
            "name": name,
            "type": "string",
            "description": "nested values cannot be modeled",
            "margent": {"role": "drop"},
        }
    if types.is_boolean(kind):
        return {"name": name, "type": "boolean"}
    if types.is_decimal(kind) and kind.scale > 0:
        return bounded_field(name, "number", decimals=min(kind.scale, 15), bins=TODO)
    if types.is_integer(kind) or types.is_decimal(kind):
        return bounded_field(name, "integer")
    if types.is_floating(kind):
        return bounded_field(name, "number", bins=TODO)
    if types.is_date(kind):
        return bounded_field(name, "date", bins=TODO)
    if types.is_timestamp(kind):
        return bounded_field(name, "datetime", bins=TODO, timeZone=_zone(kind.tz))
    if types.is_time(kind):
        return bounded_field(name, "time", bins=TODO)
    return {"name": name, "type": "string", "categories": TODO}


def bounded_field(name: str, kind: str, low: Any = TODO, high: Any = TODO, **block: Any) -> dict[str, Any]:
    """A field of an ordered type with its bounds and what else is known of it.

    >>> bounded_field("age", "integer", 0)
    {'name': 'age', 'type': 'integer', 'constraints': {'minimum': 0, 'maximum': 'todo'}}
    """
    field: dict[str, Any] = {"name": name, "type": kind, "constraints": {"minimum": low, "maximum": high}}
    return field | ({"margent": block} if block else {})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _zone(declared: str | None) -> str:
    if declared is None:
        return "naive"
    try:
        zone_named(declared)
    except ValueError:
        return "UTC"
    return declared
