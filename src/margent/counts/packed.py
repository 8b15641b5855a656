"""The hot loop: many tables counted from one block of codes that stays in the processor's cache.

The codes of a table's columns are packed into one integer a row, 16 bits wide where the table allows it. A small
table is counted in four lanes, row by row in turn: rows of a common cell follow each other, and an addition that has
to wait for the one before it takes five times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

NARROW_CELLS = 2**16
"""Most cells of a table whose packed codes fit 16 bits."""

LANES = 4
LANE_CELLS = 2**13
"""Most cells of a table that is counted in lanes: 128 KiB of them."""


@compiled
def count_tables(
    codes: NDArray[Any],
    rows: int,
    first: int,
    last: int,
    starts: NDArray[np.int64],
    places: NDArray[np.int64],
    strides: NDArray[np.int64],
    offsets: NDArray[np.int64],
    totals: NDArray[np.int64],
    narrow: NDArray[np.uint16],
    wide: NDArray[np.int64],
    lanes: NDArray[np.uint32],
) -> None:
    """Add ``rows`` rows to tables ``first`` .. ``last`` - 1; table i has cells ``offsets[i]`` .. of ``totals``.

    Every code must have been checked against its column's size: nothing here looks whether a packed code is a cell.

    Shapes: ``codes`` one row a column, at least ``rows`` wide; table i packs the columns
    ``places[starts[i]:starts[i + 1]]`` with these ``strides``; ``narrow`` and ``wide`` at least ``rows``; ``lanes``
    (4, `LANE_CELLS`).
    """
    for table in range(first, last):
        low, high = starts[table], starts[table + 1]
        begin, cells = offsets[table], offsets[table + 1] - offsets[table]
        counts = totals[begin : begin + cells]
        if high == low:
            counts[0] += rows
            continue
        if cells > NARROW_CELLS:
            wide[:rows] = 0
            for each in range(low, high):
                column, step = codes[places[each]], strides[each]
                for row in range(rows):
                    wide[row] += np.int64(column[row]) * step
            for row in range(rows):
                counts[wide[row]] += 1
            continue
        column, stride = codes[places[low]], np.uint16(strides[low])
        if high - low == 2:  # pairs are what most time goes into: one sweep, nothing written in between
            other = codes[places[low + 1]]
            for row in range(rows):
                narrow[row] = np.uint16(np.uint16(column[row]) * stride) + np.uint16(other[row])
        else:
            for row in range(rows):
                narrow[row] = np.uint16(column[row]) * stride
            for each in range(low + 1, high):
                column, stride = codes[places[each]], np.uint16(strides[each])
                for row in range(rows):
                    narrow[row] += np.uint16(column[row]) * stride
        if cells > LANE_CELLS or cells > rows:
            for row in range(rows):
                counts[narrow[row]] += 1
            continue
        lane0, lane1, lane2, lane3 = lanes[0], lanes[1], lanes[2], lanes[3]
        for cell in range(cells):
            lane0[cell] = lane1[cell] = lane2[cell] = lane3[cell] = 0
        quarter = rows // LANES
        for row in range(quarter):
            lane0[narrow[4 * row]] += 1
            lane1[narrow[4 * row + 1]] += 1
            lane2[narrow[4 * row + 2]] += 1
            lane3[narrow[4 * row + 3]] += 1
        for row in range(LANES * quarter, rows):
            lane0[narrow[row]] += 1
        for cell in range(cells):
            counts[cell] += (
                np.int64(lane0[cell]) + np.int64(lane1[cell]) + np.int64(lane2[cell]) + np.int64(lane3[cell])
            )
