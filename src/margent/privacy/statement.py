"""Exact numbers of a privacy statement (epsilon, delta): how text and floats become Fractions, and limits.

A float stands for its shortest decimal text, as it was typed: 1e-9 is one part in 10^9 exactly. Nothing here
rounds, and everything refused is refused in words that name the field and the next step.
"""

from __future__ import annotations

import math
import operator
import re
from decimal import Decimal
from fractions import Fraction

from margent.errors import UsageError

Numeral = int | float | str | Decimal | Fraction
"""What a caller may write for an exact number."""

EPSILON_LIMITS = (Fraction(1, 10**12), Fraction(10**4))
DELTA_LIMITS = (Fraction(1, 10**300), Fraction(1, 10))

# At most 60 characters and a three-digit exponent: '1e999999999' must not become a number of 10^9 digits.
_DECIMAL = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?|[0-9]+\.(?:[eE][+-]?[0-9]{1,3})?")
_RATIO = re.compile(r"[0-9]+/0*[1-9][0-9]*")


def exact(value: object, field: str) -> Fraction:
    """``value`` as an exact non-negative Fraction; a float through its shortest decimal text.

    Raises: UsageError naming ``field`` for anything but a plain finite number: NaN, infinities, negative
    numbers, booleans, '1,5', '1e9999', other types.

    >>> exact(1e-9, "delta") == exact("1e-9", "delta") == Fraction(1, 10**9)
    True
    """
    if isinstance(value, Fraction):
        number = value
    elif isinstance(value, float) and math.isfinite(value):
        number = Fraction(float.__repr__(value))
    elif isinstance(value, str | Decimal):
        number = _read(str(value), field)
    elif isinstance(value, bool | float) or not hasattr(value, "__index__"):
        raise UsageError(f"{field} must be a number such as 1, 0.5 or '1e-9', not {shown(value)}")
    else:
        number = Fraction(operator.index(value))
    if number < 0:
        raise UsageError(f"{field} must not be negative; it is {shown(value)}")
    return number


def check_epsilon(epsilon: Fraction) -> Fraction:
    """``epsilon`` itself, between 1e-12 and 10,000. Raises: UsageError otherwise."""
    _refuse_inexact(epsilon, "epsilon")
    low, high = EPSILON_LIMITS
    if not low <= epsilon <= high:
        raise UsageError(
            f"epsilon must be above 0, from 1e-12 to 10000; it is {shown(epsilon)}: "
            "1 is a common choice, smaller protects more"
        )
    return epsilon


def check_delta(delta: Fraction) -> Fraction:
    """``delta`` itself, between 1e-300 and 0.1. Raises: UsageError otherwise."""
    _refuse_inexact(delta, "delta")
    low, high = DELTA_LIMITS
    if not low <= delta <= high:
        raise UsageError(
            f"delta must be above 0, from 1e-300 to 0.1; it is {shown(delta)}: take 1e-9, or any number "
            "well below 1 over the number of people (delta 0 needs accountant 'pure')"
        )
    return delta


def check_positive(value: Fraction, name: str) -> Fraction:
    """``value`` itself, an exact number above zero. Raises: UsageError otherwise."""
    _refuse_inexact(value, name)
    if value <= 0:
        raise UsageError(f"{name} must be an exact Fraction above 0, not {shown(value)}")
    return value


def _refuse_inexact(value: object, name: str) -> None:
    if not isinstance(value, Fraction):  # nor an int: two of them would divide into a float
        raise UsageError(f"{name} must be an exact Fraction above 0, not {shown(value)}")


def _read(text: str, field: str) -> Fraction:
    stripped = text.strip()
    if len(stripped) <= 60 and (_DECIMAL.fullmatch(stripped) or _RATIO.fullmatch(stripped)):
        return Fraction(stripped)
    hint = ": write the decimal point as '.', as in 1.5" if "," in stripped else ""
    raise UsageError(f"{field} must be a number such as 1, 0.5 or 1e-9, not {shown(text)}{hint}")


def shown(value: object) -> str:
    """``value`` as a message should show it: a Fraction to six digits, nothing longer than 60 characters."""
    try:
        text = f"{float(value):.6g}" if isinstance(value, Fraction) else repr(value)
    except (OverflowError, ValueError):  # ValueError: an int too long to print
        text = "a number beyond 1e308"
    return text if len(text) <= 60 else text[:57] + "..."
