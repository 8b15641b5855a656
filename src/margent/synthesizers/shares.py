"""A block's share of a table: rounded so that all blocks together have the counts of the whole, exactly.

A table that is too large for one piece is drawn in blocks of equally many records, each on its own. If every block
rounded alone, all would round a rare cell down, and the union would lose it. So they round as one: block j of J adds
(p_j + v) / J before it cuts off fractions, with p_0 .. p_(J-1) an order of 0 .. J - 1 and v in [0, 1) common to all.
By Hermite's identity, sum_j floor(x + (j + v) / J) = floor(J x + v): the union is apportioned as one table would be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.stream import Stream
from margent.synthesizers.apportion import apportion

_UNIT = 2**40
"""Shares are multiples of 1 / _UNIT, so that sums are exact; up to 2^22 blocks of 2^22 records, all fits 64 bits."""


@dataclass(frozen=True)
class Share:
    """Block ``index`` of ``count`` blocks of equally many records of the table with this ``seed``.

    Privacy: none: public numbers.
    """

    index: int = 0
    count: int = 1
    seed: int = 0

    @cached_property
    def place(self) -> int:
        """Where the block stands in the order of rounding: a stride near the golden section of the number of blocks, so
        that the first few blocks are spread evenly too."""
        golden = self.count * (math.sqrt(5) - 1) / 2
        middle = round(golden)
        sides = (1, -1) if middle < golden else (-1, 1)  # the nearer one first
        near = (middle + side * away for away in range(self.count) for side in sides)
        stride = next(each for each in near if each > 0 and math.gcd(each, self.count) == 1)
        return self.index * stride % self.count

    def counts(self, weights: NDArray[np.float64], rows: int, start: float) -> NDArray[np.int64]:
        """The block's counts: whole, summing to ``rows``, each the floor or ceiling of rows * weight.

        Over all blocks they sum to an apportionment of all records. ``start`` counts where there is one block only.

        Shapes: one weight of at least 0 a cell (all zero: all cells alike); one count a cell, whatever the axes.
        Privacy: none: post-processing.

        >>> weights = np.array([1.0, 3.0, 0.2])
        >>> [Share(block, 4, 7).counts(weights, 5, 0.0).tolist() for block in range(4)]
        [[1, 3, 1], [2, 3, 0], [1, 4, 0], [1, 4, 0]]
        """
        flat = np.maximum(weights, 0.0).ravel()
        if self.count == 1 or flat.size == 0:
            return apportion(flat, rows, start).reshape(weights.shape)
        cuts = np.cumsum(flat if flat.any() else np.ones_like(flat))
        whole, part = np.divmod(np.rint(cuts / cuts[-1] * _UNIT).astype(np.int64) * rows, _UNIT)
        ends = whole + (part * self.count + self.place * _UNIT + self._common >= _UNIT * self.count)
        counts: NDArray[np.int64] = np.diff(ends, prepend=0).reshape(weights.shape)
        return counts

    def built(self, rows: int, total: int, enough: int) -> int:
        """How many records to build for ``rows``: fewer than ``enough`` are drawn from a table of at most ``total``.

        A block is built as it is: the others make up for what so few records cannot follow.
        """
        return max(rows, min(total, enough)) if rows > 0 and self.count == 1 else rows

    def starts(self, own: NDArray[np.float64], *labels: str) -> NDArray[np.float64]:
        """Where systematic sampling starts in each of several groups: a lattice of step 1 / count over the blocks.

        ``own`` counts where there is one block only; groups told by ``labels`` and position have a shift of their own.

        Shapes: as many uniform numbers in [0, 1) as there are groups.
        """
        if self.count == 1:
            return own
        shifts = Stream(self.seed, "share", *labels).unit(own.size)
        return np.asarray((shifts + self.place / self.count) % 1.0)

    @cached_property
    def _common(self) -> int:
        return int(Stream(self.seed, "share").below(_UNIT, 1)[0])


WHOLE = Share()
"""All of a table, in one block."""


def shuffled_codes(weights: NDArray[np.float64], rows: int, stream: Stream, share: Share = WHOLE) -> NDArray[np.int32]:
    """A column of ``rows`` codes with apportioned counts, in uniformly random order.

    Shapes: one weight a code; ``rows`` codes.
    Privacy: none: post-processing.
    """
    counts = share.counts(weights, rows, float(stream.unit(1)[0]))
    codes = np.repeat(np.arange(weights.size, dtype=np.int32), counts)
    shuffled: NDArray[np.int32] = codes[stream.permutation(rows)]
    return shuffled
