"""The most memory that a process of its own took, as Linux tells it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import margent

STEADY = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
"""Arrow's own pool and glibc's arenas keep what was freed, more or less of it by how threads happen to run: 8 to 24 MiB
of a table that takes 2 with these. So they are set where memory is compared with memory."""

COMMAND = "import sys; from margent.cli import run; code = run(sys.argv[1:])"
"""The command line, as a program for `alone`."""

# Not resource.getrusage: what it tells of a child process begins with the peak of its parent.
_LAST = """
import sys
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(); print(int(peak) * 1024)
sys.exit(globals().get("code", 0))
"""


@dataclass(frozen=True)
class Alone:
    """What a process did: its exit code, what it printed and said, and its peak in bytes."""

    code: int
    printed: str
    said: str
    peak: int


def alone(program: str, *arguments: str, allocators: dict[str, str] | None = None, seconds: float = 600) -> Alone:
    """Run a program, whose exit code is its variable ``code``, with Margent as it is imported here."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peaks of memory are read from Linux's /proc")
    environment = os.environ | {"PYTHONPATH": str(Path(margent.__file__).parent.parent)} | (allocators or {})
    done = subprocess.run(
        [sys.executable, "-c", program + _LAST, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert "".join(lines[-1:]).isdigit(), done.stderr
    return Alone(done.returncode, "\n".join(lines[:-1]).strip(), done.stderr, int(lines[-1]))
