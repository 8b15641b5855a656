"""How much to spend on every one-way and every pair: one convex program, solved by a water level.

A cell of a pair deviates from independence with variance v = kappa m, m its expected count. Bought with budget
rho (noise variance 1/(2 g rho), g the gain of buying no more than the interaction) and shrunk, its expected absolute
error is .8 sqrt(v / (1 + 2 g rho v)), and never more than 2 m: convex and falling in rho with a finite
slope at 0, so a pair whose slope there is below the water level is not bought. An error in a one-way enters every pair
of its column. The sum over all of them is least where every slope equals one level lambda.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

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


def variance_factors(distances: Counts, expected: Counts, weights: Counts) -> Counts:
    """kappa of every pair such that sum_c min(.8 sqrt(kappa m_c), 2 m_c) is its distance from independence.

    0 where there is no distance; the largest kappa there is where the distance cannot be reached.

    Shapes: one row a pair. Units: distances in records. Privacy: none: post-processing.
    """
    factors = np.zeros(distances.size)
    for part in _blocks(distances.size):
        aim, most, weight = distances[part], 2 * expected[part], weights[part]
        roots = MEAN_ABSOLUTE * np.sqrt(expected[part])
        low, high = np.full(aim.size, 1e-9), np.full(aim.size, 1e8)
        for _ in range(45):
            middle = np.sqrt(low * high)
            implied = (weight * np.minimum(np.sqrt(middle)[:, np.newaxis] * roots, most)).sum(axis=1)
            low, high = np.where(implied < aim, middle, low), np.where(implied < aim, high, middle)
        factors[part] = np.where(aim > 0, high, 0.0)
    return factors


_BLOCK = 2048
"""Pairs worked on at a time: what is computed of them in between stays in the processor's cache."""


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


GRID = 60
"""Budgets at which every pair's slope is tabulated: halves of powers of two below the whole budget."""


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

        Slopes are tabulated on a grid of budgets, made to fall (where the cap 2 m makes them rise, a pair is
        bought past the rise or not at all), and read between grid points; the level is found by bisection until
        the budgets add up to within ``tolerance``, then scaled to the whole.

        Units: mu^2/2. Privacy: none: post-processing.
        """
        if budget <= 0:
            return np.zeros(self.kappas.size), np.zeros(self.sizes.size)
        grid = budget * np.exp2(-np.arange(GRID) / 2.0)
        slopes = np.stack([self._slopes(spent) for spent in grid], axis=1)
        slopes = np.maximum.accumulate(slopes, axis=1)
        low, high = 1e-12, 1e30
        for _ in range(200):
            middle = math.sqrt(low * high)
            pairs, singles = self._bought(slopes, grid, middle), self._owned_more(middle)
            spent = float(pairs.sum() + singles.sum())
            if abs(spent - budget) <= tolerance * budget:
                break
            low, high = (middle, high) if spent > budget else (low, middle)
        if spent <= 0:
            whole = self.sizes ** (2 / 3)
            return pairs, budget * whole / whole.sum()
        return pairs * (budget / spent), singles * (budget / spent)

    def _owned_more(self, level: float) -> Counts:
        """What each one-way needs beyond what it has until its slope is the level.

        Its error .8 k / sqrt(2 rho) enters ``shares`` pairs: slope .4 k shares / sqrt 2 rho^-1.5.
        """
        reach = (MEAN_ABSOLUTE / 2 * self.sizes * self.shares / (math.sqrt(2) * level)) ** (2 / 3)
        return np.asarray(np.maximum(reach - self.owned, 0.0))

    @staticmethod
    def _bought(slopes: Counts, grid: Counts, level: float) -> Counts:
        """Budgets at which the tabulated slopes equal the level, linear in the logarithms between grid points."""
        above = slopes > level
        place = np.argmax(above, axis=1)
        rows = np.arange(slopes.shape[0])
        dry, first = ~above.any(axis=1), place == 0
        upper = np.maximum(slopes[rows, place], 1e-300)
        lower = np.maximum(slopes[rows, np.maximum(place - 1, 0)], 1e-300)
        share = np.where(
            dry | first | (upper <= lower), 0.0, np.log(upper / level) / np.maximum(np.log(upper / lower), 1e-300)
        )
        return np.where(dry, 0.0, grid[place] * np.exp2(np.clip(share, 0.0, 1.0) / 2))

    def _slopes(self, budget: float) -> Counts:
        """-d e / d rho of every pair: sum_c .8 g v^1.5 (1 + 2 g rho v)^-1.5 over the cells that are not capped."""
        uncapped = np.zeros(self.kappas.size)
        for part in _blocks(self.kappas.size):
            expected = self.expected[part]
            spread = self.kappas[part, np.newaxis] * expected
            damped = spread / (1 + 2 * budget * self.gains[part, np.newaxis] * spread)
            root = np.sqrt(damped)
            uncapped[part] = (self.weights[part] * damped * root * (root < 2.5 * expected)).sum(axis=1)
        return np.asarray(self.gains * uncapped * MEAN_ABSOLUTE)
