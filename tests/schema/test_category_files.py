"""Lists of categories in files beside the schema: values, hash, damage, and names that would lead out of the folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from margent.errors import SchemaError
from margent.schema.read import read_schema, schema_from_json
from margent.schema.write import schema_to_json
from tests.schema.documents import document


class TestCategoryFiles:
    def write(self, folder: Path, content: str, **extra: str) -> Path:
        (folder / "codes.csv").write_text(content)
        field = {"name": "zip", "type": "string", "categories": {"file": "codes.csv"} | extra}
        path = folder / "schema.json"
        path.write_text(json.dumps(document(field)))
        return path

    def test_values_labels_and_hash(self, tmp_path: Path) -> None:
        content = 'value,label\n02116,Boston\n00501,"Holtsville, NY"\n'
        schema = read_schema(self.write(tmp_path, content))
        (field,) = schema.fields
        assert [item.value for item in field.listed or ()] == ["02116", "00501"]
        assert [item.label for item in field.listed or ()] == ["Boston", "Holtsville, NY"]
        assert field.listed_file is not None
        assert field.listed_file.sha256 == hashlib.sha256(content.encode()).hexdigest()
        # The written schema stands alone: values in full, the file only on record.
        assert schema_from_json(schema_to_json(schema)) == schema
        good = self.write(tmp_path, content, sha256=field.listed_file.sha256)
        assert read_schema(good) == schema
        with pytest.raises(SchemaError, match="it has changed"):
            read_schema(self.write(tmp_path, content + "1\n", sha256=field.listed_file.sha256))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("02116\n", "header"),
            ("value,label\n1,2,3\n", "cells"),
            ("value\n1\n1\n", "also entry 0"),
            ("", "header"),
            ('value\n"a\n', "not CSV"),
            ("value\n", "is empty"),
        ],
    )
    def test_damaged_files(self, tmp_path: Path, content: str, said: str) -> None:
        with pytest.raises(SchemaError, match=said):
            read_schema(self.write(tmp_path, content))

    @pytest.mark.parametrize(
        "name", ["../codes.csv", "/etc/passwd", "a/../../b", "c:\\x", "..", "", "\x00", "none.csv"]
    )
    def test_names_never_leave_the_folder(self, tmp_path: Path, name: str) -> None:
        field = {"name": "zip", "type": "string", "categories": {"file": name}}
        path = tmp_path / "schema.json"
        path.write_text(json.dumps(document(field)))
        with pytest.raises(SchemaError, match="/fields/0/categories/file"):
            read_schema(path)

    def test_links_do_not_lead_out(self, tmp_path: Path) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        (tmp_path / "secret.csv").write_text("value\n1\n")
        (inner / "codes.csv").symlink_to(tmp_path / "secret.csv")
        field = {"name": "zip", "type": "string", "categories": {"file": "codes.csv"}}
        (inner / "schema.json").write_text(json.dumps(document(field)))
        with pytest.raises(SchemaError, match="leads out"):
            read_schema(inner / "schema.json")
