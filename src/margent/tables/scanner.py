"""Compiled loops over the bytes of delimited text: where records and cells begin and end, what cells hold.

The grammar is RFC 4180 with the leniency of Python's csv module: a quote opens a quoted cell only as the
first character of a cell; inside, two quotes are one; whatever follows the closing quote is kept as it is; a
quoted cell left open ends with the file. CR, LF and CRLF end a record. Every sequence of bytes has exactly
one reading.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

ORDINARY, DELIMITER, NEWLINE, QUOTE = 0, 1, 2, 4
_CR, _LF = 13, 10


Found = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], NDArray[np.bool_]]
"""Where the cells of some records are: begin and end of each in the data, folded, and whole.

Shapes: (wanted columns, records) the first three, one entry a record the last. Folded cells must be unquoted.
A record that is not whole has another number of cells than the file has columns, or too many bytes; its cells
are absent, and begin and end at 0.
"""


def byte_kinds(delimiter: str, quote: str | None) -> NDArray[np.uint8]:
    """What each of the 256 bytes means to the scanner.

    Privacy: none: the dialect.
    """
    kinds = np.zeros(256, dtype=np.uint8)
    kinds[[_CR, _LF]] = NEWLINE
    kinds[ord(delimiter)] = DELIMITER
    if quote is not None:
        kinds[ord(quote)] = QUOTE
    return kinds


@compiled
def _plain_end(data: NDArray[np.uint8], position: int, kinds: NDArray[np.uint8]) -> int:
    """The next delimiter or newline from ``position`` on, or the end of the data."""
    while position < data.size and not kinds[data[position]] & (DELIMITER | NEWLINE):
        position += 1
    return position


@compiled
def _quoted_cell(data: NDArray[np.uint8], position: int, kinds: NDArray[np.uint8]) -> tuple[int, int, bool]:
    """From behind an opening quote: where the text ends, where the cell ends, and whether to unquote it."""
    stop, fold = data.size, False
    while position < stop:
        if kinds[data[position]] == QUOTE:
            if position + 1 == stop or kinds[data[position + 1]] != QUOTE:
                end = _plain_end(data, position + 1, kinds)
                if end > position + 1:
                    return end, end, True
                return position, end, fold
            fold = True
            position += 1
        position += 1
    return stop, stop, fold


@compiled
def next_newline(data: NDArray[np.uint8], start: int, kinds: NDArray[np.uint8]) -> int:
    """The next CR or LF from ``start`` on, in quotes or not, or the end of the data.

    Privacy: private bytes.
    """
    position = start
    while position < data.size and kinds[data[position]] != NEWLINE:
        position += 1
    return position


@compiled
def scan_records(
    data: NDArray[np.uint8],
    start: int,
    final: bool,
    kinds: NDArray[np.uint8],
    slots: NDArray[np.int32],
    limit: int,
    found: Found,
) -> tuple[int, int, bool, bool]:
    """Find records from ``start`` on; return how many, and of the rest: where, after a CR, too long already.

    At most as many records are taken as ``found`` has room for. With ``final`` the end of ``data`` ends a record.
    A record of more than ``limit`` bytes is given up: its first line is a record of absent cells, and reading
    goes on behind that line. So a quote that is never closed costs no more than ``limit`` bytes of other records.

    Shapes: ``slots`` has one entry a column of the file: the row of ``found`` that takes its cells, or -1.
    Privacy: private bytes.
    """
    begin, end, folded, whole = found
    stop, width = data.size, slots.size
    rows, record, dangling_cr = 0, start, False
    while rows < whole.size and record < stop:
        position, fields = record, 0
        while True:
            fold = False
            if position < stop and kinds[data[position]] == QUOTE:
                first = position + 1
                last, position, fold = _quoted_cell(data, first, kinds)
            else:
                first = position
                last = position = _plain_end(data, position, kinds)
            if fields < width and slots[fields] >= 0:
                slot = slots[fields]
                begin[slot, rows], end[slot, rows], folded[slot, rows] = first, last, fold
            fields += 1
            if position >= stop or kinds[data[position]] == NEWLINE:
                break
            position += 1
        long = position - record > limit
        if long:
            position = next_newline(data, record, kinds)
        if position >= stop and not final:
            return rows, record, False, long
        blank = position == record
        record = position + 1
        if position < stop and data[position] == _CR:
            if record == stop:
                dangling_cr = True
            elif data[record] == _LF:
                record += 1
        if not blank or width == 1:
            whole[rows] = fields == width and not long
            if not whole[rows]:
                begin[:, rows] = 0
                end[:, rows] = 0
            rows += 1
    return rows, min(record, stop), dangling_cr, False


@compiled
def cell_bytes(
    data: NDArray[np.uint8],
    kinds: NDArray[np.uint8],
    found: Found,
    offsets: NDArray[np.int32],
    out: NDArray[np.uint8],
) -> None:
    """Copy the cells of one column after the other, each column's one after the other, into ``out``, unquoted.

    Shapes: ``offsets`` is (columns, records + 1), a column's as Arrow wants them. Absent cells are empty.
    Privacy: private bytes.
    """
    begin, end, folded, whole = found
    written = 0
    for slot in range(offsets.shape[0]):
        offsets[slot, 0] = written
        for row in range(offsets.shape[1] - 1):
            if whole[row]:
                position, last = begin[slot, row], end[slot, row]
                quoted = folded[slot, row]
                while position < last:
                    if quoted and kinds[data[position]] == QUOTE:
                        position += 1
                        quoted = position < last and kinds[data[position]] == QUOTE
                        if position == last:
                            break
                    out[written] = data[position]
                    written += 1
                    position += 1
            offsets[slot, row + 1] = written


def room(columns: int, rows: int) -> Found:
    """Room for what `scan_records` finds; what it holds before that is to be read by nobody.

    Privacy: private bytes of anything.
    """
    return (
        np.empty((columns, rows), dtype=np.int32),
        np.empty((columns, rows), dtype=np.int32),
        np.empty((columns, rows), dtype=np.bool_),
        np.empty(rows, dtype=np.bool_),
    )
