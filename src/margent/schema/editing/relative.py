"""What is asked about a date that may follow another: which, in which unit, and how far apart the two can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from margent.schema.differences import UNITS_OF
from margent.schema.editing.question import MANUAL, Question
from margent.schema.imports.cells import joined, read_relative_cell, relative_cell
from margent.schema.todos import TODO

Field = dict[str, Any]


def bases_of(fields: Sequence[Field], own: Field) -> list[str]:
    """The other columns of the same type that a date may be told from: none of those that are told from it."""
    told_from = {field["name"]: _base(field) for field in fields}

    def leads_here(name: str | None) -> bool:
        seen = set[str | None]()
        while name is not None and name not in seen:
            if name == own["name"]:
                return True
            seen.add(name)
            name = told_from.get(name)
        return False

    return [
        field["name"]
        for field in fields
        if field["type"] == own["type"]
        and field.get("margent", {}).get("role", "model") == "model"
        and not leads_here(field["name"])
    ]


def _base(field: Field) -> str | None:
    relative = field.get("margent", {}).get("relativeTo")
    name = relative.get("field") if isinstance(relative, Mapping) else None
    return name if isinstance(name, str) else None


def relative_questions(field: Field, bases: Sequence[str], *, more: bool) -> list[Question]:
    """Whether a date is told by its distance from another; not asked of a closed list, or where there is no other."""
    now = relative_cell(field.get("margent", {}).get("relativeTo"))
    units = UNITS_OF.get(field["type"], ())
    if not more or not units or not bases or "enum" in field.get("constraints", {}):
        return []

    def change(made: Field, text: str) -> None:
        block, constraints = dict(made.get("margent", {})), dict(made.get("constraints", {}))
        if text.strip().lower() == "no":
            if block.pop("relativeTo", None) is not None:
                block["bins"] = TODO
                constraints |= {"minimum": TODO, "maximum": TODO}
        else:
            told = read_relative_cell(text)
            if told["field"] not in bases:
                raise ValueError(f"the other column is one of {', '.join(map(repr, bases))}")
            if told["unit"] not in units or told["minimum"] > told["maximum"]:
                raise ValueError(f"the unit is one of {', '.join(units)}, and the least stands before the most")
            block |= {"relativeTo": told, "bins": TODO}
            constraints = {key: value for key, value in constraints.items() if key not in ("minimum", "maximum")}
        for key, members in (("constraints", constraints), ("margent", block)):
            made.pop(key, None)
            made |= {key: members} if members else {}

    example = joined([bases[0], "day", "0", "365"])
    return [
        Question(
            "relativeTo",
            f"Does it follow another date, as a discharge follows an admission? no, or such as {example} {MANUAL}",
            "Then the time between the two is kept instead of the date itself: lengths of stay survive, and none ends "
            "before it begins. Name the other column, the unit to count in, and the least and the most units between "
            f"the two. Columns it can follow: {', '.join(bases)}. Units: {', '.join(units)}. What is beyond counts as "
            "the nearest inside.",
            now or "no",
            change,
            again=f"Does it follow another date? no, or such as {example}",
            aside=True,
        )
    ]
