"""The public schema of a table, and its fields as a person writes them in Python.

    Schema([Category("sex", ["F", "M"]), Integer("age", 0, 110)], unit="row")

Each builder makes the same `Field` as the JSON it stands for; options are named as in the schema file, in
snake case.
"""
# ruff: noqa: N802  (builders are named like the types they make)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from margent.errors import Fault, SchemaError
from margent.schema.check import schema_faults, size_faults
from margent.schema.field_json import CONSTRAINTS, read_field
from margent.schema.parts import Field, FieldType, MissingToken
from margent.schema.strict_json import strict_faults

if TYPE_CHECKING:
    from margent.schema.rulebook import Rulebook

DEFAULT_MISSING = (MissingToken(""),)
"""Cells that are missing where neither table nor field says otherwise: the empty ones."""


@dataclass(frozen=True, slots=True)
class PersonUnit:
    """The person whose id stands in ``field`` is protected; at most ``max_rows`` of their rows are counted.

    With ``sizes``, how many persons have 1, 2, ... ``max_rows`` rows is bought, and the ids that are written group rows
    in these proportions; without, every row gets an id of its own.
    """

    field: str
    max_rows: int
    sizes: bool = False


Unit = Literal["row"] | PersonUnit


@dataclass(frozen=True)
class Schema:
    """What is public about a table: its columns, the values each can have, and who is protected.

    ``unit`` is required: "row" (each row is somebody else) or a `PersonUnit`.

    Privacy: never learned from private rows.
    Raises: SchemaError listing every fault.

    >>> schema = Schema([Category("sex", ["F", "M"]), Integer("age", 0, 110), Dropped("note")], unit="row")
    >>> schema.output_columns, [field.name for field in schema.modelled]
    (('sex', 'age'), ['sex', 'age'])
    """

    fields: Sequence[Field]
    unit: Unit = attribute(kw_only=True)
    name: str | None = attribute(default=None, kw_only=True)
    missing: Sequence[MissingToken] = attribute(default=DEFAULT_MISSING, kw_only=True)
    rules: Sequence[Mapping[str, Any]] = attribute(default=(), kw_only=True)
    provenance: str | None = attribute(default=None, kw_only=True)
    carried: Mapping[str, Any] = attribute(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what no run could honor."""
        for key in ("fields", "missing", "rules"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        faults = schema_faults(
            [(f"/fields/{place}", field) for place, field in enumerate(self.fields)], self.missing, self.unit
        )
        if self.unit != "row" and not isinstance(self.unit, PersonUnit):
            faults.append(Fault("/margent/unit", 'must be "row" or PersonUnit(field, max_rows)'))
        elif isinstance(self.unit, PersonUnit) and self.unit.max_rows < 1:
            faults.append(Fault("/margent/unit/maxRows", "must be at least 1"))
        elif isinstance(self.unit, PersonUnit) and self.unit.sizes:
            faults += size_faults(self.unit.max_rows, self.unit.field, self.fields)
        if not self.fields:
            faults.append(Fault("/fields", "is empty; a table has at least one field"))
        if not faults and self.rules:
            # Not at the top: rules are made of columns' codes, and a schema without them needs none.
            from margent.schema.rulebook import make_rulebook

            self.__dict__["rulebook"], faults = make_rulebook(self)
        if faults:
            raise SchemaError(faults)

    @cached_property
    def rulebook(self) -> Rulebook | None:
        """What the rules mean for codes and values; None where there are no rules."""
        return None

    @property
    def modelled(self) -> tuple[Field, ...]:
        """The fields that are counted and synthesized, in schema order."""
        return tuple(field for field in self.fields if field.role == "model")

    @property
    def person_rows(self) -> int | None:
        """Most rows that are counted of a person, or None where the unit is a row."""
        return self.unit.max_rows if isinstance(self.unit, PersonUnit) else None

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Names of the columns that are read from the table: the modeled ones and the person's id."""
        person = self.unit.field if isinstance(self.unit, PersonUnit) else None
        return tuple(field.name for field in self.fields if field.role == "model" or field.name == person)

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Names of the columns that are written, in schema order: all but the dropped ones."""
        return tuple(field.name for field in self.fields if field.role != "drop")

    def missing_of(self, field: Field) -> tuple[MissingToken, ...]:
        """The missing tokens that hold for a field: its own, or the table's.

        Those that the field adds to the table's come first: the first is how a missing cell is written, and a
        token that is listed for one column alone is how that column spells it.
        """
        if field.missing is None:
            return tuple(self.missing)
        everywhere = {token.text for token in self.missing}
        return tuple(sorted(field.missing, key=lambda token: token.text in everywhere))


def Category(
    name: str, categories: Sequence[Any] | Mapping[Any, str], *, ordered: bool = False, **options: Any
) -> Field:
    """A closed list of texts or whole numbers, or a mapping of values to labels.

    Raises: SchemaError for one text, whose letters nobody meant as categories.

    >>> [item.label for item in Category("sex", {"F": "female", "M": "male"}).listed]
    ['female', 'male']
    """
    if isinstance(categories, str | bytes):
        raise SchemaError([Fault("/categories", f"field {name!r}: expected a list of values, found one text")])
    pairs = (
        [{"value": value, "label": label} for value, label in categories.items()]
        if isinstance(categories, Mapping)
        else list(categories)
    )
    values = [pair["value"] if isinstance(pair, Mapping) else pair for pair in pairs]
    whole = bool(values) and all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return _field(name, "integer" if whole else "string", options, categories=pairs, categoriesOrdered=ordered)


def Integer(name: str, minimum: int | None = None, maximum: int | None = None, **options: Any) -> Field:
    """Whole numbers in [minimum, maximum]; more than 256 of them need ``bins``."""
    return _field(name, "integer", options, minimum=minimum, maximum=maximum)


def Number(
    name: str, minimum: float | Decimal | None = None, maximum: float | Decimal | None = None, **options: Any
) -> Field:
    """Numbers in [minimum, maximum], cut by ``bins``; floats count as their shortest decimal text."""
    return _field(name, "number", options, minimum=minimum, maximum=maximum)


def Boolean(name: str, **options: Any) -> Field:
    """True or false."""
    return _field(name, "boolean", options)


def Date(name: str, minimum: date | str | None = None, maximum: date | str | None = None, **options: Any) -> Field:
    """Days in [minimum, maximum]."""
    return _field(name, "date", options, minimum=minimum, maximum=maximum)


def DateTime(
    name: str, minimum: datetime | str | None = None, maximum: datetime | str | None = None, **options: Any
) -> Field:
    """Moments in [minimum, maximum] to the second; ``time_zone`` is "UTC", an IANA name or "naive"."""
    return _field(name, "datetime", options, minimum=minimum, maximum=maximum)


def Time(name: str, minimum: time | str = "00:00:00", maximum: time | str = "23:59:59", **options: Any) -> Field:
    """Times of day in [minimum, maximum] to the second."""
    return _field(name, "time", options, minimum=minimum, maximum=maximum)


def Year(name: str, minimum: int | None = None, maximum: int | None = None, **options: Any) -> Field:
    """Calendar years in [minimum, maximum]."""
    return _field(name, "year", options, minimum=minimum, maximum=maximum)


def YearMonth(name: str, minimum: str | None = None, maximum: str | None = None, **options: Any) -> Field:
    """Months such as "2020-01" in [minimum, maximum]."""
    return _field(name, "yearmonth", options, minimum=minimum, maximum=maximum)


def Identifier(name: str, *, type: Literal["string", "integer"] = "string", **options: Any) -> Field:  # noqa: A002
    """A column that is not modeled: fresh ids 1, 2, 3, ... are written."""
    return _field(name, type, options, role="identifier")


def Dropped(name: str, **options: Any) -> Field:
    """A column that is neither read nor written."""
    return _field(name, "string", options, role="drop")


_TOP = {
    "format": "format",
    "missing_values": "missingValues",
    "true_values": "trueValues",
    "false_values": "falseValues",
    "decimal_char": "decimalChar",
    "group_char": "groupChar",
    "bare_number": "bareNumber",
    "title": "title",
    "description": "description",
    "categories": "categories",
    "categoriesOrdered": "categoriesOrdered",
}
_BLOCK = {
    "role": "role",
    "bins": "bins",
    "special": "special",
    "spikes": "spikes",
    "decode": "decode",
    "unlisted": "unlisted",
    "open_set": "openSet",
    "hierarchy": "hierarchy",
    "time_zone": "timeZone",
    "decimals": "decimals",
    "relative_to": "relativeTo",
}


def _field(name: str, kind: FieldType, options: Mapping[str, Any], **own: Any) -> Field:
    """The field whose JSON has these options, each in its place; None stands for "not given"."""
    raw: dict[str, Any] = {"name": name, "type": kind, "constraints": {}, "margent": {}}
    faults: list[Fault] = []
    for key, value in {**options, **own}.items():
        if value is None:
            continue
        if key in CONSTRAINTS:
            raw["constraints"][key] = _plain(value)
        elif key in _TOP:
            raw[_TOP[key]] = _plain(value)
        elif key in _BLOCK:
            raw["margent"][_BLOCK[key]] = _plain(value)
        else:
            known = ", ".join([*CONSTRAINTS, *_TOP, *_BLOCK])
            faults.append(Fault(f"/{key}", f"is not an option of a field; known are {known}"))
    faults += strict_faults(raw)
    field = read_field(raw, "", faults, None) if not faults else None
    if field is None or faults:
        raise SchemaError(faults, f"field {name!r}")
    return field


def _plain(value: Any) -> Any:
    """A Python value as the JSON it stands for: dates as ISO text, exact decimals as text."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(member) for member in value]
    return value
