"""The questions one after another: an answer counts if the changed column holds together, else it is asked again."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from margent.errors import Fault, SchemaError, UsageError
from margent.schema.block_json import read_missing
from margent.schema.editing.question import Question
from margent.schema.editing.questions import field_questions
from margent.schema.editing.relative import bases_of
from margent.schema.editing.units import leaving_out, left_out, table_questions
from margent.schema.fields import DEFAULT_MISSING
from margent.schema.open_fields import open_faults
from margent.schema.parts import MissingToken
from margent.schema.strict_json import Members, kind_of
from margent.schema.todos import TODO, field_todos

Document = dict[str, Any]
Place = tuple[int | None, str]
"""A column's place (None for the table itself) and a question's key."""
MANY = 5
"""From so many columns of which nothing is known, those to leave out are asked for together."""


@dataclass
class Dialogue:
    """A schema document that is being edited, and the answers given so far, which can be taken back.

    ``columns`` are the names to ask about; with none, every column that has an open question, or with ``every`` all.
    """

    document: Document
    columns: Sequence[str] = ()
    every: bool = False
    folder: Path | None = None
    answered: dict[Place, bool] = field(default_factory=dict)
    """The questions that were answered; True where a column's kind was, from which more questions follow."""
    before: list[Document] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse a document that has no columns to ask about."""
        self.document = copy.deepcopy(self.document)
        faults = _form_faults(self.document)
        if faults:
            raise SchemaError(faults)
        names = [raw["name"] for raw in self.document["fields"]]
        if unknown := [name for name in self.columns if name not in names]:
            raise UsageError(
                f"the schema has no column {', '.join(map(repr, unknown))}; it has {', '.join(map(repr, names))}"
            )
        self.chosen = [
            place
            for place, raw in enumerate(self.document["fields"])
            if (raw["name"] in self.columns if self.columns else self.every or field_todos(raw, ""))
        ]

    @property
    def result(self) -> Document:
        """The document as it may be saved: a person who is only half told of is asked for again."""
        made = copy.deepcopy(self.document)
        unit = made.get("margent", {}).get("unit")
        if isinstance(unit, dict) and TODO in unit.values():
            made["margent"]["unit"] = TODO
        return made

    @property
    def asks_all(self) -> bool:
        """Whether answered questions are asked as well: with ``every``, and for columns that were named."""
        return self.every or bool(self.columns)

    def open_question(self) -> tuple[Place, Question] | None:
        """The next question, or None when all are answered."""
        for place, question in self._questions():
            if place not in self.answered:
                return place, question
        return None

    def column(self, place: Place) -> tuple[str, str]:
        """The column that is asked about, and what is written about it."""
        if place[0] is None:
            return "the table", ""
        raw = self.document["fields"][place[0]]
        said = [raw[key] for key in ("title", "description") if isinstance(raw.get(key), str)]
        return repr(raw["name"]), ". ".join(said)

    def progress(self, place: Place) -> tuple[int, int]:
        """Which of the columns is asked about."""
        return (self.chosen.index(place[0]) + 1 if place[0] in self.chosen else len(self.chosen)), len(self.chosen)

    def answer(self, place: Place, question: Question, text: str) -> list[str]:
        """Take an answer; what is wrong with it, and then nothing has changed.

        Empty keeps what stands, or takes what was suggested.
        """
        if not text.strip():
            if not question.suggested:
                self._keep(place, self.document)
                return []
            text = question.now
        changed = {**self.document, "fields": list(self.document["fields"])}
        model = self._named_model(text) if question.key == "kind" else None
        try:
            if model is not None and place[0] is not None:
                changed["fields"][place[0]] = _like(changed["fields"][place[0]], model)
            elif place[0] is None:
                changed["margent"] = copy.deepcopy(self.document.get("margent", {}))
                question.change(changed, text)
            else:
                one = copy.deepcopy(changed["fields"][place[0]])
                question.change(one, text)
                changed["fields"][place[0]] = one
        except ValueError as error:
            return [str(error)]
        places = range(len(changed["fields"])) if place[0] is None else [place[0]]
        if new := list(dict.fromkeys(text for column in places for text in self._new_faults(changed, column))):
            return new
        self._keep(place, changed, fresh=question.key == "kind" and model is None)
        return []

    def leave_out(self, place: Place) -> bool:
        """Leave the column out that is asked about; whether there was one."""
        if place[0] is None:
            return False
        changed = {**self.document, "fields": list(self.document["fields"])}
        changed["fields"][place[0]] = left_out(changed["fields"][place[0]])
        self._keep(place, changed)
        return True

    def back(self) -> bool:
        """Take the last answer back; whether there was one."""
        if not self.answered:
            return False
        self.answered.popitem()
        self.document = self.before.pop()
        return True

    def _new_faults(self, changed: Document, column: int) -> list[str]:
        """What an answer would make wrong in a column that was not wrong before."""
        one, other = self.document["fields"][column], changed["fields"][column]
        if one == other and self.document.get("missingValues") == changed.get("missingValues"):
            return []
        old = {fault.pointer for fault in open_faults(one, _tokens(self.document), self.folder)}
        found = open_faults(other, _tokens(changed), self.folder)
        return [fault.message.removeprefix(f"field {other['name']!r}: ") for fault in found if fault.pointer not in old]

    def _form(self, place: int) -> str:
        """The format that was told last of columns of the same type: most tables have one."""
        fields = self.document["fields"]
        told = [raw["format"] for raw in fields[:place] if raw["type"] == fields[place]["type"] and "format" in raw]
        return told[-1] if told else "iso"

    def _bases(self, place: int) -> list[str]:
        """The columns that a date may be told from: of a column that was named any, else those asked about before."""
        fields = self.document["fields"]
        found, earlier = bases_of(fields, fields[place]), {raw["name"] for raw in fields[:place]}
        return found if self.columns else [name for name in found if name in earlier]

    def _named_model(self, text: str) -> Document | None:
        """The column whose answers are to be taken, where an answer names one."""
        word, _, name = text.strip().partition(" ")
        if word.lower() != "like":
            return None
        return next((raw for raw in self.document["fields"] if raw["name"] == name.strip()), None)

    def _keep(self, place: Place, changed: Document, *, fresh: bool = False) -> None:
        self.before.append(self.document)
        self.answered[place] = fresh
        self.document = changed

    def _questions(self) -> Iterator[tuple[Place, Question]]:
        unknown = sum(self.document["fields"][place]["type"] == TODO for place in self.chosen)
        if not self.columns and (unknown >= MANY or (None, "leave out") in self.answered):
            yield (None, "leave out"), leaving_out(self.document)
        for place in self.chosen:
            fresh = self.answered.get((place, "kind"), False)
            found = field_questions(
                self.document["fields"][place],
                every=self.asks_all,
                fresh=fresh,
                form=self._form(place) if fresh else "iso",
                bases=self._bases(place),
            )
            # A question that was answered stays in its place: it may be open no longer.
            yield from (((place, question.key), question) for question in found)
        begun = any(place is None and key != "leave out" for place, key in self.answered)
        if not self.columns:
            for question in table_questions(self.document, every=self.every, begun=begun):
                yield (None, question.key), question


def _like(one: Document, model: Document) -> Document:
    """The answers about one column, for another; its name and what is written about it stay its own."""
    if field_todos(model, ""):
        raise ValueError(f"{model['name']!r} has open questions itself; answer those first")
    own = {key: one[key] for key in ("name", "title", "description") if key in one}
    taken = {
        key: value for key, value in model.items() if key not in ("name", "title", "description", "categoriesFile")
    }
    return {"name": own.pop("name")} | copy.deepcopy(taken) | own


def _form_faults(document: Any) -> list[Fault]:
    """What keeps a document from being edited by questions."""
    if not isinstance(document, dict):
        return [Fault("", f"expected an object, found {kind_of(document)}")]
    faults: list[Fault] = []
    fields = document.get("fields")
    if not isinstance(fields, list) or not fields:
        faults.append(Fault("/fields", "expected a list with an entry for every column"))
        fields = []
    for place, raw in enumerate(fields):
        where = f"/fields/{place}"
        if not isinstance(raw, dict) or not isinstance(raw.get("name"), str) or not isinstance(raw.get("type"), str):
            faults.append(Fault(where, "expected an object with a name and a type"))
            continue
        faults += [
            Fault(f"{where}/{key}", f"expected an object, found {kind_of(raw[key])}")
            for key in ("constraints", "margent")
            if not isinstance(raw.get(key, {}), dict)
        ]
        if not isinstance(raw.get("format", ""), str):
            faults.append(Fault(where, "its format must be a text"))
        block = raw.get("margent", {})
        if isinstance(block, dict) and not isinstance(block.get("timeZone", ""), str):
            faults.append(Fault(f"{where}/margent/timeZone", "expected a text"))
    if not isinstance(document.get("margent", {}), dict):
        faults.append(Fault("/margent", f"expected an object, found {kind_of(document['margent'])}"))
    return faults


def _tokens(document: Document) -> tuple[MissingToken, ...]:
    """The table's missing tokens, as far as they can be read."""
    tokens = read_missing(Members(document, "", []), "missingValues")
    return DEFAULT_MISSING if tokens is None else tokens
