"""Output folders appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from margent.errors import TableError, UsageError

INTERNAL = "INTERNAL"
"""How the name of every file begins that was made from real rows."""


def refuse_existing(out: Path) -> None:
    """Refuse an output path that exists, or whose parent does not, before anything is charged.

    Raises: UsageError naming the path and the next step.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists already; choose another name or remove it first")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out.absolute().parent} is not a folder; create it first")


def internal_files(folder: Path) -> list[Path]:
    """What lies in a folder, at any depth, under a name that marks it as made from real rows; also links to it.

    A link is not followed any further than to what it leads to and, where that is a folder, to the names in it.

    Privacy: names only.
    Raises: OSError where a folder cannot be looked into: what it holds is not known.
    """
    paths = (
        Path(inside, name) for inside, folders, files in os.walk(folder, onerror=_raised) for name in (*folders, *files)
    )
    return sorted(path for path in paths if _is_internal(path))


def _raised(error: OSError) -> NoReturn:
    raise error


def _is_internal(path: Path) -> bool:
    names = [path.name]
    if path.is_symlink():
        target = Path(os.path.realpath(path))
        names += [target.name, *(each.name for each in target.iterdir())] if target.is_dir() else [target.name]
    return any(name.upper().startswith(INTERNAL) for name in names)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Give a temporary folder beside ``out`` and rename it to ``out`` on success; on any failure remove it.

    Raises: UsageError when ``out`` exists, TableError when the disk refuses.
    """
    with _whole(out) as draft:
        draft.mkdir()
        yield draft


def whole_file(out: Path, content: bytes) -> None:
    """Write one file under a temporary name beside ``out`` and rename it on success; on any failure leave nothing.

    Raises: UsageError when ``out`` exists, TableError when the disk refuses.
    """
    with _whole(out) as draft:
        draft.write_bytes(content)


def replaced_file(path: Path, content: bytes) -> None:
    """Write a file over one that exists, under a temporary name first: whoever looks sees the old or the new, whole.

    A link is followed, permissions stay.

    Raises: TableError when the disk refuses.
    """
    target = path.resolve()
    draft = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    try:
        draft.write_bytes(content)
        shutil.copymode(target, draft)
        flush(draft)
        draft.replace(target)
        flush(target.parent)
    except BaseException as fault:
        with suppress(OSError):
            draft.unlink()
        if isinstance(fault, OSError):
            raise _refused(path, fault) from None
        raise


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """Give a temporary name beside ``out``; what lies there is flushed to disk, then renamed, or else removed.

    So a crash leaves all of it or nothing.
    """
    refuse_existing(out)
    parent = out.absolute().parent
    draft = parent / f".{out.name}.{secrets.token_hex(8)}.part"
    try:
        yield draft
        for path in sorted(draft.rglob("*"), reverse=True):
            flush(path)
        flush(draft)
        # Another run may have made OUT meanwhile; on POSIX a rename onto an empty folder would replace it.
        refuse_existing(out)
        draft.rename(parent / out.name)
        flush(parent)
    except BaseException as fault:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            with suppress(OSError):  # where nothing can be made there is nothing to remove
                draft.unlink()
        if isinstance(fault, OSError):
            raise _refused(out, fault) from None
        raise


def _refused(path: Path, fault: OSError) -> TableError:
    return TableError(f"{path}: cannot be written: {fault.strerror or 'input/output error'}")


def flush(path: Path) -> None:
    """Have a file or folder on the disk when this returns; folders cannot be flushed on Windows."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
