"""What keeps a state from being used: what may pass is told apart from damage, and whatever is odd ends in words."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from margent import Budget, RunState
from margent.errors import MargentError, UsageError
from margent.resume import journal
from margent.resume.journal import FILE, Journal
from margent.resume.state import KeptRun
from margent.resume.told import run_of, told
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.hostile.mutations import ODD_VALUES, mutated, rewritten
from tests.resume.interrupting import Cut, cut_at, made, pinned
from tests.sizes import rounds

__all__ = ["pinned"]
pytestmark = pytest.mark.usefixtures("pinned")
PEOPLE = schema_from_json(SCHEMA)
BUDGET = Budget(1, "1e-6")


class Interrupted:
    """A run that was cut off with an answer committed and another one lost; its state, and how to go on with it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.state = folder, folder / ".OUT.state"
        self.table = write_csv(folder / "t.csv", people_rows(300))
        with cut_at(5, monkeypatch), pytest.raises(Cut):
            made(self.table, PEOPLE, folder / "OUT", BUDGET, "mst", None)
        (self.whole,) = [shutil.copytree(self.state, folder / "whole")]

    def resume(self) -> None:
        made(self.table, PEOPLE, self.folder / "OUT", BUDGET, "mst", None, resume=True, pay_again=True)

    def restore(self) -> None:
        for path in (self.state, self.folder / "OUT"):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.whole, self.state)

    def uses(self) -> list[Callable[[], object]]:
        """All that reads a state."""
        state = RunState(self.state, resume=True)
        return [lambda: run_of(state), lambda: told(state, BUDGET), self.resume]


@pytest.fixture
def interrupted(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Interrupted:
    return Interrupted(scratch, monkeypatch)


def fault(name: str) -> sqlite3.OperationalError:
    made = sqlite3.OperationalError("this text names /a/private/path")
    made.sqlite_errorname = name
    return made


PASSING = {
    "SQLITE_IOERR_READ": "the disk failed",
    "SQLITE_IOERR_LOCK": "the disk failed",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_READONLY_ROLLBACK": "cannot be written to",
    "SQLITE_PERM": "cannot be opened",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_NOMEM": "not enough memory",
    "SQLITE_PROTOCOL": r"cannot be read \(SQLITE_PROTOCOL\)",
    "SQLITE_BUSY": "another process is going on",
    "SQLITE_BUSY_RECOVERY": "another process is going on",
    "SQLITE_LOCKED": "another process is going on",
}
STATEMENTS = (
    "PRAGMA application_id", "SELECT sql", "SELECT count(*)", "SELECT id", "SELECT facts", "SELECT number",
    "SELECT merges", "SELECT place", "SELECT data",
)  # fmt: skip
LASTING = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_CORRUPT_VTAB")


class Failing:
    """A connection of which one statement fails."""

    def __init__(self, genuine: sqlite3.Connection, start: str, name: str) -> None:
        self.genuine, self.start, self.name = genuine, start, name

    def execute(self, statement: str, *given: Any) -> Any:
        if statement.startswith(self.start):
            raise fault(self.name)
        return self.genuine.execute(statement, *given)

    def close(self) -> None:
        self.genuine.close()


@pytest.mark.parametrize(
    ("start", "name"),
    [
        *(("open", name) for name in (*PASSING, *LASTING)),
        *((start, name) for start in STATEMENTS for name in ("SQLITE_IOERR_READ", "SQLITE_CORRUPT")),
    ],
)
def test_what_may_pass_is_not_called_damage(
    interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch, start: str, name: str
) -> None:
    genuine = journal._connection

    def connection(folder: Path) -> Any:
        if start == "open":
            raise fault(name)
        return Failing(genuine(folder), start, name)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_connection", connection)
        with pytest.raises(UsageError) as refusal:
            interrupted.resume()
    said = str(refusal.value)
    assert "private" not in said
    assert ("damaged" in said) == (name in LASTING)
    if name in PASSING:
        assert "elete" not in said
        assert re.search(PASSING[name], said)
        assert "wait for it" in said or "Keep the folder" in said
    interrupted.resume()  # the lock was let go, and the state is as good as before


OUT_OF_DESCRIPTORS = """
import os, resource, sys
from pathlib import Path
from margent.errors import UsageError
from margent.resume.journal import Journal
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.dup(2)
except OSError:
    pass
try:
    Journal.opened(Path(sys.argv[1]))
except UsageError as refusal:
    os.write(1, str(refusal).encode())
"""


@pytest.mark.skipif(os.name == "nt", reason="has no such limit")
def test_out_of_descriptors_is_no_damage(interrupted: Interrupted) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OUT_OF_DESCRIPTORS, str(interrupted.state)], capture_output=True, timeout=120, check=True
    )
    assert b"cannot be opened" in ended.stdout
    assert b"elete" not in ended.stdout
    interrupted.resume()


def test_what_cannot_be_looked_at_is_not_said_to_be_absent(
    interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may enter everything, as a test's user may, sees no such folder: so the call itself fails."""
    genuine = Path.lstat

    for hidden in (interrupted.state, interrupted.state / FILE):

        def lstat(path: Path, hidden: Path = hidden, **options: Any) -> Any:
            if path == hidden:
                raise PermissionError(13, "Permission denied", str(path))
            return genuine(path, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "lstat", lstat)
            for use in interrupted.uses():
                with pytest.raises(UsageError, match="cannot be looked at: check the name, and who may enter"):
                    use()
    interrupted.resume()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "t.csv/state"])
def test_a_folder_that_cannot_be_is_refused_in_words(interrupted: Interrupted, name: str) -> None:
    for resume in (False, True):
        with pytest.raises(UsageError):
            RunState(interrupted.folder / name, resume=resume).require_usable()


def test_a_link_to_a_state_is_refused_with_the_next_step(interrupted: Interrupted) -> None:
    link = interrupted.folder / "link"
    link.symlink_to(interrupted.state)
    with pytest.raises(UsageError, match="a link; give the folder itself"):
        Journal.opened(link)


def cut_off_before_it_began(
    folder: Path, monkeypatch: pytest.MonkeyPatch, remove: Callable[[RunState], None], fault: type[BaseException]
) -> None:
    """A run that ends as it is to reserve its budget, and removes its state by ``remove``."""

    def reserve(*_: Any) -> None:
        raise fault

    monkeypatch.setattr(RunState, "remove", remove)
    monkeypatch.setattr(KeptRun, "reserve", reserve)
    with pytest.raises(fault):
        made(write_csv(folder / "t.csv", people_rows(30)), PEOPLE, folder / "OUT", BUDGET, "mst", None)


@pytest.mark.parametrize("fault", [Cut, UsageError])
def test_a_state_in_which_nothing_began_is_removed_while_it_is_held(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    """Else another process could go on with it between, and its charges would stand in a file that is gone."""
    genuine, tried = RunState.remove, list[bool]()

    def remove(self: RunState) -> None:
        try:
            Journal.opened(self.folder).close()
            tried.append(True)
        except UsageError:
            tried.append(False)
        genuine(self)

    cut_off_before_it_began(scratch, monkeypatch, remove, fault)
    assert tried == [False]
    assert not RunState(scratch / ".OUT.state").exists


def test_where_an_open_file_keeps_its_folder_an_empty_one_does_not_stay(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network's disk, where the name of a removed file lasts as long as it is open."""

    def remove(self: RunState) -> None:
        (self.folder / FILE).unlink()

    cut_off_before_it_began(scratch, monkeypatch, remove, Cut)
    assert not RunState(scratch / ".OUT.state").exists


def edits(rng: random.Random) -> list[tuple[str, str, Any]]:
    """Table, column and what is put there: another value, or what makes one of the document that was there."""
    deep = "[" * 100_000
    values: list[Any] = [None, 0, 1, -1, 2, 7, 2**62, 0.5, "", "x", b"", b"\xff", b"1234567", deep, '{"a":' * 50_000]
    values += [json.dumps(value) for value in ODD_VALUES]
    values.append(lambda text: rewritten(text.encode(), rng).decode())
    values.append(lambda text: text.encode()[:-1])
    columns = {
        "run": ("id", "facts"),
        "charges": ("number", "call", "mark", "body"),
        "calls": ("call", "merges"),
        "answers": ("call", "place", "body"),
        "integers": ("call", "place", "part", "data"),
    }
    return [(table, column, value) for table, each in columns.items() for column in each for value in values]


def edited(path: Path, table: str, column: str, value: Any, rng: random.Random) -> bool:
    """Put a value in a random row of a state; whether SQLite took it."""
    file = sqlite3.connect(path)
    try:
        rows = file.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        place, before = rows[rng.randrange(len(rows))]
        if callable(value) and not isinstance(before, str):
            return False
        after = value(before) if callable(value) else value
        with file:
            file.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (after, place))
        return bool(after != before)
    except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError, ValueError):
        return False
    finally:
        file.close()


def ends_in_words(interrupted: Interrupted) -> int:
    """How many uses of the state were refused; any other end than success or a typed refusal fails the test."""
    refused = list[str]()
    for use in interrupted.uses():
        try:
            use()
        except MargentError as refusal:
            refused.append(str(refusal))
    assert not any("internal fault" in said for said in refused)
    "".join(refused).encode()  # can be printed
    return len(refused)


def test_a_state_of_odd_values_ends_in_words(interrupted: Interrupted) -> None:
    rng = random.Random(1)
    chosen = edits(rng)
    tried = refused = 0
    rng.shuffle(chosen)
    for table, column, value in chosen[: rounds(250, 10**6)]:
        interrupted.restore()
        if edited(interrupted.state / FILE, table, column, value, rng):
            tried += 1
            refused += ends_in_words(interrupted) > 0
    assert tried > 100
    assert refused > tried // 2


def test_a_state_of_odd_bytes_ends_in_words(interrupted: Interrupted) -> None:
    rng = random.Random(2)
    whole = (interrupted.whole / FILE).read_bytes()
    for _ in range(rounds(60, 5000)):
        interrupted.restore()
        (interrupted.state / FILE).write_bytes(mutated(whole, rng))
        ends_in_words(interrupted)


@pytest.mark.parametrize("name", [b"tablecharges", b"CREATE TABLE charges"])
def test_a_complaint_that_is_no_text_is_damage(interrupted: Interrupted, name: bytes) -> None:
    path = interrupted.state / FILE
    path.write_bytes(path.read_bytes().replace(name, name[:4] + b"\xec\xff" + name[6:]))
    for use in interrupted.uses():
        with pytest.raises(UsageError, match="damaged or altered"):
            use()


def test_a_stranger_in_the_state_is_refused(interrupted: Interrupted) -> None:
    for statement in (
        "CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM charges; END",
        "CREATE TABLE more (a)",
        "DROP TABLE integers",
    ):
        interrupted.restore()
        file = sqlite3.connect(interrupted.state / FILE)
        file.execute(statement)
        file.close()
        for use in interrupted.uses():
            with pytest.raises(UsageError, match="damaged or altered"):
                use()
