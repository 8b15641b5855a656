"""How much to spend on every one-way and every pair: one convex program, solved by a water level.

A cell of a pair deviates from independence with variance v = kappa m, m its expected count. Bought with budget
rho (noise variance 1/(2 rho)) and shrunk, its expected absolute error is .8 sqrt(v / (1 + 2 rho v)), and never
more than 2 m: convex and falling in rho with a finite slope at 0, so a pair whose slope there is below the water
level is not bought. An error in a one-way enters every pair of its column. The sum over all of them is least
where every slope equals one level lambda.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from margent.postprocessing.dependence import MEAN_ABSOLUTE, Counts
from margent.schema.domain import Clique

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


def variance_factor(distance: float, expected: Sketch) -> float:
    """kappa such that sum_c min(.8 sqrt(kappa m_c), 2 m_c) is the given distance from independence.

    Units: distance in records. Privacy: none: post-processing.
    """

    def implied(kappa: float) -> float:
        cells = np.minimum(MEAN_ABSOLUTE * np.sqrt(kappa * expected.values), 2 * expected.values)
        return float((expected.weights * cells).sum())

    low, high = 1e-9, 1e8
    if distance <= implied(low):
        return 0.0
    if implied(high) <= distance:
        return high
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if implied(middle) < distance else (low, middle)
    return high


@dataclass(frozen=True, eq=False)
class Program:
    """The program's data: padded arrays, one row a pair, and one number a column.

    Shapes: ``expected`` and ``weights`` (pairs, sketch cells); ``kappas`` (pairs); ``sizes``, ``shares`` and
    ``owned`` (columns): cells of a one-way, how many pairs its error enters, and the budget it has already.
    Units: records; budgets in mu^2/2.
    """

    expected: Counts
    weights: Counts
    kappas: Counts
    sizes: Counts
    shares: Counts
    owned: Counts

    @staticmethod
    def of(
        pairs: Sequence[Clique],
        kappas: Sequence[float],
        sketches: Mapping[str, Sketch],
        total: float,
        columns: Sequence[tuple[float, float, float]],
    ) -> Program:
        """Gather the arrays; ``columns`` lists (cells above noise, pairs entered, budget owned) a column."""
        both = [pair_sketch(sketches[first], sketches[second], total) for first, second in pairs]
        longest = max((each.values.size for each in both), default=1)
        expected, weights = np.zeros((len(both), longest)), np.zeros((len(both), longest))
        for place, each in enumerate(both):
            expected[place, : each.values.size] = each.values
            weights[place, : each.values.size] = each.weights
        sizes, shares, owned = np.array(columns, dtype=np.float64).reshape(-1, 3).T
        return Program(expected, weights, np.array(kappas, dtype=np.float64), sizes, shares, owned)

    def solve(self, budget: float, tolerance: float = 1e-4) -> tuple[Counts, Counts]:
        """Budgets of pairs and of one-ways that make the summed expected error least.

        The level is found by bisection until the budgets add up to within ``tolerance`` of ``budget``, then
        scaled to it exactly.

        Units: mu^2/2. Privacy: none: post-processing.
        """
        if budget <= 0:
            return np.zeros(self.kappas.size), np.zeros(self.sizes.size)
        low, high = 1e-12, 1e30
        pairs, singles = self._at(high, budget)
        for _ in range(200):
            middle = math.sqrt(low * high)
            pairs, singles = self._at(middle, budget)
            spent = float(pairs.sum() + singles.sum())
            if abs(spent - budget) <= tolerance * budget:
                break
            low, high = (middle, high) if spent > budget else (low, middle)
        spent = float(pairs.sum() + singles.sum())
        if spent <= 0:
            whole = self.sizes ** (2 / 3)
            return pairs, budget * whole / whole.sum()
        return pairs * (budget / spent), singles * (budget / spent)

    def _at(self, level: float, budget: float) -> tuple[Counts, Counts]:
        """Budgets at which every slope equals the level (0 where the slope at 0 is lower)."""
        # A one-way's error is .8 k / sqrt(2 rho) in each of the pairs it enters: slope .4 k shares (2)^-.5 rho^-1.5.
        reach = (MEAN_ABSOLUTE / 2 * self.sizes * self.shares / (math.sqrt(2) * level)) ** (2 / 3)
        singles = np.maximum(reach - self.owned, 0.0)
        low, high = np.zeros(self.kappas.size), np.full(self.kappas.size, budget)
        low[self._slopes(high) > level] = budget
        dry = self._slopes(np.zeros(self.kappas.size)) <= level
        for _ in range(30):
            middle = (low + high) / 2
            above = self._slopes(middle) > level
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(dry, 0.0, high), singles

    def _slopes(self, budgets: Counts) -> Counts:
        """-d e / d rho of every pair: sum_c .8 v^1.5 (1 + 2 rho v)^-1.5 over the cells that are not capped."""
        spread = self.kappas[:, np.newaxis] * self.expected
        damping = 1 + 2 * budgets[:, np.newaxis] * spread
        error = MEAN_ABSOLUTE * np.sqrt(spread / damping)
        slopes = MEAN_ABSOLUTE * (spread / damping) * np.sqrt(spread / damping)
        return np.asarray((self.weights * slopes * (error < 2 * self.expected)).sum(axis=1))
