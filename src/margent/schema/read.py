"""A schema file -> `Schema`: strict JSON in the shape of a Table Schema, with every fault listed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from margent.errors import Fault, SchemaError
from margent.schema.block_json import read_missing
from margent.schema.check import schema_faults
from margent.schema.field_json import HONORED, read_field
from margent.schema.fields import DEFAULT_MISSING, PersonUnit, Schema, Unit
from margent.schema.parts import Field
from margent.schema.rule_files import with_mapping
from margent.schema.rules import read_rule
from margent.schema.strict_json import Members, load_bytes, parse_strict, step, strict_faults
from margent.schema.todos import TODO, field_todos, todo_faults

TABLE_KEYS = ("name", "fields", "missingValues", "margent")
CARRIED_TABLE_KEYS = ("$schema", "title", "description", "rdfType", "primaryKey", "foreignKeys", "example")
BLOCK_KEYS = ("unit", "rules", "provenance")


def read_schema(path: str | Path) -> Schema:
    """Read a schema file; everything in it is public by declaration.

    Privacy: none: no table is opened.
    Raises: SchemaError listing every fault with its JSON pointer.
    """
    path = Path(path)
    document = parse_strict(load_bytes(path), str(path))
    return _schema_of(document, path.parent, str(path))


def schema_from_json(document: Any, *, folder: Path | None = None, subject: str = "the schema") -> Schema:
    """The schema that a parsed JSON document declares; ``folder`` is where category files are looked for.

    >>> document = {"fields": [{"name": "sex", "type": "string", "categories": ["F", "M"]}],
    ...             "margent": {"unit": "row"}}
    >>> schema_from_json(document).fields[0].name
    'sex'
    >>> schema_from_json({"fields": []})
    Traceback (most recent call last):
    margent.errors.SchemaError: the schema has 2 faults:
      /fields: is empty; a table has at least one field
      /margent: needs "unit": who is protected? "row", or {"field": ..., "maxRows": k} for a person's rows

    Raises: SchemaError listing every fault with its JSON pointer, and every open todo.
    """
    if faults := strict_faults(document):
        raise SchemaError(faults, subject)
    return _schema_of(document, folder, subject)


def _schema_of(document: Any, folder: Path | None, subject: str) -> Schema:
    """The schema of a document that is strict JSON."""
    faults = todo_faults(document)
    top = Members(document, "", faults)
    top.refuse_unknown(
        (*TABLE_KEYS, *CARRIED_TABLE_KEYS),
        dict.fromkeys(HONORED, "it belongs into a field") | dict.fromkeys(BLOCK_KEYS, "it belongs into margent"),
    )
    block = Members(document.get("margent", {}) if top.sound else {}, "/margent", faults)
    block.refuse_unknown(BLOCK_KEYS, {})
    unit = _unit(block)
    missing = read_missing(top, "missingValues")
    rules = block.items("rules") or []
    rules = [with_mapping(rule, step("/margent/rules", place), faults, folder) for place, rule in enumerate(rules)]
    name, provenance = top.text("name"), block.text("provenance")
    fields = _fields(top, faults, folder)
    tokens = DEFAULT_MISSING if missing is None else missing
    if faults or unit is None:
        for place, rule in enumerate(rules):
            read_rule(rule, step("/margent/rules", place), faults)
        raise SchemaError(_in_order([*faults, *schema_faults(fields, tokens, unit)]), subject)
    try:
        return Schema(
            [field for _, field in fields],
            unit=unit,
            name=name,
            missing=tokens,
            rules=rules,
            provenance=provenance,
            carried={key: top.get(key) for key in CARRIED_TABLE_KEYS if key in top},
        )
    except SchemaError as error:
        raise SchemaError(_in_order(error.faults), subject) from None


def _fields(top: Members, faults: list[Fault], folder: Path | None) -> list[tuple[str, Field]]:
    """The fields that could be understood, each with its pointer; those with open questions are left out."""
    given = top.items("fields") if top.sound else []
    if given is None:
        if "fields" not in top:
            top.fault(None, 'needs "fields": one entry a column')
        return []
    if top.sound and not given:
        top.fault("fields", "is empty; a table has at least one field")
    fields = []
    for place, raw in enumerate(given):
        pointer = step("/fields", place)
        if field_todos(raw, pointer):
            continue
        field = read_field(raw, pointer, faults, folder)
        if field is not None:
            fields.append((pointer, field))
    return fields


def _unit(block: Members) -> Unit | None:
    given = block.get("unit")
    if given == "row":
        return "row"
    if given == TODO:
        return None
    if isinstance(given, Mapping):
        inner = Members(given, "/margent/unit", block.faults)
        inner.refuse_unknown(("field", "maxRows", "sizes"), {})
        field, rows = inner.text("field"), inner.whole("maxRows", 1, 2**31)
        if inner.sound and (field is None or rows is None):
            inner.fault(None, 'a person needs "field" (the id column) and "maxRows" (rows kept of each person)')
        sizes = inner.flag("sizes")
        if not inner.sound:
            return None
        return PersonUnit(field, rows, sizes) if field is not None and rows is not None else None
    question = 'who is protected? "row", or {"field": ..., "maxRows": k} for a person\'s rows'
    block.fault("unit" if "unit" in block else None, question if "unit" in block else f'needs "unit": {question}')
    return None


def _in_order(faults: Sequence[Fault]) -> list[Fault]:
    """By place in the document: table, then field by field; numbers compare as numbers."""

    def key(fault: Fault) -> list[tuple[int, int, str]]:
        parts = fault.pointer.split("/")
        return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts]

    return sorted(dict.fromkeys(faults), key=key)
