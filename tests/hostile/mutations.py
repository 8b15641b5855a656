"""Small damage to files, from a printed seed: bytes flipped, cut, doubled, moved, dangerous words put in; odd JSON."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import random
from collections.abc import Sequence
from typing import Any, TypeVar

WORDS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\n", b"\r", b",", b";", b"{", b"[", b"}", b"null", b"NaN",
    b"1e999", b"-1", b"0", b"99999999999999999999999999", b"1" * 400, b"\\u0000", b"\\ud800", b"../../etc/passwd",
    b"true", b"{}" * 50, b"[" * 200, b'"a":', b'"":1,', b"\x1b[2J", b"=cmd|' /C calc'!A0", b"<script>", b"\x80\x81",
    b"1970-01-01", b"%s%n",
)  # fmt: skip


Choice = TypeVar("Choice")


# A call of numpy's generator for one number, or of `random.randrange`, takes longer than the damage itself.
def below(rng: random.Random, most: int) -> int:
    """A whole number from 0 on that is less than ``most``."""
    return int(rng.random() * most)


def one_of(rng: random.Random, choices: Sequence[Choice]) -> Choice:
    return choices[below(rng, len(choices))]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """``data`` after one to four small changes, of ten bytes on average."""
    for _ in range(1 + below(rng, 4)):
        place = below(rng, len(data) + 1)
        size = 1 + int(math.log(1 - rng.random()) / math.log(0.9))
        kind = below(rng, 6)
        if kind == 0 and place < len(data):
            data = data[:place] + bytes([data[place] ^ (1 << below(rng, 8))]) + data[place + 1 :]
        elif kind == 1:
            data = data[:place] + data[place + size :]
        elif kind == 2:
            data = data[:place] + data[place : place + size] * 2 + data[place + size :]
        elif kind == 3:
            data = data[:place]
        elif kind == 4:
            other = below(rng, len(data) + 1)
            data = data[:place] + data[other : other + size] + data[place:]
        else:
            data = data[:place] + one_of(rng, WORDS) + data[place:]
    return data


ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 2**31, 2**63, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308, 5e-324, float("nan"),
    float("inf"), "", "0", "1", "-1", "1/0", "1/3", "-1/2", "1e9999999", "9" * 5000, "x", "x" * 300, "\ud800", "\x00",
    "../../etc/passwd", "NaN", "2020-02-30", [], [[]], [0], [None] * 3, {}, {"": {}}, {"name": "age"},
)  # fmt: skip


def rewritten(data: bytes, rng: random.Random) -> bytes:
    """A JSON file after one to three changes that leave it JSON: a value dropped, odd, another's, moved, renamed."""
    document = json.loads(data)
    places = _places(document)
    if not places:  # "[]" or "{}"
        return json.dumps(one_of(rng, ODD_VALUES)).encode()
    for _ in range(1 + below(rng, 3)):
        holder, key = one_of(rng, places)
        other_holder, other_key = one_of(rng, places)
        kind = below(rng, 6)
        with contextlib.suppress(LookupError):  # what an earlier change took away
            if kind == 0:
                del holder[key]
            elif kind == 1:
                holder[key] = copy.deepcopy(other_holder[other_key])
            elif kind == 2:
                holder[key] = [holder[key]]
            elif kind == 3 and isinstance(holder, dict):
                holder[str(other_key)] = holder.pop(key)
            elif kind == 3:
                holder.append(copy.deepcopy(holder[key]))
            else:
                holder[key] = copy.deepcopy(one_of(rng, ODD_VALUES))
    return json.dumps(document).encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON document."""
    places: list[tuple[Any, Any]] = []
    left = [document]
    while left:
        holder = left.pop()
        values = holder.values() if isinstance(holder, dict) else holder
        places += [(holder, key) for key in (holder if isinstance(holder, dict) else range(len(holder)))]
        left += [value for value in values if isinstance(value, (dict, list))]
    return places
