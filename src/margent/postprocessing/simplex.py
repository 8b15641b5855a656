"""Projection of noisy tables onto {x >= 0, sum x = total}: the nearest one, and the one that keeps peaks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Projection = Callable[[NDArray[np.float64], float], NDArray[np.float64]]
"""A map from noisy cells and a total to cells of at least 0 with that sum."""


def norm_sub(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """x = max(v - t, 0) with t such that sum x = total: the nearest point of the simplex in least squares.

    Shapes: any shape; the result has the same one.
    Units: records. A total of 0 or less gives zeros.
    Privacy: none: post-processing.
    Source: Held, Wolfe and Crowder 1974; "norm-sub" in PrivSyn 2021 and Wang et al. 2020.

    >>> norm_sub(np.array([3.0, 1.0, -2.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    flat = values.ravel()
    if flat.size == 0 or total <= 0:
        return np.zeros_like(values)
    descending = np.sort(flat)[::-1]
    # t if only the j largest cells stayed above 0; the true t is the one of the last j that it leaves above.
    shifts = (np.cumsum(descending) - total) / np.arange(1, flat.size + 1)
    # A total too small to be seen next to the largest value goes to that value: then no place passes the comparison.
    kept = int(np.flatnonzero(descending > shifts).max(initial=0))
    projected: NDArray[np.float64] = np.maximum(values - shifts[kept], 0.0)
    return projected


def norm_cut(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Set negative cells to 0, then the smallest positive ones, until the sum is the total; peaks stay.

    Where clipping leaves less than the total, the positive cells are scaled up (all cells alike if there are
    none).

    Shapes: any shape; the result has the same one.
    Units: records. A total of 0 or less gives zeros.
    Privacy: none: post-processing.
    Source: "norm-cut" in PrivSyn 2021 and Wang et al. 2020.

    >>> norm_cut(np.array([5.0, 1.0, 2.0, -2.0]), 6.0).tolist()
    [5.0, 0.0, 1.0, 0.0]
    """
    flat = np.maximum(values.ravel(), 0.0)
    if flat.size == 0 or total <= 0:
        return np.zeros_like(values)
    mass = float(flat.sum())
    if mass <= 0:
        return np.full_like(values, total / flat.size)
    if mass <= total:
        return (flat * (total / mass)).reshape(values.shape)
    order = np.argsort(flat, kind="stable")
    ascending = flat[order]
    # What the cells from the largest down to this one sum to; a cell keeps what then still fits in the total.
    from_top = np.cumsum(ascending[::-1])[::-1]
    kept = np.clip(total - (from_top - ascending), 0.0, ascending)
    result = np.empty_like(flat)
    result[order] = kept
    return result.reshape(values.shape)


def threshold_cut(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Keep the cells of at least t, the smallest whole t whose kept cells sum nearest to the total; scale to it.

    Where no cell is kept, all cells are alike.

    Shapes: any shape; the result has the same one.
    Units: records. A total of 0 or less gives zeros.
    Privacy: none: post-processing.
    Source: JTree (Chen, Xiao, Zhang, Xu 2015) section 6, with the noisy total where the number of records is private.

    >>> threshold_cut(np.array([5.0, 1.0, 2.0, -2.0]), 7.0).tolist()
    [5.0, 0.0, 2.0, 0.0]
    """
    if values.size == 0 or total <= 0:
        return np.zeros_like(values)
    positive = np.maximum(values.ravel(), 0.0)
    descending = np.sort(positive)[::-1]
    # The kept sum changes only where t passes a cell, so the whole numbers just above cells (and 0) are all there are.
    thresholds = np.unique(np.append(np.floor(descending) + 1, 0.0))
    sums = np.append(0.0, np.cumsum(descending))[np.searchsorted(-descending, -thresholds, side="right")]
    least = thresholds[int(np.argmin(np.abs(sums - total)))]
    kept = np.where(positive >= least, positive, 0.0)
    mass = float(kept.sum())
    if mass <= 0:
        return np.full_like(values, total / values.size)
    return (kept * (total / mass)).reshape(values.shape)
