"""What a column can hold, in words: the answers to the first question, and the fields they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from margent.schema.todos import TODO


@dataclass(frozen=True)
class Kind:
    """A kind of column: its words in the menu, what else may be typed for it, its type and role."""

    words: str
    names: tuple[str, ...]
    type: str
    role: str | None = None
    listed: bool = False


KINDS = (
    Kind("one of a list of values, or codes", ("list", "values", "codes"), "string", listed=True),
    Kind("a whole number", ("whole number", "integer"), "integer"),
    Kind("a number with a decimal point", ("number",), "number"),
    Kind("yes or no", ("yes or no", "boolean"), "boolean"),
    Kind("a day", ("day", "date"), "date"),
    Kind("a day and a clock time", ("day and time", "datetime"), "datetime"),
    Kind("a clock time", ("time",), "time"),
    Kind("a year", ("year",), "year"),
    Kind("a month of a year", ("month", "yearmonth"), "yearmonth"),
    Kind("an id: new ones are written", ("id", "identifier"), "string", "identifier"),
    Kind("free text, or anything to leave out", ("leave out", "drop", "text"), "string", "drop"),
)

LEFT_OUT = KINDS[-1]
"""Neither read nor written."""

_KEPT = ("name", "title", "description", "missingValues", "rdfType", "example")


def current_kind(field: dict[str, Any]) -> Kind | None:
    """The kind that a field is of, or None where that is open.

    >>> current_kind({"name": "sex", "type": "string", "categories": ["F", "M"]}).words
    'one of a list of values, or codes'
    """
    role = field.get("margent", {}).get("role", "model")
    if field.get("type") == TODO or role == TODO:
        return None
    if role != "model":
        return next((kind for kind in KINDS if kind.role == role), None)
    if "categories" in field or field.get("type") == "string":
        return KINDS[0]
    return next((kind for kind in KINDS if kind.type == field.get("type") and kind.role is None), None)


def kind_and_more(text: str) -> tuple[str, list[str]]:
    """An answer to the first question, and those to the next ones that were given with it.

    A list of values is one answer, blanks in it and all.

    >>> kind_and_more("2 0 110 no"), kind_and_more("1 day ward|night ward"), kind_and_more("whole number")
    (('2', ['0', '110', 'no']), ('1', ['day ward|night ward']), ('whole number', []))
    """
    word, _, rest = text.strip().partition(" ")
    if not rest or not word.isdigit():
        return text, []
    return word, [rest.strip()] if word == "1" else rest.split()


def set_kind(field: dict[str, Any], kind: Kind) -> None:
    """Make a field one of this kind, with questions for what that needs; a field that is one already stays as it is."""
    if current_kind(field) == kind:
        return
    kept = {key: field[key] for key in _KEPT if key in field}
    field.clear()
    field |= {"name": kept.pop("name")} | {"type": kind.type} | kept
    if kind.role is not None:
        field.pop("missingValues", None)
        field["margent"] = {"role": kind.role}
    elif kind.listed:
        field["categories"] = TODO
    elif kind.type != "boolean":
        whole_day = {"minimum": "00:00:00", "maximum": "23:59:59"}
        field["constraints"] = whole_day if kind.type == "time" else {"minimum": TODO, "maximum": TODO}
        block = {"bins": TODO} if kind.type in ("number", "date", "datetime", "time") else {}
        block |= {"timeZone": TODO} if kind.type == "datetime" else {}
        block |= {"decimals": TODO} if kind.type == "number" else {}
        if block:
            field["margent"] = block
