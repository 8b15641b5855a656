"""What is asked about the whole table: columns to leave out, texts for "no value", who is protected, what it is."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from margent.schema.editing.kinds import LEFT_OUT, set_kind
from margent.schema.editing.question import Question, several, yes_or_no
from margent.schema.exports.sheet import list_cells
from margent.schema.imports.cells import split
from margent.schema.todos import TODO

_EXPLAINED = (
    "If every row is somebody else, each row is protected by itself: epsilon bounds how far the result can move what "
    "anybody thinks of it. If somebody can have several rows (visits, trips, payments), say yes: then the bound is for "
    "the person, with all of their rows together."
)


def table_questions(document: Mapping[str, Any], *, every: bool, begun: bool) -> list[Question]:
    """What means "no value"; who is protected, how persons are told apart, how many rows of one count; what it is."""
    unit = document.get("margent", {}).get("unit", TODO)
    if unit != TODO and not every and not begun:
        return []
    words = "Can somebody have several rows in this table? (yes or no)"
    found = [_missing(document), Question("unit", words, _EXPLAINED, _now(unit), _unit)]
    told = [_text(document, *each) for each in _TEXTS]
    if not isinstance(unit, Mapping):
        return [*found, *told]
    names = [field["name"] for field in document["fields"]]
    column, rows = unit.get("field", TODO), unit.get("maxRows", TODO)

    def set_column(made: dict[str, Any], text: str) -> None:
        named = text if text in names else text.strip()
        if named not in names:
            near = difflib.get_close_matches(named, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the table has {', '.join(map(repr, names))}"
            raise ValueError(f"there is no such column; {hint}")
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
            "Of persons with more, so many are drawn at random and the others are left out. More rows keep more of the "
            "table, and need more noise: 1, 2 or 4 are usual. `margent plan` compares them.",
            "" if rows == TODO else str(rows),
            set_rows,
        ),
        *told,
    ]


def leaving_out(document: Mapping[str, Any]) -> Question:
    """Which columns should not be in the result, asked once for all instead of column by column."""
    names = [field["name"] for field in document["fields"]]

    def change(made: dict[str, Any], text: str) -> None:
        for name in _named(text, names):
            place = names.index(name)
            made["fields"][place] = left_out(made["fields"][place])

    asked = "Which of them should not be in the result at all? Put | between them"
    listed = textwrap.wrap(f"Its {len(names)} columns: {', '.join(names)}.", 110, subsequent_indent="  ")
    return Question(
        "leave out",
        "\n".join([*listed, asked]),
        "Free text, names, addresses and numbers of people, and whatever readers do not need: fewer columns are "
        "counted more exactly. The columns stay in your own table; any question about a column can be answered with x "
        "to leave it out later on.",
        "",
        change,
        again=asked,
    )


def left_out(field: Mapping[str, Any]) -> dict[str, Any]:
    """The field, neither read nor written."""
    made = dict(field)
    set_kind(made, LEFT_OUT)
    return made


def _named(text: str, names: Sequence[str]) -> list[str]:
    """The columns that an answer names, between bars or, where no name has one, commas.

    Raises: ValueError naming what is no column.
    """
    found = [each.strip() for each in split(text)]
    if len(found) == 1 and found[0] not in names:
        found = [each.strip() for each in found[0].split(",")]
    found = [each for each in found if each]
    for name in found:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            raise ValueError(f"there is no column {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return found


def _missing(document: Mapping[str, Any]) -> Question:
    cell, labels = list_cells(document.get("missingValues", [""]))
    known = dict(zip(split(cell), split(labels), strict=True)) if labels else {}

    def change(made: dict[str, Any], text: str) -> None:
        tokens = list(dict.fromkeys(["", *several(text)]))
        made["missingValues"] = [{"value": each, "label": known[each]} if known.get(each) else each for each in tokens]

    return Question(
        "missing",
        "Which texts in the table mean that there is no value, besides empty cells? Put | between several",
        "Such as NA, ? or -. They count as missing in every column, and are written back as empty cells.",
        cell.removeprefix("|"),
        change,
    )


def _text(document: Mapping[str, Any], key: str, words: str, explained: str) -> Question:
    """A question about a text of the table, which may stay empty."""
    holder = document if key == "name" else document.get("margent", {})

    def change(made: dict[str, Any], text: str) -> None:
        (made if key == "name" else made.setdefault("margent", {}))[key] = text.strip()

    return Question(key, words, explained, str(holder.get(key, "")), change)


_TEXTS = (
    ("name", "What is the table called?", "A word or two, as a heading of the pages about it. It is public."),
    (
        "provenance",
        "Where do these answers come from? Such as: the codebook of 2024; limits chosen by us",
        "Whoever signs for the release will ask whether a limit or a list was read from the rows. The answer is "
        "published with it.",
    ),
)


def _now(unit: Any) -> str:
    return "" if unit == TODO else "no" if unit == "row" else "yes"


def _unit(made: dict[str, Any], text: str) -> None:
    several_rows = yes_or_no(text)
    block = made.setdefault("margent", {})
    if not several_rows:
        block["unit"] = "row"
    elif not isinstance(block.get("unit"), Mapping):
        block["unit"] = {"field": TODO, "maxRows": TODO}
