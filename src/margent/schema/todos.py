"""Open questions of a drafted schema: the word "todo" where a person who knows the table must decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from margent.errors import Fault
from margent.schema.strict_json import step

TODO = "todo"

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "unit": ("who is protected?", '"row" if each row is somebody else, or {"field": the id column, "maxRows": k}'),
    "type": (
        "what does the column hold?",
        "string, integer, number, boolean, date, datetime, time, year or yearmonth; or, for an id or free text, "
        'string with margent.role "identifier" or "drop"',
    ),
    "categories": (
        "which values can occur?",
        'list them from documentation, or set margent.role to "identifier" or "drop"',
    ),
    "minimum": ("what is the smallest possible value?", "from documentation, not from the rows"),
    "maximum": ("what is the largest possible value?", "from documentation, not from the rows"),
    "bins": ("how finely should values be kept?", 'a number of bins, a list of edges, {"width": w} or a period'),
    "timeZone": ("which clock?", '"UTC", an IANA name such as "Europe/Berlin", or "naive"'),
    "role": ("model it, write fresh ids, or leave it out?", '"model", "identifier" or "drop"'),
    "decimals": ("how many decimals do values have?", "a whole number"),
    "required": ("is every cell filled?", "true, or false where cells may be missing"),
}
"""Where "todo" may stand: what it asks, and how it may be answered."""

_PLACES = ("", "constraints", "margent")


def todo_faults(document: Any) -> list[Fault]:
    """Every open question of a schema document, as faults with their JSON pointers.

    How a question may be answered is told where it is asked first.

    >>> [str(fault)[:53] for fault in todo_faults({"fields": [{"name": "age", "type": "todo"}]})]
    ["/fields/0/type: todo: field 'age': what does the colu"]
    """
    if not isinstance(document, Mapping):
        return []
    block, asked = document.get("margent"), set[str]()
    faults = list(_open(block, "/margent", "", asked)) if isinstance(block, Mapping) else []
    fields = document.get("fields")
    for place, field in enumerate(fields if isinstance(fields, list | tuple) else ()):
        faults += field_todos(field, f"/fields/{place}", asked)
    return faults


def field_todos(field: Any, pointer: str, asked: set[str] | None = None) -> list[Fault]:
    """The open questions of one field; ``asked`` are those whose answers were told before."""
    if not isinstance(field, Mapping):
        return []
    faults: list[Fault] = []
    asked = set() if asked is None else asked
    for place in _PLACES:
        members = field.get(place) if place else field
        if isinstance(members, Mapping):
            where = step(pointer, place) if place else pointer
            faults += _open(members, where, f"field {field.get('name')!r}: ", asked)
    return faults


def _open(members: Mapping[str, Any], pointer: str, subject: str, asked: set[str]) -> Iterator[Fault]:
    for key, value in members.items():
        if value == TODO and key in QUESTIONS:
            question, answers = QUESTIONS[key]
            yield Fault(step(pointer, key), f"todo: {subject}{question}" + (f" {answers}" if key not in asked else ""))
            asked.add(key)
