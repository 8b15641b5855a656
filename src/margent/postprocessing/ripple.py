"""Ripple non-negativity: what a negative cell lacks is taken evenly from its neighbors, so local sums hardly move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.consistency import Agreement
from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import Table

MOST_ROUNDS = 2_000
"""A table that is still negative after so many rounds is projected to the simplex."""


def ripple(values: NDArray[np.float64], theta: float, rounds: int = MOST_ROUNDS) -> NDArray[np.float64]:
    """Set every cell below -theta to 0 and take its deficit evenly from the cells at Hamming distance one; repeat.

    The total is kept. Cells at distance one differ in the code of one column: sum_j (k_j - 1) of them, whatever the
    columns' sizes. Ends with no cell below -theta; where ``rounds`` do not reach that, and where the total is not
    positive, with the nearest point of the simplex (`norm_sub`).

    Shapes: any shape; the result has the same one.
    Units: records; ``theta`` at least 0.
    Privacy: none: post-processing.
    Source: PriView (Qardaji, Yang, Li 2014) section 4.4 for binary columns; several codes a column are ours.

    >>> ripple(np.array([[-4.0, 10.0], [10.0, 10.0]]), 0.0).tolist()
    [[0.0, 8.0], [8.0, 10.0]]
    """
    total = float(values.sum())
    neighbors = sum(size - 1 for size in values.shape)
    if total <= 0 or neighbors == 0:
        return norm_sub(values, total)
    rippled = values.copy()
    for _ in range(rounds):
        deficit = np.where(rippled < -theta, -rippled, 0.0)
        if not deficit.any():
            return rippled
        rippled += deficit
        for axis, size in enumerate(values.shape):
            if size > 1:
                rippled -= (deficit.sum(axis=axis, keepdims=True) - deficit) / neighbors
    return norm_sub(rippled, total)


@dataclass(frozen=True)
class RippledAgreement:
    """Tables made to agree, rippled, and made to agree again, ``rounds`` times; at the end no cell is negative.

    ``theta``: how far below 0 a cell may stay, in standard deviations of the table's noise.

    Privacy: none: post-processing.
    Source: PriView (Qardaji, Yang, Li 2014) section 4.4.
    """

    rounds: int = 3
    theta: float = 0.1

    def apply(self, tables: Sequence[Table], total: float) -> list[Table]:
        """Tables of at least 0 that sum to ``total``; they agree but for the last, slight, step to 0.

        Shapes: one table a clique, each clique once.
        Units: records.
        """
        agreement = Agreement(tables)
        values = [table.values.astype(np.float64, copy=True) for table in tables]
        agreement.reach(values, total)
        for _ in range(self.rounds):
            floors = [self.theta * float(np.sqrt(table.variance.mean())) for table in tables]
            values = [ripple(value, floor) for value, floor in zip(values, floors, strict=True)]
            agreement.reach(values, total)
        return [
            Table(table.clique, norm_sub(value, total), table.variance)
            for table, value in zip(tables, values, strict=True)
        ]
