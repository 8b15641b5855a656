"""What to ask about one column, in words that need no manual, and what an answer changes in its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from margent.schema.editing.kinds import KINDS, current_kind, set_kind
from margent.schema.exports.sheet import bins_cell, list_cells, scalar_cell
from margent.schema.imports.facts import wanted_bins
from margent.schema.imports.sheet_cells import read_bins_cell, read_scalar, split
from margent.schema.parts import DEFAULT_FALSE, DEFAULT_TRUE
from margent.schema.todos import TODO

Field = dict[str, Any]

_ORDERED = ("integer", "number", "date", "datetime", "time", "year", "yearmonth")
_MANUAL = "(from the manual, not from the table)"
_EXAMPLES = {
    "date": "2020-01-31",
    "datetime": "2020-01-31T13:45",
    "time": "13:45:00",
    "year": "2020",
    "yearmonth": "2020-01",
    "number": "0.5",
}
_SUGGESTED = {"date": "month", "datetime": "month", "time": "hour", "year": "20", "yearmonth": "year"}


@dataclass(frozen=True)
class Question:
    """One question: its words, what explains it, the answer that stands now, and what a new one changes.

    ``suggested``: the answer shown is a proposal that Enter accepts, and not what the field says already.
    ``change`` raises ValueError, with what is expected, where an answer cannot be understood.
    """

    key: str
    words: str
    explained: str
    now: str
    change: Callable[[Field, str], None]
    suggested: bool = False


def field_questions(field: Field, *, every: bool, fresh: bool) -> list[Question]:
    """The questions about a field: the open ones; all of them with ``every``, or more once its kind was just said.

    >>> [question.key for question in field_questions({"name": "x", "type": "todo"}, every=False, fresh=False)]
    ['kind']
    """
    kind = [_kind(field)] if field.get("type") == TODO or field.get("margent", {}).get("role") == TODO or every else []
    if field.get("type") == TODO or field.get("margent", {}).get("role", "model") != "model":
        return kind
    more = every or fresh
    found = [*kind, *_values(field, more=more), *_bounds(field, more=more), *_spelling(field, more=more)]
    block, constraints = field.get("margent", {}), field.get("constraints", {})
    if block.get("bins") == TODO or (every and "bins" in block):
        found.append(_bins(field))
    if more or constraints.get("required") == TODO:
        found.append(_required(field))
    return found


def _kind(field: Field) -> Question:
    menu = "\n".join(f"    {place:>2}  {kind.words}" for place, kind in enumerate(KINDS, 1))

    def change(made: Field, text: str) -> None:
        word = text.strip().lower()
        found = [kind for place, kind in enumerate(KINDS, 1) if word in (str(place), *kind.names)]
        if not found:
            raise ValueError(f"answer with a number from 1 to {len(KINDS)}")
        set_kind(made, found[0])

    now = current_kind(field)
    return Question(
        "kind",
        f"What does the column hold?\n{menu}",
        "This decides what is asked next. Choose 1 for codes and words of which you can list all; "
        "numbers that are only "
        "codes (1 = north, 2 = south) are a list as well. Ids are not modeled: new ones are "
        "written. Free text, names and "
        "addresses should be left out: they say who somebody is.",
        "" if now is None else str(KINDS.index(now) + 1),
        change,
    )


def _values(field: Field, *, more: bool) -> list[Question]:
    constraints = field.get("constraints", {})
    place = "categories" if "categories" in field else "enum" if "enum" in constraints else None
    if place is None or isinstance(field.get("categories"), Mapping):
        return []
    holder = field if place == "categories" else constraints
    found = []
    if more or holder[place] == TODO:
        now, labels = list_cells(holder[place])
        known = dict(zip(split(now), split(labels), strict=True)) if labels else {}

        def change(made: Field, text: str) -> None:
            items = [each.strip() for each in split(text)]
            whole = made["type"] == "integer"
            values = [read_scalar(each, made["type"]) for each in items]
            if place == "categories" and whole and not all(isinstance(value, int) for value in values):
                made["type"], values = "string", list(items)
            target = made if place == "categories" else made["constraints"]
            target[place] = [
                {"value": value, "label": known[text]} if known.get(text) else value
                for value, text in zip(values, items, strict=True)
            ]

        found.append(
            Question(
                "values",
                f"What are the possible values? {_MANUAL} Separate them with |",
                "Write every value as it is spelled in the table, such as F|M, or 1|2|9. A value that is "
                "not in the list "
                "counts as missing. Take the list from a codebook or a form: a list read off the table would tell "
                "who was in it. Texts that mean no value (NA, ?) do not belong here.",
                "" if now == TODO else now,
                change,
            )
        )
    if more:

        def order(made: Field, text: str) -> None:
            made.pop("categoriesOrdered", None)
            if _yes(text):
                made["categoriesOrdered"] = True

        found.append(
            Question(
                "ordered",
                "Are they in order, from low to high? (yes or no)",
                "Yes for school grades or income classes; no for names of towns. Neighbors in an order may "
                "be counted together.",
                "yes" if field.get("categoriesOrdered") else "no",
                order,
            )
        )
    return found


def _bounds(field: Field, *, more: bool) -> list[Question]:
    kind, constraints = field["type"], field.get("constraints", {})
    if (
        kind not in _ORDERED
        or "categories" in field
        or "enum" in constraints
        or "relativeTo" in field.get("margent", {})
    ):
        return []
    found = []
    for key, word in (("minimum", "lowest"), ("maximum", "highest")):
        now = constraints.get(key, TODO)
        if not (more or now == TODO):
            continue
        example = f", such as {_EXAMPLES[kind]}" if kind in _EXAMPLES else ""

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
                f"What is the {word} value that can occur? {_MANUAL}",
                f"A bound that is known without the table{example}. Values beyond it count as the nearest "
                f"one inside, so it may "
                "be a little too wide, but not much: a range that is far too wide wastes accuracy. "
                "If the manual names none, choose a round figure from common sense.",
                "" if now == TODO else scalar_cell(now),
                change,
            )
        )
    return found


def _spelling(field: Field, *, more: bool) -> list[Question]:
    kind, block = field["type"], field.get("margent", {})
    found = []
    if kind == "number" and (block.get("decimals") == TODO or more):

        def decimals(made: Field, text: str) -> None:
            if not (text.strip().isascii() and text.strip().isdigit()):
                raise ValueError("answer with a whole number, such as 2")
            made.setdefault("margent", {})["decimals"] = int(text.strip()[:9])

        now = block.get("decimals", TODO)
        words = "How many digits after the decimal point do values have?"
        found.append(
            Question(
                "decimals", words, "Values are written with so many digits.", "" if now == TODO else str(now), decimals
            )
        )
    if kind == "boolean" and more:
        for key, word, default in (("trueValues", "yes", DEFAULT_TRUE), ("falseValues", "no", DEFAULT_FALSE)):

            def spell(made: Field, text: str, key: str = key) -> None:
                made[key] = split(text)

            explained = "As in the table, letter by letter; the first of them is the one that is written."
            now_spelled = list_cells(field.get(key, list(default)))[0]
            found.append(
                Question(key, f"How is {word} spelled? Separate spellings with |", explained, now_spelled, spell)
            )
    if kind in ("date", "datetime", "time") and more:

        def form(made: Field, text: str) -> None:
            made.pop("format", None)
            if text.strip().lower() != "iso":
                made["format"] = text.strip()

        found.append(
            Question(
                "format",
                f"How is it spelled in the table? iso for {_EXAMPLES[kind]}, or a pattern such as %d/%m/%Y",
                "In a pattern %d is the day, %m the month in figures, %b its short name, %Y the year in "
                "four figures, %H the "
                "hour, %M the minute, %S the second. Cells of another spelling count as missing.",
                field.get("format", "iso"),
                form,
            )
        )
    if kind == "datetime" and (block.get("timeZone") == TODO or more):

        def zone(made: Field, text: str) -> None:
            made.setdefault("margent", {})["timeZone"] = text.strip()

        told = block.get("timeZone", "naive")
        found.append(
            Question(
                "timeZone",
                "Which clock? UTC, a zone such as Europe/Berlin, or naive for none in particular",
                "naive takes the clock as it stands in the table.",
                "naive" if told == TODO else told,
                zone,
                suggested=told == TODO,
            )
        )
    return found


def _needs_bins(field: Field) -> bool:
    constraints = field.get("constraints", {})
    if field["type"] not in _ORDERED or "bins" in field.get("margent", {}) or "enum" in constraints:
        return False
    if "categories" in field or not {"minimum", "maximum"} <= set(constraints):
        return False
    return wanted_bins(field["type"], field) is not None


def _bins(field: Field) -> Question:
    now = field.get("margent", {}).get("bins", TODO)
    cell = "" if now == TODO else bins_cell(now)

    def change(made: Field, text: str) -> None:
        made.setdefault("margent", {})["bins"] = read_bins_cell(text, made["type"])

    return Question(
        "bins",
        "How finely should values be kept? A number of equal steps, edges such as 0|18|65|110, "
        "width 5, or month, year ...",
        "Values are counted in steps, and new ones are drawn inside them. Few steps are counted "
        "more exactly, many keep more "
        "detail; 10 to 50 are usual. Edges begin with the lowest and end with the highest value. "
        "Days and moments can be "
        "kept by hour, day, week, month, quarter or year.",
        cell or _SUGGESTED.get(field["type"], "20"),
        change,
        suggested=now == TODO,
    )


def _required(field: Field) -> Question:
    now = field.get("constraints", {}).get("required", TODO)

    def change(made: Field, text: str) -> None:
        may_be_missing = _yes(text)
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


def _yes(text: str) -> bool:
    word = text.strip().lower()
    if word in ("y", "yes", "true"):
        return True
    if word in ("n", "no", "false"):
        return False
    raise ValueError("answer with yes or no")
