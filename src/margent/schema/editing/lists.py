"""What is asked about a closed list: its values, or the file they lie in, and their order."""

from __future__ import annotations

from typing import Any

from margent.schema.editing.question import MANUAL, Question, several, yes_or_no
from margent.schema.exports.sheet import list_cells
from margent.schema.imports.cells import listed_file, read_scalar, split
from margent.schema.todos import TODO

Field = dict[str, Any]


def list_questions(field: Field, *, more: bool) -> list[Question]:
    """What a closed list holds, and whether it is in order; ``more`` asks about what was answered as well."""
    constraints = field.get("constraints", {})
    if "categories" in field:
        place, given = "categories", field["categories"]
    elif "enum" in constraints:
        place, given = "enum", constraints["enum"]
    else:
        return []
    found = [_values(place, given)] if more or given == TODO else []
    return [*found, _order(field)] if more else found


def _values(place: str, given: Any) -> Question:
    now, labels = list_cells(given)
    known = dict(zip(split(now), split(labels), strict=True)) if labels else {}

    def change(made: Field, text: str) -> None:
        if (file := listed_file(text)) and place == "categories":
            made[place] = file
            return
        items = several(text)
        values = [read_scalar(each, made["type"]) for each in items]
        whole = all(isinstance(value, int) for value in values)
        if place == "categories" and made["type"] == "integer" and not whole:
            made["type"], values = "string", list(items)
        target = made if place == "categories" else made["constraints"]
        target[place] = [
            {"value": value, "label": known[text]} if known.get(text) else value
            for value, text in zip(values, items, strict=True)
        ]

    return Question(
        "values",
        f"What are the possible values? {MANUAL} Put | between them"
        + (", or name a file such as codes.csv" if place == "categories" else ""),
        "Write every value as it is spelled in the table, such as F|M, or 1|2|9. A value that is not in the list "
        "counts as missing. Take the list from a codebook or a form: a list read off the table would tell who was in "
        "it. Texts that mean no value (NA, ?) do not belong here. A long list can lie in a CSV file beside the schema: "
        "its first line is the word value, and then one value a line.",
        "" if now == TODO else now,
        change,
    )


def _order(field: Field) -> Question:
    def change(made: Field, text: str) -> None:
        made.pop("categoriesOrdered", None)
        if yes_or_no(text):
            made["categoriesOrdered"] = True

    return Question(
        "ordered",
        "Are they in order, from low to high? (yes or no)",
        "Yes for school grades or income classes; no for names of towns. Neighbors in an order may be counted "
        "together.",
        "yes" if field.get("categoriesOrdered") else "no",
        change,
    )
