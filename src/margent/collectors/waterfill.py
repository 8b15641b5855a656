"""How much to spend on every one-way and every pair: one program, solved by a water level.

A cell of a pair holds X ~ Gamma(m/kappa, kappa), m its expected count (`postprocessing/departures.py`). With budget
rho (noise variance 1/(2 g rho), g the gain of buying no more than the interaction), drawn to its mean given the
answer, it has an expected absolute error e(rho) left, which falls. For a dense table e is convex with a finite slope at
0, so a pair whose slope there is below the water level is not bought. For a sparse one it first falls where the noise
lets the few full cells stand out, and the lower hull is taken: bought so far or not at all. An error in a one-way
enters every pair of its column. The sum over all of them is least where every slope equals one level lambda.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from margent.compiled import compiled
from margent.postprocessing.departures import error_left, error_table
from margent.postprocessing.dependence import MEAN_ABSOLUTE, Counts

BINS = 12
"""Each column's counts are described by this many weighted values; a pair by at most their products."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """A few weighted values that stand for all counts of a column: value v occurs ``weights`` times.

    Units: records.
    """

    values: Counts
    weights: Counts


def sketch(counts: Counts) -> Sketch:
    """Group a column's sorted counts into at most `BINS` runs of roughly equal mass of square roots.

    Privacy: none: post-processing.
    """
    ordered = np.sort(np.maximum(counts, 0.0))
    if ordered.size <= BINS:
        return Sketch(ordered, np.ones(ordered.size))
    mass = np.cumsum(np.sqrt(ordered) + 1e-9)
    edges = np.searchsorted(mass, mass[-1] * np.arange(1, BINS) / BINS)
    starts = np.unique(np.concatenate([[0], edges]))
    weights = np.diff(np.append(starts, ordered.size)).astype(np.float64)
    return Sketch(np.add.reduceat(ordered, starts) / weights, weights)


def pair_sketch(first: Sketch, second: Sketch, total: float) -> Sketch:
    """The expected counts of a pair under independence.

    Privacy: none: post-processing.
    """
    return Sketch(
        np.outer(first.values, second.values).ravel() / total, np.outer(first.weights, second.weights).ravel()
    )


def stacked(sketches: Sequence[Sketch]) -> tuple[Counts, Counts]:
    """Values and weights of several sketches as padded arrays, one row a sketch; padding has weight 0.

    Privacy: none: post-processing.
    """
    return _rows(sketches, len(sketches), max((each.values.size for each in sketches), default=1))


def stacked_pairs(pairs: Sequence[tuple[Sketch, Sketch]], total: float) -> tuple[Counts, Counts]:
    """`stacked` of the `pair_sketch` of every pair, made one at a time: of hundreds of thousands, none is kept twice.

    Privacy: none: post-processing.
    """
    longest = max((first.values.size * second.values.size for first, second in pairs), default=1)
    return _rows((pair_sketch(first, second, total) for first, second in pairs), len(pairs), longest)


def _rows(sketches: Iterable[Sketch], count: int, longest: int) -> tuple[Counts, Counts]:
    values, weights = np.zeros((count, longest)), np.zeros((count, longest))
    for place, each in enumerate(sketches):
        values[place, : each.values.size] = each.values
        weights[place, : each.values.size] = each.weights
    return values, weights


def variance_factors(distances: Counts, expected: Counts, weights: Counts, most: Counts) -> Counts:
    """kappa of every pair such that the departures of its cells add up to its distance from independence.

    0 where there is no distance; ``most`` where the distance cannot be reached below it.

    Shapes: one row a pair. Units: distances in records. Privacy: none: post-processing.
    """
    factors: Counts = _factors(error_table(), distances, expected, weights, most)
    return factors


@compiled
def _factors(table: Counts, distances: Counts, expected: Counts, weights: Counts, most: Counts) -> Counts:
    factors = np.zeros(distances.size)
    for pair in range(distances.size):
        if distances[pair] <= 0.0:
            continue
        low, high = 1e-9, max(most[pair], 1e-9)
        for _ in range(45):
            middle = math.sqrt(low * high)
            if _error(table, expected[pair], weights[pair], middle, NO_WORD) < distances[pair]:
                low = middle
            else:
                high = middle
        factors[pair] = high
    return factors


def largest_kappa(first: Counts, second: Counts) -> float:
    """The largest kappa that two columns leave room for: their table's summed squares over the records.

    No cell holds more than its row, so they are at most those of a column that decides the other.

    Units: records. Privacy: none: post-processing.
    """
    counts = [np.maximum(each, 0.0) for each in (first, second)]
    return min(float(np.square(each).sum() / max(each.sum(), 1e-300)) for each in counts)


NO_WORD = 1e30
"""Noise so large that an answer says nothing."""


@compiled
def _error(table: Counts, expected: Counts, weights: Counts, kappa: float, noise: float) -> float:
    """What is left of a pair's departures when its cells are seen with noise of this deviation, in records."""
    error = 0.0
    for cell in range(expected.size):
        if weights[cell] > 0.0 and expected[cell] > 0.0:
            error += weights[cell] * expected[cell] * error_left(table, expected[cell] / kappa, noise / kappa)
    return error


GRID = 60
"""Budgets at which every pair's error is tabulated: halves of powers of two below the whole budget."""


@dataclass(frozen=True, eq=False)
class Program:
    """The program's data: one row a pair, one entry a column.

    Shapes: ``expected`` and ``weights`` (pairs, sketch cells); ``kappas`` and ``gains`` (pairs): how many times less
    the noise of a cell varies than that of a whole table; ``sizes``, ``shares`` and ``owned`` (columns): cells of a
    one-way above its noise, how many pairs its error enters, and the budget it has already.
    Units: records; budgets in mu^2/2.
    """

    expected: Counts
    weights: Counts
    kappas: Counts
    gains: Counts
    sizes: Counts
    shares: Counts
    owned: Counts

    def solve(self, budget: float, tolerance: float = 1e-6) -> tuple[Counts, Counts]:
        """Budgets of pairs and of one-ways that make the summed expected error least.

        Errors are tabulated on a grid of budgets, and the lower hull of each pair's is followed (a pair of which the
        first bits of budget tell nothing is bought past them or not at all), read between grid points; the level
        is found by bisection until the budgets add up to within ``tolerance``, then scaled to the whole.

        Units: mu^2/2. Privacy: none: post-processing.
        """
        if budget <= 0:
            return np.zeros(self.kappas.size), np.zeros(self.sizes.size)
        grid = np.append(0.0, budget * np.exp2((np.arange(GRID) - GRID + 1) / 2.0))
        slopes = self.slopes(grid)
        low, high = 1e-12, 1e30
        for _ in range(200):
            middle = math.sqrt(low * high)
            pairs, singles = _bought(slopes, grid, middle), self._owned_more(middle)
            spent = float(pairs.sum() + singles.sum())
            if abs(spent - budget) <= tolerance * budget:
                break
            low, high = (middle, high) if spent > budget else (low, middle)
        if spent <= 0:
            whole = self.sizes ** (2 / 3)
            return pairs, budget * whole / whole.sum()
        return pairs * (budget / spent), singles * (budget / spent)

    def errors(self, budgets: Counts) -> Counts:
        """The expected error of every pair at each of the budgets, in records.

        Shapes: (pairs, budgets). Privacy: none: post-processing.
        """
        found: Counts = _errors_at(error_table(), self.expected, self.weights, self.kappas, self.gains, budgets)
        return found

    def slopes(self, grid: Counts) -> Counts:
        """-d e / d rho of every pair's lower hull between budgets, falling along each row.

        Shapes: (pairs, budgets - 1). Privacy: none: post-processing.
        """
        found: Counts = _hulls(self.errors(grid), grid)
        return found

    def _owned_more(self, level: float) -> Counts:
        """What each one-way needs beyond what it has until its slope is the level.

        Its error .8 k / sqrt(2 rho) enters ``shares`` pairs: slope .4 k shares / sqrt 2 rho^-1.5.
        """
        reach = (MEAN_ABSOLUTE / 2 * self.sizes * self.shares / (math.sqrt(2) * level)) ** (2 / 3)
        return np.asarray(np.maximum(reach - self.owned, 0.0))


@compiled
def _errors_at(
    table: Counts, expected: Counts, weights: Counts, kappas: Counts, gains: Counts, budgets: Counts
) -> Counts:
    found = np.zeros((kappas.size, budgets.size))
    for pair in range(kappas.size):
        if kappas[pair] > 0.0:
            for place in range(budgets.size):
                rho = gains[pair] * budgets[place]
                noise = 1.0 / math.sqrt(2.0 * rho) if rho > 0.0 else NO_WORD
                found[pair, place] = _error(table, expected[pair], weights[pair], kappas[pair], noise)
    return found


@compiled
def _hulls(errors: Counts, grid: Counts) -> Counts:
    """Slopes of the greatest convex line below each row: neighbors are pooled until slopes fall."""
    slopes = np.zeros((errors.shape[0], grid.size - 1))
    ends, steep = np.zeros(grid.size, np.int64), np.zeros(grid.size)
    for pair in range(errors.shape[0]):
        blocks = 0
        for place in range(grid.size - 1):
            start = place
            slope = (errors[pair, place] - errors[pair, place + 1]) / (grid[place + 1] - grid[place])
            while blocks > 0 and steep[blocks - 1] <= slope:
                blocks -= 1
                start = ends[blocks - 1] if blocks > 0 else 0
                slope = (errors[pair, start] - errors[pair, place + 1]) / (grid[place + 1] - grid[start])
            steep[blocks], ends[blocks] = slope, place + 1
            blocks += 1
        start = 0
        for block in range(blocks):
            slopes[pair, start : ends[block]] = max(steep[block], 0.0)
            start = ends[block]
    return slopes


@compiled
def _bought(slopes: Counts, grid: Counts, level: float) -> Counts:
    """Budgets at which the hulls' slopes fall to the level, linear in the logarithms between stretches of one slope.

    A stretch's slope is that of its middle; but the first, from nothing on, is bought whole or not at all.
    """
    found = np.zeros(slopes.shape[0])
    steps = slopes.shape[1]
    for pair in range(slopes.shape[0]):
        end = 0
        while end < steps and slopes[pair, end] >= level:
            end += 1
        if end == 0:
            continue
        start, after, last = end - 1, end + 1, slopes[pair, end - 1]
        while start > 0 and slopes[pair, start - 1] == last:
            start -= 1
        found[pair] = math.sqrt(grid[start] * grid[end]) if start > 0 else grid[end]
        if end < steps and slopes[pair, end] > 0.0:
            lower = slopes[pair, end]
            while after < steps and slopes[pair, after] == lower:
                after += 1
            share = math.log(last / level) / math.log(last / lower)
            found[pair] *= (math.sqrt(grid[end] * grid[after]) / found[pair]) ** share
    return found
