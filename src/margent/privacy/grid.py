"""The public grid of noise scales: s^2 = (1 + r/1024) 2^(q - 4), r in 0..1023, q = 0, 1, 2, ...

Every discrete Gaussian is drawn at a scale of this grid, rounded up from whatever the allocation asked for.
The grid is fixed here, before any data is seen, so that samplers can be kept between draws and so that the
price of every scale up to 64 could be verified one by one (`margent.privacy.gdp`). A step changes s^2 by
less than one part in a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from margent.errors import UsageError

FLOOR = Fraction(1, 16)
STEPS_AN_OCTAVE = 1024


def point(index: int) -> Fraction:
    """The grid's scale s^2 number ``index``, counted from the floor 1/16 upwards; there is no last one.

    >>> [str(point(index)) for index in (0, 1, 1024, 4096)]
    ['1/16', '1025/16384', '1/8', '1']
    """
    if index < 0:
        raise UsageError(f"the scale grid starts at index 0 (s^2 = {FLOOR}), there is no index {index}")
    octave, step = divmod(index, STEPS_AN_OCTAVE)
    return FLOOR * Fraction((STEPS_AN_OCTAVE + step) << octave, STEPS_AN_OCTAVE)


def index_above(scale_squared: Fraction) -> int:
    """The least index whose point is at least ``scale_squared``; 0 for anything at or below the floor.

    Raises: UsageError for what is not an exact number above zero.
    """
    if isinstance(scale_squared, bool) or not isinstance(scale_squared, Fraction | int) or scale_squared <= 0:
        raise UsageError(f"a noise scale s^2 must be an exact Fraction above 0, not {scale_squared!r}")
    ratio = scale_squared / FLOOR
    if ratio <= 1:
        return 0
    octave = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    if ratio.numerator < ratio.denominator << octave:
        octave -= 1
    excess = ratio / (1 << octave) - 1  # in [0, 1)
    return octave * STEPS_AN_OCTAVE - (-excess * STEPS_AN_OCTAVE).__floor__()


def round_up(scale_squared: Fraction) -> Fraction:
    """The smallest grid scale s^2 that is at least ``scale_squared``, exactly.

    Units: whatever unit the noise is added in, squared.
    Privacy: none: public arithmetic.

    >>> round_up(Fraction(30)), round_up(Fraction(3001, 100)), round_up(Fraction(1, 1000))
    (Fraction(30, 1), Fraction(1921, 64), Fraction(1, 16))
    """
    return point(index_above(scale_squared))


def on_grid(scale_squared: Fraction) -> bool:
    """Whether ``scale_squared`` is itself a point of the grid."""
    return round_up(scale_squared) == scale_squared


def first_fitting(start: Fraction, fits: Callable[[Fraction], bool]) -> Fraction:
    """The smallest grid scale at or above ``start`` that fits, for a condition that larger scales keep.

    Gallops up from ``start`` and then bisects, so a good start costs one or two evaluations.
    """
    low = index_above(start)
    if fits(point(low)):
        return point(low)
    stride = 1
    while not fits(point(low + stride)):
        low, stride = low + stride, 2 * stride
    high = low + stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(point(middle)) else (middle, high)
    return point(high)
