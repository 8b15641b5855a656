"""Damaged input by the thousand, from a printed seed: a typed error or a good answer, in bounded memory and time."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from margent.errors import MargentError
from tests.hostile.mutations import mutated

SECONDS = 2.0
MEBIBYTES = 600


@contextmanager
def overwriting(path: Path) -> Iterator[Callable[[bytes], object]]:
    """A function that makes bytes the file's content; opening it anew each time would take several times as long."""
    with path.open("wb", buffering=0) as file:

        def write(content: bytes) -> None:
            file.seek(0)
            file.write(content)
            file.truncate()

        yield write


def tried(
    name: str,
    seed_file: bytes,
    attempt: Callable[[bytes], object],
    count: int,
    allowed: type[MargentError] | tuple[type[MargentError], ...],
    damage: Callable[[bytes, random.Random], bytes] = mutated,
    seconds: float = SECONDS,
    may_all_be_good: bool = False,
) -> None:
    """``count`` damaged copies of a file: each is read or refused within ``seconds`` of work, and some are refused."""
    seed = random.SystemRandom().getrandbits(32)
    rng = random.Random(seed)
    attempt(seed_file)  # as it is it is good, and what is compiled or imported once is not in the time of the others
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for number in range(count):
        damaged = damage(seed_file, rng)
        started = time.process_time()
        try:
            attempt(damaged)
        except allowed:
            refused += 1
        except BaseException as fault:
            raise AssertionError(f"{name}: input {number} of seed {seed} raised {type(fault).__name__}") from fault
        assert time.process_time() - started < seconds, f"{name}: input {number} of seed {seed} took too long"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEBIBYTES, f"{name}: {grown:.0f} MiB more at the peak, seed {seed}"
    assert refused > 0 or may_all_be_good, f"{name}: nothing was refused: the mutations do no damage"
