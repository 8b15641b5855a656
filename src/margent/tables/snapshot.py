"""One snapshot for all passes: a file that changes between two looks at it ends the run, with fixed text."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from margent.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

CHANGED = (
    "the table changed, moved or vanished after it was opened. What was charged so far stays spent. "
    "Work on a copy that nothing else writes to"
)
UNREADABLE = (
    "the table could not be read to its end (a damaged file, a failing disk, or a stream that broke off). "
    "What was charged so far stays spent. Check the file with the tool that wrote it, then start a new run"
)
CLOSED = "the table was closed already; open it again"


@dataclass(frozen=True)
class Snapshot:
    """A file as it was when it was opened: which file, its size, and when it was last written to.

    Privacy: none of it is written or shown.
    """

    path: Path
    identity: tuple[int, ...] = field(repr=False)

    @staticmethod
    def of(path: Path, shown: str | None = None) -> Snapshot:
        """The file as it is now; messages call it ``shown``, where its path may hold cells.

        Raises: TableError when there is no such file, or it is not a regular one.
        """
        called = str(path) if shown is None else shown
        if not path.exists():
            raise TableError(f"{called}: there is no such file")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise TableError(f"{called}: not a regular file; a pipe or device must be copied to a file first")
        return Snapshot(path, _identity(status))

    def check(self) -> None:
        """Raise TableError, with fixed text, unless the file is still the same."""
        try:
            same = identity_of(self.path) == self.identity
        except OSError:
            same = False
        if not same:
            raise TableError(CHANGED)


def identity_of(path: Path) -> tuple[int, ...]:
    """Which file a path leads to, its size, and when it was last written to.

    Privacy: none of it is written or shown.
    """
    return _identity(path.stat())


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def guarded(read: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches of ``read()``; whatever fails in it ends in a TableError with fixed text.

    The text of a reader's own exception may hold a cell. It is raised outside the handler, so that not even
    the exception's context carries the reader's.
    """
    batches: Iterator[pa.RecordBatch] | None = None
    while True:
        failure: str | None = None
        try:
            batches = batches if batches is not None else read()
            batch = next(batches)
        except StopIteration:
            return
        except TableError as error:
            failure = str(error)
        except Exception:
            failure = UNREADABLE
        if failure is not None:
            raise TableError(failure)
        yield batch
