"""Record descent that keeps to rules, compiled: every move leads from a record that obeys to one that obeys.

A value that a rule forbids next to the record's other values is not simply lost: where it would lower F most, the
columns that stand in its way are moved with it, each to its best allowed value, and all of these moves are kept if
together they lower F by more than the best single move that is allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.synthesizers.rule_steps import Factors, first_broken, good_codes, restrict

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Truth = NDArray[np.bool_]

LONGEST = 24
"""Most columns that move together."""


class Views(NamedTuple):
    """Where the cells of each table's views lie; see `margent.synthesizers.descent_sweeps.sweep`."""

    column_views: Int64
    column_view_start: Int64
    column_tables: Int64
    column_table_start: Int64
    table_views: Int64
    table_view_start: Int64
    view_axes: Int64
    axis_column: Int64
    axis_stride: Int64
    view_offset: Int64


@compiled
def weigh(record: Int32, column: int, size: int, views: Views, residual: Int32, gain: Int32) -> None:
    """Write to ``gain`` the sums g(v) of residuals over the tables that hold a column, for each of its values."""
    gain[:size] = 0
    for place in range(views.column_view_start[column], views.column_view_start[column + 1]):
        view = views.column_views[place]
        base = views.view_offset[view]
        for axis in range(views.view_axes[view], views.view_axes[view + 1] - 1):
            base += views.axis_stride[axis] * record[views.axis_column[axis]]
        cells = residual[base : base + size]
        for value in range(size):
            gain[value] += cells[value]


@compiled
def change(record: Int32, column: int, value: int, views: Views, unit: int, residual: Int32) -> None:
    """Move one column of a record to a value and bring the residuals of its tables up to date."""
    step = value - record[column]
    for table_place in range(views.column_table_start[column], views.column_table_start[column + 1]):
        table = views.column_tables[table_place]
        for view_place in range(views.table_view_start[table], views.table_view_start[table + 1]):
            view = views.table_views[view_place]
            cell = views.view_offset[view]
            stride = 0
            for axis in range(views.view_axes[view], views.view_axes[view + 1]):
                cell += views.axis_stride[axis] * record[views.axis_column[axis]]
                if views.axis_column[axis] == column:
                    stride = views.axis_stride[axis]
            residual[cell] -= unit
            residual[cell + stride * step] += unit
    record[column] = value


@compiled
def best_of(gain: Int32, good: Truth, size: int) -> int:
    """The good value of least gain, -1 where none is good."""
    best = -1
    for value in range(size):
        if good[value] and (best < 0 or gain[value] < gain[best]):
            best = value
    return best


@compiled
def chain(
    record: Int32,
    column: int,
    value: int,
    most: int,
    views: Views,
    rules: Factors,
    unit: int,
    residual: Int32,
    gain: Int32,
    good: Truth,
) -> int:
    """Move a column to a value that breaks rules, and others until the record obeys; undo it all unless F falls enough.

    ``most``: the change of F / (2 unit) that the moves must stay below. Returns the number of moves, 0 if undone.
    """
    trail, before = np.empty(LONGEST, np.int64), np.empty(LONGEST, np.int64)
    moved = np.zeros(record.size, np.bool_)
    length, total, next_column, next_value = 0, 0, column, value
    while True:
        # gain holds g of next_column, whatever its value.
        held = views.column_view_start[next_column + 1] - views.column_view_start[next_column]
        if next_value != record[next_column]:
            total += gain[next_value] - gain[record[next_column]] + unit * held
        trail[length], before[length] = next_column, record[next_column]
        moved[next_column] = True
        length += 1
        change(record, next_column, next_value, views, unit, residual)
        broken = first_broken(record, rules)
        if broken < 0:
            if total < most:
                return length
            break
        if length == LONGEST:
            break
        next_column, least, of_all = -1, 0, False
        for axis in range(rules.axis_start[broken], rules.axis_start[broken + 1]):
            other = rules.axis_column[axis]
            if moved[other]:
                continue
            size = rules.sizes[other]
            whole = good_codes(record, other, rules, good) > 0
            if not whole:
                if of_all:
                    continue
                good[:size] = True
                restrict(record, broken, other, rules, good)
            weigh(record, other, size, views, residual, gain)
            best = best_of(gain, good, size)
            if best < 0:
                continue
            held = views.column_view_start[other + 1] - views.column_view_start[other]
            own = gain[best] - gain[record[other]] + unit * held
            if next_column < 0 or (whole and not of_all) or own < least:
                next_column, next_value, least = other, best, own
                of_all = whole
        if next_column < 0:
            break
        weigh(record, next_column, rules.sizes[next_column], views, residual, gain)
    for place in range(length - 1, -1, -1):
        change(record, trail[place], before[place], views, unit, residual)
    return 0


@compiled
def sweep_within(
    records: Int32,
    order: Int64,
    first: Int64,
    views: Views,
    rules: Factors,
    unit: int,
    residual: Int32,
) -> int:
    """`margent.synthesizers.descent_sweeps.sweep` for records that obey rules, which they do again afterwards.

    Shapes: ``records`` (n, d) in place; ``order`` the rows to visit; ``first`` the column each visit starts at. One
    chain is tried a visit: more cost time and gain nothing that could be measured.
    Privacy: none: post-processing.
    """
    columns, moves = rules.sizes.size, 0
    gain, good = np.zeros(rules.sizes.max(), np.int32), np.zeros(rules.sizes.max(), np.bool_)
    for visit in range(order.size):
        record = records[order[visit]]
        tried = False
        for turn in range(columns):
            column = (first[visit] + turn) % columns
            held = views.column_view_start[column + 1] - views.column_view_start[column]
            if held == 0:
                continue
            size = rules.sizes[column]
            weigh(record, column, size, views, residual, gain)
            good[:size] = True
            wanted = best_of(gain, good, size)
            start = gain[record[column]] - unit * held
            if gain[wanted] >= start:
                continue
            best = wanted
            if rules.column_factor_start[column] < rules.column_factor_start[column + 1]:
                good_codes(record, column, rules, good)
                best = best_of(gain, good, size)
            if best != wanted:
                # The change of F that the best allowed move would make: a chain must do better.
                most = min(0, gain[best] - start) if best >= 0 else 0
                made = 0
                if not tried:
                    made = chain(record, column, wanted, most, views, rules, unit, residual, gain, good)
                    tried = True
                moves += made
                if made > 0:
                    continue
                weigh(record, column, size, views, residual, gain)
                if best < 0 or gain[best] >= start:
                    continue
            if best != record[column]:
                change(record, column, best, views, unit, residual)
                moves += 1
    return moves
