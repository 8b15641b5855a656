"""How dates and times are spelled: a safe, locale-free subset of strptime directives, and ISO 8601.

The same format reads one text at a time here and whole columns in `margent.schema.codec_times`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Literal, NamedTuple, cast

BLANKS = " \t\r\n\v\f"
"""Whitespace that is ignored around a cell of any type but text."""

Part = Literal["Y", "y", "m", "b", "B", "d", "j", "H", "I", "M", "S", "f", "p", "z"]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

# A directive's expression, and its fixed number of digits (0 where its texts are of several lengths).
_DIRECTIVES: Mapping[Part, tuple[str, int]] = {
    "Y": (r"[0-9]{4}", 4),
    "y": (r"[0-9]{2}", 2),
    "m": (r"[0-9]{1,2}", 2),
    "b": ("|".join(name[:3] for name in MONTHS), 0),
    "B": ("|".join(MONTHS), 0),
    "d": (r"[0-9]{1,2}", 2),
    "j": (r"[0-9]{1,3}", 3),
    "H": (r"[0-9]{1,2}", 2),
    "I": (r"[0-9]{1,2}", 2),
    "M": (r"[0-9]{1,2}", 2),
    "S": (r"[0-9]{1,2}", 2),
    "f": (r"[0-9]{1,9}", 0),
    "p": (r"AM|PM", 0),
    "z": (r"Z|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?", 0),
}
KNOWN_DIRECTIVES = " ".join(f"%{part}" for part in _DIRECTIVES) + " %%"


class Moment(NamedTuple):
    """A wall-clock moment: days since 1970-01-01, second of that day, UTC offset in seconds if written."""

    day: int
    second: int
    offset: int | None


@dataclass(frozen=True)
class TimeFormat:
    """A compiled format: ``pieces`` are literal texts and directives in order.

    >>> birth = time_format("%d%m%Y")
    >>> birth.parse("05112001"), birth.parse("5112001"), birth.finest
    (Moment(day=11631, second=0, offset=None), None, 86400)
    """

    pattern: str
    pieces: tuple[tuple[Part | None, str], ...]
    expression: re.Pattern[str]

    @property
    def parts(self) -> frozenset[str]:
        """Which directives occur."""
        return frozenset(part for part, _ in self.pieces if part)

    @property
    def finest(self) -> int:
        """Seconds between neighboring texts: 1, 60, 3600 or 86400."""
        if self.parts & {"S", "f"}:
            return 1
        return 60 if "M" in self.parts else 3600 if self.parts & {"H", "I"} else 86400

    @property
    def fixed_length(self) -> int | None:
        """The one length in bytes of all texts in this format, if they are digits and ASCII literals."""
        length = 0
        for part, literal in self.pieces:
            digits = _DIRECTIVES[part][1] if part else len(literal)
            if part in ("y", "j", "I") or digits == 0 or not literal.isascii():
                return None
            length += digits
        return length

    def parse(self, text: str) -> Moment | None:
        """The moment a text stands for, or None: it never raises. Whitespace at the ends is ignored."""
        match = self.expression.fullmatch(text.strip(BLANKS))
        return None if match is None else _moment(match.groupdict())


def _moment(found: Mapping[str, str | None]) -> Moment | None:
    def number(part: str, default: int = 0) -> int:
        text = found.get(part)
        return default if text is None else int(text)

    year = number("Y")
    if found.get("y") is not None:
        short = number("y")
        year = short + (1900 if short >= 69 else 2000)
    hour, minute, second = number("H"), number("M"), number("S")
    if found.get("I") is not None:
        hour = number("I")
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if (found.get("p") or "").upper() == "PM" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    day = _day(year, found) if year or "Y" in found else 0
    if day is None:
        return None
    offset = _offset(found.get("z"))
    return None if offset is False else Moment(day, hour * 3600 + minute * 60 + second, offset)


def _day(year: int, found: Mapping[str, str | None]) -> int | None:
    month_name = found.get("b") or found.get("B")
    if month_name:
        month = [name[:3].lower() for name in MONTHS].index(month_name[:3].lower()) + 1
    else:
        month = int(found.get("m") or 1)
    try:
        if found.get("j") is not None:
            day = date(year, 1, 1).toordinal() + int(found["j"] or 0) - 1
            if date.fromordinal(day).year != year:
                return None
            return day - _EPOCH_ORDINAL
        return date(year, month, int(found.get("d") or 1)).toordinal() - _EPOCH_ORDINAL
    except (ValueError, OverflowError):
        return None


def _offset(text: str | None) -> int | Literal[False] | None:
    """Seconds east of UTC; None where not written, False where it is no offset."""
    if text is None:
        return None
    if text in ("Z", "z"):
        return 0
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 23 or minutes > 59 or seconds > 59:
        return False
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if text[0] == "-" else 1)


_PIECE = re.compile(r"%(.?)|([^%]+)", re.DOTALL)


@cache
def time_format(pattern: str) -> TimeFormat:
    """Compile a format made of literal text and the directives of `KNOWN_DIRECTIVES`.

    Numbers next to another number must have all their digits; elsewhere a leading zero may be missing.
    Month names and AM/PM are English and may be in any case.

    Raises: ValueError saying what is wrong with the format.
    """
    pieces: list[tuple[Part | None, str]] = []
    for match in _PIECE.finditer(pattern):
        directive, literal = match.groups()
        if literal is not None or directive == "%":
            pieces.append((None, literal or "%"))
        elif directive in _DIRECTIVES:
            pieces.append((cast("Part", directive), ""))
        else:
            raise ValueError(f"%{directive} is not one of {KNOWN_DIRECTIVES}")
    parts = [part for part, _ in pieces if part]
    if doubled := sorted({part for part in parts if parts.count(part) > 1}):
        raise ValueError(f"%{doubled[0]} occurs more than once")
    if "I" in parts and "p" not in parts:
        raise ValueError("%I (12-hour clock) needs %p (AM or PM)")
    for one, other in (("Y", "y"), ("m", "b"), ("m", "B"), ("b", "B"), ("H", "I"), ("j", "m"), ("j", "d")):
        if one in parts and other in parts:
            raise ValueError(f"%{one} and %{other} say the same thing; keep one")
    return TimeFormat(pattern, tuple(pieces), re.compile(_expression(pieces), re.IGNORECASE | re.ASCII))


def _expression(pieces: list[tuple[Part | None, str]]) -> str:
    def is_digits(place: int) -> bool:
        if not 0 <= place < len(pieces):
            return False
        part, literal = pieces[place]
        return bool(_DIRECTIVES[part][1] or part == "f") if part else literal[:1].isdigit() or literal[-1:].isdigit()

    written = []
    for place, (part, literal) in enumerate(pieces):
        if part is None:
            written.append(re.escape(literal))
            continue
        expression, digits = _DIRECTIVES[part]
        if digits and (is_digits(place - 1) or is_digits(place + 1)):
            expression = f"[0-9]{{{digits}}}"
        written.append(f"(?P<{part}>{expression})")
    return "".join(written)


_CLOCK = r"(?P<H>[0-9]{2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]+)?)?"
_DAY = r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
_ISO: Mapping[str, re.Pattern[str]] = {
    "date": re.compile(rf"{_DAY}(?:[T ]{_CLOCK})?", re.ASCII),
    "datetime": re.compile(
        rf"{_DAY}(?:[T ]{_CLOCK} ?(?P<z>[Zz]|[+-][0-9]{{2}}(?::?[0-9]{{2}}(?::?[0-9]{{2}})?)?)?)?", re.ASCII
    ),
    "time": re.compile(_CLOCK, re.ASCII),
    "yearmonth": re.compile(r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})", re.ASCII),
}

ISO_WRITTEN: Mapping[str, str] = {
    "date": "%Y-%m-%d",
    "datetime": "%Y-%m-%dT%H:%M:%S",
    "time": "%H:%M:%S",
    "yearmonth": "%Y-%m",
}
"""How values are written where no format is given; a zoned datetime is followed by its offset."""


def parse_iso(kind: str, text: str) -> Moment | None:
    """The moment of an ISO 8601 text, or None; a date field takes the day of a date with a clock time.

    >>> parse_iso("datetime", "2023-10-29T02:30:00+02:00")
    Moment(day=19659, second=9000, offset=7200)
    >>> parse_iso("date", "2023-02-30") is None
    True
    """
    match = _ISO[kind].fullmatch(text.strip(BLANKS))
    return None if match is None else _moment(match.groupdict())
