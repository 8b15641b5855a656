"""What marks an output as INTERNAL, and where such an output may not be written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from margent.errors import UsageError
from margent.release.folder import INTERNAL, refuse_existing, whole_folder

LABEL = "INTERNAL: computed from the real data, not differentially private"
"""Stands in every file and at the top of every page made from real rows."""

WHAT_IT_MEANS = (
    "Keep it where the real table is kept and show it to nobody who may not see the real rows: exact figures about "
    "real rows can reveal single people, whatever the synthetic table protects. Choosing which release to publish "
    "by these scores is itself a release about the real rows: it is not covered by the promise, and neither are "
    "changes of the schema made because of what is shown here."
)

_RELEASE_FILES = ("charges.json", "measurements", "release.html")


def is_release(folder: Path) -> bool:
    """Whether a folder is (the top of) a release."""
    return any((folder / name).exists() for name in _RELEASE_FILES) and (folder / "summary.json").exists()


def release_of(path: Path) -> Path | None:
    """The release folder that a path is, or lies in, if any; also one that lost files, or its measurements alone."""
    resolved = path.resolve()
    return next((folder for folder in (resolved, *resolved.parents) if _was_release(folder)), None)


def _was_release(folder: Path) -> bool:
    parts = sum((folder / name).exists() for name in (*_RELEASE_FILES, "summary.json"))
    return parts > 1 or all((folder / name).exists() for name in ("transcript.json", "answers.i64"))


def refuse_release(out: Path) -> None:
    """Refuse an output folder that exists or lies inside a release, before any row is read.

    Raises: UsageError naming the folder and the next step.
    """
    inside = release_of(out)
    if inside is not None:
        raise UsageError(
            f"{out} is inside the release {inside}, which may be published whole: what is computed from real rows "
            "must not lie there; choose a folder outside of it"
        )
    refuse_existing(out)


def save_internal(out: Path, files: Mapping[str, bytes]) -> Path:
    """Write a folder of INTERNAL files, whole or not at all, that only its owner can enter.

    Privacy: the files hold exact figures of real rows; their names begin with INTERNAL.
    Raises: UsageError when the folder exists or lies inside a release.
    """
    refuse_release(out)
    if any(not name.startswith(INTERNAL) for name in files):
        raise ValueError("a file made from real rows is named INTERNAL...")
    with whole_folder(out) as folder:
        if os.name != "nt":
            folder.chmod(0o700)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return out
