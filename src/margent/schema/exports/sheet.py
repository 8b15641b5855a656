"""A schema, or a draft of one, as a CSV sheet with one line a column (read by `margent.schema.imports.sheet`)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from margent.schema.exports.table_schema import special_codes
from margent.schema.imports.cells import guarded, joined, relative_cell
from margent.schema.imports.sheet_cells import COLUMNS, TABLE, TEXTS, field_of_cells
from margent.schema.todos import TODO


def sheet_text(document: Mapping[str, Any]) -> str:
    """The sheet of a schema document: a line for the table, then one for every field; no cell is a formula.

    Privacy: none: a schema is public.

    >>> fields = [{"name": "sex", "type": "string", "categories": ["F", "M"]}]
    >>> [line.split(",")[:2] for line in sheet_text({"fields": fields, "margent": {"unit": "row"}}).splitlines()]
    [['name', 'type'], ['', 'table'], ['sex', 'string']]
    """
    lines = [_cells_of_table(document), *(_cells_of_field(field) for field in document.get("fields", ()))]
    asked = _ASKED if any(line.get("type") == TODO for line in lines) else ()
    used = [name for name in COLUMNS if name in (*_ALWAYS, *asked) or any(name in line for line in lines)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(used)
    for line in lines:
        writer.writerow([guarded(line.get(name, "")) for name in used])
    return text.getvalue()


_ALWAYS = (
    "name", "type", "role", "minimum", "maximum", "bins", "values", "labels", "missing", "required", "description",
)  # fmt: skip
"""Columns that stand in every sheet, so that it can be filled in."""
_ASKED = ("relativeTo", "decimals", "format", "trueValues", "falseValues", "unit", "maxRows")
"""Columns that stand in a sheet as well where it is open what some column holds."""


def _cells_of_table(document: Mapping[str, Any]) -> dict[str, str]:
    """The line about the table."""
    block = _object(document, "margent")
    cells = {"type": TABLE}
    more = {key: value for key, value in document.items() if key not in ("fields", "missingValues", "margent")}
    for key in ("name", "title", "description"):
        if isinstance(document.get(key), str) and document[key] != "":
            cells[key] = more.pop(key)
    rest = {key: value for key, value in block.items() if key != "unit"}
    unit = block.get("unit")
    if isinstance(unit, Mapping) and set(unit) == {"field", "maxRows"}:
        cells |= {"unit": scalar_cell(unit["field"]), "maxRows": scalar_cell(unit["maxRows"])}
    elif unit in ("row", TODO):
        cells["unit"] = str(unit)
    elif unit is not None:
        rest["unit"] = unit
    if (tokens := document.get("missingValues")) is not None and tokens != [""]:
        cells["missing"], cells["missingLabels"] = list_cells(tokens)
        if _needs_more(tokens):
            del cells["missing"], cells["missingLabels"]
            more["missingValues"] = tokens
    if rest:
        more["margent"] = rest
    if more:
        cells["more"] = json.dumps(more, ensure_ascii=False)
    return {column: cell for column, cell in cells.items() if cell != ""}


def _needs_more(tokens: Any) -> bool:
    """Whether missing tokens are not what their cells would be read as."""
    texts, labels = list_cells(tokens)
    back = field_of_cells({"name": "x", "type": "boolean", "missing": texts, "missingLabels": labels}, "", [])
    return not _same(back.get("missingValues"), tokens)


def _cells_of_field(raw: Mapping[str, Any]) -> dict[str, str]:
    """The line of a field, given as JSON; what no column holds is in ``more``."""
    if isinstance(_object(raw, "margent").get("special"), Mapping):
        raw = {**raw, "margent": {**raw["margent"], "special": special_codes(raw)}}
    cells = _cells(raw)
    kept = field_of_cells(cells, "", [])
    more = _difference(raw, kept)
    for place in more:
        for column in _COLUMNS_OF.get(place, (place,)):
            cells.pop(column, None)
    if more:
        cells["more"] = json.dumps(_nested(more), ensure_ascii=False)
    return {column: cell for column, cell in cells.items() if cell != ""}


def _cells(raw: Mapping[str, Any]) -> dict[str, str]:
    """The cells that a field's keys have as far as they are texts, numbers or lists of them."""
    constraints, block = _object(raw, "constraints"), _object(raw, "margent")
    listed = raw.get("categories", constraints.get("enum"))
    cells = {
        "name": scalar_cell(raw.get("name")),
        "type": scalar_cell(raw.get("type")),
        "role": scalar_cell(block.get("role")),
    }
    cells |= {key: scalar_cell(constraints.get(key)) for key in ("minimum", "maximum")}
    cells["relativeTo"] = relative_cell(block.get("relativeTo"))
    cells["bins"] = bins_cell(block.get("bins"))
    cells["values"], cells["labels"] = list_cells(listed)
    cells["missing"], cells["missingLabels"] = list_cells(raw.get("missingValues"))
    cells["special"], cells["specialLabels"] = list_cells(block.get("special"))
    cells["ordered"] = "yes" if raw.get("categoriesOrdered") is True else ""
    cells["required"] = "yes" if constraints.get("required") is True else scalar_cell(constraints.get("required"))
    unlisted = block.get("unlisted")
    cells["unlisted"] = scalar_cell(unlisted.get("to")) if isinstance(unlisted, Mapping) else ""
    cells |= {key: scalar_cell(block.get(key)) for key in ("decimals", "timeZone")}
    cells |= {key: list_cells(raw.get(key))[0] for key in ("trueValues", "falseValues")}
    return cells | {key: scalar_cell(raw.get(key)) for key in TEXTS}


def _object(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = raw.get(key)
    return inner if isinstance(inner, Mapping) else {}


def scalar_cell(value: Any) -> str:
    """A text, number or truth as a cell; empty for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return value if isinstance(value, str) else ""


def list_cells(given: Any) -> tuple[str, str]:
    """A list as its cell, and the cell of its labels."""
    if given == TODO:
        return TODO, ""
    if isinstance(given, Mapping) and set(given) == {"file"}:
        return scalar_cell(given["file"]), ""
    if not isinstance(given, list):
        return "", ""
    pairs = [(item.get("value"), item.get("label")) if isinstance(item, Mapping) else (item, None) for item in given]
    labels = joined([scalar_cell(label) for _, label in pairs]) if any(label for _, label in pairs) else ""
    return joined([scalar_cell(value) for value, _ in pairs]), labels


def bins_cell(bins: Any) -> str:
    """Bins as a cell."""
    if isinstance(bins, list):
        return joined([scalar_cell(edge) for edge in bins])
    if isinstance(bins, Mapping) and len(bins) == 1:
        word, value = next(iter(bins.items()))
        return f"{word} {scalar_cell(value)}"
    return scalar_cell(bins)


_COLUMNS_OF: Mapping[str, tuple[str, ...]] = (
    {
        "categories": ("values", "labels"),
        "constraints/enum": ("values", "labels"),
        "missingValues": ("missing", "missingLabels"),
        "margent/special": ("special", "specialLabels"),
        "categoriesOrdered": ("ordered",),
    }
    | {f"constraints/{key}": (key,) for key in ("minimum", "maximum", "required")}
    | {f"margent/{key}": (key,) for key in ("role", "relativeTo", "bins", "unlisted", "decimals", "timeZone")}
)


def _flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The members by their place, those of constraints and the block as "constraints/minimum"."""
    flat: dict[str, Any] = {}
    for key, value in raw.items():
        if key in ("constraints", "margent") and isinstance(value, Mapping):
            flat |= {f"{key}/{inner}": member for inner, member in value.items()}
        else:
            flat[key] = value
    return flat


def _difference(raw: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    told, back = _flat(raw), _flat(kept)
    return {place: value for place, value in told.items() if place not in back or not _same(value, back[place])}


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _nested(more: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for place, value in more.items():
        outer, _, inner = place.partition("/")
        if inner and outer in ("constraints", "margent"):
            nested.setdefault(outer, {})[inner] = value
        else:
            nested[place] = value
    return nested
