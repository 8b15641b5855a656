"""Plain Table Schemas and Croissant descriptions, of schema files and of releases."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from margent.errors import SchemaError, TranscriptError
from margent.schema.exports.croissant import croissant
from margent.schema.exports.document import described
from margent.schema.exports.table_schema import table_schema
from margent.schema.read import schema_from_json
from margent.schema.write import schema_to_json
from tests.schema.imports.test_sheet import FULL


def canonical(document: Any) -> dict[str, Any]:
    return schema_to_json(schema_from_json(document))


def test_a_plain_table_schema() -> None:
    made = table_schema(canonical(FULL | {"primaryKey": "note", "foreignKeys": [{"fields": ["in"]}]}))
    assert "margent" not in json.dumps(made).replace('"margent"', "margent") or "margent" not in made
    assert all("margent" not in field for field in made["fields"])
    found = {field["name"]: field for field in made["fields"]}
    assert "note" not in found, "columns that are left out are not in the released table"
    assert "primaryKey" not in made, "a key of a column that is left out is none"
    assert made["foreignKeys"] == [{"fields": ["in"]}]
    everywhere = ["", "NA", {"value": "-8", "label": "not asked"}]
    assert found["gain"]["missingValues"] == [*everywhere, {"value": "-9", "label": "refused"}, {"value": "<5"}]
    assert found["half"] == {"name": "half", "type": "number", "constraints": {"enum": [0.5, 1]}}


def test_types_of_croissant_fields() -> None:
    made = croissant(canonical(FULL), promise="Protected: every person.")
    assert made["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert made["description"] == "Protected: every person."
    (records,) = made["recordSet"]
    found = {field["name"]: field for field in records["field"]}
    assert "note" not in found
    types = {name: field["dataType"] for name, field in found.items()}
    assert types["half"] == "sc:Float"
    assert types["gain"] == "sc:Text", "one of its special codes is no number"
    assert types["dose"] == "sc:Text", "with decimal commas no reader takes it for a number"
    assert types["in"] == "sc:Text", "it is not spelled as ISO 8601"
    assert types["out"] == "sc:Date"
    assert found["=ward"]["@id"] == "records/%3Dward"
    assert found["=ward"]["source"] == {"fileObject": {"@id": "synthetic"}, "extract": {"column": "=ward"}}
    assert "a|b\\: odd" in found["=ward"]["description"]
    assert len({field["@id"] for field in records["field"]}) == len(records["field"])


def test_a_compressed_file_is_told_with_what_is_in_it(tmp_path: Path) -> None:
    content = tmp_path / "synthetic.csv.gz"
    content.write_bytes(b"abc")
    archive, inner = croissant(canonical(FULL), file=content.name, content=content)["distribution"]
    assert archive["sha256"] == hashlib.sha256(b"abc").hexdigest()
    assert (archive["encodingFormat"], inner["encodingFormat"]) == ("application/gzip", "text/csv")
    assert inner["containedIn"] == {"@id": archive["@id"]}


def test_what_can_be_exported(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(FULL))
    assert described(path).document == canonical(FULL)
    draft = {"fields": [{"name": "a", "type": "todo"}], "margent": {"unit": "todo"}}
    path.write_text(json.dumps(draft))
    assert described(path, drafts=True).document == draft
    with pytest.raises(SchemaError):
        described(path)
    path.write_text(json.dumps(draft | {"unit": "row"}))
    with pytest.raises(SchemaError, match="belongs into margent"):
        described(path, drafts=True)


@pytest.mark.parametrize(
    "package",
    [
        {},
        {"resources": []},
        {"resources": [{"schema": FULL, "path": "../t.csv"}], "description": "x"},
        {"resources": [{"schema": FULL, "path": "none.csv"}], "description": "x"},
        {"resources": [{"schema": {"fields": 3}, "path": "t.csv"}], "description": "x"},
    ],
)
def test_a_folder_that_is_no_release_is_refused(package: Any, tmp_path: Path) -> None:
    with pytest.raises(TranscriptError):
        described(tmp_path)
    (tmp_path / "t.csv").write_text("a\n")
    (tmp_path / "datapackage.json").write_text(json.dumps(package))
    with pytest.raises(TranscriptError):
        described(tmp_path)
