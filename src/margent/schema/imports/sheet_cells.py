"""One line of a sheet -> the field it stands for (`margent.schema.exports.sheet` writes such lines).

What the plain columns cannot hold (a hierarchy, tokens of their own without a label) stands as JSON in the column
``more``, so that every field comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from margent.errors import Fault, SchemaError
from margent.schema.formulas import is_formula
from margent.schema.imports.facts import wanted_bins
from margent.schema.parts import PERIODS, TYPE_WORDS
from margent.schema.strict_json import parse_strict
from margent.schema.todos import TODO

COLUMNS = (
    "name", "type", "role", "minimum", "maximum", "bins", "values", "labels", "ordered", "missing", "missingLabels",
    "required", "special", "specialLabels", "unlisted", "decimals", "format", "timeZone", "trueValues", "falseValues",
    "decimalChar", "groupChar", "title", "description", "unit", "maxRows", "more",
)  # fmt: skip
"""The columns of a sheet, in order."""

TABLE = "table"
"""The type of the one line that is about the whole table: its name, missing tokens, unit and description."""

_ROLES = {"id": "identifier", "key": "identifier"} | {role: role for role in ("identifier", "drop", "model", TODO)}
_YES = ("yes", "true", "1", "x")
_NO = ("", "no", "false", "0")
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
TEXTS = ("format", "decimalChar", "groupChar", "title", "description")


def guarded(cell: str) -> str:
    """The cell as it may stand in a spreadsheet: an apostrophe before what would be run as a formula.

    >>> guarded("=1+1"), guarded("-5"), unguarded(guarded("'=1"))
    ("'=1+1", '-5', "'=1")
    """
    return f"'{cell}" if is_formula(cell.lstrip("'")) else cell


def unguarded(cell: str) -> str:
    """The cell that was guarded; every other cell is as it is."""
    return cell[1:] if cell.startswith("'") and is_formula(cell.lstrip("'")) else cell


def joined(texts: Sequence[str]) -> str:
    r"""Several texts in one cell: ``|`` between them, ``\`` before a ``|`` or ``\`` inside one.

    >>> joined(["a|b", "c"]), split(joined(["a|b", "c"]))
    ('a\\|b|c', ['a|b', 'c'])
    """
    return "|".join(re.sub(r"([|\\])", r"\\\1", text) for text in texts)


def split(cell: str) -> list[str]:
    """The texts of one cell; none in an empty one."""
    if cell == "":
        return []
    texts, current, escaped = [], [], False
    for char in cell:
        if escaped or char not in "|\\":
            current.append(("\\" if escaped and char not in "|\\" else "") + char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            texts.append("".join(current))
            current = []
    return [*texts, "".join(current) + ("\\" if escaped else "")]


def listed_file(text: str) -> dict[str, str] | None:
    """The file of a closed list, where a text names one instead of values.

    >>> listed_file("codes.csv"), listed_file("F|M")
    ({'file': 'codes.csv'}, None)
    """
    name = text.strip()
    return {"file": name} if name.lower().endswith(".csv") and "|" not in name else None


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


def read_scalar(text: str, kind: str) -> Any:
    """A cell as a value of this type; as it is where it is none, for the schema's check to refuse."""
    if kind in ("integer", "year") and _WHOLE.fullmatch(text.strip()):
        return int(text)
    if kind == "number" and len(text) <= 40 and _NUMBER.fullmatch(text.strip()):
        exact = int(text) if _WHOLE.fullmatch(text.strip()) else float(text)
        return exact if repr(exact) == text.strip() else text.strip()
    if kind == "boolean" and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return text


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
    if reader.text("bins"):
        block["bins"] = _bins(reader, kind)
    if reader.text("special"):
        block["special"] = [
            item if isinstance(item, dict) else {"value": item}
            for item in _with_labels(reader, split(reader.text("special")), "specialLabels")
        ]
    if reader.text("unlisted"):
        block["unlisted"] = {"to": reader.text("unlisted")}
    if decimals := reader.text("decimals").strip():
        if decimals != TODO and not _WHOLE.fullmatch(decimals):
            reader.fault("decimals", "is a whole number")
        block["decimals"] = int(decimals) if _WHOLE.fullmatch(decimals) else decimals
    if reader.text("timeZone"):
        block["timeZone"] = reader.text("timeZone").strip()
    return block


def _bins(reader: _Line, kind: str) -> Any:
    try:
        return read_bins_cell(reader.text("bins"), kind)
    except ValueError as error:
        reader.fault("bins", str(error))
        return TODO


def read_bins_cell(cell: str, kind: str) -> Any:
    """Bins from a cell: a number, edges between ``|``, ``width 5``, ``quantiles 8`` or a period.

    >>> read_bins_cell("0|18|110", "integer"), read_bins_cell("width 2.5", "number"), read_bins_cell("month", "date")
    ([0, 18, 110], {'width': 2.5}, 'month')

    Raises: ValueError saying what is expected.
    """
    cell = cell.strip()
    word, _, rest = cell.partition(" ")
    if cell in (*PERIODS, TODO):
        return cell
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if word == "width" and _NUMBER.fullmatch(rest.strip()):
        return {"width": read_scalar(rest.strip(), "number")}
    if word == "quantiles" and _WHOLE.fullmatch(rest.strip()):
        return {"quantiles": int(rest)}
    edges = split(cell)
    if len(edges) > 1:
        return [read_scalar(edge.strip(), kind) for edge in edges]
    raise ValueError(f"expected a number of bins, edges (0|10|20), width 5, quantiles 8 or one of {', '.join(PERIODS)}")


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
