"""What a schema must satisfy beyond its grammar: every fault at once, with its JSON pointer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from margent.errors import Fault
from margent.schema.bins import CutError
from margent.schema.check_drawing import drawing_faults, reference_faults
from margent.schema.check_values import bound_faults, list_faults, spelling_faults
from margent.schema.drawing import draws_of
from margent.schema.formats import BLANKS
from margent.schema.hierarchy import hierarchy_faults
from margent.schema.labels import scalar_text
from margent.schema.layout import layout_of
from margent.schema.open_values import admissible
from margent.schema.parts import NUMERIC, ORDERED, Field, MissingToken, QuantileBins, Scalar
from margent.schema.positions import cell_position
from margent.schema.quantile_grid import gridded

if TYPE_CHECKING:
    from margent.schema.fields import Schema

MOST_TOKENS = 250_000
"""Missing tokens of the table, counted once for each column in which they are looked for."""
MOST_CODES = 4_000_000
"""Codes of all modeled columns together: each takes one to three microseconds to make and a hundred bytes to keep."""
MOST_SIZES = 1000
"""Rows of a person up to which a table of persons by their number of rows makes sense."""


def schema_faults(fields: Sequence[tuple[str, Field]], missing: Sequence[MissingToken], unit: object) -> list[Fault]:
    """Every semantic fault of fields (each with its JSON pointer), table-wide missing tokens and unit.

    Privacy: none: schemas are public.
    """
    faults = list(_name_faults(fields))
    faults += _repeated([token.text for token in missing], "/missingValues", "missing token")
    everywhere = sum(len(missing) for _, field in fields if field.missing is None and field.role == "model")
    if everywhere > max(MOST_TOKENS, len(missing)):
        message = (
            f"{len(missing):,} missing tokens of every column are {everywhere:,} in all, and at most {MOST_TOKENS:,} "
            "are possible; list those of single columns there"
        )
        return [*faults, Fault("/missingValues", message)]
    by_name = {field.name: field for _, field in fields}
    codes = 0
    for pointer, field in fields:
        tokens = missing if field.missing is None else field.missing
        found, size = _examined(field, pointer, tokens)
        faults += found
        faults += reference_faults(field, pointer, by_name)
        codes += size
        if codes > MOST_CODES:
            message = (
                f"with this field the modeled columns have {codes:,} codes or more in all, and at most {MOST_CODES:,} "
                "are possible; use wider bins, shorter lists or fewer columns (later fields were not looked at)"
            )
            return [*faults, Fault(pointer, message)]
    if fields and all(field.role == "drop" for _, field in fields):
        faults.append(Fault("/fields", "every field has role drop, so that nothing would be written; keep one"))
    person: str | None = getattr(unit, "field", None)
    if person is not None and person not in {field.name for _, field in fields}:
        faults.append(Fault("/margent/unit/field", f"{person!r} is not a field; name the field with the person's id"))
    return faults


def size_faults(max_rows: int, person: str, fields: Sequence[Field]) -> list[Fault]:
    """What is wrong where ids are to group rows: nobody would see it, or the table of sizes would be huge."""
    faults = []
    if any(field.name == person and field.role != "identifier" for field in fields):
        message = f"ids that group rows are written for {person!r}: its role must be identifier"
        faults.append(Fault("/margent/unit/sizes", message))
    if max_rows > MOST_SIZES:
        faults.append(Fault("/margent/unit/sizes", f"are bought for at most {MOST_SIZES:,} rows of a person"))
    return faults


def field_faults(field: Field, pointer: str, tokens: Sequence[MissingToken]) -> list[Fault]:
    """Every semantic fault of one field whose missing tokens are ``tokens``."""
    return _examined(field, pointer, tokens)[0]


def _examined(field: Field, pointer: str, tokens: Sequence[MissingToken]) -> tuple[list[Fault], int]:
    """A field's faults, and how many codes it has where they can be made."""
    values = [*spelling_faults(field), *bound_faults(field), *list_faults(field), *drawing_faults(field)]
    found, size = [*_misplaced(field), *values, *_code_faults(field, tokens)], 0
    if field.role == "model" and not values:
        faults, size = _domain_faults(field, tokens)
        found += faults
    if field.hierarchy is not None and field.listed:
        names = [scalar_text(item.value) for item in field.listed]
        found += hierarchy_faults(field.hierarchy, names, "/margent/hierarchy")
    return [Fault(pointer + fault.pointer, f"field {field.name!r}: {fault.message}") for fault in found], size


def unsettled(schema: Schema) -> list[Fault]:
    """What has no codes before a run has bought it: values of open sets, and bins from quantiles.

    Privacy: none: a function of the schema.
    """
    return [fault for place, field in enumerate(schema.fields) for fault in _unsettled_parts(field, f"/fields/{place}")]


def _unsettled_parts(field: Field, pointer: str) -> list[Fault]:
    """What a modeled field has bought, and therefore no codes for yet."""
    if field.role != "model":
        return []
    asked = {
        "openSet": field.open_set is not None
        and "its values are bought during a run; use the schema in the release's datapackage.json",
        "bins": isinstance(field.bins, QuantileBins)
        and "its bins are bought during a run; use the schema in the release's datapackage.json",
    }
    return [
        Fault(f"{pointer}/margent/{key}", f"field {field.name!r}: {message}")
        for key, message in asked.items()
        if message
    ]


def _name_faults(fields: Sequence[tuple[str, Field]]) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for pointer, field in fields:
        if field.name in first:
            yield Fault(
                f"{pointer}/name",
                f"{field.name!r} is also the name of {first[field.name]}; names must differ",
            )
        first.setdefault(field.name, pointer)


def _misplaced(field: Field) -> Iterator[Fault]:
    """Keys that say something about a field to which it does not apply."""
    spelling = field.spelling
    bounded = field.minimum is not None or field.maximum is not None
    has_list = field.listed is not None
    rules: list[tuple[bool, str, str]] = [
        (bounded and field.type not in ORDERED, "/constraints", f"a {field.type} has no minimum or maximum"),
        (field.bins is not None and field.type not in ORDERED, "/margent/bins", f"a {field.type} has no bins"),
        (field.bins is not None and has_list, "/margent/bins", "a closed list has no bins; keep one of the two"),
        (bool(field.special) and field.type not in NUMERIC, "/margent/special", "only numbers have special codes"),
        (bool(field.special) and has_list, "/margent/special", "put special codes into the closed list itself"),
        (field.decimals is not None and field.type != "number", "/margent/decimals", "only a number has decimals"),
        (field.time_zone is not None and field.type != "datetime", "/margent/timeZone", "only a datetime has a zone"),
        (field.ordered and not has_list, "/categoriesOrdered", "needs categories to be in order"),
        (field.hierarchy is not None and not has_list, "/margent/hierarchy", "needs categories to group"),
        (field.open_set is not None and field.type != "string", "/margent/openSet", "only a string can be open"),
        (field.open_set is not None and has_list, "/margent/openSet", "a closed list is not open; keep one of the two"),
        (
            field.relative_to is not None and field.type not in ("date", "datetime"),
            "/margent/relativeTo",
            "only a date or datetime can be relative to another",
        ),
        (
            (spelling.decimal_char != "." or spelling.group_char is not None or not spelling.bare_number)
            and field.type not in ("integer", "number"),
            "/decimalChar" if spelling.decimal_char != "." else "/groupChar" if spelling.group_char else "/bareNumber",
            f"says how numbers are spelled, and this is a {field.type}",
        ),
    ]
    for applies, key, message in rules:
        if applies:
            yield Fault(key, message)
    if field.role == "identifier" and field.type not in ("string", "integer"):
        yield Fault("/type", "an identifier is written as 1, 2, 3, ...: its type must be string or integer")


def _code_faults(field: Field, tokens: Sequence[MissingToken]) -> Iterator[Fault]:
    """Special codes, missing tokens and listed values that a cell could not tell apart."""
    if field.missing is not None:
        yield from _repeated([token.text for token in field.missing], "/missingValues", "missing token")
    yield from _repeated([special.text for special in field.special], "/margent/special", "special code")
    owners: dict[object, str] = {}
    named: list[tuple[str, str, str]] = []
    if field.type == "boolean":
        texts = field.spelling.true_values + field.spelling.false_values
        named += [(text, "the true and false values", "/trueValues") for text in texts]
    else:
        named += [(scalar_text(item.value), "the closed list", "/categories") for item in field.listed or ()]
    named += [(special.text, "the special codes", "/margent/special") for special in field.special]
    if field.relative_to is None and not list(drawing_faults(field)):
        named += [(_spelled(spike, field), "the spikes", "/margent/spikes") for spike in field.spikes]
    if field.nullable:
        named += [(token.text, "the missing tokens", "/missingValues") for token in tokens]
    readable = field.type not in ("string", "boolean") and not list(spelling_faults(field))
    for text, group, pointer in named:
        for key in _meanings(field, text, readable):
            other = owners.setdefault(key, group)
            if other != group:
                yield Fault(
                    pointer,
                    f"{text!r} is one of {group} and of {other}: a cell cannot be both; take it out of one",
                )
                break
            if group == "the special codes" and owners.setdefault((key, group), text) != text:
                yield Fault(pointer, f"{text!r} and {owners[key, group]!r} are the same value; keep one")
                break
    if field.nullable and not tokens and any(item.value == "" for item in field.listed or ()):
        yield Fault("/missingValues", "the empty text is a category, so missing cells need a token of their own")


def _meanings(field: Field, text: str, readable: bool) -> Iterator[object]:
    """What a cell with this text would be compared as: the text itself, and its position on the axis."""
    yield text if field.type == "string" else text.strip(BLANKS)
    position = cell_position(field.type, text, field.spelling, field.time_zone) if readable else None
    if position is not None:
        yield ("position", position)


def _spelled(spike: Scalar, field: Field) -> str:
    return scalar_text(spike).replace(".", field.spelling.decimal_char)


def _repeated(texts: Sequence[str], pointer: str, what: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for place, text in enumerate(texts):
        if text in seen:
            yield Fault(f"{pointer}/{place}", f"the {what} {text!r} is listed twice; keep one")
        seen.add(text)


def _has_quantiles(field: Field) -> bool:
    return isinstance(field.bins, QuantileBins) and field.listed is None and field.type in ORDERED


def _difference_faults(field: Field, tokens: Sequence[MissingToken]) -> tuple[list[Fault], int]:
    """Whether the codes of a date relative to another can be made, and how many there are."""
    other = field.relative_to
    if other is None or other.minimum > other.maximum:
        return [], 0  # which is a fault already
    try:
        if isinstance(field.bins, QuantileBins):
            field = gridded(field, tokens)
        layout = layout_of(field, tokens)
        assert layout.differences is not None
        draws_of(layout.differences.field, layout.differences.cuts)  # type: ignore[arg-type]
    except ValueError as error:
        return [Fault("/margent/relativeTo", str(error))], _tried(error)
    return [], layout.size


def _domain_faults(field: Field, tokens: Sequence[MissingToken]) -> tuple[list[Fault], int]:
    """Whether the field's codes can be made at all, and how many there are."""
    if field.open_set is not None:
        return list(_open_faults(field)), 0
    if field.relative_to is not None:
        return _difference_faults(field, tokens)
    if field.type == "string" and field.listed is None:
        message = (
            "a text column can only be modeled from a closed list: give categories (or have them bought: "
            'margent.openSet), or set margent.role to "identifier" (fresh ids are written) or "drop"'
        )
        return [Fault("", message)], 0
    if field.listed is None and field.type != "boolean":
        lacking = [key for key in ("minimum", "maximum") if getattr(field, key) is None]
        if lacking:
            both = " and ".join(lacking)
            more = ", and margent.bins" if field.type == "number" and field.bins is None else ""
            message = f"needs a public {both} (from documentation, not from the rows){more}"
            return [Fault("/constraints", message)], 0
    try:
        layout = layout_of(gridded(field, tokens) if _has_quantiles(field) else field, tokens)
        if layout.cuts is not None:
            draws_of(layout.field, layout.cuts, list(layout.points))
    except ValueError as error:
        about_unlisted = field.unlisted_to is not None and "the value it names" in str(error)
        key = "/margent/unlisted/to" if about_unlisted else "/margent/bins" if field.bins is not None else ""
        return [Fault(key, str(error))], _tried(error)
    return [], layout.size


def _tried(error: ValueError) -> int:
    """How many codes were made before a field turned out to be faulty."""
    return error.codes if isinstance(error, CutError) else 0


def _open_faults(field: Field) -> Iterator[Fault]:
    """Whether cells of an open set that are not kept have somewhere to go."""
    if field.required and field.unlisted_to is None:
        yield Fault(
            "/margent/unlisted",
            "cells of an open set that are not kept must go somewhere, and a required field has no missing cells: "
            'name a value for them, such as {"to": "other"}',
        )
    if field.unlisted_to is not None and admissible(field.unlisted_to.encode(), ()) is None:
        yield Fault("/margent/unlisted/to", "must be a text of at most 256 printable characters")
