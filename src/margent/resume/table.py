"""Whether a table is the one that a run began with, by fingerprints of what is no part of its rows.

Names of files and when they were written to; the table, condition or query that was asked for. Sizes, and what stands
behind ``key=`` in the names of folders, come from rows and are in no fingerprint. A fingerprint is a hash with the salt
of its state. Whoever has the state can try a guess at it, so the state is for its owner alone, and none is shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from margent.errors import TableError
from margent.tables.address import is_address, read_address
from margent.tables.options import kind_by_suffix
from margent.tables.spark_session import spark_name


def marks_of(table: object, salt: str | None = None) -> dict[str, Any]:
    """What a state keeps of the table: which rows its address names, and which files it was.

    ``salt``: that of the state, None for a new one.

    Privacy: for the owner of the table alone.
    Raises: UsageError where an address cannot be read; TableError where the files cannot be looked at.
    """
    salt = secrets.token_hex(16) if salt is None else salt
    return {"salt": salt, "rows": _fingerprint(salt, _rows_named(table)), "files": _fingerprint(salt, _files(table))}


def differences(before: Any, table: object) -> list[str]:
    """What tells that a run's table is named otherwise than when its state was made, without repeating any of it.

    ``before``: the `marks_of` of then.

    Privacy: none: what was asked for, and nothing of it is shown.
    """
    salt = before.get("salt") if isinstance(before, dict) else None
    if isinstance(salt, str) and before.get("rows") == _fingerprint(salt, _rows_named(table)):
        return []
    return ["table: its address names other rows than then (a table, where= or query=; neither of the two is shown)"]


def require_same_files(before: Mapping[str, Any], table: object) -> None:
    """Refuse to look at other files than those that a run began with.

    ``before``: the `marks_of` of then.

    Privacy: none: names and times of files, none of them shown.
    Raises: TableError.
    """
    if before.get("files") != _fingerprint(str(before.get("salt")), _files(table)):
        raise TableError(
            "the table's file was written to since the run began, or put in its place, or a file of its folder was "
            "added or taken away, and its answers would be of two tables; nothing more was charged. Put the files of "
            "then back, with their times, or start a new run (what was charged stays spent)"
        )


def _files(table: object) -> list[Any]:
    """Time of a file, and for those of a folder the names within it; empty where the table is no file."""
    if not isinstance(table, str | Path) or is_address(table) or spark_name(table) is not None:
        return []
    try:
        status = Path(table).stat()
        return _named_apart(sorted(_listed(str(table)))) if stat.S_ISDIR(status.st_mode) else [status.st_mtime_ns]
    except (OSError, ValueError):
        pass
    # Outside the handler: the system's error names the file, whose folders' names may hold cells.
    raise TableError("the table's files cannot be looked at: check that they are there, and who may read them")


def _rows_named(table: object) -> list[Any]:
    """The table, condition or query of an address, or a name of Spark's; empty for files and objects in memory."""
    if isinstance(table, str) and is_address(table):
        address = read_address(table)
        return [address.engine, address.table, address.where, address.query]
    name = spark_name(table)
    return [] if name is None else ["spark", name]


def _fingerprint(salt: str, facts: Any) -> str:
    return hashlib.blake2b(json.dumps([salt, facts]).encode(), digest_size=16).hexdigest()


def _listed(folder: str, below: str = "") -> Iterator[tuple[str, int]]:
    """Name within the folder and time of each file that may be one of the table's (`margent.tables.folders`)."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] in "._":
                continue
            name = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _listed(entry.path, f"{name}/")
            elif kind_by_suffix(entry.name) is not None:
                yield name, entry.stat().st_mtime_ns


def _named_apart(files: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The files with numbers for the names of folders that hold cells (``key=value``): another folder, another number.

    >>> _named_apart([("day=mon/a.csv", 5), ("day=sun/a.csv", 6)])
    [('day=0/a.csv', 5), ('day=1/a.csv', 6)]
    """
    valued = sorted({part for name, _ in files for part in name.split("/")[:-1] if "=" in part})
    numbers = {part: f"{part.partition('=')[0]}={number}" for number, part in enumerate(valued)}
    named = []
    for name, written in files:
        *folders, last = name.split("/")
        named.append(("/".join([*(numbers.get(part, part) for part in folders), last]), written))
    return named
