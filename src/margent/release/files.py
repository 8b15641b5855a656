"""Files of a release, which may be a stranger's: only regular ones are opened, and no more is read than is stated.

A pipe would wait for a writer for ever, a device has no end, a sparse file of gigabytes takes no room on disk. A link
is followed: stores that keep files by their content make links, and what counts is the file that it leads to.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from margent.errors import SchemaError, TranscriptError
from margent.schema.strict_json import load_bytes

MAX_JSON_BYTES = 64 * 2**20
MAX_INTEGERS = 2**28
"""Noisy integers of a release: two gibibytes."""
# What took the file's place after it was looked at must neither make us wait nor become our terminal.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a release, read strictly: size-limited, UTF-8, no NaN, no key twice.

    Privacy: none: released files are public.
    Raises: TranscriptError naming the file.
    """
    if not path.exists():
        raise TranscriptError(f"{path}: there is no such file; is this a release folder?")
    try:
        content = load_bytes(path, MAX_JSON_BYTES)
    except SchemaError as fault:
        raise TranscriptError(f"{path}: {fault.faults[0].message}") from None
    try:
        document = json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_refused, parse_float=_finite)
        if b"\\u" in content:  # half a pair of surrogates is valid JSON and no text
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise TranscriptError(f"{path}: cannot be read as JSON") from None
    if not isinstance(document, dict):
        raise TranscriptError(f"{path}: not a JSON object")
    return document


def read_integers(path: Path, count: int) -> bytes:
    """The bytes of a file of exactly ``count`` integers of eight bytes.

    Privacy: none: released files are public.
    Raises: TranscriptError naming the file and the limit, before anything is read.
    """
    if count > MAX_INTEGERS:
        raise TranscriptError(
            f"{path}: transcript.json states {count:,} integers; the most that is read is {MAX_INTEGERS:,}"
        )
    try:
        # Before it is opened too: merely opening some devices does something.
        if not stat.S_ISREG(path.stat().st_mode):
            raise TranscriptError(f"{path}: not a regular file")
        with _opened(path) as stream:
            facts = os.fstat(stream.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size != 8 * count:
                raise TranscriptError(f"{path}: length or checksum differs from what transcript.json states")
            return stream.read(8 * count)
    except (OSError, ValueError):
        raise TranscriptError(f"{path}: cannot be read") from None


def table_beside(folder: Path, name: object) -> Path | None:
    """The synthetic table of that name in a release folder, a file or a folder of files; None where there is none.

    Neither the release itself nor the folder above it is one, nor what links lead to elsewhere.

    Privacy: none: names and links only.
    """
    if not isinstance(name, str) or not name.startswith("synthetic.") or Path(name).name != name:
        return None
    try:
        found = (folder / name).resolve()
        inside = [found, *found.rglob("*")] if found.is_dir() else [found]
        sound = all(path.is_file() or path.is_dir() for path in inside)
    except (OSError, ValueError, RuntimeError):
        return None
    linked = any(path.is_symlink() for path in inside)
    return folder / name if sound and not linked and found.parent == folder.resolve() else None


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, _FLAGS), "rb")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def _refused(_: str) -> float:
    raise ValueError("NaN or infinity")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("infinity")
    return value
