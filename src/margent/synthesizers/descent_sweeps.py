"""The loops of record descent, compiled. Integers only, so the same targets and seed give the same bytes.

Every table over a clique is kept once a column of the clique, each time with that column last (a *view*), so that
what each value of the column would change is a sum of contiguous rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Integers = NDArray[np.int64]


@compiled
def fill_views(
    records: NDArray[np.int32],
    views: Integers,
    view_axes: Integers,
    axis_column: Integers,
    axis_stride: Integers,
    view_offset: Integers,
    unit: int,
    residual: NDArray[np.int32],
) -> None:
    """Add ``unit`` for every record to its cell in each of the given views (residual = unit * count - target).

    Shapes: ``records`` (n, d); view j has axes ``view_axes[j] : view_axes[j + 1]``.
    Privacy: none: post-processing.
    """
    for place in range(views.size):
        view = views[place]
        for row in range(records.shape[0]):
            cell = view_offset[view]
            for axis in range(view_axes[view], view_axes[view + 1]):
                cell += axis_stride[axis] * records[row, axis_column[axis]]
            residual[cell] += unit


@compiled
def sweep(
    records: NDArray[np.int32],
    order: Integers,
    first: Integers,
    sizes: Integers,
    column_views: Integers,
    column_view_start: Integers,
    column_tables: Integers,
    column_table_start: Integers,
    table_views: Integers,
    table_view_start: Integers,
    view_axes: Integers,
    axis_column: Integers,
    axis_stride: Integers,
    view_offset: Integers,
    unit: int,
    residual: NDArray[np.int32],
) -> int:
    """Visit every record once and give each of its columns the value that lowers F = sum |E_C|^2 most.

    Moving column a of a record from u to v changes F by 2 unit (g(v) - g(u) + unit W_a), with
    g(v) = sum over tables C with a of E_C[the record's other values, v] and W_a the number of those tables.
    Returns the number of moves.

    Shapes: ``records`` (n, d) in place; ``order`` the rows to visit; ``first`` the column each visit starts at.
    Privacy: none: post-processing.
    """
    columns = sizes.size
    gain = np.zeros(sizes.max(), dtype=np.int32)
    moves = 0
    for visit in range(order.size):
        row = order[visit]
        for turn in range(columns):
            column = (first[visit] + turn) % columns
            start, stop = column_view_start[column], column_view_start[column + 1]
            if start == stop:
                continue
            size = sizes[column]
            for value in range(size):
                gain[value] = 0
            for place in range(start, stop):
                view = column_views[place]
                base = view_offset[view]
                for axis in range(view_axes[view], view_axes[view + 1] - 1):
                    base += axis_stride[axis] * records[row, axis_column[axis]]
                cells = residual[base : base + size]
                for value in range(size):
                    gain[value] += cells[value]
            old = records[row, column]
            best, least = old, gain[old] - unit * (stop - start)
            for value in range(size):
                if gain[value] < least:
                    best, least = value, gain[value]
            if best == old:
                continue
            moves += 1
            for table_place in range(column_table_start[column], column_table_start[column + 1]):
                table = column_tables[table_place]
                for view_place in range(table_view_start[table], table_view_start[table + 1]):
                    view = table_views[view_place]
                    cell = view_offset[view]
                    stride = 0
                    for axis in range(view_axes[view], view_axes[view + 1]):
                        cell += axis_stride[axis] * records[row, axis_column[axis]]
                        if axis_column[axis] == column:
                            stride = axis_stride[axis]
                    residual[cell] -= unit
                    residual[cell + stride * (best - old)] += unit
            records[row, column] = best
    return moves
