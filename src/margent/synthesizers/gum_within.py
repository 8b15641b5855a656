"""A round of GUM that keeps to rules, compiled: a record's other columns follow what a table overwrites in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.synthesizers.gum_rounds import furthest_first, tabulate, update
from margent.synthesizers.rule_steps import Factors, adapt

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Words = NDArray[np.uint64]


@compiled
def play_round_within(
    records: Int32,
    columns: Int64,
    strides: Int64,
    sizes: Int64,
    axis_start: Int64,
    targets: Int64,
    cell_start: Int64,
    alpha: int,
    duplicate: int,
    state: Words,
    rules: Factors,
) -> None:
    """`margent.synthesizers.gum_rounds.play_round` for records that obey rules, which they do again after each table.

    A record that a table's step takes out of the rules has columns outside the table changed (`rule_steps.adapt`).

    Shapes: as in `play_round`; ``rules`` speak of the columns of ``records``.
    Privacy: none: post-processing.
    """
    codes = np.empty(records.shape[1], np.int32)
    order, _ = furthest_first(records, columns, strides, axis_start, targets, cell_start, codes)
    for place in order:
        axes = slice(axis_start[place], axis_start[place + 1])
        target = targets[cell_start[place] : cell_start[place + 1]]
        counts = np.empty(target.size, np.int64)
        tabulate(records, columns[axes], strides[axes], codes, counts)
        before = records.copy()
        update(records, columns[axes], strides[axes], sizes[axes], target, alpha, duplicate, state, codes, counts)
        locked = np.zeros(records.shape[0], np.bool_)
        for column in columns[axes]:
            locked[column] = True
        tabulate(records, columns[axes], strides[axes], codes, counts)
        adapt(records.T, before.T, codes, counts.size, locked, rules, state)
