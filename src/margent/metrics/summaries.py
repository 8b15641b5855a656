"""One pass over all k-way tables, kept as a few numbers a table: most metrics are means of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import Column
from margent.metrics.metric import NotComputableError
from margent.schema.domain import Clique

if TYPE_CHECKING:
    from margent.metrics.study import Study

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Summaries:
    """A few numbers about each chosen k-way table.

    Shapes: ``l1`` and ``l2`` are (tables, cliques), distances from the real table in shares of the rows. For
    pairs, ``entropy`` is (1 + tables, cliques), the joint entropy in bits, the real table first, and
    ``association`` likewise. Pairs too large for axes are NaN in ``association``.
    ``possible`` is how many cliques there are.
    Privacy: exact functions of the real table: INTERNAL.
    """

    cliques: tuple[Clique, ...]
    possible: int
    l1: Numbers
    l2: Numbers
    entropy: Numbers
    association: Numbers


def distances(real: Counts, other: Counts) -> tuple[float, float]:
    """|p - q|_1 and |p - q|_2 of the shares p, q of two tables of counts.

    Two empty tables are equal; an empty one is as far as can be from any other (2 and the square root of 2).
    Units: shares of the rows; L1 in [0, 2].

    >>> distances(np.array([3, 1]), np.array([1, 1]))
    (0.5, 0.3535533905932738)
    """
    n, m = int(real.sum()), int(other.sum())
    if n == 0 or m == 0:
        return (0.0, 0.0) if n == m else (2.0, float(np.sqrt(2)))
    gap = real.ravel() / n - other.ravel() / m
    return float(np.abs(gap).sum()), float(np.sqrt(np.dot(gap, gap)))


def entropy(counts: Counts) -> float:
    """-sum p log2 p of the shares p of a table; 0 for an empty one.

    Units: bits.

    >>> entropy(np.array([[1, 1], [2, 0]]))
    1.5
    """
    total = int(counts.sum())
    if total == 0:
        return 0.0
    shares = counts[counts > 0] / total
    return max(0.0, float(-np.dot(shares, np.log2(shares))))


def association(counts: Counts, first: Column, second: Column) -> float:
    """How strongly two columns depend: Pearson's r of the codes of two ordinal columns, else Cramér's V.

    Pearson's r leaves out rows where either has no value on its axis. 0 where it is undefined (a constant
    column, no rows).
    Units: r in [-1, 1], V in [0, 1].

    >>> one = Column("a", 2, 2, True, ("0", "1"))
    >>> association(np.array([[2, 0], [0, 2]]), one, one)
    1.0
    """
    if first.ordinal and second.ordinal:
        return _pearson(counts[: first.inner, : second.inner].astype(np.float64))
    return _cramer(counts)


def _pearson(counts: Numbers) -> float:
    total = counts.sum()
    if total == 0:
        return 0.0
    rows, columns = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    x, y = np.arange(rows.size, dtype=np.float64), np.arange(columns.size, dtype=np.float64)
    x, y = x - rows @ x, y - columns @ y
    spread = (rows @ x**2) * (columns @ y**2)
    if spread <= 0:
        return 0.0
    return float(np.clip((x @ counts @ y) / total / np.sqrt(spread), -1.0, 1.0))


def _cramer(counts: Counts) -> float:
    total = int(counts.sum())
    if total == 0:
        return 0.0
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    counts = counts[rows > 0][:, columns > 0]
    rows, columns = rows[rows > 0].astype(np.float64), columns[columns > 0].astype(np.float64)
    least = min(rows.size, columns.size) - 1
    if least == 0:
        return 0.0
    # chi^2 / n = sum counts^2 / (row * column) - 1
    excess = float((counts.astype(np.float64) ** 2 / rows[:, None] / columns).sum()) - 1
    return float(np.sqrt(np.clip(excess / least, 0.0, 1.0)))


def summarize(study: Study, k: int) -> Summaries:
    """Count all chosen k-way tables once and keep their summaries.

    Raises: NotComputableError when there are fewer than k columns.
    """
    if len(study.columns) < k:
        raise NotComputableError(f"it needs {k} columns, and the tables share {len(study.columns)}")
    cliques = study.cliques(k)
    shape = (len(study.tables), len(cliques))
    l1, l2 = np.zeros(shape), np.zeros(shape)
    bits = np.zeros((1 + shape[0], shape[1])) if k <= 2 else np.zeros((0, 0))
    strength = np.full((1 + shape[0], shape[1]), np.nan) if k == 2 else np.zeros((0, 0))
    for place, (clique, real, others) in enumerate(study.counted(cliques)):
        for number, other in enumerate(others):
            l1[number, place], l2[number, place] = distances(real, other)
        every: Sequence[Counts] = (real, *others)
        if k <= 2:
            bits[:, place] = [entropy(each) for each in every]
        if k == 2 and real.ndim == 2:
            first, second = (study.by_name[name] for name in clique)
            strength[:, place] = [association(each, first, second) for each in every]
    return Summaries(cliques, math.comb(len(study.columns), k), l1, l2, bits, strength)
