"""A full disk, a failing disk, a kill: whatever is written is whole or absent, and the run says so in fixed words."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from margent.cli import run
from margent.release.folder import whole_folder
from tests.conftest import people_rows, write_csv
from tests.sizes import rounds

FAULTS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)[: rounds(2, 4)]
"""Each at each of 37 writes of three formats: 222 faults at every commit, 444 in an audit."""
WRITES = ((Path, "write_bytes"), (Path, "mkdir"), (Path, "rename"), (os, "fsync"), (os, "open"))


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, at: int, code: int, root: Path) -> Iterator[list[str]]:
    """The ``at``-th call below ``root`` that writes fails with ``code``; gives the list of calls made."""
    made: list[str] = []

    def wrap(owner: Any, name: str) -> Callable[..., Any]:
        genuine = getattr(owner, name)

        def call(first: Any, *rest: Any, **options: Any) -> Any:
            if isinstance(first, int) or str(first).startswith(str(root)):
                made.append(name)
                if len(made) == at:
                    raise OSError(code, os.strerror(code))
            return genuine(first, *rest, **options)

        return call

    with monkeypatch.context() as patch:
        for owner, name in WRITES:
            patch.setattr(owner, name, wrap(owner, name))
        yield made


def synthesis(table: Path, schema: Path, out: Path, kind: str, *more: str) -> int:
    return run(["synthesize", str(table), "--schema", str(schema), "--epsilon", "1", "--single-release", "--seed", "1",
                "--rows", "50", "--method", "independent", "--format", kind, "-q", "-o", str(out), *more])  # fmt: skip


def hidden(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_every_failing_write_leaves_nothing(
    kind: str, people_csv: Path, people_schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place = tmp_path / "place"
    place.mkdir()
    with failing(monkeypatch, 0, 0, place) as calls:
        assert synthesis(people_csv, people_schema, place / "whole", kind) == 0
    assert len(calls) >= 36
    whole = sorted(path.name for path in (place / "whole").rglob("*"))
    for code in FAULTS:
        for at in range(1, len(calls) + 1):
            out = place / f"{code}-{at}"
            with failing(monkeypatch, at, code, place):
                outcome = synthesis(people_csv, people_schema, out, kind)
            said = capsys.readouterr().err
            if out.exists():
                # Only what comes after the rename may fail and leave it: then it is whole.
                assert sorted(path.name for path in out.rglob("*")) == whole
            else:
                assert outcome != 0
                assert said.startswith("margent:")
            if hidden(place):
                # Something had been charged: what was bought is kept for its owner, and is enough to end the run.
                assert hidden(place) == [f".{out.name}.margent-run"]
                assert "--resume" in said or (out.exists() and "delete it" in said)
                assert synthesis(people_csv, people_schema, out, kind, "--resume") == 0
                capsys.readouterr()
                assert sorted(path.name for path in out.rglob("*")) == whole
            assert hidden(place) == []


def test_a_disk_that_fills_up_at_any_byte_leaves_nothing(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operating system itself stops a file from growing beyond a limit, byte by byte earlier."""
    table = write_csv(tmp_path / "t.csv", people_rows(300))
    place = tmp_path / "place"
    place.mkdir()
    assert synthesis(table, people_schema, place / "whole", "csv") == 0
    longest = max(path.stat().st_size for path in (place / "whole").rglob("*") if path.is_file())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for limit in [1, 100, longest // 10, longest // 3, longest // 2]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            code = synthesis(table, people_schema, place / "OUT", "csv")
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert code != 0
            shutil.rmtree(place / ".OUT.margent-run", ignore_errors=True)  # kept where something had been charged
            assert [path.name for path in place.iterdir()] == ["whole"]
            assert "margent:" in capsys.readouterr().err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


WRITER = """
import sys
from pathlib import Path
from margent.release.folder import whole_folder
print("ready", flush=True)
number = 0
while True:
    with whole_folder(Path(sys.argv[1]) / f"OUT{number}") as draft:
        for part in range(5):
            (draft / f"{part}.txt").write_text("x" * 20000)
    number += 1
"""
NAIVE = WRITER.replace(
    'with whole_folder(Path(sys.argv[1]) / f"OUT{number}") as draft:',
    'if (draft := Path(sys.argv[1]) / f"OUT{number}").mkdir() is None:',
)


def after_kill(program: str, root: Path, delay: float) -> list[bool]:
    """Kill the writer after ``delay`` seconds: of each folder under a final name, whether it is whole."""
    root.mkdir()
    with subprocess.Popen([sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = [folder for folder in root.iterdir() if not folder.name.startswith(".")]
    whole = [sorted(path.stat().st_size for path in folder.iterdir()) == [20000] * 5 for folder in finished]
    shutil.rmtree(root)  # thousands of writers would fill the memory that these folders lie in
    return whole


def test_killed_writers_leave_whole_folders_only(scratch: Path) -> None:
    kills = rounds(200, 2000)
    # How many folders a writer gets done before its end is the machine's affair; over all kills there are some.
    found = [after_kill(WRITER, scratch / str(kill), 0.01 + 0.0007 * (kill % 97)) for kill in range(kills)]
    assert any(found)
    assert all(map(all, found))
    # The same check sees a writer that works under the final name.
    naive = [after_kill(NAIVE, scratch / f"n{kill}", 0.01 + 0.0007 * kill) for kill in range(30)]
    assert not all(map(all, naive))


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "OUT") as draft:  # noqa: PT012
        (draft / "a").write_text("a")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
