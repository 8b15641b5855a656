"""Files as Arrow reads and writes them itself, under any name that the system takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal


def arrow_file(path: Path, mode: Literal["rb", "wb"] = "rb") -> Any:
    """An open file of Arrow's own, to be closed as any other.

    Arrow takes a name that is text for UTF-8, which a name need not be (the cell in ``key=value`` least of all), so on
    every system but Windows it is given the name's bytes.

    Raises: OSError where the system refuses.
    """
    import pyarrow as pa

    return pa.OSFile(str(path) if os.name == "nt" else os.fsencode(path), mode)
