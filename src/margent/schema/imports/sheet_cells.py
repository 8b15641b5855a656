"""One line of a sheet -> the field it stands for (`margent.schema.exports.sheet` writes such lines).

What the plain columns cannot hold (a hierarchy, tokens of their own without a label) stands as JSON in the column
``more``, so that every field comes back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from margent.errors import Fault, SchemaError
from margent.schema.imports.cells import (
    WHOLE,
    listed_file,
    read_bins_cell,
    read_relative_cell,
    read_scalar,
    split,
)
from margent.schema.imports.facts import wanted_bins
from margent.schema.parts import TYPE_WORDS
from margent.schema.strict_json import parse_strict
from margent.schema.todos import TODO

COLUMNS = (
    "name", "type", "role", "minimum", "maximum", "relativeTo", "bins", "values", "labels", "ordered", "missing",
    "missingLabels", "required", "special", "specialLabels", "unlisted", "decimals", "format", "timeZone", "trueValues",
    "falseValues", "decimalChar", "groupChar", "title", "description", "unit", "maxRows", "more",
)  # fmt: skip
"""The columns of a sheet, in order."""

TABLE = "table"
"""The type of the one line that is about the whole table: its name, missing tokens, unit and description."""

_ROLES = {"id": "identifier", "key": "identifier"} | {role: role for role in ("identifier", "drop", "model", TODO)}
_YES = ("yes", "true", "1", "x")
_NO = ("", "no", "false", "0")
TEXTS = ("format", "decimalChar", "groupChar", "title", "description")


def field_of_cells(cells: Mapping[str, str], where: str, faults: list[Fault]) -> dict[str, Any]:
    """The field that a line stands for, as JSON; what it leaves open is asked for."""
    reader = _Line(cells, where, faults)
    word = reader.text("type").strip().lower()
    role = _ROLES.get(reader.text("role").strip().lower())
    if reader.text("role") and role is None:
        reader.fault("role", "is model, identifier or drop")
    if word in ("id", "identifier", "key", "drop"):
        role, word = _ROLES[word], "string"
    kind: str = TYPE_WORDS.get(word, TODO)
    has_categories = kind in ("string", "integer", TODO)
    file = listed_file(reader.text("values")) if has_categories else None
    values = None if file else reader.values("values", kind)
    if word == "" and (values or file or role in ("identifier", "drop")):
        kind = "string"
    elif kind == TODO and word not in ("", TODO):
        reader.fault("type", f"{word!r} is not one of {', '.join(sorted(set(TYPE_WORDS.values())))}")
    made: dict[str, Any] = {"name": cells.get("name", ""), "type": kind}
    made |= {key: reader.text(key) for key in TEXTS if reader.text(key)}
    made |= {key: split(cells[key]) for key in ("trueValues", "falseValues") if cells.get(key)}
    constraints: dict[str, Any] = {}
    block: dict[str, Any] = {"role": role} if role not in (None, "model") else {}
    listed = _with_labels(reader, values, "labels")
    if file:
        made["categories"] = file
    elif listed is not None and has_categories:
        made["categories"] = listed
    elif listed is not None:
        constraints["enum"] = listed
    elif kind == "string" and role in (None, "model") and "more" not in cells:
        made["categories"] = TODO
    if reader.yes("ordered"):
        made["categoriesOrdered"] = True
    constraints |= {key: reader.scalar(key, kind) for key in ("minimum", "maximum") if reader.text(key)}
    if (required := reader.text("required").strip().lower()) == TODO:
        constraints["required"] = TODO
    elif required and reader.yes("required"):
        constraints["required"] = True
    made |= _missing(reader)
    block |= _block(reader, kind)
    made |= {key: members for key, members in (("constraints", constraints), ("margent", block)) if members}
    more = _more(reader)
    _merge(made, more, reader)
    return _asked(made, role)


def _asked(made: dict[str, Any], role: str | None) -> dict[str, Any]:
    """The field with questions where something is missing that it cannot be without."""
    kind, block = made["type"], made.get("margent", {})
    if (
        kind in (TODO, "string", "boolean")
        or role in ("identifier", "drop")
        or block.get("role") in ("identifier", "drop")
    ):
        return made
    constraints = made.get("constraints", {})
    if "categories" in made or "enum" in constraints or "relativeTo" in block:
        return made
    lacking = {key: TODO for key in ("minimum", "maximum") if key not in constraints}
    if lacking:
        made["constraints"] = lacking | constraints
    if "bins" not in block and wanted_bins(kind, made) is not None:
        made["margent"] = block | {"bins": TODO}
    return made


class _Line:
    """The cells of one line, and what is wrong with them."""

    def __init__(self, cells: Mapping[str, str], where: str, faults: list[Fault]) -> None:
        self.cells, self.where, self.faults = cells, where, faults

    def fault(self, column: str, message: str) -> None:
        """Something is wrong with a cell."""
        self.faults.append(Fault(f"{self.where}, {column}" if self.where else column, message))

    def text(self, column: str) -> str:
        """The cell, empty where there is none."""
        return self.cells.get(column, "")

    def yes(self, column: str) -> bool:
        """Whether the cell says yes."""
        word = self.text(column).strip().lower()
        if word not in (*_YES, *_NO):
            self.fault(column, "is yes or empty")
        return word in _YES

    def scalar(self, column: str, kind: str) -> Any:
        """The cell as a value of this type."""
        return read_scalar(self.text(column).strip(), kind)

    def values(self, column: str, kind: str) -> list[Any] | None:
        """The cell as values of this type; None where it is empty, a question where it is one."""
        cell = self.text(column)
        if cell.strip() == TODO:
            return [TODO]
        return [read_scalar(text, kind) for text in split(cell)] or None


def _with_labels(reader: _Line, values: Sequence[Any] | None, column: str) -> Any:
    labels = split(reader.text(column))
    if values == [TODO]:
        return TODO
    if labels and len(labels) != len(values or ()):
        reader.fault(column, f"{len(values or ())} values and {len(labels)} labels; give one label a value, or none")
        labels = []
    if values is None:
        return None
    return [
        {"value": value, "label": label} if label else value
        for value, label in zip(values, labels or [""] * len(values), strict=True)
    ]


def _missing(reader: _Line) -> dict[str, Any]:
    texts = split(reader.text("missing"))
    if not texts:
        return {}
    return {"missingValues": _with_labels(reader, texts, "missingLabels")}


def _block(reader: _Line, kind: str) -> dict[str, Any]:
    block: dict[str, Any] = {}
    if reader.text("relativeTo"):
        try:
            block["relativeTo"] = read_relative_cell(reader.text("relativeTo"))
        except ValueError as error:
            reader.fault("relativeTo", str(error))
    if reader.text("bins"):
        block["bins"] = _bins(reader, "integer" if reader.text("relativeTo") else kind)
    if reader.text("special"):
        block["special"] = [
            item if isinstance(item, dict) else {"value": item}
            for item in _with_labels(reader, split(reader.text("special")), "specialLabels")
        ]
    if reader.text("unlisted"):
        block["unlisted"] = {"to": reader.text("unlisted")}
    if decimals := reader.text("decimals").strip():
        if decimals != TODO and not WHOLE.fullmatch(decimals):
            reader.fault("decimals", "is a whole number")
        block["decimals"] = int(decimals) if WHOLE.fullmatch(decimals) else decimals
    if reader.text("timeZone"):
        block["timeZone"] = reader.text("timeZone").strip()
    return block


def _bins(reader: _Line, kind: str) -> Any:
    try:
        return read_bins_cell(reader.text("bins"), kind)
    except ValueError as error:
        reader.fault("bins", str(error))
        return TODO


def _more(reader: _Line) -> Mapping[str, Any]:
    if not reader.text("more").strip():
        return {}
    try:
        found = parse_strict(reader.text("more").encode(), "")
    except SchemaError as error:
        reader.faults += [Fault(f"{reader.where}, more", str(fault)) for fault in error.faults]
        return {}
    if not isinstance(found, Mapping):
        reader.fault("more", "is a JSON object with further keys of the field")
        return {}
    return found


def _merge(made: dict[str, Any], more: Mapping[str, Any], reader: _Line) -> None:
    for key, value in more.items():
        inner = made.get(key)
        if key in ("constraints", "margent") and isinstance(value, Mapping) and isinstance(inner, dict):
            if both := sorted(set(inner) & set(value)):
                reader.fault("more", f"{both[0]!r} is given in another cell too; keep one")
            inner.update(value)
        elif (key in ("constraints", "margent") and isinstance(value, Mapping)) or key not in made:
            made[key] = dict(value) if isinstance(value, Mapping) else value
        elif key in ("name", "type"):
            made[key] = value
        else:
            reader.fault("more", f"{key!r} is given in another cell too; keep one")
