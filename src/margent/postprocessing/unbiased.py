"""The best unbiased table over some columns from all noisy answers that tell about them, with its exact variance.

A table over columns Q is a sum of components, one for each subset T of Q: what the margin over T says beyond the
margins over its own subsets. Answers whose cells all have the same noise tell a component with independent errors for
each T, so the best estimate of each is the mean by precision of the answers that hold T, and all such tables, of
whatever columns, agree with each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Clique

Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EvenTable:
    """Noisy counts over a clique whose cells all have the same variance and independent noise.

    Units: records; ``variance`` in records squared.
    """

    clique: Clique
    values: Counts
    variance: float

    def onto(self, names: Clique) -> EvenTable:
        """The table summed onto some of its columns: each cell has the noise of all cells in it."""
        if names == self.clique:
            return self
        others = tuple(axis for axis, name in enumerate(self.clique) if name not in names)
        cells = math.prod(self.values.shape[axis] for axis in others)
        return EvenTable(names, self.values.sum(axis=others), self.variance * cells)


@dataclass(frozen=True, eq=False)
class Unbiased:
    """An unbiased table and the variance of each of its cells, the same for all.

    Units: records; ``variance`` in records squared.
    """

    values: Counts
    variance: float


def _precise_mean(tables: Sequence[EvenTable]) -> EvenTable:
    """The mean of tables of one clique by precision. Privacy: none: post-processing."""
    precision = sum(1.0 / table.variance for table in tables)
    values = np.sum([table.values / table.variance for table in tables], axis=0) / precision
    return EvenTable(tables[0].clique, values, 1.0 / precision)


def best_unbiased(sizes: Mapping[str, int], tables: Mapping[Clique, Sequence[EvenTable]]) -> Unbiased:
    """The table over the columns of ``sizes`` whose component over each subset is the best that the tables tell.

    x = sum_T prod_(j in T) (I - mean_j) y_T prod_(j not in T) 1/k_j, y_T the mean by precision of ``tables[T]``, and
    the variance of a cell is sum_T u_T prod_(j in T) (1 - 1/k_j) prod_(j not in T) 1/k_j^2, u_T that of y_T.

    Shapes: ``sizes`` of the q columns, in the order of the axes; ``tables[T]`` for every T of the 2^q subsets, each
    sorted like ``sizes``, at least one table over T.
    Units: records.
    Privacy: none: post-processing.
    Source: the least-squares estimate of Gauss and Markov, in the components of ResidualPlanner (Xiao et al. 2023).
    """
    names = tuple(sizes)
    shape = tuple(sizes.values())
    values, variance = np.zeros(shape), 0.0
    for count in range(len(names) + 1):
        for subset in combinations(names, count):
            mean = _precise_mean(tables[subset])
            part, share = mean.values, 1.0
            for axis, name in enumerate(subset):
                part = part - part.mean(axis=axis, keepdims=True)
                share *= 1.0 - 1.0 / sizes[name]
            for name in names:
                share /= 1 if name in subset else sizes[name] ** 2
            spread = math.prod(size for name, size in sizes.items() if name not in subset)
            values += part.reshape([sizes[name] if name in subset else 1 for name in names]) / spread
            variance += mean.variance * share
    return Unbiased(values, variance)
