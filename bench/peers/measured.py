"""A command, run and measured: processor seconds of it and its children, peak memory, how it ended. POSIX only."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of one unit of ru_maxrss."""


@dataclass(frozen=True)
class Measured:
    """``failed`` is empty where the command ended well. Units: seconds, bytes."""

    cpu: float
    wall: float
    memory: int
    failed: str


def run_measured(command: Sequence[str | Path], limit: float, most_memory: float, log: Path) -> Measured:
    """Run until it ends, ``limit`` seconds have passed or it holds ``most_memory`` bytes; then its group is killed.

    ``log`` takes what it says. The peak is the largest of its processes' peaks, no sum; where that is below this
    process's own, which Linux has a child begin with, it is that of the command's first process as seen while it ran.
    """
    began = time.monotonic()
    stopped, seen = "", 0
    in_order = os.environ | {"PYTHONUNBUFFERED": "1"}  # else what was printed first may come after the fault
    with log.open("wb") as said:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=in_order,
        )
        try:
            while True:
                done, status, used = os.wait4(process.pid, os.WNOHANG)
                if done:
                    break
                seen = max(seen, peak(process.pid))
                if not stopped and time.monotonic() - began > limit:
                    stopped = f"did not end within {limit:g} s"
                if not stopped and resident(process.pid) > most_memory:
                    stopped = f"was stopped at {most_memory / 2**30:g} GiB of memory"
                if stopped:
                    kill_group(process.pid)
                time.sleep(0.05)
        except BaseException:
            kill_group(process.pid)
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    failed = stopped or ("" if process.returncode == 0 else last_words(log, process.returncode))
    told = used.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss or seen == 0
    return Measured(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * PEAK_UNIT if told else seen, failed)


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def resident(pid: int) -> int:
    """Bytes in memory now; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize()


def peak(pid: int) -> int:
    """Most bytes in memory so far; 0 where the system does not tell."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return 0 if found is None else 1024 * int(found[1])


def last_words(log: Path, code: int) -> str:
    """The last line that has letters; others are what is left of brackets and pictures."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if re.search("[A-Za-z]", line)]
    return "failed: " + (lines[-1][:160] if lines else f"exit code {code}")
