"""The standard normal tail Q(x) = Pr[N(0, 1) > x] and its inverse to 320 bits, and rounding against us.

Works in an mpmath context of its own, one a thread, so that neither the caller's precision nor another
thread can change a digit. What leaves this module is a Fraction, rounded in a stated direction after a margin
of 2^-180, which covers the arithmetic's own error (about 2^-300, or 2^-200 where a formula cancels). Prices
and totals keep 80 bits, since they are added up and printed; a stated epsilon keeps 160, and a total gives up
2^-79, so that what a budget's total converts back to is never more than its epsilon.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import Any

Real = Any
"""An mpmath number of this module's context (mpmath carries no types)."""

PRECISION_BITS = 320
PRICE_BITS = 80
EPSILON_BITS = 160
MARGIN = Fraction(1, 2**180)
TOTAL_GIVES_UP = Fraction(1, 2**79)

_contexts = threading.local()


def context() -> Any:
    """This thread's mpmath context of 320 bits; never the global ``mpmath.mp``."""
    if not hasattr(_contexts, "mine"):
        from mpmath import MPContext

        _contexts.mine = MPContext()
        _contexts.mine.prec = PRECISION_BITS
    return _contexts.mine


def real(value: Fraction | int) -> Real:
    """An exact number as a 320-bit one."""
    return context().mpf(value.numerator) / value.denominator


def upper_tail(x: Real) -> Real:
    """Q(x) = Pr[N(0, 1) > x] = erfc(x / sqrt 2) / 2, to full relative precision far into the tail.

    >>> float(upper_tail(real(2)))
    0.02275013194817921
    """
    mp = context()
    return mp.erfc(x / mp.sqrt(2)) / 2


def mills_ratio(x: float) -> float:
    """Q(x) over the normal density at x > -1, in floats: a relative error of x^2 2^-52 or so.

    >>> round(mills_ratio(2), 9)
    0.421369229
    """
    if x < 36:  # beyond, erfc underflows
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    square = x * x
    return (1 - (1 - (3 - (15 - 105 / square) / square) / square) / square) / x


def upper_tail_inverse(tail: Real) -> Real:
    """The x with Q(x) = ``tail``, for a tail in (0, 1/2]: Newton's method on ln Q, which is concave.

    >>> float(upper_tail_inverse(upper_tail(real(3))))
    3.0
    """
    mp = context()
    target = mp.log(tail)
    far = mp.sqrt(-2 * target)
    x = mp.mpf(-NormalDist().inv_cdf(float(tail))) if target > -600 else far - mp.log(far * 2.5) / far
    for _ in range(60):
        value = upper_tail(x)
        hazard = mp.exp(-x * x / 2) / (mp.sqrt(2 * mp.pi) * value)
        step = (mp.log(value) - target) / hazard
        x += step
        if abs(step) < mp.ldexp(1 + abs(x), -PRECISION_BITS // 2 - 20):
            return x  # quadratic convergence: the next step would be below the last bit
    raise AssertionError("Newton's method on the normal tail must converge")  # pragma: no cover


def rounded_up(x: Real, bits: int = PRICE_BITS) -> Fraction:
    """A rational of about ``bits`` bits that is at least ``x`` > 0, and at most 1 + 2^(2 - bits) times it."""
    value = _exactly(x) * (1 + MARGIN)
    unit = _unit(value, bits)
    return (value / unit).__ceil__() * unit


def rounded_down(x: Real) -> Fraction:
    """A rational of about 80 bits between 1 - 2^-77 and 1 - 2^-79 times ``x`` > 0."""
    value = _exactly(x) * (1 - TOTAL_GIVES_UP)
    unit = _unit(value, PRICE_BITS)
    return (value / unit).__floor__() * unit


def first_safe(value: Fraction, safe: Callable[[Fraction], bool], *, up: bool, bits: int) -> Fraction:
    """``value`` > 0 if it is safe, else the first safe number 1, 3, 7, ... units of its last bit up or down.

    The last word on every stated figure: whatever root finding did, what is returned has been checked.
    """
    step = _unit(value, bits) if up else -_unit(value, bits)
    while not safe(value):
        value += step
        step *= 2
    return value


def root(rising: Callable[[Real], tuple[Real, Real]], guess: Real, low: Real, high: Real) -> Real:
    """A point close to where ``rising`` (value and slope) crosses zero between ``low`` and ``high``: Newton's method.

    It starts at ``guess``; a step out of the bounds known by then goes to their middle instead. After a step of 2^-90
    the error is of the order of its square, below the last bit of any figure, wherever it started.

    Only a very good guess: whoever states a figure checks it, see `first_safe`.
    """
    mp = context()
    for _ in range(300):
        value, slope = rising(guess)
        low, high = (guess, high) if value < 0 else (low, guess)
        following = guess - value / slope if slope > 0 else low
        if value == 0 or abs(following - guess) < mp.ldexp(abs(guess), -90):
            return following
        guess = following if low < following < high else (low + high) / 2
    return guess  # pragma: no cover (a root next to 0, which no budget has)


def _exactly(x: Real) -> Fraction:
    mantissa, exponent = x.man_exp
    if not x > 0:
        raise AssertionError("only positive numbers are stated")  # pragma: no cover
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _unit(value: Fraction, bits: int) -> Fraction:
    return Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - bits)
