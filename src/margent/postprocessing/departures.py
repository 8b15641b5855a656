"""How far the cells of a table depart from what is expected, as one law for dense and for sparse tables.

A cell that m records are expected in holds X ~ Gamma(shape m/kappa, scale kappa): mean m, variance kappa m. Where
m is large against kappa that is nearly a normal law around m. Where m is small against it nearly all cells hold
nothing and about one in kappa/m holds about kappa records, as in the table of two columns of which one tells the other.
Seen with noise, a normal law is drawn towards its mean; of the other kind, what stands out of the noise is kept as it
is and the rest is nothing. The mean given the noisy count does both, and whatever lies between.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.postprocessing.steady import exponential

Counts = NDArray[np.float64]

MANY = 30.0
"""Shape from which on, or noise distance `FAR` from which on, two terms about the mode are the mean (1e-4 of it)."""
FAR = 5.0
DENSE = 1e6
"""Noise over kappa from which on a cell is taken to be normal."""
LEAST = 1e-300
"""Shapes below are taken for this one: their inverse would leave the range of numbers."""
_TERMS = 200
_STEPS = 40


@compiled
def mean_above_zero(shape: float, height: float) -> float:
    """int x^a e^(-(x - z)^2/2) dx / int x^(a-1) e^(-(x - z)^2/2) dx over x > 0: a mean in standard deviations.

    It is that of Gamma(shape a, scale k) seen as y with noise of deviation 1, at z = y - 1/k. For z < 0 by the
    recurrence r(a) = a / (r(a + 1) - z) downwards, for z > 0 by the power series in z, all of whose terms are
    positive; far out by the mode, with what lies at 0.

    Units: standard deviations of the noise. Privacy: none: post-processing.
    """
    a, z = shape, height
    if z > FAR or a > MANY:
        root = math.sqrt(z * z + 4.0 * (a - 1.0))
        # Far below 0 the sum of both would cancel.
        mode = (z + root) / 2.0 if z > 0.0 else 2.0 * (a - 1.0) / (root - z)
        bend = 1.0 + (a - 1.0) / (mode * mode)
        mean = mode + (a - 1.0) / (mode * mode * mode * bend * bend)
        if a < 0.5:
            # At 0 lies e^(-z^2/2)/a beside the hump's sqrt(2 pi)/z (1 + 1/z^2 + 3/z^4 + 15/z^6 + 105/z^8).
            w = 1.0 / (z * z)
            hump = 1.0 + w * (1.0 + w * (3.0 + w * (15.0 + w * 105.0)))
            mean /= 1.0 + exponential(-z * z / 2.0) * z / (a * 2.5066282746310002 * hump)
        return mean
    if z <= 0.0:
        top = a + _STEPS
        ratio = (z + math.sqrt(z * z + 4.0 * top - 2.0)) / 2.0
        for step in range(_STEPS - 1, -1, -1):
            ratio = (a + step) / (ratio - z)
        return ratio
    # The mean at z = 0, sqrt(2) Gamma((a + 1)/2) / Gamma(a/2), by steps of two from its expansion at a + 40.
    top = a + _STEPS
    start = math.sqrt(top) * (1.0 - 1.0 / (4.0 * top) + 1.0 / (32.0 * top * top))
    for step in range(_STEPS - 2, -1, -2):
        start *= (a + step) / (a + step + 1.0)
    even, odd = 1.0, z * start
    below, above = even + odd, start
    for n in range(2, _TERMS):
        even, odd = odd, even * z * z * (a + (n - 2.0)) / ((n - 1.0) * n)
        below += odd
        above += n * odd / z
        if n * odd < 1e-17 * above * z:
            break
    return above / below


@compiled
def expected_given(values: Counts, prior: Counts, kappas: Counts, variances: Counts) -> Counts:
    """The mean of every cell given its noisy count; its prior where that or kappa is 0.

    Shapes: all (c,). Units: records. Privacy: none: post-processing.
    """
    found = np.empty(values.size)
    for cell in range(values.size):
        kappa, mean, deviation = kappas[cell], prior[cell], math.sqrt(variances[cell])
        if kappa <= 0.0 or mean <= 0.0:
            found[cell] = mean
        elif deviation <= 0.0:
            found[cell] = max(values[cell], 0.0)
        elif deviation > DENSE * kappa:
            # So dense that a normal law is the same, and its numbers do not overflow.
            share = kappa * mean / (kappa * mean + deviation * deviation)
            found[cell] = max(mean + share * (values[cell] - mean), 0.0)
        else:
            height = values[cell] / deviation - deviation / kappa
            found[cell] = deviation * mean_above_zero(max(mean / kappa, LEAST), height)
    return found


# ln of the shape, and of the noise over kappa, at which the error is tabulated.
_SHAPES, _NOISES, _STEP = -9.0, -5.0, 0.5
_SHAPE_STEPS, _NOISE_STEPS = 28, 22
_LESS = math.exp(-_STEP)


@lru_cache(maxsize=1)
def error_table() -> Counts:
    """E|X - X'| / m by ln shape and ln noise, X' the mean given the noisy count: for `error_left`.

    Privacy: none: no data.
    """
    found = np.empty((_SHAPE_STEPS + 1, _NOISE_STEPS + 1))
    for row in range(_SHAPE_STEPS + 1):
        shape = math.exp(_SHAPES + _STEP * row)
        counts, chances = _gamma_law(shape)
        for column in range(_NOISE_STEPS + 1):
            found[row, column] = _mean_error(shape, counts, chances, math.exp(_NOISES + _STEP * column))
    found.flags.writeable = False
    return found


def _gamma_law(shape: float) -> tuple[Counts, Counts]:
    """Gamma(shape, 1) as weighted points: 0, and logarithms in equal steps."""
    ends = (-12.0, math.log(shape + 12 * math.sqrt(shape) + 30))
    steps = np.linspace(*ends, int((ends[1] - ends[0]) / min(0.15, 0.4 / math.sqrt(shape))) + 2)
    counts = np.exp(steps)
    chances = np.exp(shape * steps - counts - math.lgamma(shape)) * (steps[1] - steps[0])
    seen = chances > 1e-7 * chances.max()
    counts, chances = np.append(0.0, counts[seen]), np.append(max(1.0 - chances.sum(), 0.0), chances[seen])
    return counts, chances / chances.sum()


@compiled
def _mean_error(shape: float, counts: Counts, chances: Counts, noise: float) -> float:
    """E|X - X'| / shape over the points and normal noise in steps of .4 deviations."""
    error = 0.0
    for point in range(counts.size):
        for step in range(-15, 16):
            height = (counts[point] / noise + 0.4 * step) - noise
            left = abs(counts[point] - noise * mean_above_zero(shape, height))
            error += chances[point] * math.exp(-0.08 * step * step) * left
    return error * 0.4 / (2.5066282746310002 * shape)


@compiled
def error_left(table: Counts, shape: float, noise: float) -> float:
    """E|X - X'| / m for X ~ Gamma(shape, 1), m = shape, seen with noise of so many kappas: 2 down to 0.

    ``table``: `error_table`'s. Privacy: none: post-processing.
    """
    across = (math.log(max(noise, 1e-300)) - _NOISES) / _STEP
    down = (math.log(max(shape, 1e-300)) - _SHAPES) / _STEP
    if down >= _SHAPE_STEPS:
        spread = noise * noise / (noise * noise + shape)
        return math.sqrt(spread / shape) * 0.7978845608028654
    row = int(max(down, 0.0))
    below = min(max(down - row, 0.0), 1.0)
    column = int(min(max(across, 0.0), _NOISE_STEPS - 1.0))
    right = min(max(across - column, 0.0), 1.0)
    # A cubic through four noises, so that slopes have no kinks.
    far = 1.0 - right
    before = (-0.5 * right) * far * far
    first = far * (1.0 + right * (1.0 - 1.5 * right))
    second = right * (1.0 + far * (1.0 - 1.5 * far))
    after = (-0.5 * far) * right * right
    error = 0.0
    for place, weight in ((row, 1.0 - below), (row + 1, below)):
        error += weight * (
            before * (table[place, column - 1] if column > 0 else table[place, 0] * _LESS)
            + first * table[place, column]
            + second * table[place, column + 1]
            + after * table[place, min(column + 2, _NOISE_STEPS)]
        )
    # Below the table's least noise the error is in proportion to the noise.
    return error * (math.exp(across * _STEP) if across < 0.0 else 1.0)
