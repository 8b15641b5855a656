"""The names that numpy, pandas, pyarrow and polars give to types -> the types of a schema."""

from __future__ import annotations

import re

from margent.schema.parts import FieldType

_WHOLE = re.compile(r"u?int(?:8|16|32|64|ptr)?")
_REAL = re.compile(r"float(?:16|32|64|128)?|double|number|numeric|decimal(?:128|256)?(?:[(\[].*)?")
_TEXT = ("str", "string", "utf8", "large_string", "large_utf8")


def type_of_dtype(dtype: str) -> tuple[FieldType | None, str | None]:
    """The type that a dtype's name stands for, and its time zone; None where it says nothing of the values.

    >>> type_of_dtype("UInt8"), type_of_dtype("datetime64[ns, Europe/Berlin]"), type_of_dtype("object")
    (('integer', None), ('datetime', 'Europe/Berlin'), (None, None))
    """
    name = dtype.strip().lower().removesuffix("[pyarrow]").removesuffix("dtype")
    if _WHOLE.fullmatch(name) or name == "integer":
        return "integer", None
    if _REAL.fullmatch(name):
        return "number", None
    if name in ("bool", "boolean", "bool_"):
        return "boolean", None
    if name in _TEXT or name.startswith("string["):
        return "string", None
    if name in ("date", "date32", "date64") or name.startswith("date32["):
        return "date", None
    if name.startswith(("datetime", "timestamp")):
        zone = re.search(r"\[\s*\w+\s*,\s*(?:tz=)?([^\]]+?)\s*\]", dtype)
        return "datetime", zone.group(1) if zone else None
    return ("time", None) if name in ("time", "time64") else (None, None)
