"""Why the state of a run cannot be used: damaged is what stays so; all else may pass, and then the state must be kept.

To delete a sound state is to pay again for what it holds.
"""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

from margent.errors import UsageError

SAID = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's complaints become; one that quotes damaged bytes cannot even be told."""
_KEEP = "Nothing more was charged: see to that and try again. Keep the folder, which holds answers that are paid for"
_PASSING = (
    ("SQLITE_READONLY", "the run's state cannot be written to: check who may write to the folder, and what it lies on"),
    ("SQLITE_CANTOPEN", "the run's state cannot be opened: check who may read and write there, and that no more files "
     "are open than this system lets a process open"),
    ("SQLITE_PERM", "the run's state cannot be opened: check who may read and write there"),
    ("SQLITE_FULL", "the disk is full"),
    ("SQLITE_NOMEM", "there was not enough memory to read the run's state"),
    ("SQLITE_IOERR", "the disk failed, or what it is reached by"),
)  # fmt: skip


def damaged(folder: Path) -> UsageError:
    """The refusal of a state that is not as it was written."""
    return UsageError(
        f"{folder}: damaged or altered; the run cannot be resumed, and what it charged stays spent. Put a good copy of "
        "the folder back, or delete it and start a new run"
    )


def refusal(folder: Path, fault: sqlite3.Error | UnicodeDecodeError) -> UsageError:
    """SQLite's complaint in our words; its own text may quote the file.

    Privacy: none: what happened, and no content.
    """
    name = str(getattr(fault, "sqlite_errorname", "") or "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return UsageError(f"{folder}: another process is going on with this run; wait for it")
    # Without a name it is Python's: a text, of the file or of the complaint about it, that is none.
    if not name or name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return damaged(folder)
    words = next(
        (words for prefix, words in _PASSING if name.startswith(prefix)), f"the run's state cannot be read ({name})"
    )
    return UsageError(f"{folder}: {words}. {_KEEP}")


def is_there(place: Path) -> bool:
    """Whether there is something, be it a link to nothing.

    Raises: UsageError where nobody can tell.
    """
    return _mode(place) is not None


def require_state(folder: Path, name: str) -> None:
    """Refuse a folder that is none, or does not hold the file ``name`` of a run's state.

    Raises: UsageError; what cannot be looked at is not said to be absent.
    """
    mode = _mode(folder)
    if mode is not None and stat.S_ISLNK(mode):
        raise UsageError(f"{folder}: a link; give the folder itself, in which the run's state is kept (--state)")
    inside = _mode(folder / name) if mode is not None and stat.S_ISDIR(mode) else None
    if inside is None:
        raise UsageError(f"{folder}: there is no interrupted run to resume; leave --resume out to start one")
    if not stat.S_ISREG(inside):
        raise damaged(folder)


def _mode(place: Path) -> int | None:
    try:
        return place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        pass
    raise UsageError(
        f"{place}: cannot be looked at: check the name, and who may enter the folders that it lies in. Nothing "
        "more was charged: see to that and try again"
    )
