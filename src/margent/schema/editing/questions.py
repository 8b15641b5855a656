"""What to ask about one column, in words that need no manual, and what an answer changes in its field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margent.schema.editing.kinds import KINDS, current_kind, set_kind
from margent.schema.editing.lists import list_questions
from margent.schema.editing.question import MANUAL, Question, several, yes_or_no
from margent.schema.editing.relative import relative_questions
from margent.schema.exports.sheet import bins_cell, list_cells, scalar_cell
from margent.schema.imports.cells import read_bins_cell, read_scalar, relative_cell
from margent.schema.imports.facts import wanted_bins
from margent.schema.parts import DEFAULT_FALSE, DEFAULT_TRUE, ORDERED
from margent.schema.todos import TODO

Field = dict[str, Any]

_EXAMPLES = {
    "date": "2020-01-31",
    "datetime": "2020-01-31T13:45",
    "time": "13:45:00",
    "year": "2020",
    "yearmonth": "2020-01",
    "number": "0.5",
}
_WRITTEN = ("date", "datetime", "time", "yearmonth")
"""Types whose bounds have one spelling, however the table spells its cells."""
_SUGGESTED = {"date": "month", "datetime": "month", "time": "hour", "year": "20", "yearmonth": "year"}

_EVERY = "every value"
_NUMBER_BINS = "A number of equal steps, width 5, or edges such as 0|10|100|1000"
_BIN_FORMS = {
    "date": "day, week, month, quarter or year; or a number of equal steps",
    "datetime": "hour, day, week, month, quarter or year; or a number of equal steps",
    "time": "hour, or a number of equal steps",
    "yearmonth": "quarter, year, or a number of equal steps",
}


def field_questions(
    field: Field, *, every: bool, fresh: bool, form: str = "iso", bases: Sequence[str] = ()
) -> list[Question]:
    """The questions about a field: the open ones; all of them with ``every``, or more once its kind was just said.

    ``form`` is the format to propose for dates and times, ``bases`` are the columns that a date may be told from.

    >>> [question.key for question in field_questions({"name": "x", "type": "todo"}, every=False, fresh=False)]
    ['kind']
    """
    kind = [_kind(field)] if field.get("type") == TODO or field.get("margent", {}).get("role") == TODO or every else []
    if field.get("type") == TODO or field.get("margent", {}).get("role", "model") != "model":
        return kind
    more = every or fresh
    found = [*kind, *list_questions(field, more=more), *relative_questions(field, bases, more=more)]
    found += [*_bounds(field, more=more), *_spelling(field, form, more=more)]
    block, constraints = field.get("margent", {}), field.get("constraints", {})
    if block.get("bins") == TODO or (every and ("bins" in block or _has_bounds(field))):
        found.append(_bins(field))
    if more or constraints.get("required") == TODO:
        found.append(_required(field))
    return found


def _kind(field: Field) -> Question:
    menu = "\n".join(f"    {place:>2}  {kind.words}" for place, kind in enumerate(KINDS, 1))
    hint = "Answers to the next questions may follow: 2 0 110 is a whole number from 0 to 110."
    short = ", ".join(f"{place} {kind.names[0]}" for place, kind in enumerate(KINDS, 1))

    def change(made: Field, text: str) -> None:
        word = text.strip().lower()
        found = [kind for place, kind in enumerate(KINDS, 1) if word in (str(place), *kind.names)]
        if word.startswith("like "):
            raise ValueError("there is no such column to be like")
        if not found:
            raise ValueError(f"answer with a number from 1 to {len(KINDS)}")
        set_kind(made, found[0])

    now = current_kind(field)
    return Question(
        "kind",
        f"What does the column hold?\n{hint}\n{menu}",
        "This decides what is asked next. Choose 1 for codes and words of which you can list all; "
        "numbers that are only codes (1 = north, 2 = south) are a list as well. Ids are not modeled: new ones are "
        "written. Free text, names and addresses should be left out: they say who somebody is. "
        "`like ward` gives the column the answers that the column ward has. Answers to the next questions may follow "
        "on the line: `2 0 110` is a whole number from 0 to 110, `1 F|M` a list, `4 Y N` a yes or no.\n" + menu,
        "" if now is None else str(KINDS.index(now) + 1),
        change,
        again=f"What does the column hold? ({short})",
    )


def _bounds(field: Field, *, more: bool) -> list[Question]:
    kind, constraints = field["type"], field.get("constraints", {})
    listed = "categories" in field or "enum" in constraints
    if kind not in ORDERED or listed or "relativeTo" in field.get("margent", {}):
        return []
    found = []
    for key, word in (("minimum", "lowest"), ("maximum", "highest")):
        now = constraints.get(key, TODO)
        if not (more or now == TODO):
            continue
        example = f", such as {_EXAMPLES[kind]}" if kind in _EXAMPLES else ""
        form = f", written as {_EXAMPLES[kind]}" if kind in _WRITTEN else ""

        def change(made: Field, text: str, key: str = key) -> None:
            bound = text.strip()
            if made["type"] == "datetime" and key == "maximum" and len(bound) == len("2020-01-31"):
                bound += "T23:59:59"  # somebody who names a day means all of it
            made.setdefault("constraints", {})[key] = read_scalar(bound, made["type"])
            if _needs_bins(made):
                made.setdefault("margent", {})["bins"] = TODO

        found.append(
            Question(
                key,
                f"What is the {word} value that can occur{form}? {MANUAL}",
                f"A bound that is known without the table{example}. Values beyond it count as the nearest one inside, "
                "so it may be a little too wide, but not much: a range that is far too wide wastes accuracy. If the "
                "manual names none, choose a round figure from common sense.",
                "" if now == TODO else scalar_cell(now),
                change,
            )
        )
    return found


def _spelling(field: Field, proposed: str, *, more: bool) -> list[Question]:
    """What is asked about the spelling of cells, which hangs on their type."""
    kind, block = field["type"], field.get("margent", {})
    found = []
    if kind == "number" and (block.get("decimals") == TODO or more):
        found.append(_decimals(block.get("decimals", TODO)))
    if kind == "boolean" and more:
        found.append(_spelled(field, "trueValues", "yes", DEFAULT_TRUE))
        found.append(_spelled(field, "falseValues", "no", DEFAULT_FALSE))
    if kind in ("date", "datetime", "time") and more:
        found.append(_format(field, proposed))
    if kind == "datetime" and (block.get("timeZone") == TODO or more):
        found.append(_clock(block.get("timeZone", "naive")))
    return found


def _axis(field: Field) -> str:
    """The type that is cut into bins: of a date that is told from another, the whole number of units between them."""
    return "integer" if "relativeTo" in field.get("margent", {}) else str(field["type"])


def _decimals(now: Any) -> Question:
    def change(made: Field, text: str) -> None:
        if not (text.strip().isascii() and text.strip().isdigit()):
            raise ValueError("answer with a whole number, such as 2")
        made.setdefault("margent", {})["decimals"] = int(text.strip()[:9])

    words = "How many digits after the decimal point do values have?"
    told = "" if now == TODO else str(now)
    return Question("decimals", words, "Values are written with so many digits.", told, change)


def _spelled(field: Field, key: str, word: str, default: Sequence[str]) -> Question:
    def change(made: Field, text: str) -> None:
        made[key] = several(text)

    explained = "As in the table, letter by letter; the first of them is the one that is written."
    now = list_cells(field.get(key, list(default)))[0]
    return Question(key, f"How is {word} spelled? Put | between several", explained, now, change)


def _format(field: Field, proposed: str) -> Question:
    def change(made: Field, text: str) -> None:
        made.pop("format", None)
        if text.strip().lower() != "iso":
            made["format"] = text.strip()

    return Question(
        "format",
        f"How is it spelled in the table? iso for {_EXAMPLES[field['type']]}, or a pattern such as %d/%m/%Y",
        "In a pattern %d is the day, %m the month in figures, %b its short name, %Y the year in four figures, %H the "
        "hour, %M the minute, %S the second. Cells of another spelling count as missing.",
        field.get("format", proposed),
        change,
        suggested="format" not in field,
    )


def _clock(told: Any) -> Question:
    def change(made: Field, text: str) -> None:
        made.setdefault("margent", {})["timeZone"] = text.strip()

    return Question(
        "timeZone",
        "Which clock? UTC, a zone such as Europe/Berlin, or naive for none in particular",
        "naive takes the clock as it stands in the table.",
        "naive" if told == TODO else told,
        change,
        suggested=told == TODO,
    )


def _has_bounds(field: Field) -> bool:
    """Whether a field is cut into bins, or may be: it is on an axis, between bounds that were said."""
    if "relativeTo" in field.get("margent", {}):
        return True
    constraints = field.get("constraints", {})
    if field["type"] not in ORDERED or "enum" in constraints or "categories" in field:
        return False
    return {"minimum", "maximum"} <= set(constraints) and TODO not in (constraints["minimum"], constraints["maximum"])


def _needs_bins(field: Field) -> bool:
    if "bins" in field.get("margent", {}) or not _has_bounds(field):
        return False
    return wanted_bins(field["type"], field) is not None


def _bins(field: Field) -> Question:
    bins, axis = field.get("margent", {}).get("bins"), _axis(field)

    def change(made: Field, text: str) -> None:
        if text.strip().lower() == _EVERY:
            made.get("margent", {}).pop("bins", None)
            return
        made.setdefault("margent", {})["bins"] = read_bins_cell(text, axis)

    now = _EVERY if bins is None else _proposed_bins(field) if bins == TODO else bins_cell(bins)
    return Question(
        "bins",
        f"How finely should values be kept? {_BIN_FORMS.get(axis, _NUMBER_BINS)}",
        "Values are counted in steps, and new ones are drawn inside them. Few steps are counted more exactly, many "
        "keep more detail; 10 to 50 are usual. Edges begin with the lowest and end with the highest value; take "
        "edges that grow where most values are small, as costs are: nearly all would be in one of the equal steps. "
        "Days and moments can be kept by hour, day, week, month, quarter or year.",
        now,
        change,
        suggested=bins == TODO,
    )


def _proposed_bins(field: Field) -> str:
    relative = field.get("margent", {}).get("relativeTo")
    if relative_cell(relative) and wanted_bins("integer", {"constraints": relative}) is None:
        return _EVERY
    return _SUGGESTED.get(_axis(field), "20")


def _required(field: Field) -> Question:
    now = field.get("constraints", {}).get("required", TODO)

    def change(made: Field, text: str) -> None:
        may_be_missing = yes_or_no(text)
        made.setdefault("constraints", {}).pop("required", None)
        if not may_be_missing:
            made["constraints"]["required"] = True
        elif not made["constraints"]:
            del made["constraints"]

    return Question(
        "required",
        "Can cells of this column be empty? (yes or no)",
        "No only if the form does not allow it. With no, empty cells that occur after all are never written.",
        "no" if now is True else "yes",
        change,
        suggested=now == TODO and "required" in field.get("constraints", {}),
    )
