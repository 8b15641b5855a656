"""One cell of a sheet, or one answer in the terminal: texts between bars, values, bins, a date relative to another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from margent.schema.formulas import is_formula
from margent.schema.parts import PERIODS
from margent.schema.todos import TODO

WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_RELATIVE = ("field", "unit", "minimum", "maximum")


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


def read_scalar(text: str, kind: str) -> Any:
    """A cell as a value of this type; as it is where it is none, for the schema's check to refuse."""
    if kind in ("integer", "year") and WHOLE.fullmatch(text.strip()):
        return int(text)
    if kind == "number" and len(text) <= 40 and _NUMBER.fullmatch(text.strip()):
        exact = int(text) if WHOLE.fullmatch(text.strip()) else float(text)
        return exact if repr(exact) == text.strip() else text.strip()
    if kind == "boolean" and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return text


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
    if WHOLE.fullmatch(cell):
        return int(cell)
    if word == "width" and _NUMBER.fullmatch(rest.strip()):
        return {"width": read_scalar(rest.strip(), "number")}
    if word == "quantiles" and WHOLE.fullmatch(rest.strip()):
        return {"quantiles": int(rest)}
    edges = split(cell)
    if len(edges) > 1:
        return [read_scalar(edge.strip(), kind) for edge in edges]
    raise ValueError(f"expected a number of bins, edges (0|10|20), width 5, quantiles 8 or one of {', '.join(PERIODS)}")


def relative_cell(given: Any) -> str:
    """``relativeTo`` as a cell; empty where it is none, or holds what no cell could.

    >>> relative_cell({"field": "admitted", "unit": "day", "minimum": 0, "maximum": 365})
    'admitted|day|0|365'
    """
    if not isinstance(given, Mapping) or set(given) != set(_RELATIVE):
        return ""
    cell = joined([str(given[key]) for key in _RELATIVE])
    try:
        return cell if read_relative_cell(cell) == dict(given) else ""
    except ValueError:
        return ""


def read_relative_cell(cell: str) -> dict[str, Any]:
    """The ``relativeTo`` that a cell stands for; whether column and unit fit, the schema's check says.

    >>> read_relative_cell("admitted | day | 0 | 365")
    {'field': 'admitted', 'unit': 'day', 'minimum': 0, 'maximum': 365}

    Raises: ValueError saying what is expected.
    """
    parts = [part.strip() for part in split(cell)]
    if len(parts) != len(_RELATIVE) or not all(WHOLE.fullmatch(part) for part in parts[2:]):
        raise ValueError("expected the other column, a unit, the least and the most of it: admitted|day|0|365")
    return dict(zip(_RELATIVE, (*parts[:2], int(parts[2]), int(parts[3])), strict=True))
