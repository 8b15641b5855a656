"""A closed list in a file of its own, beside the schema file: ``{"file": "codes.csv"}``."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from pathlib import Path, PurePosixPath

from margent.errors import SchemaError, on_one_line
from margent.schema.parts import MAX_CODES, CodeFile, FieldType, ListedValue, Spelling
from margent.schema.positions import declared_scalar
from margent.schema.strict_json import Members, load_bytes

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_BYTES = 64 * 2**20


def read_code_file(
    members: Members, kind: FieldType, folder: Path | None
) -> tuple[tuple[ListedValue, ...], CodeFile] | None:
    """The values and labels of a CSV file with the header ``value`` or ``value,label``, and its SHA-256.

    The name is relative to the schema file's folder and may not leave it; ``sha256``, where given, must match.
    """
    members.refuse_unknown(("file", "sha256"), {})
    found = checked_file(members, folder, 'expected a list of values, or {"file": "codes.csv"}')
    if found is None:
        return None
    content, record = found
    values = _values(content, kind, members)
    return None if values is None else (values, record)


def checked_file(members: Members, folder: Path | None, expected_form: str) -> tuple[bytes, CodeFile] | None:
    """The bytes of the file that ``file`` names and its record, if they have the ``sha256`` that is given (if any)."""
    name, expected = members.text("file"), members.text("sha256")
    if members.sound and name is None:
        members.fault(None, expected_form)
    if expected is not None and not _DIGEST.fullmatch(expected):
        members.fault("sha256", "expected 64 hexadecimal digits in lower case")
    if name is None or not members.sound:
        return None
    content = _file_content(name, members, folder)
    if content is None:
        return None
    digest = hashlib.sha256(content).hexdigest()
    if expected not in (None, digest):
        members.fault("sha256", f"the file's SHA-256 is {digest}: it has changed; check it and correct the schema")
        return None
    return content, CodeFile(name, digest)


def _file_content(name: str, members: Members, folder: Path | None) -> bytes | None:
    """The bytes of a file inside the schema's own folder, or None with a fault under ``file``."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or ":" in name or "\0" in name:
        members.fault("file", "must be a file name inside the schema's own folder, without .. and not absolute")
        return None
    if folder is None:
        members.fault("file", "a file is looked for beside the schema file, and there is none here; list the values")
        return None
    path = folder.joinpath(*parts)
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            members.fault("file", "leads out of the schema's own folder; copy the file there")
            return None
        return load_bytes(path, _MAX_BYTES)
    except SchemaError as error:
        members.fault("file", f"{on_one_line(name)}: {error.faults[0].message}")
    except (OSError, RuntimeError):
        members.fault("file", f"{on_one_line(name)}: cannot be read")
    return None


def _values(content: bytes, kind: FieldType, members: Members) -> tuple[ListedValue, ...] | None:
    try:
        rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = next(rows, [])
        if header not in (["value"], ["value", "label"]):
            members.fault("file", "its first line must be the header: value, or value,label")
            return None
        listed: list[ListedValue] = []
        for row in rows:
            if not row and len(header) == 2:
                continue
            cells = row or [""]
            if len(cells) != len(header):
                members.fault("file", f"line {rows.line_num} has {len(cells)} cells, the header {len(header)}")
                return None
            if len(listed) > MAX_CODES:
                members.fault("file", f"lists more than {MAX_CODES:,} values")
                return None
            label = cells[1] or None if len(cells) == 2 else None
            raw = int(cells[0]) if kind == "integer" and re.fullmatch(r"-?[0-9]{1,19}", cells[0]) else cells[0]
            listed.append(ListedValue(declared_scalar(kind, raw, Spelling()), label))
    except UnicodeDecodeError:
        members.fault("file", "is not UTF-8 text; save it as UTF-8")
    except csv.Error:
        members.fault("file", f"is not CSV at line {rows.line_num}")
    except ValueError as error:
        members.fault("file", f"line {rows.line_num}: {error}")
    else:
        return tuple(listed)
    return None
