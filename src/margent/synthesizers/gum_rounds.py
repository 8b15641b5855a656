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
BETA_SHIFT = 30
HALF_BETA = 1 << (BETA_SHIFT - 1)

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
    return int((np.int64(word >> _THIRTY_TWO) * bound) >> 32)


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
def plan_gains(counts: Int64, target: Int64, alpha: int, state: Words, gains: Int64) -> int:
    """Records each cell is to gain: min(T - S, alpha S) where it lacks some, alpha T where it has none."""
    wanted = 0
    for cell in range(counts.size):
        gains[cell] = 0
        lack = target[cell] - counts[cell] * ONE
        if lack <= 0:
            continue
        if counts[cell] == 0:
            # Rounded at random: a cell that expects half a record must not stay empty for ever.
            gains[cell] = (((alpha * lack) >> SHIFT) + below(state, ONE)) >> SHIFT
        else:
            gains[cell] = (min(lack, alpha * counts[cell]) + HALF) >> SHIFT
        wanted += gains[cell]
    return wanted


@compiled
def losses_at(counts: Int64, target: Int64, beta: int, losses: Int64) -> int:
    """Records each over-full cell gives up at rate beta, round(min(S - T, beta S)); returns their sum."""
    total = 0
    for cell in range(counts.size):
        losses[cell] = 0
        excess = counts[cell] * ONE - target[cell]
        if excess > 0 and counts[cell] > 0:
            most = (excess + HALF) >> SHIFT
            losses[cell] = min(most, (counts[cell] * beta + HALF_BETA) >> BETA_SHIFT)
            total += losses[cell]
    return total


@compiled
def plan_losses(counts: Int64, target: Int64, wanted: int, losses: Int64) -> int:
    """Losses at the least rate beta, found by bisection, that frees ``wanted`` records (all there are, if fewer)."""
    low, high = 0, 1 << BETA_SHIFT
    while low < high:
        middle = (low + high) >> 1
        if losses_at(counts, target, middle, losses) >= wanted:
            high = middle
        else:
            low = middle + 1
    return losses_at(counts, target, low, losses)


@compiled
def pick(codes: Int32, counts: Int64, losses: Int64, copies: Int64, state: Words, freed: Int64, sources: Int64) -> None:
    """Pick ``losses`` records of each cell into ``freed`` and ``copies`` into ``sources``, uniform subsets.

    One pass: a record is taken with probability (still needed) / (still to come). A cell never has both. More
    copies than records take every record several times. ``freed`` ends in random order, ``sources`` cell by cell.

    Shapes: ``freed`` has sum(losses) entries, ``sources`` sum(copies).
    """
    cells = counts.size
    needed = losses.copy()
    whole = np.zeros(cells, np.int64)
    next_source = np.zeros(cells, np.int64)
    filled = 0
    for cell in range(cells):
        next_source[cell] = filled
        filled += copies[cell]
        if copies[cell] > 0:
            whole[cell] = copies[cell] // counts[cell]
            needed[cell] = copies[cell] - whole[cell] * counts[cell]
    to_come = counts.copy()
    found = 0
    for row in range(codes.size):
        cell = codes[row]
        if needed[cell] > 0:
            taken = below(state, to_come[cell]) < needed[cell]
            to_come[cell] -= 1
            if taken:
                needed[cell] -= 1
                if losses[cell] > 0:
                    freed[found] = row
                    found += 1
                else:
                    sources[next_source[cell]] = row
                    next_source[cell] += 1
        for _ in range(whole[cell]):
            sources[next_source[cell]] = row
            next_source[cell] += 1
    for last in range(found - 1, 0, -1):
        other = below(state, last + 1)
        freed[last], freed[other] = freed[other], freed[last]


@compiled
def fill(
    records: Int32,
    columns: Int64,
    strides: Int64,
    sizes: Int64,
    counts: Int64,
    gains: Int64,
    copies: Int64,
    freed: Int64,
    sources: Int64,
    first_cell: int,
) -> None:
    """Move the freed records to the gaining cells, empty ones first, the others from ``first_cell`` on.

    The first ``copies`` of a cell's gains become copies of its sources, the rest have only the marginal's own
    columns overwritten.
    """
    cells = counts.size
    first_source = np.cumsum(copies) - copies
    used = 0
    for turn in range(2 * cells):
        cell = (first_cell + turn) % cells
        # First round of turns: empty cells; second round: the others.
        if (turn < cells) != (counts[cell] == 0):
            continue
        for number in range(min(gains[cell], freed.size - used)):
            place = freed[used]
            used += 1
            if number < copies[cell]:
                source = sources[first_source[cell] + number]
                for column in range(records.shape[0]):
                    records[column, place] = records[column, source]
            else:
                for axis in range(columns.size):
                    records[columns[axis], place] = (cell // strides[axis]) % sizes[axis]


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

    Units: ``target``, ``alpha`` and ``duplicate`` in fixed point.
    """
    cells = counts.size
    gains, losses, copies = np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    wanted = plan_gains(counts, target, alpha, state, gains)
    if wanted == 0:
        return
    free = plan_losses(counts, target, wanted, losses)
    if free == 0:
        return
    for cell in range(cells):
        if counts[cell] > 0 and gains[cell] > 0:
            # A share of a whole number of records, rounded up or down at random.
            copies[cell] = (gains[cell] * duplicate + below(state, ONE)) >> SHIFT
    freed, sources = np.empty(free, np.int64), np.empty(copies.sum(), np.int64)
    pick(codes, counts, losses, copies, state, freed, sources)
    # Where rounding leaves too few freed records, a random cell is the last to be served.
    fill(records, columns, strides, sizes, counts, gains, copies, freed, sources, below(state, cells))


@compiled
def furthest_first(
    records: Int32,
    columns: Int64,
    strides: Int64,
    axis_start: Int64,
    targets: Int64,
    cell_start: Int64,
    codes: Int32,
) -> tuple[Int64, int]:
    """The marginals by falling L1 distance of the records from their targets, and the sum of the distances.

    Shapes: as in `play_round`; ``codes`` (n,) is overwritten.
    """
    errors = np.zeros(axis_start.size - 1, np.int64)
    for place in range(errors.size):
        axes = slice(axis_start[place], axis_start[place + 1])
        target = targets[cell_start[place] : cell_start[place + 1]]
        counts = np.empty(target.size, np.int64)
        tabulate(records, columns[axes], strides[axes], codes, counts)
        errors[place] = distance(counts, target)
    return np.argsort(-errors, kind="mergesort"), int(errors.sum())


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
    codes = np.empty(records.shape[1], np.int32)
    order, error = furthest_first(records, columns, strides, axis_start, targets, cell_start, codes)
    for place in order:
        axes = slice(axis_start[place], axis_start[place + 1])
        target = targets[cell_start[place] : cell_start[place + 1]]
        counts = np.empty(target.size, np.int64)
        tabulate(records, columns[axes], strides[axes], codes, counts)
        update(records, columns[axes], strides[axes], sizes[axes], target, alpha, duplicate, state, codes, counts)
    return error
