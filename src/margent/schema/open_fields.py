"""Fields with open questions: what is wrong with them already, before anybody answers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from margent.errors import Fault
from margent.schema.check import field_faults
from margent.schema.field_json import read_field
from margent.schema.parts import MissingToken
from margent.schema.todos import TODO


def open_faults(made: Mapping[str, Any], tokens: Sequence[MissingToken], folder: Path | None = None) -> list[Fault]:
    """What is wrong with a field, given as JSON, whatever the answers to its questions will be.

    ``tokens`` are the table's missing tokens, ``folder`` is where files of categories lie.

    >>> bounds = {"minimum": 5, "maximum": "todo"}
    >>> open_faults({"name": "age", "type": "integer", "constraints": bounds}, ())
    []
    >>> [fault.pointer for fault in open_faults({"name": "x", "type": "todo", "bins": 3, "margent": {"bin": 3}}, ())]
    []
    """
    if made.get("type") == TODO:
        return []
    faults: list[Fault] = []
    found = read_field(_answered(made), "", faults, folder)
    if found is not None:
        faults += field_faults(found, "", found.missing if found.missing is not None else tokens)
    return faults


def _answered(made: Mapping[str, Any]) -> dict[str, Any]:
    """The field with a harmless answer to every question in it."""
    answered = copy.deepcopy(dict(made))
    if answered.get("categories") == TODO:
        answered["categories"] = ["\N{OBJECT REPLACEMENT CHARACTER}"]
    bounds = answered.get("constraints", {})
    if not isinstance(bounds, dict) or not isinstance(answered.get("margent", {}), dict):
        return answered  # which is a fault already
    known = [bounds[key] for key in ("minimum", "maximum") if bounds.get(key, TODO) != TODO]
    for key in ("minimum", "maximum"):
        if bounds.get(key) == TODO:
            bounds[key] = known[0] if known else _HARMLESS.get(made["type"], 0)
    if bounds.get("required") == TODO:
        del bounds["required"]
    block = answered.get("margent", {})
    for key in ("role", "timeZone", "decimals"):
        if block.get(key) == TODO:
            del block[key]
    if block.get("bins") == TODO:
        block["bins"] = 1
    return answered


_HARMLESS = {
    "date": "2000-01-01",
    "datetime": "2000-01-01T00:00:00",
    "time": "00:00:00",
    "year": 2000,
    "yearmonth": "2000-01",
}
