"""How a budget file is opened, locked and trusted: SQLite, set up so that crashes and many runs at once lose nothing.

Why SQLite is set up as it is:

* BEGIN IMMEDIATE takes the one write lock before the balance is read, so no two runs can see the same rest.
* A rollback journal (mode DELETE), not a write-ahead log: between transactions the file is the whole truth, so a
  copy or backup of it is complete, and it works where shared memory does not.
* synchronous=EXTRA: the commit, and the removal of its journal from the folder, are on disk before a run may look
  at data. With less, a power cut could bring the journal back and undo a charge that was acted on.

The file is never opened but by SQLite: closing any other descriptor of it would drop the locks that a connection
of the same process holds (POSIX).
"""

from __future__ import annotations

import errno
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from margent.errors import BudgetError

APPLICATION = 0x4D426764  # "MBgd"
VERSION = 2
"""2: runs tell their looks, and by which column persons are told apart; version 1 is read, and is 2 once written to."""
READABLE = (1, 2)
MAX_BYTES = 128 * 2**20
"""A larger file is refused, and none is made. A run takes about 470 bytes, each of its looks 400, with short sums."""
MAX_BYTES_FOR_A_RUN = 120 * 2**20
"""No run begins in a larger file: those that have begun need room for their looks. 27,000 runs of ten looks fit."""
WAIT = 60.0
"""Seconds to wait for other runs; each holds the file for milliseconds."""
PAUSE = 0.004
"""Seconds between two attempts to take the write lock."""

OBJECTS = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, data_set TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX by_data_set ON entries (data_set, number)",
    "CREATE TRIGGER nothing_changes BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER nothing_goes BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)


@contextmanager
def opened(path: Path, *, maybe_empty: bool = False) -> Iterator[sqlite3.Connection]:
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
                require_format(path, file)
            yield file
    except sqlite3.Error as fault:
        raise _told(path, fault) from None
    except UnicodeDecodeError:  # SQLite quotes damaged bytes, and Python cannot read what it says
        raise damaged(path, "unreadable text") from None


@contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[None]:
    """All that is written within stands together, on disk, or nothing of it; nobody else writes meanwhile."""
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
        try:
            regular = stat.S_ISREG(beside.lstat().st_mode)
        except FileNotFoundError:  # another run's journal comes and goes
            continue
        except OSError:
            raise _no_journal(path) from None
        if not regular:
            raise BudgetError(f"{beside}: not a regular file, where SQLite keeps its journal; remove it")


def require_short_name(path: Path) -> None:
    """Refuse a name that leaves no room for that of SQLite's journal, before a file is made that cannot be opened.

    Raises: BudgetError.
    """
    try:
        path.with_name(path.name + "-journal").lstat()
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            raise _no_journal(path) from None
    except ValueError:  # a name that is none, which whoever makes the file finds out
        return


def _no_journal(path: Path) -> BudgetError:
    return BudgetError(f"{path}: SQLite could not keep its journal beside it; take a shorter name")


def require_format(path: Path, file: sqlite3.Connection) -> None:
    """Exactly the table, index and triggers of this version: a stranger's trigger could undo what is written."""
    (application,) = file.execute("PRAGMA application_id").fetchone()
    (version,) = file.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise BudgetError(f"{path}: not a Margent budget file; nothing was charged")
    if version not in READABLE:
        raise BudgetError(
            f"{path}: a budget file of version {version}, and this Margent knows versions up to {VERSION}: upgrade "
            "Margent"
        )
    if sorted(sql for (sql,) in file.execute("SELECT sql FROM sqlite_master")) != sorted(OBJECTS):
        raise damaged(path, "its tables are not those of a budget file")


def damaged(path: Path, why: str) -> BudgetError:
    """The refusal of a file that is not as it was written."""
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
