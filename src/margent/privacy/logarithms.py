"""Natural logarithms of whole numbers as whole numbers of 2^-64: the same on every machine, with a stated error."""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LOG_BITS = 64
"""Logarithms are counted in units of 2^-64."""

# `decimal` rounds ln correctly, whatever the machine; 32 digits reach far below 2^-64 for any count.
_DIGITS = Context(prec=32)
_UNIT = Decimal(2**LOG_BITS)
_LISTED = 4096


def fixed_log(number: int) -> int:
    """ln x in units of 2^-64, within one unit, for x = 1 .. 2^63.

    Privacy: private where ``number`` is; nothing of it is kept.

    >>> fixed_log(1), round(fixed_log(2) / 2**64, 12)
    (0, 0.69314718056)
    """
    return _listed()[number] if number < _LISTED else _log(number)


def sum_of_x_log_x(counts: NDArray[np.int64]) -> int:
    """Sum of x ln x over the counts (0 where x = 0) in units of 2^-64, within one unit a record.

    Shapes: ``counts`` of any shape, in; one whole number, out.
    Privacy: private.

    >>> round(sum_of_x_log_x(np.array([0, 1, 2, 2])) / 2**64, 12)  # 4 ln 2
    2.77258872224
    """
    values, times = np.unique(counts[counts > 1], return_counts=True)
    pairs = zip(values.tolist(), times.tolist(), strict=True)
    return sum(often * value * fixed_log(value) for value, often in pairs)


def _log(number: int) -> int:
    return int(_DIGITS.to_integral_value(_DIGITS.multiply(_DIGITS.ln(Decimal(number)), _UNIT)))


@lru_cache(maxsize=1)
def _listed() -> tuple[int, ...]:
    """The small ones, made all at once, so that which of them are there says nothing about the counts."""
    return (0, *(_log(number) for number in range(1, _LISTED)))
