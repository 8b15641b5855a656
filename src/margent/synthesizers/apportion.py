"""Whole records from shares: each cell gets its expected count, rounded up or down at random without bias."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def apportion(weights: NDArray[np.float64], rows: int, start: float) -> NDArray[np.int64]:
    """Counts that sum to ``rows``, each the floor or ceiling of rows * weight, with that mean over ``start``.

    Systematic sampling: one uniform ``start`` in [0, 1) places the cuts of all cells.

    Shapes: one weight of at least 0 a cell (all zero: all cells alike); one count a cell.
    Privacy: none: post-processing.

    >>> apportion(np.array([1.0, 2.0, 1.0]), 8, 0.5).tolist()
    [2, 4, 2]
    """
    if weights.size == 0:
        return np.zeros(0, dtype=np.int64)
    mass = float(weights.sum())
    cuts = np.cumsum(weights if mass > 0 else np.ones_like(weights))
    ends = np.floor(cuts * (rows / cuts[-1]) + start).astype(np.int64)
    # Rounding in the line above must not leave the last records to cells of weight 0 at the end.
    ends[cuts == cuts[-1]] = rows
    counts: NDArray[np.int64] = np.diff(np.minimum(ends, rows), prepend=0)
    return counts
