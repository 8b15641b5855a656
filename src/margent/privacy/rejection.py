"""Exact draws of wide laws: a block of outcomes by inversion, a place in it by bits, an exact acceptance.

A law whose scale is far above a table's reach is cut into blocks of m = 2^e outcomes. The block Q is drawn
from the law of the blocks' largest weights exp(-E(mQ)), which is of the same kind with a scale near a
thousand; the place R in the block and the sign are uniform; the draw mQ + R is kept with probability
exp(-gamma), gamma = E(mQ + R) - E(mQ) >= 0 rational. Rejection with exact integers follows Canonne, Kamath,
Steinke 2020; there the proposal is a discrete Laplace and a third of it is lost, here under one percent is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from margent.errors import PlanError
from margent.privacy.brackets import DiscreteLaw, exp_bracket
from margent.privacy.inversion import BLOCK, Inversion
from margent.privacy.randomness import random_bits, random_words

LARGEST = 1 << 62  # in magnitude; a count below it plus a draw fits 64 bits
_BITS = 63  # of the uniform number that decides acceptance; the word's last bit is the sign


def keeps(top: int, bottom: int, string: int, bits: int) -> bool:
    """Bernoulli(exp(-gamma)), gamma = top / bottom >= 0: whether U >= 1 - exp(-gamma).

    U is uniform and begins with the ``bits`` bits ``string``; more are drawn when those leave it open.
    1 - exp(-gamma) lies between gamma - gamma^2 / 2 and gamma, which settles nearly all cases.

    Privacy: none by itself: a sampler's last step.
    """
    if string * bottom >= top << bits:
        return True
    if 2 * (string + 1) * bottom**2 <= top * (2 * bottom - top) << bits:
        return False
    while True:
        survival = exp_bracket(Fraction(top, bottom), bits)
        if string >= (1 << bits) - survival.low:
            return True
        if string + 1 <= (1 << bits) - survival.high:
            return False
        string = string << 64 | random_bits(64)
        bits += 64


@dataclass(frozen=True, slots=True)
class ExponentRise:
    """E(j + r) - E(j) of a law in whole numbers: (slope r + curvature (r j + r (r - 1) / 2)) / bottom."""

    slope: int
    curvature: int
    bottom: int

    @staticmethod
    def of(law: DiscreteLaw) -> ExponentRise:
        """Bring slope and curvature to one denominator."""
        bottom = lcm(law.slope.denominator, law.curvature.denominator)
        return ExponentRise(int(law.slope * bottom), int(law.curvature * bottom), bottom)

    def top(self, start: int, steps: int) -> int:
        """The numerator of E(start + steps) - E(start); grows with both."""
        return self.slope * steps + self.curvature * (steps * start + steps * (steps - 1) // 2)


def block_law(law: DiscreteLaw, size: int) -> DiscreteLaw:
    """Pr[Q] proportional to exp(-E(size Q)), Q >= 0: the largest weights of blocks of ``size`` outcomes.

    Privacy: none: a public law.

    >>> block_law(DiscreteLaw(Fraction(1, 800), Fraction(1, 400)), 10).exponent(3)
    Fraction(9, 8)
    """
    return DiscreteLaw(law.exponent(size), law.curvature * size * size, two_sided=False)


class BlockRejection:
    """A sampler of one two-sided law by blocks of 2^``shift`` outcomes; safe to share between threads."""

    def __init__(self, law: DiscreteLaw, shift: int) -> None:
        """Make the tables of the blocks' law."""
        self._shift = shift
        self._blocks = Inversion(block_law(law, 1 << shift))
        self._rise = ExponentRise.of(law)

    def draw(self, count: int) -> NDArray[np.int64]:
        """``count`` independent draws, each below 2^62 in magnitude.

        Shapes: (count,).
        Raises: PlanError where a draw would not fit, which no run will see: see `margent.privacy.noise`.
        """
        draws = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            kept = self._propose(min(BLOCK, (count - done) * 65 // 64 + 16))[: count - done]
            draws[done : done + kept.size] = kept
            done += kept.size
        return draws

    def _propose(self, count: int) -> NDArray[np.int64]:
        """Draw ``count`` proposals and return those that are kept, in order."""
        blocks = self._blocks.draw(count)
        last = int(blocks.max())
        if last + 1 > LARGEST >> self._shift:
            raise PlanError("a draw of noise does not fit 64 bits; use a smaller scale")
        places = (random_words(count) >> np.uint64(64 - self._shift)).view(np.int64)
        words = random_words(count)
        signs = (words & np.uint64(1)).view(np.int64)  # 1 where negative
        strings = words >> np.uint64(1)
        magnitudes = blocks << self._shift | places
        # gamma grows with block and place, and a number above the largest gamma is kept: few need a
        # closer look.
        bottom = self._rise.bottom
        largest = self._rise.top(last << self._shift, (1 << self._shift) - 1)
        unsure = min(-((-largest << _BITS) // bottom), 2**64 - 1)
        refused = [
            index
            for index in np.flatnonzero(strings < np.uint64(unsure)).tolist()
            if not keeps(
                self._rise.top(int(blocks[index]) << self._shift, int(places[index])),
                bottom,
                int(strings[index]),
                _BITS,
            )
        ]
        refused += np.flatnonzero(magnitudes < signs).tolist()  # zero has one sign
        return np.delete(magnitudes * (1 - 2 * signs), np.array(refused, dtype=np.intp))
