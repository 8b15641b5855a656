"""What every import must give: a draft in which nothing but its open questions keeps it from being a schema."""

from __future__ import annotations

from typing import Any

from margent.errors import SchemaError
from margent.schema.imports.imported import Imported
from margent.schema.read import schema_from_json


def holds_together(made: Imported) -> None:
    """Assert that the draft's faults are its open questions, or that nothing would be written at all."""
    assert made.draft.text
    try:
        schema_from_json(made.draft.document)
    except SchemaError as error:
        asked = set(made.draft.todos)
        others = [
            fault for fault in error.faults if fault not in asked and "nothing would be written" not in fault.message
        ]
        assert not others, others


def by_name(made: Imported) -> dict[str, dict[str, Any]]:
    """The drafted fields by their names, without the names."""
    holds_together(made)
    return {
        field["name"]: {key: value for key, value in field.items() if key != "name"}
        for field in made.draft.document["fields"]
    }
