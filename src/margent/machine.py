"""What this machine, or the container we run in, has to give: memory and processor cores. Public facts only."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

THREADS_VARIABLE = "MARGENT_THREADS"
"""The environment variable that says how many threads count, fit and draw; no result depends on it."""

MOST_THREADS = 64

BLOCK_ROWS = 65_536
"""Most rows that are read and coded at a time."""

BLOCK_CELLS = 2**22
"""Cells of a block of rows: the more columns, the fewer rows, so that memory does not grow with columns."""

TEXT_BYTES = 2**25
"""Most bytes of texts that a block of rows is made into at a time; of longer texts it has fewer rows, one at least."""

CACHED_ROWS = 16_384
"""Rows counted at a time: few enough that a block of many columns stays in the processor's cache."""

LEAST_ROWS = 1024

_SECONDS_KNOWN = 10
"""How long limits hold once they were read: containers change them seldom, and a small run would ask forty times."""

_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def machine_memory() -> int | None:
    """Bytes of memory that we may use: this machine's, or the container's where that is less; None where unknown.

    Privacy: none.
    """
    known = list(_limits(_now())[0])
    with suppress(AttributeError, ValueError, OSError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(known, default=None)


def threads() -> int:
    """Threads that count rows, fit and draw records: `THREADS_VARIABLE`, or one for each core that we may use.

    Privacy: none. Every number of threads gives the same counts and the same bytes.
    """
    asked = os.environ.get(THREADS_VARIABLE, "")
    if asked.isascii() and asked.isdigit() and int(asked) > 0:
        return min(int(asked), MOST_THREADS)
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = os.cpu_count() or 1
    return max(1, min(cores, MOST_THREADS, *_limits(_now())[1]))


def _now() -> int:
    return int(time.monotonic()) // _SECONDS_KNOWN


@lru_cache(maxsize=1)
def _limits(_moment: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Limits of memory and of cores, read once a moment."""
    membership = _text(_MEMBERSHIP)
    return tuple(memory_limits(membership, _GROUPS)), tuple(processor_limits(membership, _GROUPS))


def block_rows(columns: int) -> int:
    """Rows of so many columns that are read and coded at a time.

    Privacy: none: a function of the schema.

    >>> block_rows(16), block_rows(1000)
    (65536, 4194)
    """
    return max(LEAST_ROWS, min(BLOCK_ROWS, BLOCK_CELLS // max(columns, 1)))


def memory_limits(membership: str, groups: Path) -> Iterator[int]:
    """Limits of memory of the control groups that a process is in, and of those around them.

    ``membership`` is the text of ``/proc/self/cgroup``, ``groups`` the folder where control groups are mounted.

    Units: bytes.
    Privacy: none.
    """
    for folder, version in _folders(membership, groups, "memory"):
        text = _text(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"))
        if text.isascii() and text.isdigit():
            yield int(text)


def processor_limits(membership: str, groups: Path) -> Iterator[int]:
    """Cores, rounded up, that the control groups of a process allow it to keep busy.

    Privacy: none.
    """
    for folder, version in _folders(membership, groups, "cpu"):
        if version == 2:
            quota, _, period = _text(folder / "cpu.max").partition(" ")
        else:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota.isascii() and period.isascii() and quota.isdigit() and period.isdigit() and int(period) > 0:
            yield max(1, math.ceil(int(quota) / int(period)))


def _folders(membership: str, groups: Path, controller: str) -> Iterator[tuple[Path, int]]:
    """The folders of our groups and of all groups around them, each with the version of its files.

    A container may see its own group as the root, or the path that the group has outside: what is not there is
    passed over, and the root is always looked at.
    """
    for line in membership.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            top, version = groups, 2
        elif controller in controllers.split(","):
            top, version = groups / controller, 1
        else:
            continue
        inner = [part for part in path.split("/") if part not in ("", ".", "..")]
        for depth in range(len(inner), -1, -1):
            yield top.joinpath(*inner[:depth]), version


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
