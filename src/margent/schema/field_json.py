"""One field of a schema file: JSON -> `Field`, honoring, carrying along or refusing every key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from margent.errors import Fault
from margent.schema.block_json import (
    choice_of,
    read_bins,
    read_block_hierarchy,
    read_code_file_record,
    read_decode,
    read_missing,
    read_open_set,
    read_relative_to,
    read_special,
    read_spikes,
    read_texts,
    read_unlisted,
)
from margent.schema.check_values import spelling_faults
from margent.schema.code_file import read_code_file
from margent.schema.parts import (
    DEFAULT_FALSE,
    DEFAULT_SPELLING,
    DEFAULT_TRUE,
    FIELD_TYPES,
    ROLES,
    TYPE_WORDS,
    CodeFile,
    Field,
    FieldType,
    ListedValue,
    Scalar,
    Spelling,
)
from margent.schema.positions import declared_scalar
from margent.schema.strict_json import Members

HONORED = (
    "name",
    "type",
    "format",
    "constraints",
    "categories",
    "categoriesOrdered",
    "missingValues",
    "trueValues",
    "falseValues",
    "decimalChar",
    "groupChar",
    "bareNumber",
    "margent",
)
MOST_NAME = 1_000
"""Letters of a column's name."""
CARRIED = ("title", "description", "rdfType", "example")
CONSTRAINTS = ("minimum", "maximum", "required", "enum")
CARRIED_CONSTRAINTS = ("pattern", "unique")
BLOCK = (
    "role",
    "bins",
    "special",
    "spikes",
    "decode",
    "unlisted",
    "openSet",
    "hierarchy",
    "timeZone",
    "decimals",
    "relativeTo",
    "categoriesFile",
)
_ELSEWHERE = dict.fromkeys((*CONSTRAINTS, *CARRIED_CONSTRAINTS), "it belongs into constraints") | dict.fromkeys(
    BLOCK, "it belongs into margent"
)


def read_field(raw: Any, pointer: str, faults: list[Fault], folder: Path | None) -> Field | None:
    """A field from its JSON, or None (with faults) where it cannot be understood.

    ``folder`` is where the schema file lies: the only place that a file of categories is looked for.
    """
    name = raw.get("name") if isinstance(raw, Mapping) else None
    # A longer name is refused, and would be written out in every other fault.
    subject = f"field {name!r}" if isinstance(name, str) and len(name) <= MOST_NAME else ""
    top = Members(raw, pointer, faults, subject)
    return _FieldReader(top, folder, subject).read() if top.sound else None


class _FieldReader:
    """The parts of one field, read in turn."""

    def __init__(self, top: Members, folder: Path | None, subject: str) -> None:
        self.top, self.folder, self.subject = top, folder, subject
        self.constraints = top.inner("constraints", top.get("constraints") if "constraints" in top else {})
        self.block = top.inner("margent", top.get("margent") if "margent" in top else {})
        self.kind: FieldType = "string"
        self.spelling = DEFAULT_SPELLING

    @property
    def sound(self) -> bool:
        """Whether every value so far was understood."""
        return self.top.sound and self.constraints.sound and self.block.sound

    def read(self) -> Field | None:
        """The field, or None where a value was not understood."""
        top, block, constraints = self.top, self.block, self.constraints
        top.refuse_unknown((*HONORED, *CARRIED), _ELSEWHERE)
        constraints.refuse_unknown((*CONSTRAINTS, *CARRIED_CONSTRAINTS), _ELSEWHERE)
        block.refuse_unknown(BLOCK, dict.fromkeys(HONORED, "it belongs into the field itself"))
        name, kind = self._name(), self._kind()
        if kind is None:
            return None
        self.kind, self.spelling = kind, self._spelling(kind)
        listed, listed_file = self._listed()
        relative_to = read_relative_to(block)
        on_axis = self._scalar if relative_to is None else self._whole
        field = Field(
            name=name,
            type=kind,
            role=choice_of(block, "role", ROLES, "model"),
            required=constraints.flag("required"),
            listed=listed,
            ordered=top.flag("categoriesOrdered"),
            listed_file=listed_file,
            hierarchy=read_block_hierarchy(block, self.subject),
            minimum=self._bound("minimum"),
            maximum=self._bound("maximum"),
            bins=read_bins(block, on_axis),
            decimals=block.whole("decimals", 0, 15),
            special=read_special(block),
            spikes=read_spikes(block, on_axis),
            decode=read_decode(block),
            missing=read_missing(top, "missingValues"),
            unlisted_to=read_unlisted(block),
            spelling=self.spelling,
            time_zone=block.text("timeZone"),
            relative_to=relative_to,
            open_set=read_open_set(block),
            carried=self._carried(),
        )
        if self.sound:
            return field
        # Nobody checks a field that was not understood, but how it is spelled can be checked all the same.
        for fault in spelling_faults(field):
            top.faults.append(Fault(top.pointer + fault.pointer, top.said(fault.message)))
        return None

    def _name(self) -> str:
        if "name" not in self.top:
            self.top.fault(None, "needs a name: the column's name in the table, letter by letter")
        name = self.top.text("name") or ""
        if len(name) > MOST_NAME:
            self.top.fault("name", f"has {len(name):,} letters; a name has at most {MOST_NAME:,}")
        return name

    def _kind(self) -> FieldType | None:
        known = ", ".join(FIELD_TYPES)
        if "type" not in self.top:
            self.top.fault(None, f"needs a type: one of {known}")
            return None
        text = self.top.text("type")
        for kind in FIELD_TYPES:
            if text == kind:
                return kind
        if text is not None and (meant := TYPE_WORDS.get(text.strip().lower())):
            self.top.fault("type", f"{text!r} is not a type; did you mean {meant!r}?")
        elif text is not None:
            self.top.fault(
                "type",
                f"{text!r} is not one of {known}; a column of another kind can be left out: "
                'type "string" with margent.role "drop"',
            )
        return None

    def _spelling(self, kind: FieldType) -> Spelling:
        top = self.top
        yes, no = read_texts(top, "trueValues"), read_texts(top, "falseValues")
        for key in ("trueValues", "falseValues"):
            if key in top and kind != "boolean":
                top.fault(key, f"says how booleans are spelled, and this is a {kind}")
        decimal = top.text("decimalChar")
        return Spelling(
            format=top.text("format"),
            true_values=DEFAULT_TRUE if yes is None else yes,
            false_values=DEFAULT_FALSE if no is None else no,
            decimal_char="." if decimal is None else decimal,
            group_char=top.text("groupChar"),
            bare_number=top.flag("bareNumber", default=True),
        )

    def _bound(self, key: str) -> Scalar | None:
        if key not in self.constraints:
            return None
        if self.kind in ("string", "boolean"):
            self.constraints.fault(key, f"a {self.kind} has no minimum or maximum; take it out")
            return None
        return self._scalar(self.constraints, key, self.constraints.get(key))

    def _scalar(self, members: Members, key: str | int, raw: Any, kind: FieldType | None = None) -> Scalar | None:
        try:
            return declared_scalar(kind or self.kind, raw, self.spelling)
        except ValueError as error:
            members.fault(key, str(error))
            return None

    def _whole(self, members: Members, key: str | int, raw: Any) -> Scalar | None:
        """An edge or spike of a difference: a whole number of its units."""
        return self._scalar(members, key, raw, "integer")

    def _listed(self) -> tuple[tuple[ListedValue, ...] | None, CodeFile | None]:
        top, record = self.top, read_code_file_record(self.block)
        enum = self._values(self.constraints, "enum")
        if "categories" not in top:
            return enum, record
        if self.kind not in ("string", "integer"):
            top.fault("categories", f"a {self.kind} lists its values in constraints.enum")
            return None, None
        given = top.get("categories")
        if isinstance(given, Mapping):
            inner = top.inner("categories", given)
            listed, record = read_code_file(inner, self.kind, self.folder) or ((), None)
            top.adopt(inner)
        else:
            listed = self._values(top, "categories") or ()
        if enum is not None and {item.value for item in enum} != {item.value for item in listed}:
            self.constraints.fault("enum", "lists other values than categories; keep one of the two")
        return listed, record

    def _values(self, members: Members, key: str) -> tuple[ListedValue, ...] | None:
        given = members.items(key)
        if given is None:
            return None
        inner, listed = members.inner(key, {}), []
        for place, item in enumerate(given):
            raw, label = item, None
            if isinstance(item, Mapping):
                entry = inner.inner(place, item)
                entry.refuse_unknown(("value", "label"), {})
                raw, label = entry.get("value"), entry.text("label")
                inner.adopt(entry)
            value = self._scalar(inner, place, raw)
            if value is not None:
                listed.append(ListedValue(value, label))
        members.adopt(inner)
        return tuple(listed)

    def _carried(self) -> dict[str, Any]:
        kept = {key: self.top.get(key) for key in CARRIED if key in self.top}
        return kept | {
            f"constraints/{key}": self.constraints.get(key) for key in CARRIED_CONSTRAINTS if key in self.constraints
        }
