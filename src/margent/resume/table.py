"""Whether a table is the one that a run began with, by fingerprints: nothing of it can be read off what lies on disk.

A fingerprint is a hash with the salt of its state. Whoever has the state can try a guess at it, so the state is for
its owner alone, and no fingerprint is shown or released.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from margent.tables.address import is_address, read_address
from margent.tables.spark_session import spark_name


def marks_of(table: object, salt: str | None = None) -> dict[str, Any]:
    """What a state keeps of the table: which rows its address names, and when its files were written to.

    ``salt``: that of the state, None for a new one.

    Privacy: for the owner of the table alone.
    Raises: UsageError where an address cannot be read.
    """
    salt = secrets.token_hex(16) if salt is None else salt
    return {"salt": salt, "rows": _fingerprint(salt, _rows_named(table)), "modified": modified(table)}


def differences(before: Any, table: object) -> list[str]:
    """What tells that a run's table is named otherwise than when its state was made, without repeating any of it.

    ``before``: the `marks_of` of then.

    Privacy: none: what was asked for, and nothing of it is shown.
    """
    salt = before.get("salt") if isinstance(before, dict) else None
    if isinstance(salt, str) and before.get("rows") == _fingerprint(salt, _rows_named(table)):
        return []
    return ["table: its address names other rows than then (a table, where= or query=; neither of the two is shown)"]


def _rows_named(table: object) -> list[Any]:
    """The table, condition or query of an address, or a name of Spark's; empty for files and objects in memory."""
    if isinstance(table, str) and is_address(table):
        address = read_address(table)
        return [address.engine, address.table, address.where, address.query]
    name = spark_name(table)
    return [] if name is None else ["spark", name]


def _fingerprint(salt: str, facts: Any) -> str:
    return hashlib.blake2b(json.dumps([salt, facts]).encode(), digest_size=16).hexdigest()


def modified(table: object) -> str:
    """When a table's file, or the last file of its folder, was written to; empty where the table is no file.

    No size and nothing of the content: this may lie on disk.

    Units: nanoseconds, as text.
    Privacy: none: a time.
    """
    if not isinstance(table, str | Path):
        return ""
    try:
        path = Path(table)
        files = [Path(place) / name for place, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
        return str(max((file.stat().st_mtime_ns for file in files), default=0))
    except (OSError, ValueError):
        return ""
