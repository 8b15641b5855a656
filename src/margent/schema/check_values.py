"""Checks of a field's declared values: spelling, bounds and closed lists, each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from margent.errors import Fault
from margent.schema.bins import FLOAT_DIGITS, decimal_places
from margent.schema.formats import BLANKS
from margent.schema.parts import MAX_CODES, NUMERIC, EdgeBins, Field, ListedValue, Scalar
from margent.schema.positions import Position, cell_position, field_format, scalar_position
from margent.schema.zones import ZONE_YEARS, zone_named

INT64 = (-(2**63), 2**63 - 1)
_SHORT_YEARS = (1969, 2068)
_STRING_FORMATS = ("default", "email", "uri", "binary", "uuid")
_NEEDED: dict[str, tuple[frozenset[str], ...]] = {
    "date": (frozenset("Yy"), frozenset("mbBj"), frozenset("dj")),
    "datetime": (frozenset("Yy"), frozenset("mbBj"), frozenset("dj"), frozenset("HI")),
    "time": (frozenset("HI"),),
}


def spelling_faults(field: Field) -> Iterator[Fault]:
    """What is wrong with formats, tokens, signs and time zone; pointers are relative to the field."""
    spelling = field.spelling
    yield from _format_faults(field)
    for key, char in (("/decimalChar", spelling.decimal_char), ("/groupChar", spelling.group_char)):
        if char is not None and (len(char) != 1 or char in "+-eE0123456789" or (char in BLANKS and char != " ")):
            yield Fault(key, "must be one character that is no digit, sign or letter e")
    if spelling.group_char == spelling.decimal_char:
        yield Fault("/groupChar", "must differ from decimalChar")
    if field.type == "boolean":
        yes, no = ({text.strip(BLANKS) for text in side} for side in (spelling.true_values, spelling.false_values))
        for key, side in (("/trueValues", yes), ("/falseValues", no)):
            if not side:
                yield Fault(key, "needs at least one text")
        if both := sorted(yes & no):
            yield Fault("/falseValues", f"{both[0]!r} stands for true as well; take it out of one list")
    if field.time_zone not in (None, "naive"):
        try:
            zone_named(str(field.time_zone))
        except ValueError as error:
            yield Fault("/margent/timeZone", str(error))


def _format_faults(field: Field) -> Iterator[Fault]:
    given = field.spelling.format
    if given in (None, "default"):
        return
    if field.type == "string":
        if given not in _STRING_FORMATS:
            yield Fault("/format", f"a string's format is one of {', '.join(_STRING_FORMATS)}")
        return
    if field.type not in _NEEDED:
        yield Fault("/format", f"a {field.type} has no format but default")
        return
    if given == "any":
        yield Fault("/format", 'guessing is not done: say how it is spelled, such as "%d/%m/%Y"')
        return
    try:
        own = field_format(field.type, field.spelling)
    except ValueError as error:
        yield Fault("/format", str(error))
        return
    parts = own.parts if own else frozenset()
    for choices in _NEEDED[field.type]:
        if not parts & choices:
            names = " or ".join(f"%{part}" for part in sorted(choices))
            yield Fault("/format", f"a {field.type} needs {names}")
    if field.type != "datetime" and "z" in parts:
        yield Fault("/format", f"a {field.type} has no offset (%z)")
    if field.type == "date" and parts & set("HIMSfp"):
        yield Fault("/format", "a date has no clock time; make it a datetime, or leave the clock out")
    if field.type == "time" and parts & set("YymbBdj"):
        yield Fault("/format", "a time has no day; make it a datetime, or leave the day out")
    if field.type == "datetime" and "z" in parts and field.time_zone in (None, "naive"):
        yield Fault("/format", 'an offset (%z) needs margent.timeZone: "UTC" or an IANA name')


def bound_faults(field: Field) -> Iterator[Fault]:
    """What is wrong with minimum and maximum; pointers are relative to the field."""
    places: dict[str, Position] = {}
    if field.type in ("string", "boolean"):
        return
    for key in ("minimum", "maximum"):
        bound: Scalar | None = getattr(field, key)
        if bound is None:
            continue
        pointer = f"/constraints/{key}"
        place, faults = _placed(field, bound, pointer)
        yield from faults
        if place is not None:
            places[key] = place
            yield from _size_faults(field, bound, place, pointer)
    if len(places) == 2 and places["minimum"] > places["maximum"]:
        yield Fault("/constraints", f"minimum {field.minimum} is above maximum {field.maximum}; swap or correct them")
    if isinstance(field.bins, EdgeBins):
        for number, edge in enumerate(field.bins.edges):
            yield from _placed(field, edge, f"/margent/bins/{number}")[1]


def _placed(field: Field, value: Scalar, pointer: str) -> tuple[Position | None, list[Fault]]:
    """Where a declared value stands; a zone that is not known is a fault of its own and not one of every value."""
    try:
        return scalar_position(field.type, value, field.time_zone), []
    except ValueError as error:
        return None, [Fault(pointer, str(error))] if field.time_zone in (None, "naive") else []


def _size_faults(field: Field, bound: Scalar, position: Position, pointer: str) -> Iterator[Fault]:
    if field.type in ("integer", "year") and not INT64[0] <= position <= INT64[1]:
        yield Fault(pointer, "does not fit into 64 bits, the largest whole number that tables hold")
    if field.type == "number":
        decimals = field.decimals if field.decimals is not None else 0
        if abs(position) * 10**decimals > 10**FLOAT_DIGITS:
            yield Fault(
                pointer,
                f"with {decimals} decimals has more than {FLOAT_DIGITS} digits, which a 64-bit float cannot "
                "keep; use fewer decimals or type integer",
            )
    if field.type in ("date", "datetime") and isinstance(bound, str):
        year = int(bound[:4])
        zoned = field.type == "datetime" and field.time_zone not in (None, "naive", "UTC")
        if zoned and not ZONE_YEARS[0] <= year <= ZONE_YEARS[1]:
            yield Fault(
                pointer,
                f"in a zone with clock changes years are {ZONE_YEARS[0]} to {ZONE_YEARS[1]}; use "
                '"UTC" or "naive", or declare far dates as missing tokens',
            )
        own = field_format(field.type, field.spelling) if not list(_format_faults(field)) else None
        if own is not None and "y" in own.parts and not _SHORT_YEARS[0] <= year <= _SHORT_YEARS[1]:
            yield Fault(pointer, f"two-digit years (%y) stand for {_SHORT_YEARS[0]} to {_SHORT_YEARS[1]} only")


def list_faults(field: Field) -> Iterator[Fault]:
    """What is wrong with the closed list and the special codes' sizes; pointers are relative to the field."""
    if field.listed is not None:
        yield from _listed_faults(field, field.listed)
    readable = field.type in NUMERIC and bool(field.special) and not list(spelling_faults(field))
    for place, special in enumerate(field.special):
        pointer, position = f"/margent/special/{place}", None
        if readable:
            position = cell_position(field.type, special.text, field.spelling, None)
        limits = INT64 if field.type != "number" else (-(10**FLOAT_DIGITS), 10**FLOAT_DIGITS)
        if position is not None and not limits[0] <= position <= limits[1]:
            yield Fault(pointer, "is a number too large for the column")
        if special.text.strip(BLANKS) == "":
            yield Fault(pointer, "is blank; declare it in missingValues")


def _listed_faults(field: Field, listed: Sequence[ListedValue]) -> Iterator[Fault]:
    where = "/categories" if field.type in ("string", "integer") else "/constraints/enum"
    if not listed:
        yield Fault(where, "is empty; list at least one value")
    if len(listed) > MAX_CODES:
        yield Fault(where, f"lists {len(listed):,} values; at most {MAX_CODES:,} are possible")
    if field.minimum is not None or field.maximum is not None:
        yield Fault("/constraints", "a closed list needs no minimum or maximum; keep one of the two")
    seen: dict[object, int] = {}
    for place, item in enumerate(listed):
        key: object = item.value
        if field.type != "string":
            position, faults = _placed(field, item.value, f"{where}/{place}")
            yield from faults
            key = item.value if position is None else position
        if key in seen:
            yield Fault(f"{where}/{place}", f"{item.value!s} is also entry {seen[key]}; keep one")
        seen.setdefault(key, place)
        if isinstance(key, int) and not INT64[0] <= key <= INT64[1]:
            yield Fault(f"{where}/{place}", "does not fit into 64 bits, the largest whole number that tables hold")
    numbers = [item.value for item in listed if isinstance(item.value, Decimal)]
    if numbers:
        yield from _decimal_faults(field, numbers, where)


def _decimal_faults(field: Field, numbers: Sequence[Decimal], where: str) -> Iterator[Fault]:
    places = max(decimal_places(number) for number in numbers)
    decimals = places if field.decimals is None else field.decimals
    if decimals < places:
        yield Fault("/margent/decimals", f"the closed list has values with {places} decimals")
    if max(abs(number) for number in numbers) * 10**decimals > 10**FLOAT_DIGITS:
        yield Fault(
            where,
            f"with {decimals} decimals has values of more than {FLOAT_DIGITS} digits, which a 64-bit float "
            "cannot keep; use fewer decimals",
        )
