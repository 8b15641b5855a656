"""Cells that rules between columns forbid: no table may put records there, whatever the noise says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.simplex import norm_sub
from margent.schema.allowed import StructuralZeros
from margent.schema.domain import Clique

Counts = NDArray[np.float64]


def within_zeros(clique: Clique, values: Counts, zeros: StructuralZeros | None, total: float) -> Counts:
    """The table projected to the simplex of the cells that rules allow: at least 0, sum ``total``.

    Units: records. Privacy: none: post-processing.
    """
    mask = None if zeros is None else zeros.mask(clique)
    if mask is None:
        return norm_sub(values, total)
    allowed = np.broadcast_to(mask, values.shape)
    result = np.zeros_like(values)
    if allowed.any():
        result[allowed] = norm_sub(values[allowed], total)
    return result


def cleared(clique: Clique, values: Counts, zeros: StructuralZeros | None) -> Counts:
    """The table with its forbidden cells emptied and the others scaled up to its total.

    Units: records. Privacy: none: post-processing.
    """
    mask = None if zeros is None else zeros.mask(clique)
    if mask is None:
        return values
    result: Counts = np.where(mask, values, 0.0)
    left = float(result.sum())
    return result * (float(values.sum()) / left) if left > 0 else np.where(mask, 1.0, 0.0) * values.mean()
