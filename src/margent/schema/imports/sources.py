"""Which format a description is of, told by its content or by name: the one list of formats that are read."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from margent.errors import UsageError
from margent.schema.imports.imported import Imported
from margent.schema.imports.lines import delimiter_of, utf8_text
from margent.schema.imports.nist import from_nist, tells_nist
from margent.schema.imports.pandera import from_pandera, tells_pandera
from margent.schema.imports.postgresql import from_postgresql, tells_postgresql
from margent.schema.imports.redcap import from_redcap, tells_redcap
from margent.schema.imports.sdnist import from_sdnist, tells_sdnist
from margent.schema.imports.sdv import from_sdv, tells_sdv
from margent.schema.imports.sheet import from_sheet, tells_sheet
from margent.schema.strict_json import load_bytes, parse_strict


@dataclass(frozen=True)
class Format:
    """A format: what it is in words, what its files hold, how one is told, and how it is read."""

    words: str
    holds: Literal["json", "csv", "sql"]
    tells: Callable[[Any], bool]
    read: Callable[..., Imported]
    tables: bool = False


FORMATS: dict[str, Format] = {
    "nist": Format("parameters.json of a NIST privacy challenge", "json", tells_nist, from_nist),
    "sdnist": Format("an SDNist data dictionary (JSON)", "json", tells_sdnist, from_sdnist),
    "sdv": Format("SDV metadata (JSON)", "json", tells_sdv, from_sdv, tables=True),
    "redcap": Format("a REDCap data dictionary (CSV)", "csv", tells_redcap, from_redcap),
    "pandera": Format("a pandera schema from schema.to_json()", "json", tells_pandera, from_pandera),
    "postgresql": Format("PostgreSQL CREATE TABLE statements", "sql", tells_postgresql, from_postgresql, tables=True),
    "sheet": Format("one line a column (CSV, from `margent schema export`)", "csv", tells_sheet, from_sheet),
}  # fmt: skip


def import_schema(path: str | Path, *, file_format: str | None = None, table: str | None = None) -> Imported:
    """The draft that a foreign description of a table gives, with a report of what was left out.

    Privacy: none: descriptions are public; rows that a file may hold (a database dump's) are never read.
    Raises: SchemaError listing every fault with its line or pointer; UsageError where the format is not clear.
    """
    path = Path(path)
    content, subject = load_bytes(path), str(path)
    name = file_format if file_format is not None else _told(content, subject)
    if name not in FORMATS:
        raise UsageError(f"--format {name}: is not one of {', '.join(FORMATS)}")
    form = FORMATS[name]
    if table is not None and not form.tables:
        raise UsageError(f"--table {table}: {form.words} describes one table; leave it out")
    read: Any = parse_strict(content, subject) if form.holds == "json" else utf8_text(content, subject)
    return form.read(read, subject, table) if form.tables else form.read(read, subject)


def _told(content: bytes, subject: str) -> str:
    """The one format that the content is of.

    Raises: UsageError listing the formats where it is of none or of several.
    """
    held: dict[str, Any] = {}
    text = utf8_text(content, subject)
    if text.lstrip()[:1] in ("{", "["):
        held["json"] = parse_strict(content, subject)
    else:
        held["csv"], held["sql"] = _header(text), text
    found = [name for name, form in FORMATS.items() if form.holds in held and form.tells(held[form.holds])]
    if len(found) == 1:
        return found[0]
    if isinstance(held.get("json"), dict) and isinstance(held["json"].get("fields"), list):
        raise UsageError(
            f"{subject} is a Table Schema already: add its margent block (`margent schema check {subject}`)"
        )
    if text.lstrip().startswith(("schema_type:", "columns:")):
        raise UsageError(f"{subject} is YAML, which is not read: save the pandera schema with schema.to_json()")
    could = f"may be {' or '.join(found)}" if found else "is of no format that can be told"
    listed = "\n".join(f"  {name:<11} {form.words}" for name, form in FORMATS.items())
    raise UsageError(f"{subject} {could}; say which with --format:\n{listed}")


def _header(text: str) -> list[str]:
    """The cells of the first line that is not blank."""
    line = next((line for line in text[:100_000].splitlines() if line.strip()), "")
    try:
        return next(csv.reader([line], strict=True, delimiter=delimiter_of(line)), [])
    except csv.Error:
        return []
