"""Where a value stands on its field's axis, exactly, one at a time: what every fast path must agree with.

Axis and unit: integer, year: the number itself; number: a fraction; date: days since 1970; datetime: seconds
since 1970 (UTC, or on the wall clock where the field is naive); time: seconds since midnight; yearmonth: months
since year 0.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from margent.schema.formats import BLANKS, Moment, TimeFormat, parse_iso, time_format
from margent.schema.parts import FieldType, Scalar, Spelling
from margent.schema.strict_json import kind_of
from margent.schema.zones import DAY, instant_of_wall, zone_named

Position = int | Fraction

BEYOND = 10**40
"""Stands for every number of larger size, so that a cell such as 1e999999999 costs nothing."""
_TINY = Fraction(1, 10**40)
_MAX_TEXT = 1000
_MAX_DIGITS = 40
_EPOCH = date(1970, 1, 1)

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.ASCII | re.IGNORECASE)


def exact_number(text: str) -> Fraction | None:
    """The number a plain decimal text stands for, or None.

    Sizes above 10^40 are cut to 10^40, and below 10^-40 to 10^-40: both lie beyond every bin's edge.

    >>> exact_number("-12.50e1"), exact_number("1e999999999") == BEYOND, exact_number("1,5")
    (Fraction(-125, 1), True, None)
    """
    if len(text) > _MAX_TEXT:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, whole, part, exponent = match.group(1), match.group(2), match.group(3) or "", match.group(4)
    if not whole and not part:
        return None
    digits = int(whole + part)
    power = int(exponent or 0) - len(part)
    if digits == 0:
        return Fraction(0)
    size = len(str(digits)) + power
    if size > _MAX_DIGITS:
        value = Fraction(BEYOND)
    elif size < -_MAX_DIGITS:
        value = _TINY
    else:
        value = Fraction(digits) * Fraction(10) ** power
    return -value if sign == "-" else value


def spelled_number(text: str, spelling: Spelling, *, infinite: bool = False) -> Fraction | None:
    """The number a cell's text stands for in the field's spelling, or None; blanks at the ends are ignored.

    >>> spelled_number(" 1.204,50 ", Spelling(decimal_char=",", group_char="."))
    Fraction(2409, 2)
    >>> spelled_number("95 %", Spelling(bare_number=False)), spelled_number("95 %", Spelling())
    (Fraction(95, 1), None)
    """
    text = text.strip(BLANKS)
    if len(text) > _MAX_TEXT:
        return None
    decimal = spelling.decimal_char
    if not spelling.bare_number:
        start = re.search(rf"[+-]?(?:{re.escape(decimal)})?[0-9]", text)
        if start is None:
            return None
        # Up to the last digit or decimal sign: searched from the end, as what is between may be long.
        rest = re.compile(rf".*[0-9{re.escape(decimal)}]", re.DOTALL).match(text, start.start())
        text = rest[0] if rest else ""
    if infinite and (match := _INFINITE.fullmatch(text)):
        return Fraction(-BEYOND if match.group(1) == "-" else BEYOND)
    if spelling.group_char and "\n" not in text:  # with one in it there is no match, which takes long to find out
        group = re.escape(spelling.group_char)
        match = re.fullmatch(rf"([+-]?[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})*{group}[0-9]{{3}})((?![0-9]).*)", text)
        if match:
            text = match.group(1).replace(spelling.group_char, "") + match.group(2)
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".", 1)
    return exact_number(text)


def field_format(kind: FieldType, spelling: Spelling) -> TimeFormat | None:
    """The field's own date or time format, or None where ISO 8601 holds.

    Raises: ValueError where the format is not understood.
    """
    if kind not in ("date", "datetime", "time") or spelling.format in (None, "default"):
        return None
    return time_format(str(spelling.format))


def cell_position(kind: FieldType, text: str, spelling: Spelling, time_zone: str | None) -> Position | None:
    """Where a cell's text stands on the axis, or None where it cannot be read; it never raises.

    Not for booleans and strings, whose texts are compared as they are.
    """
    if kind in ("integer", "year"):
        value = spelled_number(text, spelling)
        return int(value) if value is not None and value.denominator == 1 else None
    if kind == "number":
        return spelled_number(text, spelling, infinite=True)
    own = field_format(kind, spelling)
    moment = own.parse(text) if own else parse_iso(kind, text)
    return None if moment is None else _moment_position(kind, moment, time_zone)


def _moment_position(kind: FieldType, moment: Moment, time_zone: str | None) -> int | None:
    """Where a moment stands on the axis of a date, datetime, time or yearmonth field.

    An offset is honored by a zoned datetime field; anywhere else there is no telling what it means: None.
    """
    wall = moment.day * DAY + moment.second
    zoned = kind == "datetime" and time_zone not in (None, "naive")
    if moment.offset is not None:
        return wall - moment.offset if zoned else None
    if zoned:
        return instant_of_wall(zone_named(str(time_zone)), wall)
    if kind == "datetime":
        return wall
    if kind == "time":
        return moment.second
    if kind == "yearmonth":
        day = _EPOCH + timedelta(days=moment.day)
        return day.year * 12 + day.month - 1
    return moment.day


def scalar_position(kind: FieldType, scalar: Scalar, time_zone: str | None) -> Position:
    """Where a declared value stands on the axis.

    >>> scalar_position("datetime", "1970-01-01T00:00:00", "America/Chicago")
    21600

    Raises: ValueError where a date or time has an offset its field has no use for.
    """
    if isinstance(scalar, int):
        return int(scalar)
    if isinstance(scalar, Decimal):
        return Fraction(scalar)
    moment = parse_iso(kind, scalar)
    position = None if moment is None else _moment_position(kind, moment, time_zone)
    if position is None:
        raise ValueError('an offset needs margent.timeZone; give one ("UTC" or an IANA name) or leave the offset out')
    return position


def declared_scalar(kind: FieldType, raw: Any, spelling: Spelling) -> Scalar:
    """A bound, edge or listed value as the schema keeps it, from its JSON value.

    Floats count as their shortest decimal text. Dates and times are ISO 8601; the field's own format is
    understood too where a text is not ISO.

    >>> declared_scalar("number", 0.1, Spelling()), declared_scalar("date", "2020-01-31", Spelling())
    (Decimal('0.1'), '2020-01-31')

    Raises: ValueError saying what was expected.
    """
    if kind == "string":
        if isinstance(raw, str):
            return raw
        raise ValueError(f"expected a text, found {kind_of(raw)}; write the value in quotes")
    if kind == "boolean":
        return _declared_boolean(raw, spelling)
    if kind in ("integer", "year", "number"):
        return _declared_number(kind, raw)
    if isinstance(raw, str):
        moment = parse_iso(kind, raw)
        own = field_format(kind, spelling) if moment is None else None
        if own is not None:
            moment = own.parse(raw)
        if moment is not None:
            return _iso(kind, moment)
    example = {
        "date": "2020-01-31",
        "datetime": "2020-01-31T13:45:00",
        "time": "13:45:00",
        "yearmonth": "2020-01",
    }
    raise ValueError(f'expected a {kind} as ISO 8601 text, such as "{example[kind]}"')


def _declared_boolean(raw: Any, spelling: Spelling) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw in spelling.true_values + spelling.false_values:
        return raw in spelling.true_values
    raise ValueError(f"expected true or false, found {kind_of(raw)}")


def _declared_number(kind: FieldType, raw: Any) -> int | Decimal:
    expected = "a number" if kind == "number" else "a whole number"
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise ValueError(f"expected {expected}, found {kind_of(raw)}")
    text = raw if isinstance(raw, str) else repr(raw)
    value = exact_number(text) if isinstance(raw, str | float) else Fraction(raw)
    if value is None:
        raise ValueError(f"expected {expected}")
    if kind != "number":
        if value.denominator != 1:
            raise ValueError(f"expected {expected}")
        return int(value)
    if abs(value) >= BEYOND or (value and abs(value) <= _TINY) or len(text) > _MAX_DIGITS:
        raise ValueError(f"has more than {_MAX_DIGITS} digits")
    return plain_decimal(value)


def plain_decimal(value: Fraction) -> Decimal:
    """A finite decimal fraction without trailing zeros or exponent.

    >>> plain_decimal(Fraction(5, 2)), plain_decimal(Fraction(1000))
    (Decimal('2.5'), Decimal('1000'))
    """
    places = 0
    while value.denominator != 1:
        value, places = value * 10, places + 1
    return Decimal(f"{value.numerator}e-{places}") if places else Decimal(value.numerator)


def _iso(kind: FieldType, moment: Moment) -> str:
    day = (_EPOCH + timedelta(days=moment.day)).isoformat()
    clock = f"{moment.second // 3600:02}:{moment.second // 60 % 60:02}:{moment.second % 60:02}"
    if kind == "date":
        return day
    if kind == "yearmonth":
        return day[:7]
    if kind == "time":
        return clock
    return f"{day}T{clock}{offset_text(moment.offset)}"


def offset_text(offset: int | None) -> str:
    """An offset from UTC in ISO 8601, empty where there is none.

    >>> offset_text(-18000), offset_text(0), offset_text(None)
    ('-05:00', 'Z', '')
    """
    if offset is None:
        return ""
    if offset == 0:
        return "Z"
    size = abs(offset)
    seconds = f":{size % 60:02}" if size % 60 else ""
    return f"{'-' if offset < 0 else '+'}{size // 3600:02}:{size // 60 % 60:02}{seconds}"
