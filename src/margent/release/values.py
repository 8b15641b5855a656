"""Strict readers of single JSON values: whatever has another type than a file of ours is refused.

Privacy: none: released files are public.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

MOST_DIGITS = 1000
"""Digits of a numerator or denominator; all methods and accounts write 30 at most."""
MOST_SUM_BITS = 2**14
"""Bits of the common denominator of what is added up. That of all scales of the public grid has 3,000."""
_MOST_WHOLE = 2**63 - 1
_EXACT = re.compile(rf"(-?[0-9]{{1,{MOST_DIGITS}}})(?:/([1-9][0-9]{{0,{MOST_DIGITS - 1}}}))?", re.ASCII)


def text(value: Any) -> str:
    """The value if it is a text. Raises: TypeError."""
    if not isinstance(value, str):
        raise TypeError
    return value


def whole(value: Any) -> int:
    """The value if it is a whole number from 0 to 2^63 - 1. Raises: ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_WHOLE:
        raise ValueError
    return value


def fraction(value: Any) -> Fraction:
    """The fraction written ``"p/q"`` or ``"p"``, in digits alone, at most 1,000 a part. Raises: ValueError.

    >>> fraction("3/4"), fraction("17")
    (Fraction(3, 4), Fraction(17, 1))
    """
    # Never Fraction("1e999999999"): ten characters for a number of a billion digits.
    if not isinstance(value, str) or not (found := _EXACT.fullmatch(value)):
        raise ValueError
    return Fraction(int(found[1]), int(found[2] or 1))


def positive(value: Any) -> Fraction:
    """The `fraction` above 0. Raises: ValueError."""
    found = fraction(value)
    if found.numerator <= 0:
        raise ValueError
    return found


def require_addable(values: Iterable[Fraction]) -> None:
    """Refuse fractions whose sum would have an endless denominator: adding up odd ones takes time without bound.

    Raises: ValueError.
    """
    common = 1
    for value in values:
        if common % value.denominator:
            common = math.lcm(common, value.denominator)
            if common.bit_length() > MOST_SUM_BITS:
                raise ValueError


def texts(value: Any) -> tuple[str, ...]:
    """The texts of a list. Raises: TypeError, ValueError."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(text(item) for item in value)
