"""The main job without a network, and without what other systems lack; and what it logs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import margent
from margent.cli import run
from tests.conftest import people_rows, write_csv
from tests.test_shape import EXTRA_ROWS, pinned

__all__ = ["pinned"]

NO_SOCKETS = """
import sys

def deny(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.bind", "socket.sendto",
                         "urllib.", "http.client.", "smtplib.", "ftplib.")):
        raise SystemExit(f"network: {event}")

sys.addaudithook(deny)
"""

OTHER_SYSTEM = """
import os, signal, sys, threading
# The standard library and other packages take from their system what it has; ours must not miss the rest.
import subprocess, multiprocessing, tempfile, asyncio, sqlite3, statistics, shutil
import numpy, numba, numba.np.ufunc.parallel, pyarrow.csv, pyarrow.parquet, pyarrow.feather
import click, rich.progress, jinja2, mpmath, cryptography.hazmat.primitives.ciphers

shutil.disk_usage = lambda path, told=shutil.disk_usage("."): told  # it asks each system in its own way

for module in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix_ipc", "syslog", "readline"):
    sys.modules[module] = None  # importing it fails
for name in ("fork", "sysconf", "getuid", "geteuid", "O_NOFOLLOW", "O_DIRECTORY", "chown", "fchmod", "statvfs",
             "uname", "getloadavg", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGXFSZ", "SIGHUP", "SIGALRM", "alarm", "setitimer"):
    if hasattr(signal, name):
        delattr(signal, name)


class Windows:
    # `os` as our own modules see it: another name, and folders that cannot be opened.
    name = "nt"

    def __getattr__(self, wanted):
        return getattr(os, wanted)

    def open(self, path, *given, **options):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return os.open(path, *given, **options)


import importlib, pkgutil
import margent
for found in pkgutil.walk_packages(margent.__path__, "margent."):
    if not found.name.endswith("__main__"):
        module = importlib.import_module(found.name)
        if {windows} and getattr(module, "os", None) is os:
            module.os = Windows()
"""

MAIN_JOB = """
from margent.cli import run
job = ["people.csv", "--schema", "people.schema.json", "--epsilon", "1", "-q", "--method", "independent"]
for words in (
    ["budget", "init", "people.budget", "--data-set", "people", "--epsilon", "3"],
    ["plan", "--schema", "people.schema.json", "--epsilon", "1"],
    ["synthesize", *job, "--budget", "people.budget", "-o", "OUT"],
    ["synthesize", *job, "--single-release", "--format", "parquet", "-o", "OUT2"],
    ["resample", "OUT", "-o", "OUT3", "-q"],
    ["evaluate", "people.csv", "OUT", "--schema", "people.schema.json", "--no-learning", "-o", "INTERNAL"],
    ["budget", "verify", "people.budget", "OUT"],
):
    code = run(words)
    assert code == 0, (words, code)
"""

DEMO = """
from margent.cli import run
assert run(["demo", "-o", "demo"]) == 0
"""


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(Path(margent.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("people_csv", "people_schema")
def test_the_main_job_and_the_demonstration_open_no_connection(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="the demonstration's table lies in statsmodels")
    done = python(NO_SOCKETS + MAIN_JOB + DEMO, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "attempt",
    ["import socket; socket.create_connection(('127.0.0.1', 9))", "import urllib.request as u; u.urlopen('http://x/')"],
)
def test_a_connection_would_be_seen(attempt: str, tmp_path: Path) -> None:
    done = python(NO_SOCKETS + attempt, tmp_path)
    assert done.returncode == 1
    assert "network: " in done.stderr


@pytest.mark.usefixtures("people_csv", "people_schema")
@pytest.mark.parametrize("windows", [True, False], ids=["windows", "macos"])
def test_the_main_job_needs_nothing_that_other_systems_lack(tmp_path: Path, *, windows: bool) -> None:
    """As far as one machine can tell: what is missing there is missing here, in every module of ours."""
    removed = OTHER_SYSTEM.replace("{windows}", str(windows))
    done = python(removed + MAIN_JOB, tmp_path)
    assert done.returncode == 0, done.stderr
    planted = python(removed + "import os; os.sysconf('SC_PAGE_SIZE')", tmp_path)
    assert planted.returncode == 1, "what was taken away is still there"


@pytest.mark.usefixtures("pinned")
def test_what_is_logged_is_the_same_for_neighbors(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for name, rows in (("A", people_rows(60)), ("B", [*people_rows(60), EXTRA_ROWS[2]])):
        table = write_csv(tmp_path / "t.csv", rows)
        arguments = ["synthesize", str(table), "--schema", str(people_schema), "--epsilon", "0.02", "--single-release"]
        assert run([*arguments, "--seed", "4", "--rows", "50", "-v", "-o", str(tmp_path / name)]) == 0
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert "step: one-way marginals" in said[0]
    assert str(tmp_path) not in said[0]
    assert run([*arguments, "--seed", "4", "--rows", "50", "-o", str(tmp_path / "C")]) == 0
    assert capsys.readouterr().err == "", "silent unless asked to"
