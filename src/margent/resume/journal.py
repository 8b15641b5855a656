"""The journal of a run: charges before the look, noisy answers before their use; one SQLite file for its owner alone.

It holds what the run is (public facts), its charges and its committed noisy answers. No exact count, key or noise is
ever handed to this module. An entry is one transaction, on disk when the call returns; the file stays locked as long
as it is open, so that no second process can go on with the same run, and a lock dies with its process.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import MargentError, UsageError
from margent.privacy.budget_chain import is_run_id
from margent.privacy.charge import Charge
from margent.release.answer_json import answer_to_json, integers
from margent.release.charge_json import charge_from_json, charge_to_json
from margent.release.folder import flush
from margent.resume.refusals import SAID, damaged, is_there, refusal, require_state
from margent.schema.domain import Merge
from margent.transcript import Answer

APPLICATION = 0x4D427273  # "MBrs"
VERSION = 3
"""2: each call bears a mark. 3: marks of the table."""
FILE = "run.sqlite"
PART = 2**20
"""Integers in one row of the file: SQLite holds at most a gigabyte in one."""

_OBJECTS = (
    "CREATE TABLE run (id TEXT NOT NULL, facts TEXT NOT NULL)",
    "CREATE TABLE charges (number INTEGER PRIMARY KEY, call INTEGER NOT NULL, mark TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE calls (call INTEGER PRIMARY KEY, merges TEXT NOT NULL)",
    "CREATE TABLE answers (call INTEGER, place INTEGER, body TEXT NOT NULL, PRIMARY KEY (call, place))",
    "CREATE TABLE integers (call INTEGER, place INTEGER, part INTEGER, data BLOB, PRIMARY KEY (call, place, part))",
)

_ODD = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, MargentError)
"""What reading a document that is not as it was written may raise."""


@dataclass(frozen=True)
class Call:
    """One call at the door: its charges, which of all these are, and whether its answers were committed.

    ``mark``: a random number, drawn with the charges. Copies of one state share the marks of the calls that they share.

    Privacy: none: charges are public.
    """

    number: int
    first: int
    charges: tuple[Charge, ...]
    answered: bool
    mark: str


class Journal:
    """Append-only, durable and held by one process: `charged` before the look, `answered` before the use.

    Privacy: what it is given is public or paid for; see the module.
    """

    def __init__(self, folder: Path, file: sqlite3.Connection) -> None:
        """Use `made` or `opened`."""
        self._folder, self._file = folder, file
        (self._charges,) = file.execute("SELECT count(*) FROM charges").fetchone()
        (self._call,) = file.execute("SELECT coalesce(max(call), 0) FROM charges").fetchone()

    @staticmethod
    def made(folder: Path, run: str, facts: Mapping[str, Any]) -> Journal:
        """A new journal in a new folder that its owner alone may enter.

        Raises: UsageError where the folder exists or cannot be made.
        """
        if is_there(folder):
            raise UsageError(f"{folder}: exists already; it is where this run would keep its state")
        draft = folder.parent / f".{folder.name.lstrip('.')}.{secrets.token_hex(8)}.part"
        ours = draft  # what this call made; the folder may have been made by another process meanwhile
        try:
            draft.mkdir(mode=0o700)
            os.close(os.open(draft / FILE, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(_connection(draft)) as file, file:
                file.execute("BEGIN")
                for statement in _OBJECTS:
                    file.execute(statement)
                file.execute(f"PRAGMA application_id = {APPLICATION}")
                file.execute(f"PRAGMA user_version = {VERSION}")
                file.execute("INSERT INTO run VALUES (?, ?)", (run, json.dumps(facts)))
            flush(draft)
            draft.rename(folder)  # whole or absent, like all that is written
            ours = folder
            flush(folder.absolute().parent)
        except (sqlite3.Error, OSError, ValueError):
            shutil.rmtree(ours, ignore_errors=True)
            raise UsageError(f"{folder}: the run's state cannot be kept there; nothing was charged") from None
        return Journal.opened(folder)

    @staticmethod
    def opened(folder: Path) -> Journal:
        """The journal of an interrupted run, held from now on.

        Raises: UsageError where there is none, another process goes on with it, or it is damaged.
        """
        require_state(folder, FILE)
        try:
            file = _connection(folder)
        except SAID as fault:
            raise refusal(folder, fault) from None
        try:
            (application,) = file.execute("PRAGMA application_id").fetchone()
            (version,) = file.execute("PRAGMA user_version").fetchone()
            if (application, version) != (APPLICATION, VERSION):
                raise UsageError(f"{folder}: not the state of a run that this version of Margent can resume")
            # Another table, or a stranger's trigger, could undo what is written.
            objects = file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            if sorted(str(sql) for (sql,) in objects) != sorted(_OBJECTS):
                raise damaged(folder)
            return Journal(folder, file)
        except SAID as fault:
            file.close()
            raise refusal(folder, fault) from None
        except BaseException:
            file.close()
            raise

    @property
    def run(self) -> str:
        """The run's random id.

        Raises: UsageError where the journal is damaged, as all that reads it.
        """
        with self._reading():
            ((found,),) = self._file.execute("SELECT id FROM run").fetchall()
            if not is_run_id(found):
                raise ValueError
            return str(found)

    @property
    def facts(self) -> dict[str, Any]:
        """``run``: what the run is, in public facts; ``table``: what tells that the table is the same."""
        with self._reading():
            ((text,),) = self._file.execute("SELECT facts FROM run").fetchall()
            document: dict[str, Any] = json.loads(text)
            if set(document) != {"run", "table"} or not all(isinstance(part, dict) for part in document.values()):
                raise ValueError
            return document

    def charged(self, charges: Sequence[Charge]) -> str:
        """Write all charges of one call, on disk when this returns: before the look. The call's mark.

        Raises: MargentError where the disk fails; there must be no look then.
        """
        self._call += 1
        mark = secrets.token_hex(16)
        rows = [
            (self._charges + place, self._call, mark, json.dumps(charge_to_json(charge)))
            for place, charge in enumerate(charges)
        ]
        self._written([("INSERT INTO charges VALUES (?, ?, ?, ?)", row) for row in rows])
        self._charges += len(rows)
        return mark

    def answered(self, answers: Sequence[Answer], merges: Mapping[str, Merge]) -> None:
        """Commit the noisy answers of the last call, on disk when this returns: before anything is made of them.

        Raises: MargentError where the disk fails; the answers are then lost and their charges stay spent.
        """
        groups = {name: [merge.column, list(merge.groups)] for name, merge in merges.items()}
        rows: list[tuple[str, tuple[Any, ...]]] = [
            ("INSERT INTO calls VALUES (?, ?)", (self._call, json.dumps(groups)))
        ]
        for place, answer in enumerate(answers):
            body = json.dumps(answer_to_json(answer, 0))
            rows.append(("INSERT INTO answers VALUES (?, ?, ?)", (self._call, place, body)))
            numbers = np.ascontiguousarray(integers(answer), dtype="<i8").reshape(-1)
            for part in range(-(-numbers.size // PART)):
                data = numbers[part * PART : (part + 1) * PART].tobytes()
                rows.append(("INSERT INTO integers VALUES (?, ?, ?, ?)", (self._call, place, part, data)))
        self._written(rows)

    def calls(self) -> tuple[Call, ...]:
        """All calls so far, in order.

        Raises: UsageError where the journal is damaged.
        """
        with self._reading():
            rows = self._file.execute("SELECT number, call, mark, body FROM charges ORDER BY number").fetchall()
            committed = {call for (call,) in self._file.execute("SELECT call FROM calls")}
            by_call: dict[tuple[int, str], list[tuple[int, Charge]]] = {}
            for expected, (number, call, mark, body) in enumerate(rows):
                if number != expected or not is_run_id(mark):
                    raise ValueError
                by_call.setdefault((call, mark), []).append((number, charge_from_json(json.loads(body))))
            if [call for call, _ in by_call] != list(range(1, len(by_call) + 1)):
                raise ValueError
            return tuple(
                Call(number, held[0][0], tuple(charge for _, charge in held), number in committed, mark)
                for (number, mark), held in by_call.items()
            )

    def answers(self, call: Call) -> tuple[dict[str, Merge], list[tuple[dict[str, Any], NDArray[np.int64]]]]:
        """The merges and answers of a call as they were committed: each a document and its integers.

        Raises: UsageError where the journal is damaged.
        """
        key = (call.number,)
        with self._reading():
            (text,) = self._file.execute("SELECT merges FROM calls WHERE call = ?", key).fetchone()
            merges = {name: Merge(column, tuple(groups)) for name, (column, groups) in json.loads(text).items()}
            found = []
            for place, body in self._file.execute("SELECT place, body FROM answers WHERE call = ? ORDER BY place", key):
                parts = self._file.execute(
                    "SELECT data FROM integers WHERE call = ? AND place = ? ORDER BY part", (call.number, place)
                )
                numbers = np.frombuffer(b"".join(data for (data,) in parts), dtype="<i8").astype(np.int64)
                found.append((json.loads(body), numbers))
            return merges, found

    def close(self) -> None:
        """Let go of the lock; the folder stays."""
        self._file.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Whatever odd thing is read ends in words: a fault of the disk in its own, all else as damage."""
        try:
            yield
        except SAID as fault:
            raise refusal(self._folder, fault) from None
        except _ODD:
            raise damaged(self._folder) from None

    def _written(self, rows: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        try:
            with self._file:
                self._file.execute("BEGIN")
                for statement, values in rows:
                    self._file.execute(statement, values)
        except SAID:
            raise MargentError(
                f"{self._folder}: the run's state could not be written (is the disk full?); what was charged so far "
                "stays spent"
            ) from None


def _connection(folder: Path) -> sqlite3.Connection:
    """A connection that takes the file's lock at once and keeps it; each commit is flushed to the disk."""
    uri = f"{(folder / FILE).absolute().as_uri()}?mode=rw"
    file = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("trusted_schema = OFF", "synchronous = EXTRA", "fullfsync = ON", "locking_mode = EXCLUSIVE"):
            file.execute(f"PRAGMA {pragma}")
        file.execute("BEGIN EXCLUSIVE")
        file.execute("COMMIT")
    except BaseException:
        file.close()
        raise
    return file
