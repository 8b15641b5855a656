"""Checks of what is drawn inside bins, and of dates relative to others: spikes, decode rules, bases and cycles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from margent.errors import Fault
from margent.schema.differences import MOST_UNITS, UNITS_OF, reach
from margent.schema.parts import NUMERIC, Field, Tail
from margent.schema.positions import scalar_position


def drawing_faults(field: Field) -> Iterator[Fault]:
    """What is wrong with spikes and the rule for decoding; pointers are relative to the field."""
    unbinned = field.listed is not None or field.type in ("string", "boolean")
    if field.decode is not None and unbinned:
        yield Fault("/margent/decode", "says how values are drawn inside bins, and this field has none")
    if field.decode == "integer" and field.type != "number":
        yield Fault("/margent/decode", "only a number can be told to be whole; this field's values are anyway")
    if isinstance(field.decode, Tail) and field.decode.half is not None and field.decode.half <= 0:
        yield Fault("/margent/decode/tail", "must be above 0")
    if not field.spikes:
        return
    if unbinned or (field.type not in NUMERIC and field.relative_to is None):
        yield Fault("/margent/spikes", "only numbers in bins, and differences of dates, have spikes")
        return
    seen: set[object] = set()
    low, high = field.minimum, field.maximum
    if field.relative_to is not None:
        low, high = field.relative_to.minimum, field.relative_to.maximum
    for place, spike in enumerate(field.spikes):
        where, position = f"/margent/spikes/{place}", scalar_position(field.type, spike, None)
        if position in seen:
            yield Fault(where, f"{spike} is listed twice; keep one")
        seen.add(position)
        if (
            low is not None
            and high is not None
            and not scalar_position(field.type, low, None) <= position <= scalar_position(field.type, high, None)
        ):
            yield Fault(where, f"{spike} lies outside of minimum and maximum; widen them, or make it a special code")
        if field.decimals is not None and Fraction(position) * 10**field.decimals % 1:
            yield Fault(where, f"{spike} has more than the {field.decimals} decimals that are written")


MOST_BASES = 16
"""Dates that may stand one on the other."""


def reference_faults(field: Field, pointer: str, by_name: Mapping[str, Field]) -> Iterator[Fault]:
    """What is wrong with a date that is relative to another of the fields ``by_name``."""
    other = field.relative_to
    if other is None or field.role != "model":
        return
    where = f"{pointer}/margent/relativeTo"

    def fault(key: str, message: str) -> Fault:
        return Fault(where + key, f"field {field.name!r}: {message}")

    if field.type in UNITS_OF and other.unit not in UNITS_OF[field.type]:
        known = ", ".join(UNITS_OF[field.type])
        yield fault("/unit", f"the difference of a {field.type} is counted in one of {known}")
        return
    if field.minimum is not None or field.maximum is not None or field.listed is not None:
        yield fault("", "the difference has the bounds; take out constraints.minimum, maximum and enum of the date")
    if other.minimum > other.maximum:
        yield fault("/minimum", "minimum is above maximum")
        return
    if max(abs(other.minimum), abs(other.maximum)) > MOST_UNITS:
        yield fault("", f"a difference lies within {MOST_UNITS:,} units")
        return
    base = by_name.get(other.field)
    if base is None or base.type != field.type or base.role != "model" or base.time_zone != field.time_zone:
        alike = f"a modeled {field.type}" + (" of the same timeZone" if field.type == "datetime" else "")
        yield fault("/field", f"{other.field!r} must be {alike}")
        return
    if field.required and base.nullable:
        yield fault("/field", f"where {other.field!r} is missing there is no date; make that required, or this not")
    if (found := _chain_fault(field, by_name)) is not None:
        yield fault("/field", found)
        return
    if _all_bounded(base, by_name):
        try:
            reach(field, by_name)
        except ValueError as error:
            yield fault("", str(error))


def _chain_fault(field: Field, by_name: Mapping[str, Field]) -> str | None:
    """Why the dates that a date stands on, one after the other, cannot be followed to one that stands alone."""
    seen: set[str] = set()
    while field.relative_to is not None and field.relative_to.field in by_name:
        if field.name in seen:
            return "leads back to itself; one date must stand alone"
        if len(seen) == MOST_BASES:
            return f"follows more than {MOST_BASES} dates, one relative to the next; make it relative to an earlier one"
        seen.add(field.name)
        field = by_name[field.relative_to.field]
    return None


def _all_bounded(field: Field, by_name: Mapping[str, Field]) -> bool:
    """Whether a chain of bases ends at one whose bounds can be understood; if not, that is a fault of its own."""
    while field.relative_to is not None:
        if field.type not in UNITS_OF or field.relative_to.field not in by_name:
            return False
        if field.relative_to.unit not in UNITS_OF[field.type]:
            return False
        if max(abs(field.relative_to.minimum), abs(field.relative_to.maximum)) > MOST_UNITS:
            return False
        field = by_name[field.relative_to.field]
    if field.type not in UNITS_OF or (field.listed is None and None in (field.minimum, field.maximum)):
        return False
    try:
        reach(field, by_name)
    except ValueError:
        return False
    return True
