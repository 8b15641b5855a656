"""The budget file on disk: an append-only SQLite table, one transaction an entry, safe among processes and crashes.

Why SQLite is set up as it is:

* BEGIN IMMEDIATE takes the one write lock before the balance is read, so no two runs can see the same rest.
* A rollback journal (mode DELETE), not a write-ahead log: between transactions the file is the whole truth, so a
  copy or backup of it is complete, and it works where shared memory does not.
* synchronous=EXTRA: the commit, and the removal of its journal from the folder, are on disk before a run may look
  at data. With less, a power cut could bring the journal back and undo a charge that was acted on.

The file is never opened but by SQLite: closing any other descriptor of it would drop the locks that a connection
of the same process holds (POSIX). Imports no accounting and no arrays, so that its crash tests are quick.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from margent.errors import BudgetError, UsageError
from margent.privacy.budget_chain import (
    GENESIS,
    Balance,
    Declaration,
    Entry,
    Reservation,
    balances,
    entry_text,
    read_entry,
    seal_of,
)

APPLICATION = 0x4D426764  # "MBgd"
VERSION = 1
MAX_BYTES = 128 * 2**20
"""A larger file is refused; a quarter of a million runs fit."""
WAIT = 60.0
"""Seconds to wait for other runs; each holds the file for milliseconds."""
PAUSE = 0.004
"""Seconds between two attempts to take the write lock."""

_OBJECTS = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, data_set TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX by_data_set ON entries (data_set, number)",
    "CREATE TRIGGER nothing_changes BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER nothing_goes BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)


class CapReachedError(BudgetError):
    """A run would pass the cap of its data set; nothing was charged. ``balance`` is what there was."""

    def __init__(self, balance: Balance) -> None:
        super().__init__(f"nothing was charged: the budget of {balance.declaration.data_set!r} does not cover this run")
        self.balance = balance


def declare(path: Path, entry: Declaration) -> None:
    """Write a data set's declaration, into a new file (readable by its owner alone) or beside those in the file.

    Raises: UsageError when the data set is declared already, or the file cannot be made; BudgetError when there is
    another file at ``path``.
    """
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        pass
    except (OSError, ValueError):
        raise UsageError(f"{path}: cannot be made; is its folder there, and may you write to it?") from None
    with _opened(path, maybe_empty=True) as file, _transaction(file):
        # Nothing at all in the file: it is new, or an earlier init was cut off before its commit.
        if file.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for statement in _OBJECTS:
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {APPLICATION}")
            file.execute(f"PRAGMA user_version = {VERSION}")
        _require_format(path, file)
        if file.execute("SELECT 1 FROM entries WHERE data_set = ?", (entry.data_set,)).fetchone():
            raise UsageError(
                f"{path}: the data set {entry.data_set!r} is declared already; no budget is changed or reset"
            )
        _append(path, file, entry)


def reserve(path: Path, wanted: Reservation) -> Balance:
    """Reserve a run's whole price, or nothing, in one transaction; the balance after it, on disk when this returns.

    The sums in ``wanted`` are filled in here. Never refunded: there is no code that takes an entry back.

    Raises: CapReachedError when the rest does not cover it; BudgetError when the file cannot be used.
    """
    with _opened(path) as file, _transaction(file):
        before = _balance(path, file, wanted.data_set)
        if wanted.cost <= 0 or wanted.delta_for_atoms < 0:
            raise BudgetError("nothing was charged: a run's price must be above 0")
        if not before.covers(wanted.cost, wanted.delta_for_atoms):
            raise CapReachedError(before)
        spent, delta_spent = before.spent + wanted.cost, before.delta_spent + wanted.delta_for_atoms
        after = before.after(replace(wanted, spent=spent, delta_spent=delta_spent))
        _append(path, file, after.reservations[-1])
    return after


def read(path: Path) -> tuple[dict[str, Balance], tuple[str, ...]]:
    """Every data set's balance, and the hashes of all entries in order; the whole file is checked.

    Raises: BudgetError naming the first entry that is not as it was written.
    """
    with _opened(path) as file:
        if file.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise _damaged(path, "SQLite finds faults in it")
        rows = file.execute("SELECT number, data_set, body, hash FROM entries ORDER BY number").fetchall()
    try:
        return balances(rows), tuple(row[3] for row in rows)
    except ValueError as fault:
        raise _damaged(path, str(fault)) from None


def _balance(path: Path, file: sqlite3.Connection, name: str) -> Balance:
    """The sums of one data set from its last entry: three look-ups however long the file is."""
    order = "SELECT number FROM entries WHERE data_set = ? ORDER BY number"
    first = file.execute(f"{order} LIMIT 1", (name,)).fetchone()
    last = file.execute(f"{order} DESC LIMIT 1", (name,)).fetchone()
    if first is None:
        raise BudgetError(
            f"{path}: no data set {name!r} is declared in it; `margent budget show` lists those there are"
        )
    declaration, latest = _sealed_entry(path, file, first[0]), _sealed_entry(path, file, last[0])
    if not isinstance(declaration, Declaration) or declaration.data_set != name or latest.data_set != name:
        raise _damaged(path, f"entry {first[0]} does not declare its data set")
    if isinstance(latest, Declaration):
        return Balance(latest)
    return Balance(declaration, latest.spent, latest.delta_spent)


def _sealed_entry(path: Path, file: sqlite3.Connection, number: int) -> Entry:
    text, seal = file.execute("SELECT body, hash FROM entries WHERE number = ?", (number,)).fetchone()
    try:
        if seal_of(_hash_of(path, file, number - 1), text) != seal:
            raise ValueError
        return read_entry(text)
    except (ValueError, TypeError, RecursionError):
        raise _damaged(path, f"entry {number} is not as it was written") from None


def _hash_of(path: Path, file: sqlite3.Connection, number: int) -> str:
    if number == 0:
        return GENESIS
    found = file.execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
    if found is None:
        raise _damaged(path, f"entry {number} is missing")
    return str(found[0])


def _append(path: Path, file: sqlite3.Connection, entry: Entry) -> None:
    (last,) = file.execute("SELECT coalesce(max(number), 0) FROM entries").fetchone()
    text = entry_text(entry)
    seal = seal_of(_hash_of(path, file, last), text)
    file.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (last + 1, entry.data_set, text, seal))


@contextmanager
def _opened(path: Path, *, maybe_empty: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to a budget file that was looked at before it is trusted; what SQLite says becomes ours."""
    _require_plain_file(path)
    try:
        # The path as a quoted URI: no character of it can be an option, and rw never makes a file.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None)) as file:
            file.execute("PRAGMA trusted_schema = OFF")
            file.execute("PRAGMA cell_size_check = ON")
            file.execute("PRAGMA synchronous = EXTRA")
            file.execute("PRAGMA fullfsync = ON")
            if file.execute("PRAGMA journal_mode").fetchone() != ("delete",):
                raise BudgetError(f"{path}: another program changed its journal mode; close that program first")
            if not maybe_empty:
                _require_format(path, file)
            yield file
    except sqlite3.Error as fault:
        raise _told(path, fault) from None


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    _begin(file)
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise


def _begin(file: sqlite3.Connection) -> None:
    """Take the write lock, asking every few milliseconds: SQLite's own waiting asks ten times a second, and where
    many runs come at once somebody then never gets a turn.
    """
    give_up = time.monotonic() + WAIT
    file.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            file.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as fault:
            if not _name_of(fault).startswith("SQLITE_BUSY") or time.monotonic() > give_up:
                raise
        time.sleep(PAUSE)
    file.execute(f"PRAGMA busy_timeout = {1000 * WAIT:.0f}")


def _name_of(fault: sqlite3.Error) -> str:
    return str(getattr(fault, "sqlite_errorname", "") or "")


def _require_plain_file(path: Path) -> None:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        raise BudgetError(f"{path}: there is no such budget file; make one with `margent budget init`") from None
    except (OSError, ValueError):
        raise BudgetError(f"{path}: cannot be opened; nothing was charged") from None
    if not stat.S_ISREG(facts.st_mode):
        raise BudgetError(f"{path}: not a regular file (a link, folder or device); name the budget file itself")
    if facts.st_nlink > 1:  # under two names SQLite would look for two journals
        raise BudgetError(f"{path}: the file has a second name (hard link); remove one of them")
    if facts.st_size > MAX_BYTES:
        raise BudgetError(f"{path}: larger than {MAX_BYTES // 2**20} MiB, which no budget file is; nothing was charged")
    for beside in (path.with_name(path.name + end) for end in ("-journal", "-wal")):
        # SQLite opens what lies there, and a pipe would keep it waiting for ever.
        if os.path.lexists(beside) and not stat.S_ISREG(beside.lstat().st_mode):
            raise BudgetError(f"{beside}: not a regular file, where SQLite keeps its journal; remove it")


def _require_format(path: Path, file: sqlite3.Connection) -> None:
    """Exactly the table, index and triggers of this version: a stranger's trigger could undo what is written."""
    (application,) = file.execute("PRAGMA application_id").fetchone()
    (version,) = file.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise BudgetError(f"{path}: not a Margent budget file; nothing was charged")
    if version != VERSION:
        raise BudgetError(
            f"{path}: a budget file of version {version}, and this Margent knows version {VERSION}: upgrade Margent"
        )
    if sorted(sql for (sql,) in file.execute("SELECT sql FROM sqlite_master")) != sorted(_OBJECTS):
        raise _damaged(path, "its tables are not those of a budget file")


def _damaged(path: Path, why: str) -> BudgetError:
    return BudgetError(f"{path}: damaged or altered ({why}); nothing was charged: put the latest good copy back")


def _told(path: Path, fault: sqlite3.Error) -> BudgetError:
    """SQLite's complaint in our words; its own text may quote the file."""
    name = _name_of(fault)
    for prefix, words in (
        ("SQLITE_BUSY", f"other runs held it for {WAIT:g} s; nothing was charged: try again"),
        ("SQLITE_READONLY", "cannot be written to; nothing was charged: check who may write to it and its folder"),
        ("SQLITE_CANTOPEN", "cannot be opened; nothing was charged: check who may write to it and its folder"),
        ("SQLITE_NOTADB", "not a Margent budget file; nothing was charged"),
        ("SQLITE_FULL", "the disk is full; nothing was charged"),
        ("SQLITE_IOERR", "the disk failed; `margent budget show` says whether this run was charged"),
    ):
        if name.startswith(prefix):
            return BudgetError(f"{path}: {words}")
    return BudgetError(f"{path}: damaged or altered ({name or 'unreadable text'}); nothing was charged")
