"""Exact scores of contingency tables in integers. Private: only the curator calls these."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.privacy.queries import SCORE_LATTICE

_SAFE_RECORDS = 1_500_000_000
"""Up to here 2 n^2 fits int64; beyond, Python integers take over."""


def indif(table: NDArray[np.int64]) -> int:
    """InDif_ab = sum_ij |a_i b_j / n - alpha_ij|, floored to 1/256 of a record, as an integer of that lattice.

    Shapes: ``table`` is (k_a, k_b) exact counts alpha; a and b are its margins, n its sum; 0 for an empty table.
    Units: 1/256 record; the value lies in [0, 512 n).
    Privacy: private; sensitivity 4 records (add-remove), 20/3 (replace), see `margent.privacy.queries`.
    Source: PrivSyn 2021, Definition 3 and Lemma 4.

    >>> indif(np.array([[2, 0], [0, 2]])) / 256
    4.0
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    total = int(rows.sum())
    if total == 0:
        return 0
    if total > _SAFE_RECORDS:
        table, rows, columns = table.astype(object), rows.astype(object), columns.astype(object)
    # n |a b / n - alpha| = |a b - n alpha| is an integer, so nothing is rounded before the floor.
    scaled = np.abs(np.outer(rows, columns) - total * table).sum()
    return int(scaled) * SCORE_LATTICE["indif"] // total
