"""Secret uniform bits for privacy noise: AES-256 in counter mode under keys from the operating system.

All noise comes from here, and so do the keys of pseudonyms; run ids, seeds that nobody gave and names of drafts are no
secrets and come from elsewhere. There is no seed, no way to set or read a key, and no state that two threads or two
processes could share: each thread keys its own stream, a forked child forgets its parent's, and a stream takes a new
key after 2^24 blocks (256 MiB), where counter mode is within 2^-80 of uniform. Not covered: a virtual machine copied
while it runs.
"""

from __future__ import annotations

import os
import threading

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

_ZEROS = memoryview(bytes(1 << 18))
_BYTES_PER_KEY = 1 << 28
_BLOCK = 16  # bytes; older releases of cryptography want the output this much longer than the input


class _Stream:
    """The key stream of one thread."""

    def __init__(self) -> None:
        self._process = -1
        self._left = 0
        self._cipher: CipherContext

    def fill(self, buffer: memoryview, size: int) -> None:
        """Write ``size`` bytes of key stream; ``buffer`` is one cipher block longer."""
        # The process number is checked beside the fork hook because a fork made outside Python runs no hook.
        if self._process != os.getpid():
            self._left = 0
        start = 0
        while start < size:
            if self._left == 0:
                self._take_key()
            length = min(size - start, len(_ZEROS), self._left)
            self._cipher.update_into(_ZEROS[:length], buffer[start:])
            self._left -= length
            start += length

    def _take_key(self) -> None:
        # A key is used once, so the counter may start at zero.
        self._cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(_BLOCK))).encryptor()
        self._left = _BYTES_PER_KEY
        self._process = os.getpid()


class _Streams(threading.local):
    """Each thread sees its own stream, so none waits and a fork can find no lock held."""

    def __init__(self) -> None:
        self.own = _Stream()


_streams = _Streams()


def _forget() -> None:
    _streams.own = _Stream()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def random_words(count: int) -> NDArray[np.uint64]:
    """``count`` independent uniform 64-bit words that nobody can predict or repeat.

    Shapes: (count,).
    Privacy: what noise is made of; never log, store or reuse them.

    >>> random_words(3).shape
    (3,)
    """
    words = np.empty(count + _BLOCK // 8, dtype=np.uint64)
    _streams.own.fill(words.data.cast("B"), 8 * count)
    return words[:count]


def random_bits(width: int) -> int:
    """A uniform integer in 0 .. 2^width - 1.

    Privacy: as `random_words`.

    >>> random_bits(0)
    0
    """
    return int.from_bytes(random_bytes((width + 7) // 8), "little") & ((1 << width) - 1)


def random_bytes(count: int) -> bytes:
    """``count`` independent uniform bytes.

    Privacy: as `random_words`.

    >>> len(random_bytes(5))
    5
    """
    return random_words((count + 7) // 8).tobytes()[:count]
