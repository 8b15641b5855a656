"""The compiled loop that joins columns of text into the lines of a CSV file (RFC 4180, ending in LF)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

_LF = 10


@compiled
def lines_size(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    special: NDArray[np.bool_],
    quote: int,
    quoted: NDArray[np.bool_],
) -> int:
    """Bytes that the lines need; marks in ``quoted`` the cells that must stand in quotes.

    Shapes: ``starts``, ``stops`` and ``quoted`` are (rows, columns); ``special`` has one entry a byte value.
    In a file of one column an empty cell is quoted, because an empty line would be no record.
    Privacy: none: synthetic cells.
    """
    rows, columns = starts.shape
    size = rows * columns  # a delimiter or line end behind every cell
    for row in range(rows):
        for column in range(columns):
            start, stop = starts[row, column], stops[row, column]
            needs, quotes = columns == 1 and start == stop, 0
            for place in range(start, stop):
                needs |= special[data[place]]
                quotes += data[place] == quote
            quoted[row, column] = needs
            size += stop - start + (quotes + 2 if needs else 0)
    return int(size)


@compiled
def join_lines(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    quoted: NDArray[np.bool_],
    delimiter: int,
    quote: int,
    out: NDArray[np.uint8],
) -> int:
    """Write the lines into ``out``, doubling quotes in quoted cells; return the bytes written.

    Privacy: none: synthetic cells.
    """
    rows, columns = starts.shape
    written = 0
    for row in range(rows):
        for column in range(columns):
            needs = quoted[row, column]
            if needs:
                out[written] = quote
                written += 1
            for place in range(starts[row, column], stops[row, column]):
                if needs and data[place] == quote:
                    out[written] = quote
                    written += 1
                out[written] = data[place]
                written += 1
            if needs:
                out[written] = quote
                written += 1
            out[written] = delimiter if column < columns - 1 else _LF
            written += 1
    return written
