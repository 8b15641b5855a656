"""Damaged input by the thousand, from a printed seed: a typed error or a good answer, in bounded memory and time."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

from margent.errors import MargentError
from tests.hostile.mutations import mutated

SECONDS = 2.0
MEBIBYTES = 600


def tried(
    name: str,
    seed_file: bytes,
    attempt: Callable[[bytes], object],
    count: int,
    allowed: type[MargentError] | tuple[type[MargentError], ...],
    damage: Callable[[bytes, np.random.Generator], bytes] = mutated,
    seconds: float = SECONDS,
    may_all_be_good: bool = False,
) -> None:
    """``count`` damaged copies of a file: each is read or refused within ``seconds`` of work, and some are refused."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    rng = np.random.default_rng(seed)
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
