"""Small damage to files, from a printed seed: bytes flipped, cut, doubled, moved, and dangerous words put in."""

from __future__ import annotations

import os

import numpy as np

LONG_AUDIT = os.environ.get("MARGENT_AUDIT") == "1"

WORDS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\n", b"\r", b",", b";", b"{", b"[", b"}", b"null", b"NaN",
    b"1e999", b"-1", b"0", b"99999999999999999999999999", b"1" * 400, b"\\u0000", b"\\ud800", b"../../etc/passwd",
    b"true", b"{}" * 50, b"[" * 200, b'"a":', b'"":1,', b"\x1b[2J", b"=cmd|' /C calc'!A0", b"<script>", b"\x80\x81",
    b"1970-01-01", b"%s%n",
)  # fmt: skip


def rounds(every_commit: int, audit: int) -> int:
    """How many inputs to try: few at each commit, many in `make audit`."""
    return audit if LONG_AUDIT else every_commit


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """``data`` after one to four small changes."""
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, len(data) + 1))
        size = int(rng.geometric(0.1))
        kind = int(rng.integers(0, 6))
        if kind == 0 and place < len(data):
            data = data[:place] + bytes([data[place] ^ (1 << int(rng.integers(0, 8)))]) + data[place + 1 :]
        elif kind == 1:
            data = data[:place] + data[place + size :]
        elif kind == 2:
            data = data[:place] + data[place : place + size] * 2 + data[place + size :]
        elif kind == 3:
            data = data[:place]
        elif kind == 4:
            other = int(rng.integers(0, len(data) + 1))
            data = data[:place] + data[other : other + size] + data[place:]
        else:
            data = data[:place] + WORDS[int(rng.integers(0, len(WORDS)))] + data[place:]
    return data
