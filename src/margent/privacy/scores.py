"""Exact scores of contingency tables in integers. Private: only the curator calls these."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.privacy.logarithms import LOG_BITS, sum_of_x_log_x
from margent.privacy.queries import SCORE_LATTICE

_SAFE_RECORDS = 1_500_000_000
"""Up to here 2 n^2 fits int64; beyond, Python integers take over."""


def indif(table: NDArray[np.int64]) -> int:
    """InDif_ab = sum_ij |a_i b_j / n - alpha_ij|, floored to 1/256 of a record, as an integer of that lattice.

    Shapes: ``table`` is (k_a, k_b) exact counts alpha; a and b are its margins, n its sum; 0 for an empty table.
    Units: 1/256 record; the value lies in [0, 512 n).
    Privacy: private; sensitivity 4 records (add-remove), 6 (replace), 4k (a person of k rows): ``proofs/indif.md``.
    Source: PrivSyn 2021, Definition 3 and Lemma 4.

    >>> indif(np.array([[2, 0], [0, 2]])) / 256
    4.0
    """
    scaled, total = _deviation(table)
    return scaled * SCORE_LATTICE["indif"] // total if total else 0


def total_variation(table: NDArray[np.int64]) -> int:
    """n R_ab = 1/2 sum_ij |alpha_ij - a_i b_j / n|, floored to 1/256 of a record, as an integer of that lattice.

    R_ab is the total variation distance of the pair from independence; n R is half of InDif.

    Shapes: ``table`` is (k_a, k_b) exact counts alpha; a and b are its margins, n its sum; 0 for an empty table.
    Units: 1/256 record; the value lies in [0, 256 n).
    Privacy: private; sensitivity 2 records (add-remove), 3 (replace), 2k (a person of k rows): ``proofs/r.md``.
    Source: PrivBayes (Zhang et al. 2017), score R.

    >>> total_variation(np.array([[2, 0], [0, 2]])) / 256
    2.0
    """
    scaled, total = _deviation(table)
    return scaled * SCORE_LATTICE["r"] // (2 * total) if total else 0


def mutual_information(table: NDArray[np.int64]) -> int:
    """n I_ab = sum_ij alpha_ij ln(n alpha_ij / (a_i b_j)), floored to 1/256, as an integer of that lattice.

    Computed in whole numbers of 2^-64, of which it is off by fewer than 4n; the same on every machine.

    Shapes: ``table`` is (k_a, k_b) exact counts alpha; a and b are its margins, n its sum; 0 for an empty table.
    Units: 1/256 record x nat.
    Privacy: private; sensitivity below 2 ln(n + 1) + 1 (replace, n public), in full in
    ``proofs/mutual-information.md``; without a bound where records are added or removed.
    Source: PrivBayes (Zhang et al. 2014), section 4.1.

    >>> round(mutual_information(np.array([[2, 0], [0, 2]])) / 256, 2)  # 4 ln 2 = 2.7726
    2.77
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    margins = sum_of_x_log_x(rows) + sum_of_x_log_x(columns)
    information = sum_of_x_log_x(table) + sum_of_x_log_x(rows.sum(keepdims=True)) - margins
    return max(information * SCORE_LATTICE["mutual-information"] >> LOG_BITS, 0)


def majority(table: NDArray[np.int64]) -> int:
    """n F = -min over rules g of ((n/2 - K_0)^+ + (n/2 - K_1)^+), in halves of a record.

    A rule g names a code of the child for every combination of the parents; K_x counts the records of child x for
    which the rule names x. F is minus half the L1 distance to the nearest distribution with an even child that
    its parents determine. The minimum is exact: all pairs (K_0, K_1) that no other one dominates are kept.

    Shapes: ``table`` is (1 or 2, c) exact counts: the child's codes by the c combinations of its parents.
    Units: half records; the value lies in [-2n, 0], 0 for an empty table.
    Privacy: private; sensitivity 1 record (add-remove and replace), k (a person of k rows): ``proofs/f.md``.
    Source: PrivBayes (Zhang et al. 2014), section 4.3, score F.

    >>> majority(np.array([[2, 0], [0, 2]])), majority(np.array([[4, 0], [0, 0]]))
    (0, -4)
    """
    total = int(table.sum())
    half = -(-total // 2)  # a K beyond half of the records is as good as half of them
    least, most = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)  # K_0 falling, K_1 rising
    for zeros, ones in table.T.tolist() if table.shape[0] == 2 else [(total, 0)]:
        if zeros == 0 or ones == 0:
            least, most = least + zeros, most + ones
        else:
            least, most = np.concatenate([least + zeros, least]), np.concatenate([most, most + ones])
        least, most = np.minimum(least, half), np.minimum(most, half)
        order = np.lexsort((-most, -least))
        least, most = least[order], most[order]
        best = np.maximum.accumulate(most)
        kept = np.append(True, best[1:] > best[:-1])
        least, most = least[kept], most[kept]
    wrong = np.maximum(total - 2 * least, 0) + np.maximum(total - 2 * most, 0)
    return -int(wrong.min())


def _deviation(table: NDArray[np.int64]) -> tuple[int, int]:
    """Sum_ij |a_i b_j - n alpha_ij|, which is n InDif, and n."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    total = int(rows.sum())
    if total > _SAFE_RECORDS:
        table, rows, columns = table.astype(object), rows.astype(object), columns.astype(object)
    # n |a b / n - alpha| = |a b - n alpha| is an integer, so nothing is rounded before the floor.
    return int(np.abs(np.outer(rows, columns) - total * table).sum()), total


FINE = 2**16
"""Units of the public expectation in one record: cells far below one record must not be rounded away."""

_MOST_UNITS = 2.0**61
"""An expectation of more units in all is scaled down to so many: with 7e13 rows on top the sum fits 64 bits, and a
sum that wrapped would let one record move the score by 2^48."""


def independence_distance(
    table: NDArray[np.int64], rows: NDArray[np.float64], columns: NDArray[np.float64], total: float
) -> int:
    """S_ab = |M_ab - E_ab|_1 to the nearest record, E_ab = q_a q_b / n^ public, in integers of 2^-16 records.

    The sum is rounded by a floor, so one record moves it by at most one: two sums that differ by at most 2^16
    have floors of their 2^16-ths that differ by at most one.

    Shapes: ``table`` (k_a, k_b) exact counts; ``rows`` (k_a) and ``columns`` (k_b) public counts of ``total``.
    Units: records. An expectation above 2^45 records, which only noise can bring about, is scaled down to that.
    Privacy: private; sensitivity exactly 1 (add-remove), 2 (replace), k (a person of k rows):
    ``proofs/independence.md``.

    >>> independence_distance(np.array([[2, 0], [0, 2]]), np.array([2.0, 2.0]), np.array([2.0, 2.0]), 4.0)
    4
    """
    every = float(np.abs(rows).sum()) * float(np.abs(columns).sum())
    unit = min(FINE / total, _MOST_UNITS / every) if every > 0 else 0.0
    return _rounded_distance(table, np.outer(rows, columns) * unit)


def distance(table: NDArray[np.int64], model: NDArray[np.float64]) -> int:
    """|M - E|_1 to the nearest record for the public counts E of a model, in integers of 2^-16 records.

    Shapes: ``table`` and ``model`` have one axis a column of the clique.
    Units: records. A model of more than 2^45 records, which only noise can bring about, is scaled down to that.
    Privacy: private; sensitivity exactly 1 (add-remove), 2 (replace), k (a person of k rows):
    ``proofs/independence.md``, whose expectation may be any fixed table.

    >>> distance(np.array([2, 0, 1]), np.array([1.0, 1.0, 1.0]))
    2
    """
    every = float(np.abs(model).sum())
    return _rounded_distance(table, model * (min(FINE, _MOST_UNITS / every) if every > 0 else 0.0))


def _rounded_distance(table: NDArray[np.int64], fine: NDArray[np.float64]) -> int:
    """The L1 distance from what is expected, given in units of 2^-16 records, to the nearest record."""
    return (int(np.abs(table * FINE - np.rint(fine).astype(np.int64)).sum()) + FINE // 2) // FINE
