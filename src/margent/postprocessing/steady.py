"""Arithmetic that gives the same bits on any machine: only +, -, *, / and square roots, in a fixed order.

Library exponentials, logarithms and matrix products differ in their last bits between processors and numbers of
threads; a seed could then not promise the same bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Matrix = NDArray[np.float64]

_LOG2 = 0.6931471805599453
_LOG2_HIGH, _LOG2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


@compiled
def exponential(x: float) -> float:
    """e^x for x <= 0 to about 1e-15 relative; 0 below -700.

    Privacy: none: post-processing.
    """
    if x < -700.0:
        return 0.0
    whole = int(np.floor(x / _LOG2 + 0.5))
    rest = x - whole * _LOG2_HIGH - whole * _LOG2_LOW
    total = 1.0
    for term in range(14, 0, -1):
        total = 1.0 + rest * total / term
    half = 1.0
    base = 0.5
    count = -whole
    while count > 0:
        if count & 1:
            half *= base
        base *= base
        count >>= 1
    return total * half if whole <= 0 else total * 2.0


@compiled
def logarithm(x: float) -> float:
    """ln x for x > 0 to about 1e-14 relative.

    Privacy: none: post-processing.
    """
    power = 0
    # Around one, so that nothing cancels just below it.
    while x >= 1.5:
        x *= 0.5
        power += 1
    while x < 0.75:
        x *= 2.0
        power -= 1
    ratio = (x - 1.0) / (x + 1.0)
    square = ratio * ratio
    total = 0.0
    for term in range(27, 0, -2):
        total = total * square + 1.0 / term
    return 2.0 * ratio * total + power * _LOG2


@compiled
def logarithms(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln of every entry of a vector of positive numbers.

    Privacy: none: post-processing.
    """
    result = np.empty(values.size)
    for place in range(values.size):
        result[place] = logarithm(values[place])
    return result


@compiled
def product(left: Matrix, right: Matrix) -> Matrix:
    """The matrix product, summed in order.

    Shapes: (a, b) and (b, c) -> (a, c). Privacy: none: post-processing.
    """
    result = np.zeros((left.shape[0], right.shape[1]))
    for row in range(left.shape[0]):
        for middle in range(left.shape[1]):
            factor = left[row, middle]
            if factor != 0.0:
                for column in range(right.shape[1]):
                    result[row, column] += factor * right[middle, column]
    return result
