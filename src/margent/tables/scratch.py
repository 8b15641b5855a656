"""Whether temporary copies can be made, found out before anything is charged: a folder is a public fact."""

from __future__ import annotations

import tempfile
from pathlib import Path

from margent.errors import TableError


def require_scratch(folder: Path | None) -> None:
    """Refuse a folder for temporary copies (None: the system's) in which no file can be made.

    Whether a copy is needed may hang on how many rows there are. Found out only then, a folder that is not there would
    make one row decide between an answer and a run that is spent for nothing.

    Privacy: none: no row is read.
    Raises: TableError naming the folder and the next step.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="margent-"):
            return
    except OSError:
        pass
    where = "the system's folder for temporary files" if folder is None else str(folder)
    raise TableError(
        f"{where}: no temporary file can be made there, and copies of what is read may be needed; nothing was "
        "charged: set TMPDIR (or spool_folder) to a folder that you may write to"
    )
