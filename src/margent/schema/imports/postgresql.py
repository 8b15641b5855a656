"""PostgreSQL table definitions (``pg_dump --schema-only``): types, enum labels, CHECKs, NOT NULL, comments.

A small reader of its own: statements of other kinds are told and never executed, rows are never read.
"""

from __future__ import annotations

import re
from typing import Any

from margent.errors import Fault, SchemaError
from margent.schema.imports.facts import ColumnFacts
from margent.schema.imports.imported import Imported, chosen_table, imported
from margent.schema.imports.sql_checks import Said, read_check
from margent.schema.imports.sql_tables import SqlColumn, SqlFile, SqlTable
from margent.schema.imports.sql_tokens import Token, sql_statements
from margent.schema.parts import DEFAULT_SPELLING, FieldType
from margent.schema.positions import declared_scalar, scalar_position

SOURCE = "a PostgreSQL table definition"
_CREATE = re.compile(r"\bCREATE\s+(?:(?:GLOBAL|LOCAL)\s+)?(?:TEMP(?:ORARY)?\s+|UNLOGGED\s+)?TABLE\b", re.IGNORECASE)

_WHOLE = ("smallint", "int2", "integer", "int", "int4", "bigint", "int8")
_SERIAL = ("serial", "serial4", "bigserial", "serial8", "smallserial", "serial2")
_REAL = ("real", "float4", "double", "float8", "float", "money")
_TEXT = ("text", "varchar", "character", "char", "bpchar", "citext", "name")
_SPELLING = {"trueValues": ["t", "true", "True", "TRUE", "1"], "falseValues": ["f", "false", "False", "FALSE", "0"]}


def tells_postgresql(text: str) -> bool:
    """Whether a text holds a table definition."""
    return _CREATE.search(text) is not None


def from_postgresql(text: str, subject: str, table: str | None = None) -> Imported:
    """The draft that one table's definition gives; a key of one column, and a uuid, are identifiers.

    Raises: SchemaError naming lines; UsageError where the table must be named.
    """
    file = SqlFile()
    for statement in sql_statements(text, subject):
        file.add(statement)
    notes = [
        Fault(f"line {line}", f"{words}: not read" + (f" ({times} such statements)" if times > 1 else ""))
        for words, (line, times) in file.unread.items()
    ]
    if not file.tables:
        raise SchemaError([*notes, Fault("", "has no CREATE TABLE name (columns) that can be read")], subject)
    found = file.table(table) if table is not None else None
    found = found or file.tables[chosen_table(list(file.tables), subject, table)]
    notes += [Fault(f"line {line}", message) for line, message in found.odd]
    faults = [Fault(f"line {column.line}", f"the column {column.name!r} is declared twice") for column in found.doubled]
    columns = _columns(found, file, notes)
    described: dict[str, Any] = {"name": found.name.rpartition(".")[2]}
    if found.comment:
        described["description"] = found.comment
    return imported(columns, SOURCE, subject, notes=notes, faults=faults, table=described)


def _columns(table: SqlTable, file: SqlFile, notes: list[Fault]) -> list[tuple[str, ColumnFacts]]:
    said: dict[str, list[Said]] = {name: [] for name in table.columns}
    for tokens in table.checks:
        found, whole = read_check(tokens)
        known = [each for each in found if each.column in said]
        for each in known:
            said[each.column].append(each)
        if not whole or len(known) < len(found):
            line = tokens[0].line if tokens else table.line
            notes.append(Fault(f"line {line}", "a CHECK is not read, or in part; rules between columns: docs/rules.md"))
    return [
        (f"line {column.line}", _column(column, table, file, said[column.name], notes))
        for column in table.columns.values()
    ]


def _column(column: SqlColumn, table: SqlTable, file: SqlFile, said: list[Said], notes: list[Fault]) -> ColumnFacts:
    where = f"line {column.line}"
    kind, more = _type(column, file, where, notes)
    if table.key == (column.name,) or more.get("role") == "identifier":
        if kind not in ("string", "integer", None):
            notes.append(Fault(where, f"{column.name!r} tells rows apart; fresh ids are written for it"))
        return ColumnFacts(
            column.name, "integer" if kind == "integer" else "string", "identifier", description=column.comment
        )
    if column.references is not None:
        notes.append(Fault(where, f"{column.name!r} refers to another table; which values it has is not known here"))
    low, high = (_bound(kind, said, signs, where, notes) for signs in ((">", ">="), ("<", "<=")))
    values = more.pop("values", None)
    for each in said:
        if each.relation == "in":
            allowed = set(each.values)
            values = [value for value in dict.fromkeys(each.values if values is None else values) if value in allowed]
    if kind == "boolean" or more.get("role") == "drop":
        values = None
    ranged = values is None and kind not in (None, "string", "boolean")
    return ColumnFacts(
        column.name,
        kind,
        values=None if values is None else [(value, None) for value in values],
        minimum=low if ranged else None,
        maximum=high if ranged else None,
        required=column.required or any(each.relation == "not null" for each in said),
        description=column.comment,
        **more,
    )


def _type(column: SqlColumn, file: SqlFile, where: str, notes: list[Fault]) -> tuple[FieldType | None, dict[str, Any]]:
    """The type of a column, and what else its type says."""
    tokens = column.type_tokens
    words = [token.text for token in tokens if token.kind in ("word", "name")]
    name, last = (words[0], words[-1]) if words else ("", "")
    numbers = [int(token.text) for token in tokens if token.kind == "number" and token.text.isdigit()]
    if any(token.is_sign("[") or token.is_word("array") for token in tokens):
        return _left_out(column, where, notes)
    enum = _enum(tokens, file)
    if enum is not None:
        return "string", {"values": list(enum)}
    if len(words) > 1 and words[0] == "pg_catalog":
        name = words[1]
    if name in (*_WHOLE, *_SERIAL):
        return "integer", {"role": "identifier"} if name in _SERIAL or column.numbered else {}
    if name in ("numeric", "decimal", "dec"):
        if not numbers:
            return "number", {"decimals": "todo"}
        places = numbers[1] if len(numbers) > 1 else 0
        return ("number", {"decimals": places}) if 0 < places <= 15 else ("integer", {})
    if name in _REAL:
        return "number", {"decimals": 2} if name == "money" else {}
    if name in ("boolean", "bool"):
        return "boolean", {"spelling": _SPELLING}
    if name in _TEXT:
        return "string", {}
    if name == "uuid":
        return "string", {"role": "identifier"}
    if name == "date":
        return "date", {}
    if name in ("timestamp", "timestamptz"):
        return "datetime", {"time_zone": "UTC" if name == "timestamptz" or "with" in words else "naive"}
    if name == "time" and "with" not in words:
        return "time", {}
    if name in ("json", "jsonb", "xml", "bytea", "interval", "inet", "cidr", "macaddr", "point", "tsvector", "timetz"):
        return _left_out(column, where, notes)
    notes.append(Fault(where, f"the type {last or 'of this column'!r} of {column.name!r} is not known here"))
    return None, {}


def _left_out(column: SqlColumn, where: str, notes: list[Fault]) -> tuple[FieldType | None, dict[str, Any]]:
    notes.append(Fault(where, f"{column.name!r} is of a type that is not modeled; it is left out of the table"))
    return "string", {"role": "drop"}


def _enum(tokens: list[Token] | Any, file: SqlFile) -> tuple[str, ...] | None:
    name = "".join(token.text if token.kind in ("word", "name") else "." for token in tokens if token.kind != "text")
    if name in file.enums:
        return file.enums[name]
    last = name.rpartition(".")[2]
    same = [labels for full, labels in file.enums.items() if full.rpartition(".")[2] == last]
    return same[0] if len(same) == 1 else None


def _bound(
    kind: FieldType | None, said: list[Said], signs: tuple[str, str], where: str, notes: list[Fault]
) -> str | None:
    """The tightest bound that comparisons with these signs give; a strict one is moved by one where it is whole."""
    bounds = []
    for each in said:
        if each.relation not in signs:
            continue
        bound = each.values[0]
        if each.relation == signs[0]:
            if kind == "integer" and re.fullmatch(r"-?[0-9]{1,18}", bound):
                bound = str(int(bound) + (1 if signs[0] == ">" else -1))
            else:
                notes.append(Fault(where, "a CHECK excludes its bound; the bound itself is taken"))
        bounds.append(bound)
    if len(bounds) < 2 or kind is None:
        return bounds[0] if bounds else None
    try:
        places = {
            scalar_position(kind, declared_scalar(kind, bound, DEFAULT_SPELLING), None): bound for bound in bounds
        }
    except ValueError:
        return bounds[-1]
    return places[max(places) if signs[0] == ">" else min(places)]
