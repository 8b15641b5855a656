"""What there is to export: a schema file (a draft too, for a sheet), or the schema that a release folder holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from margent.errors import SchemaError, TranscriptError
from margent.schema.read import read_schema, schema_from_json
from margent.schema.strict_json import load_bytes, parse_strict
from margent.schema.todos import todo_faults
from margent.schema.write import schema_to_json


@dataclass(frozen=True)
class Described:
    """A schema document, and for a release its promise in words and its table's file."""

    document: Mapping[str, Any]
    promise: str | None = None
    file: str = "synthetic.csv"
    content: Path | None = None


def described(source: str | Path, *, drafts: bool = False) -> Described:
    """The schema to export; where ``drafts`` are welcome, one with open questions is given as it stands.

    Privacy: none: schemas and releases are public.
    Raises: SchemaError, or TranscriptError for a folder that is no release.
    """
    source = Path(source)
    if source.is_dir():
        return _released(source)
    document = parse_strict(load_bytes(source), str(source))
    if drafts and todo_faults(document):
        _require_only_questions(document, source)
        return Described(document)
    return Described(schema_to_json(read_schema(source)))


def _require_only_questions(document: Any, source: Path) -> None:
    """Refuse a draft that has other faults than its open questions."""
    try:
        schema_from_json(document, folder=source.parent, subject=str(source))
    except SchemaError as error:
        asked = set(todo_faults(document))
        if faults := [fault for fault in error.faults if fault not in asked]:
            raise SchemaError(faults, str(source)) from None


def _released(folder: Path) -> Described:
    from margent.release.files import read_json, table_beside
    from margent.release.reading import require_publishable

    require_publishable(folder)
    package = read_json(folder / "datapackage.json")
    try:
        resource = package["resources"][0]
        document, file, promise = resource["schema"], resource["path"], package["description"]
        columns = {field["name"] for field in document["fields"]}
        person = document["margent"]["unit"]
    except (KeyError, IndexError, TypeError):
        raise TranscriptError(f"{folder / 'datapackage.json'}: is not the description of a release") from None
    if (table := table_beside(folder, file)) is None or not table.is_file():
        raise TranscriptError(f"{folder / 'datapackage.json'}: names no table that lies beside it")
    # A person's id that is not written is no field there; everything else must hold.
    absent = isinstance(person, Mapping) and person.get("field") not in columns
    checked = {**document, "margent": {**document["margent"], "unit": "row"}} if absent else document
    schema_from_json(checked, subject=str(folder / "datapackage.json"))
    return Described(document, str(promise), file, table)
