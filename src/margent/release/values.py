"""Strict readers of single JSON values: whatever has another type than a file of ours is refused.

Privacy: none: released files are public.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

_EXACT = re.compile(r"-?[0-9]{1,4000}(/0*[1-9][0-9]{0,4000})?", re.ASCII)


def text(value: Any) -> str:
    """The value if it is a text. Raises: TypeError."""
    if not isinstance(value, str):
        raise TypeError
    return value


def whole(value: Any) -> int:
    """The value if it is a whole number of at least 0. Raises: ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def fraction(value: Any) -> Fraction:
    """The fraction written ``"p/q"`` or ``"p"``, in digits alone. Raises: ValueError.

    >>> fraction("3/4"), fraction("17")
    (Fraction(3, 4), Fraction(17, 1))
    """
    # Never Fraction("1e999999999"): ten characters for a number of a billion digits.
    if not isinstance(value, str) or not _EXACT.fullmatch(value):
        raise ValueError
    return Fraction(value)


def texts(value: Any) -> tuple[str, ...]:
    """The texts of a list. Raises: TypeError, ValueError."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(text(item) for item in value)
