"""Hot loops over persons: a hash table of 128-bit pseudonyms, and at most k rows of each.

Two passes over the pseudonyms of all rows. The first counts the rows of each person; the second meets a person's
rows again, with n of them left (this one among them), and keeps this one with probability (what may still be
kept) / n: every k of a person's rows are equally likely. Memory is that of the table, whatever the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PersonTable:
    """Open addressing on the second word; a slot with ``left`` 0 is free as long as rows are counted.

    Shapes: one entry a slot.
    Privacy: exact and private.
    """

    first: Words
    second: Words
    left: Counts
    quota: Counts

    @staticmethod
    def empty(slots: int) -> PersonTable:
        """A table without persons."""
        first, second = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
        return PersonTable(first, second, np.zeros(slots, np.int64), np.zeros(slots, np.int64))


@compiled
def count_rows(
    rows: Words, low: np.uint64, high: np.uint64, first: Words, second: Words, left: Counts, used: int, most: int
) -> tuple[int, int]:
    """Count rows of persons whose first word is in [low, high]; stop before a person too many for the table.

    Shapes: ``rows`` (n, 2). Returns the rows done and the slots used.
    """
    mask = first.size - 1
    for row in range(rows.shape[0]):
        a, b = rows[row, 0], rows[row, 1]
        if (a == 0 and b == 0) or a < low or a > high:
            continue
        slot = np.int64(b & np.uint64(mask))
        while left[slot] != 0 and (first[slot] != a or second[slot] != b):
            slot = (slot + 1) & mask
        if left[slot] == 0:
            if used >= most:
                return row, used
            first[slot], second[slot] = a, b
            used += 1
        left[slot] += 1
    return rows.shape[0], used


@compiled
def take_out(
    rows: Words,
    low: np.uint64,
    high: np.uint64,
    first: Words,
    second: Words,
    left: Counts,
    slots: Counts,
    numbers: Counts,
) -> None:
    """For each row in range: its person's slot, and how many of their rows are left with it; else slot -1.

    The counts end at 0 with their slots still taken: a search ends at equal keys here, never at a free slot.
    """
    mask = first.size - 1
    for row in range(rows.shape[0]):
        a, b = rows[row, 0], rows[row, 1]
        slots[row], numbers[row] = -1, 0
        if (a == 0 and b == 0) or a < low or a > high:
            continue
        slot = np.int64(b & np.uint64(mask))
        while first[slot] != a or second[slot] != b:
            slot = (slot + 1) & mask
        slots[row], numbers[row] = slot, left[slot]
        left[slot] -= 1


@compiled
def choose(slots: Counts, numbers: Counts, words: Words, quota: Counts, kept: NDArray[np.bool_]) -> None:
    """Keep row i of n left where floor(word n / 2^64) is below its person's quota, which then falls by one.

    Source: selection sampling, Fan, Muller, Rezucha 1962.
    """
    for row in range(slots.size):
        if slots[row] < 0:
            continue
        # The high half of a 128-bit product, from 32-bit halves.
        word, n = words[row], np.uint64(numbers[row])
        half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
        middle = (word >> half) * (n & low) + (((word & low) * (n & low)) >> half)
        cross = (word & low) * (n >> half) + (middle & low)
        drawn = (word >> half) * (n >> half) + (middle >> half) + (cross >> half)
        if np.int64(drawn) < quota[slots[row]]:
            quota[slots[row]] -= 1
            kept[row] = True
