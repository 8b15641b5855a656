"""Which value of a bin is written: uniformly drawn, its middle, a whole number, or from a tail of public shape.

All of it is exact integer arithmetic on words of a public stream, so that the same seed gives the same values anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent.schema.bins import CutError, Cuts, cut
from margent.schema.parts import Decode, Field, Tail
from margent.schema.positions import Position
from margent.stream import scaled

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Draws:
    """Value codes and words -> indices on the grid of the values that may be written.

    Shapes: ``first`` and ``count`` have one entry a bin: the first index and how many may be drawn; ``apart`` are
    indices in some bin (``owner``) that never are: special codes, spikes and missing tokens. Indices count ``step``
    grid values each.
    Privacy: none: a function of the schema.
    """

    first: Indices
    count: NDArray[np.uint64]
    apart: tuple[int, ...] = ()
    owner: tuple[int, ...] = ()
    step: int = 1
    rule: Decode | None = None
    half: int = 1

    def of(self, codes: Indices, words: NDArray[np.uint64]) -> Indices:
        """One grid index a code.

        Shapes: one word a code.
        """
        drawn = self.first[codes] + self._offsets(codes, words)
        for index, bin_code in zip(self.apart, self.owner, strict=True):
            drawn += (drawn >= index) & (codes == bin_code)
        return drawn * self.step

    def _offsets(self, codes: Indices, words: NDArray[np.uint64]) -> Indices:
        counts = self.count[codes]
        if self.rule == "midpoint":
            return ((counts - np.uint64(1)) // np.uint64(2)).astype(np.int64)
        offsets = scaled(words, counts)
        if isinstance(self.rule, Tail):
            last = codes == self.count.size - 1
            offsets[last] = halving(words[last], int(self.count[-1]), self.half)
        return offsets


def draws_of(field: Field, cuts: Cuts, apart: Sequence[Position] = ()) -> Draws:
    """How values of a field are drawn inside its bins; ``apart`` are positions that never are.

    Privacy: none: a function of the schema.
    Raises: ValueError where a bin holds no whole number and only those are to be written.
    """
    step = 1
    if field.decode == "integer" and field.type == "number":
        step = int(1 / cuts.grid.unit)
        cuts = _whole_cuts(field, apart)
    first = np.array(cuts.first, dtype=np.int64)
    within = tuple(index for index in cuts.apart if cuts.first[0] <= index <= cuts.grid.floor(cuts.maximum))
    owner = tuple(int(np.searchsorted(first, index, side="right")) - 1 for index in within)
    half = 1
    if isinstance(field.decode, Tail):
        given = field.decode.half
        half = max(1, cuts.count[-1] // 4 if given is None else round(Fraction(given) / cuts.grid.unit))
    return Draws(first, np.array(cuts.count, dtype=np.uint64), within, owner, step, field.decode, half)


def _whole_cuts(field: Field, apart: Sequence[Position]) -> Cuts:
    """The same bins, of which only whole numbers may be written.

    Raises: ValueError where one of them holds none.
    """
    try:
        return cut(replace(field, decimals=0), apart)
    except CutError as error:
        raise CutError(
            'with decode "integer" every bin needs a whole number of its own (special codes, spikes and missing '
            "tokens aside); use wider bins, or another way to decode",
            error.codes,
        ) from None


def halving(words: NDArray[np.uint64], count: int, half: int) -> Indices:
    """0 .. count - 1, each piece of ``half`` of them half as likely as the one before, uniform within a piece.

    An exponential law in steps, cut off at ``count``: the piece is the number of leading zeros of the word, modulo the
    number of pieces, which is the same law given that it ends there; the bits after the first one draw inside it.

    >>> halving(np.array([2**63, 2**62, 2**61 + 2**60], np.uint64), 25, 10).tolist()
    [0, 10, 22]
    """
    zeros, rest = _leading_zeros(words)
    pieces = -(-count // half)
    piece = zeros % pieces
    width = np.minimum(half, count - piece * half).astype(np.uint64)
    return piece * half + scaled(rest, width)


def _leading_zeros(words: NDArray[np.uint64]) -> tuple[Indices, NDArray[np.uint64]]:
    """How many zero bits stand before the first one (63 at most), and the bits after it, moved to the front."""
    zeros, rest = np.zeros(words.size, dtype=np.int64), words.copy()
    for size in (32, 16, 8, 4, 2, 1):
        low = rest < np.uint64(1 << (64 - size))
        zeros += low * size
        rest = np.where(low, rest << np.uint64(size), rest)
    return zeros, rest << np.uint64(1)
