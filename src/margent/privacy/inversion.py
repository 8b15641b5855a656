"""Exact inversion: uniform bits in, draws of a bracketed law out, with as many bits as each draw needs.

Sixteen bits decide nearly every draw by one look into a table; those that do not decide get 48 more and a
search among the brackets; those that still do not (fewer than one in 2^40) get 64 more at a time and
brackets to match. A draw is therefore a function of an unlimited uniform bit string, evaluated lazily, and
its law is the exact one: nothing is rounded, and no tail is cut. The proof is in `proofs/discrete-laws.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from margent.privacy.brackets import Brackets, Law
from margent.privacy.randomness import random_bits, random_words

BLOCK = 1 << 16  # draws at once: words, table and outcomes stay in the second-level cache


def refine(brackets: Callable[[int], Brackets], string: int, bits: int, step: int) -> int:
    """The outcome of the uniform number that begins with ``string``, drawing ``step`` more bits as needed.

    Privacy: none by itself: a sampler's last resort.
    """
    while (outcome := brackets(bits).outcome(string)) is None:
        string = string << step | random_bits(step)
        bits += step
    return outcome


def decision_table(brackets: Brackets) -> tuple[NDArray[np.signedinteger], int]:
    """For each string of ``brackets.bits`` bits its outcome, or a mark where it has several; and the mark.

    Shapes: (2^bits,).
    Privacy: none: constants of the law.
    """
    strings = np.arange(1 << brackets.bits, dtype=np.int64)
    lows = np.array(brackets.lows, dtype=np.int64)
    highs = np.array(brackets.highs, dtype=np.int64)
    index = np.searchsorted(lows, strings, side="right") - 1
    decided = (index >= 0) & (index < lows.size - 1) & (highs[index] <= strings)
    outcomes = index + brackets.first
    reach = int(np.abs(outcomes[decided]).max(initial=0))
    size = 16 if reach < 2**15 - 1 else 64  # the smaller table is the faster
    mark = -(2 ** (size - 1))
    return np.where(decided, outcomes, mark).astype(f"i{size // 8}"), mark


def starting_places(lows: NDArray[np.uint64], first: int, second: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each string of ``first`` bits, where the last low end at or below its least continuation to ``second`` bits
    stands, and whether more than one further low end lies among its continuations.

    So a search of a draw's last low end is one comparison nearly always: a third of the time of one among all.

    Shapes: (2^first,), twice; -1 where no low end is so small.
    Privacy: none: constants of the law.
    """
    least = np.arange(1 << first, dtype=np.uint64) << np.uint64(second - first)
    greatest = least | np.uint64((1 << (second - first)) - 1)
    place = np.searchsorted(lows, least, side="right") - 1
    return place, np.searchsorted(lows, greatest, side="right") - 1 > place + 1


class Inversion:
    """A sampler of one unbounded law, ready to be drawn from; safe to share between threads.

    ``first`` (8 or 16) and ``second`` (above ``first``, at most 64) are the number of bits at which a draw is
    first and next decided. They change speed, never the law; narrow ones let a test visit every string.
    """

    def __init__(self, law: Law, *, first: int = 16, second: int = 64) -> None:
        """Make the tables: milliseconds at usual scales, growing with the scale."""
        brackets = law.brackets(second)
        self.table, self.mark = decision_table(brackets.coarser(first))
        self._first, self._second = first, second
        self._outcome = brackets.first
        self._lows = np.array(brackets.lows, dtype=np.uint64)
        # Clipping 2^64 to 2^64 - 1 changes nothing: the last string is below no bracket's low end.
        self._highs = np.array([min(high, 2**64 - 1) for high in brackets.highs], dtype=np.uint64)
        self._place, self._crowded = starting_places(self._lows, first, second)
        self._finer = lru_cache(maxsize=4)(law.brackets)

    def draw(self, count: int) -> NDArray[np.int64]:
        """``count`` independent draws.

        Shapes: (count,).
        """
        draws = np.empty(count, dtype=np.int64)
        prefix_kind = np.dtype(f"u{self._first // 8}")
        for start in range(0, count, BLOCK):
            block = draws[start : start + BLOCK]
            words = random_words(-(-block.size * self._first // 64))
            prefixes = words.view(prefix_kind)[: block.size]
            outcomes = self.table.take(prefixes)
            block[:] = outcomes
            pending = np.flatnonzero(outcomes == self.mark)
            if pending.size:
                block[pending] = self._continue(prefixes[pending])
        return draws

    def _continue(self, prefixes: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
        """Finish draws whose first bits did not decide."""
        more = self._second - self._first
        extra = random_words(prefixes.size) >> np.uint64(64 - more)
        strings = prefixes.astype(np.uint64) << np.uint64(more) | extra
        outcomes, decided = self.search(strings)
        for place in np.flatnonzero(~decided):
            outcomes[place] = refine(self._finer, int(strings[place]), self._second, self._second)
        return outcomes

    def search(self, strings: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The outcome of each string of ``second`` bits, and whether it is certain.

        Shapes: (n,), (n,).
        """
        prefixes = (strings >> np.uint64(self._second - self._first)).astype(np.intp)
        index = self._place.take(prefixes)
        index += self._lows.take(index + 1, mode="clip") <= strings
        several = np.flatnonzero(self._crowded.take(prefixes))
        index[several] = np.searchsorted(self._lows, strings[several], side="right") - 1
        decided = (index >= 0) & (index < self._lows.size - 1)
        decided &= self._highs.take(index, mode="clip") <= strings
        return index + self._outcome, decided
