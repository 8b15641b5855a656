"""What is asked about the whole table: texts for "no value", and who is protected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.schema.editing.questions import Question
from margent.schema.exports.sheet import list_cells
from margent.schema.imports.sheet_cells import split
from margent.schema.todos import TODO

_EXPLAINED = (
    "If every row is somebody else, nobody can tell from the result whether any one row was in "
    "the table. If somebody can "
    "have several rows (visits, trips, payments), say yes: then the person is protected with "
    "all of their rows together."
)


def table_questions(document: Mapping[str, Any], *, every: bool, begun: bool) -> list[Question]:
    """What means "no value"; who is protected; how persons with several rows are told apart, how many rows count."""
    unit = document.get("margent", {}).get("unit", TODO)
    if unit != TODO and not every and not begun:
        return []
    words = "Can somebody have several rows in this table? (yes or no)"
    found = [_missing(document), Question("unit", words, _EXPLAINED, _now(unit), _unit)]
    if not isinstance(unit, Mapping):
        return found
    names = [field["name"] for field in document["fields"]]
    column, rows = unit.get("field", TODO), unit.get("maxRows", TODO)

    def set_column(made: dict[str, Any], text: str) -> None:
        named = text if text in names else text.strip()
        if named not in names:
            raise ValueError(f"there is no such column; the table has {', '.join(map(repr, names))}")
        made["margent"]["unit"]["field"] = named

    def set_rows(made: dict[str, Any], text: str) -> None:
        if not (text.strip().isascii() and text.strip().isdigit() and 0 < int(text.strip()[:12]) < 2**31):
            raise ValueError("answer with a whole number of at least 1")
        made["margent"]["unit"]["maxRows"] = int(text.strip())

    return [
        *found,
        Question(
            "person",
            "Which column tells persons apart?",
            "The column with the person's id, such as patient. Its ids are never shown.",
            "" if column == TODO else str(column),
            set_column,
        ),
        Question(
            "rows",
            "How many rows of one person should be counted at most?",
            "Of persons with more, so many are drawn at random and the others are left out. More rows "
            "keep more of the table, and "
            "need more noise: 1, 2 or 4 are usual. `margent plan` compares them.",
            "" if rows == TODO else str(rows),
            set_rows,
        ),
    ]


def _missing(document: Mapping[str, Any]) -> Question:
    cell, labels = list_cells(document.get("missingValues", [""]))
    known = dict(zip(split(cell), split(labels), strict=True)) if labels else {}

    def change(made: dict[str, Any], text: str) -> None:
        texts = [each.strip() for each in split(text)]
        tokens = list(dict.fromkeys(["", *texts]))
        made["missingValues"] = [{"value": each, "label": known[each]} if known.get(each) else each for each in tokens]

    return Question(
        "missing",
        "Which texts in the table mean that there is no value, besides empty cells? Separate them with |",
        "Such as NA, ? or -. They count as missing in every column, and are written back as empty cells.",
        cell.removeprefix("|"),
        change,
    )


def _now(unit: Any) -> str:
    return "" if unit == TODO else "no" if unit == "row" else "yes"


def _unit(made: dict[str, Any], text: str) -> None:
    word = text.strip().lower()
    block = made.setdefault("margent", {})
    if word in ("n", "no"):
        block["unit"] = "row"
    elif word in ("y", "yes"):
        if not isinstance(block.get("unit"), Mapping):
            block["unit"] = {"field": TODO, "maxRows": TODO}
    else:
        raise ValueError("answer with yes or no")
