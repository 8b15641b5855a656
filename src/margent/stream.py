"""Public randomness for sampling and post-processing: the same seed gives the same bytes on any machine.

Never used for privacy noise: that comes from `margent.privacy.randomness`, which no seed can reach.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


class Stream:
    """A reproducible stream named by a seed and labels; different labels give independent streams.

    Only raw 64-bit words of the generator are used, because numpy guarantees those, and not the methods
    built on them, to stay the same between versions.

    Privacy: none: post-processing.

    >>> Stream(7, "decode", "age").below(10, 3).tolist() == Stream(7, "decode", "age").below(10, 3).tolist()
    True
    """

    def __init__(self, seed: int, *labels: str) -> None:
        if seed < 0:
            raise ValueError("a seed is a whole number of at least 0")
        text = "\x1f".join([str(seed), *labels]).encode()
        self._bits = np.random.PCG64(int.from_bytes(hashlib.sha256(text).digest(), "little"))

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` uniform 64-bit words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def unit(self, count: int) -> NDArray[np.float64]:
        """Uniform multiples of 2^-53 in [0, 1)."""
        return np.asarray((self.words(count) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)

    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        """Uniform integers in 0 .. bound - 1 (bound at most 2^63); bias at most bound / 2^64."""
        if not 1 <= bound <= 2**63:
            raise ValueError("bound must be in 1 .. 2^63")
        return scaled(self.words(count), np.uint64(bound))

    def permutation(self, count: int) -> NDArray[np.int64]:
        """A uniform order of 0 .. count - 1."""
        return np.argsort(self.words(count), kind="stable").astype(np.int64)

    def seed64(self) -> int:
        """One word, to seed a compiled loop."""
        return int(self.words(1)[0])


def scaled(words: NDArray[np.uint64], bounds: NDArray[np.uint64] | np.uint64) -> NDArray[np.int64]:
    """floor(word * bound / 2^64): uniform words become uniform integers in 0 .. bound - 1, one bound a word or for all.

    Units: bounds in 1 .. 2^63; bias at most bound / 2^64.
    Privacy: none: post-processing.

    >>> scaled(np.array([0, 2**63, 2**64 - 1], np.uint64), np.array([6, 6, 2**63], np.uint64)).tolist()
    [0, 3, 9223372036854775807]
    """
    # The high half of the 128-bit product, from 32-bit halves: numpy has no 128-bit integers.
    low_word, high_word = words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)
    low, high = bounds & np.uint64(0xFFFFFFFF), bounds >> np.uint64(32)
    carry = (low_word * low) >> np.uint64(32)
    middle = high_word * low + carry
    cross = low_word * high + (middle & np.uint64(0xFFFFFFFF))
    product: NDArray[np.uint64] = high_word * high + (middle >> np.uint64(32)) + (cross >> np.uint64(32))
    return product.astype(np.int64)
