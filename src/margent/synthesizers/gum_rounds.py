"""The compiled loops of GUM: one round over all marginals, in integers, so that bytes agree between machines.

Records lie column by column. Counts wanted are in fixed point, `ONE` to a record. The generator is splitmix64
(Steele, Lea and Flood 2014), written out because its bytes must not depend on any library's version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Words = NDArray[np.uint64]

SHIFT = 16
ONE = 1 << SHIFT
HALF = ONE // 2
_BETA_SHIFT = 30

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_ONE = np.uint64(0xBF58476D1CE4E5B9)
_MIX_TWO = np.uint64(0x94D049BB133111EB)
_THIRTY = np.uint64(30)
_TWENTY_SEVEN = np.uint64(27)
_THIRTY_ONE = np.uint64(31)
_THIRTY_TWO = np.uint64(32)


@compiled
def below(state: Words, bound: int) -> int:
    """A uniform integer in 0 .. bound - 1 (bound at most 2^31); ``state`` is one word, stepped in place."""
    state[0] += _STEP
    word = state[0]
    word = (word ^ (word >> _THIRTY)) * _MIX_ONE
    word = (word ^ (word >> _TWENTY_SEVEN)) * _MIX_TWO
    word = word ^ (word >> _THIRTY_ONE)
    return (np.int64(word >> _THIRTY_TWO) * bound) >> 32


@compiled
def tabulate(records: Int32, columns: Int64, strides: Int64, codes: Int32, counts: Int64) -> None:
    """Write each record's cell of one marginal to ``codes`` and the number of records a cell to ``counts``.

    Shapes: ``records`` (columns, n), ``codes`` (n,), ``counts`` one entry a cell.
    """
    rows = records.shape[1]
    first = records[columns[0]]
    for row in range(rows):
        codes[row] = first[row] * strides[0]
    for axis in range(1, columns.size):
        values = records[columns[axis]]
        stride = strides[axis]
        for row in range(rows):
            codes[row] += values[row] * stride
    counts[:] = 0
    for row in range(rows):
        counts[codes[row]] += 1


@compiled
def distance(counts: Int64, target: Int64) -> int:
    """L1 distance between counts and target, in fixed point."""
    total = 0
    for cell in range(counts.size):
        total += abs(counts[cell] * ONE - target[cell])
    return total


@compiled
def _removed(counts: Int64, target: Int64, beta: int, removed: Int64) -> int:
    """Fill in what each over-full cell gives up at rate beta, round(min(S - T, beta S)); return the sum."""
    total = 0
    for cell in range(counts.size):
        excess = counts[cell] * ONE - target[cell]
        if excess <= 0 or counts[cell] == 0:
            removed[cell] = 0
            continue
        most = (excess + HALF) >> SHIFT
        given = (counts[cell] * beta + (1 << (_BETA_SHIFT - 1))) >> _BETA_SHIFT
        removed[cell] = min(most, given)
        total += removed[cell]
    return total


@compiled
def update(
    records: Int32,
    columns: Int64,
    strides: Int64,
    sizes: Int64,
    target: Int64,
    alpha: int,
    duplicate: int,
    state: Words,
    codes: Int32,
    counts: Int64,
) -> None:
    """Move the records one step towards ``target`` on one marginal; ``codes`` and ``counts`` are tabulated.

    Cells that lack records take min(T - S, alpha S), empty ones alpha T; over-full cells give up
    min(S - T, beta S) with beta such that both sums agree. A freed record becomes a copy of a random record
    of its new cell (a share ``duplicate``), or only has this marginal's columns overwritten.

    Units: ``target``, ``alpha`` and ``duplicate`` in fixed point.
    """
    rows = records.shape[1]
    cells = counts.size
    added = np.zeros(cells, np.int64)
    copied = np.zeros(cells, np.int64)
    wanted = 0
    for cell in range(cells):
        lack = target[cell] - counts[cell] * ONE
        if lack <= 0:
            continue
        if counts[cell] == 0:
            # Rounded at random: a cell that expects half a record must not stay empty for ever.
            added[cell] = (((alpha * lack) >> SHIFT) + below(state, ONE)) >> SHIFT
        else:
            added[cell] = (min(lack, alpha * counts[cell]) + HALF) >> SHIFT
            # A share of a whole number of records, rounded up or down at random.
            copied[cell] = (added[cell] * duplicate + below(state, ONE)) >> SHIFT
        wanted += added[cell]
    if wanted == 0:
        return

    removed = np.zeros(cells, np.int64)
    low, high = 0, 1 << _BETA_SHIFT
    while low < high:
        middle = (low + high) >> 1
        if _removed(counts, target, middle, removed) >= wanted:
            high = middle
        else:
            low = middle + 1
    free = _removed(counts, target, low, removed)
    if free == 0:
        return

    # One pass picks a uniform subset of each cell: a record is taken with (still needed) / (still to come).
    places = np.empty(free, np.int64)
    first_source = np.zeros(cells + 1, np.int64)
    needed = removed.copy()
    whole = np.zeros(cells, np.int64)
    for cell in range(cells):
        first_source[cell + 1] = first_source[cell] + copied[cell]
        if copied[cell] > 0:
            whole[cell] = copied[cell] // counts[cell]
            needed[cell] = copied[cell] - whole[cell] * counts[cell]
    sources = np.empty(first_source[cells], np.int64)
    next_source = first_source[:cells].copy()
    to_come = counts.copy()
    found = 0
    for row in range(rows):
        cell = codes[row]
        if needed[cell] > 0:
            taken = below(state, to_come[cell]) < needed[cell]
            to_come[cell] -= 1
            if taken:
                needed[cell] -= 1
                if removed[cell] > 0:
                    places[found] = row
                    found += 1
                else:
                    sources[next_source[cell]] = row
                    next_source[cell] += 1
        for _ in range(whole[cell]):
            sources[next_source[cell]] = row
            next_source[cell] += 1
    for last in range(found - 1, 0, -1):
        other = below(state, last + 1)
        places[last], places[other] = places[other], places[last]

    # Empty cells are served first; the others from a random one on, so that none is always the last.
    used = 0
    for cell in range(cells):
        if counts[cell] == 0:
            for _ in range(min(added[cell], found - used)):
                for axis in range(columns.size):
                    records[columns[axis], places[used]] = (cell // strides[axis]) % sizes[axis]
                used += 1
    start = below(state, cells)
    for offset in range(cells):
        cell = (start + offset) % cells
        if counts[cell] == 0:
            continue
        for number in range(min(added[cell], found - used)):
            place = places[used]
            if number < copied[cell]:
                source = sources[first_source[cell] + number]
                for column in range(records.shape[0]):
                    records[column, place] = records[column, source]
            else:
                for axis in range(columns.size):
                    records[columns[axis], place] = (cell // strides[axis]) % sizes[axis]
            used += 1


@compiled
def play_round(
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
) -> int:
    """One round: every marginal once, the one that is furthest off first; returns their summed L1 before it.

    Shapes: ``columns``, ``strides`` and ``sizes`` list the axes of all marginals one after the other,
    ``targets`` all their cells; marginal i has those from ``axis_start[i]`` to ``axis_start[i + 1]`` and from
    ``cell_start[i]`` to ``cell_start[i + 1]``. ``records`` is changed in place.
    Units: ``targets``, ``alpha``, ``duplicate`` and the result in fixed point.
    """
    marginals = axis_start.size - 1
    codes = np.empty(records.shape[1], np.int32)
    errors = np.zeros(marginals, np.int64)
    for place in range(marginals):
        axes = slice(axis_start[place], axis_start[place + 1])
        target = targets[cell_start[place] : cell_start[place + 1]]
        counts = np.empty(target.size, np.int64)
        tabulate(records, columns[axes], strides[axes], codes, counts)
        errors[place] = distance(counts, target)
    order = np.argsort(-errors, kind="mergesort")
    for place in order:
        axes = slice(axis_start[place], axis_start[place + 1])
        target = targets[cell_start[place] : cell_start[place + 1]]
        counts = np.empty(target.size, np.int64)
        tabulate(records, columns[axes], strides[axes], codes, counts)
        update(records, columns[axes], strides[axes], sizes[axes], target, alpha, duplicate, state, codes, counts)
    return errors.sum()
