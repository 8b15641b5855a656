"""A draft made from a foreign description, and the report of what it took from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from margent.errors import Fault, SchemaError, UsageError
from margent.schema.draft import Draft, drafted
from margent.schema.imports.facts import ColumnFacts, draft_field
from margent.schema.todos import TODO


@dataclass(frozen=True)
class Imported:
    """The draft, the kind of source in words, and what of the source was left out, each with its place there."""

    draft: Draft
    source: str
    left_out: tuple[Fault, ...] = ()

    @property
    def taken(self) -> str:
        """What was taken, in one sentence."""
        fields = self.draft.document["fields"]
        sorts = Counter(_sort(field) for field in fields)
        parts = [f"{sorts[sort]} {words}" for sort, words in _SORTS.items() if sorts[sort]]
        return f"{len(fields)} column{'s' if len(fields) != 1 else ''} from {self.source}: {', '.join(parts)}."


_SORTS = {
    "listed": "with its values",
    "bounded": "with its range",
    "boolean": "true or false",
    "open": "with open questions",
    "identifier": "as identifier",
    "drop": "left out of the table",
}


def _sort(field: dict[str, Any]) -> str:
    block = field.get("margent", {})
    if "role" in block and block["role"] != "model":
        return str(block["role"])
    places = (field, field.get("constraints", {}), block)
    if any(value == TODO for members in places for value in members.values()):
        return "open"
    if "categories" in field or "enum" in field.get("constraints", {}):
        return "listed"
    return "boolean" if field["type"] == "boolean" else "bounded"


def imported(
    columns: Sequence[tuple[str, ColumnFacts]],
    source: str,
    subject: str,
    *,
    notes: Sequence[Fault] = (),
    faults: Sequence[Fault] = (),
    unit: Any = None,
    table: dict[str, Any] | None = None,
) -> Imported:
    """A draft of these columns, each given with its place in the source, or every fault at once.

    Names must differ; who is protected stays a question unless the source says it.

    Raises: SchemaError listing every fault with its place.
    """
    faults, left_out = list(faults), list(notes)
    first: dict[str, str] = {}
    for place, facts in columns:
        if facts.name in first:
            faults.append(Fault(place, f"the column {facts.name!r} is described at {first[facts.name]} too; keep one"))
        first.setdefault(facts.name, place)
    if not columns and not faults:
        faults.append(Fault("", "describes no column"))
    if faults:
        raise SchemaError(faults, subject)
    fields = [draft_field(facts, place, left_out) for place, facts in columns]
    made = drafted(fields, unit=unit, provenance=f"imported from {source}, {subject_name(subject)}")
    return Imported(replace(made, document=(table or {}) | made.document), source, tuple(left_out))


def chosen_table(names: list[str], subject: str, table: str | None) -> str:
    """The table that is meant: the one named, or the only one there is.

    Raises: UsageError listing the tables.
    """
    listed = ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    if table is None and len(names) != 1:
        raise UsageError(f"{subject} describes {len(names)} tables: choose one with --table: {listed}")
    if table is not None and table not in names:
        raise UsageError(f"--table {table}: {subject} describes no such table; it has: {listed}")
    return names[0] if table is None else table


def subject_name(subject: str) -> str:
    """The file's own name, without the folders it lies in."""
    return subject.encode("utf-8", "replace").decode().replace("\\", "/").rsplit("/", 1)[-1]
