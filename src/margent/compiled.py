"""Compilation of the few hot loops, with its disk cache in a folder of our own that only the user can enter."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def _cache_folder() -> Path | None:
    """A folder of mode 0700 owned by us, or None where there is none to be had (then nothing is cached).

    The compiler's cache files are pickles, so a folder that others can write is never used.
    """
    base = os.environ.get("MARGENT_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base) if base else Path.home() / ".cache"
        folder = root / "margent" / "compiled"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
            return None
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):
        return None


def compiled(function: Function) -> Function:
    """Compile a numeric loop to machine code on first use; results are those of the Python it replaces.

    No fast-math and no contraction, so that bytes agree between machines: those of integers always, those of floats
    where loops take exponentials, logarithms and products from `margent.postprocessing.steady`.
    Privacy: none: changes speed only.
    """
    import numba

    folder = _cache_folder()
    if folder is not None:
        setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010  (typed as if it had no such setting)
    return cast(Function, numba.njit(cache=folder is not None, nogil=True)(function))
