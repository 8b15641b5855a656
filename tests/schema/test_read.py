"""The schema file: what is honored and carried along, and what is no JSON or cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from margent.errors import SchemaError
from margent.schema.check import unsettled
from margent.schema.codec import Codec
from margent.schema.fields import PersonUnit
from margent.schema.parts import MissingToken
from margent.schema.read import read_schema, schema_from_json
from margent.schema.write import schema_text, schema_to_json
from tests.schema.documents import SEX, document


def test_everything_honored_and_carried_along_survives() -> None:
    rules = [{"if": {"sex": "F"}, "then": {"ok": True}, "description": "as the codebook says"}]
    full = {
        "name": "people",
        "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
        "title": "People",
        "primaryKey": ["id"],
        "missingValues": ["", {"value": "-9", "label": "refused"}],
        "fields": [
            SEX | {"title": "Sex", "rdfType": "x", "example": "F", "constraints": {"pattern": "[FM]", "unique": False}},
            {
                "name": "pay",
                "type": "number",
                "decimalChar": ",",
                "groupChar": ".",
                "bareNumber": False,
                "constraints": {"minimum": 0.5, "maximum": "99.75", "required": True},
                "margent": {"bins": [0.5, 10, 99.75], "decimals": 2, "special": {"-1": "none", "x": ""}},
            },
            {
                "name": "when",
                "type": "datetime",
                "format": "%d.%m.%Y %H:%M",
                "constraints": {"minimum": "2020-01-01", "maximum": "31.12.2020 23:59"},
                "margent": {"timeZone": "Europe/Berlin", "bins": "week"},
            },
            {
                "name": "ward",
                "type": "integer",
                "categories": [{"value": 1, "label": "North"}, 2],
                "categoriesOrdered": True,
                "missingValues": [],
                "margent": {
                    "unlisted": {"to": "2"},
                    "hierarchy": {"levels": ["site"], "parents": [{"1": "A", "2": "A"}]},
                },
            },
            {"name": "ok", "type": "boolean", "trueValues": ["y"], "falseValues": ["n"]},
            {"name": "id", "type": "string", "margent": {"role": "identifier"}},
            {"name": "note", "type": "string", "margent": {"role": "drop"}},
        ],
        "margent": {"unit": {"field": "id", "maxRows": 3}, "rules": rules, "provenance": "made up"},
    }
    schema = schema_from_json(full)
    assert schema.unit == PersonUnit("id", 3)
    assert schema.columns_read == ("sex", "pay", "when", "ward", "ok", "id")
    assert schema.output_columns == ("sex", "pay", "when", "ward", "ok", "id")
    assert schema.missing_of(schema.fields[0]) == (MissingToken(""), MissingToken("-9", "refused", alone=True))
    assert schema.missing_of(schema.fields[3]) == ()
    written = schema_to_json(schema)
    for key in ("$schema", "title", "primaryKey", "name", "missingValues"):
        assert written[key] == full[key]
    assert written["fields"][0]["constraints"] == {"pattern": "[FM]", "unique": False}
    assert written["fields"][1]["constraints"] == {"required": True, "minimum": 0.5, "maximum": 99.75}
    assert written["fields"][2]["constraints"]["maximum"] == "2020-12-31T23:59:00"
    assert schema_from_json(json.loads(schema_text(schema))) == schema
    assert written["margent"]["rules"] == rules


def test_what_is_bought_loads_and_has_no_codes_yet() -> None:
    schema = schema_from_json(
        document(
            {"name": "a", "type": "string", "margent": {"openSet": {"maxCategories": 9}}},
            {
                "name": "b",
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 999},
                "margent": {"bins": {"quantiles": 4, "grid": 50}},
            },
        )
    )
    assert schema_from_json(schema_to_json(schema)) == schema
    assert [fault.pointer for fault in unsettled(schema)] == ["/fields/0/margent/openSet", "/fields/1/margent/bins"]
    with pytest.raises(SchemaError, match="openSet"):
        Codec(schema)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": NaN}', "/a: NaN and infinite"),
        ('{"a": [1, -Infinity]}', "/a/1: NaN and infinite"),
        ('{"a": 1e999}', "/a: NaN and infinite"),
        (f'{{"a": {"9" * 5000}}}', "/a: NaN and infinite"),
        ('{"a": {"b": 1, "b": 2}}', "/a/b: the key is given more than once"),
        ("[" * 40 + "]" * 40, "deeper than 32"),
        ("[" * 100_000 + "]" * 100_000, "deeper than 32"),
        ('{"a": "\\ud800"}', "/a: not valid Unicode"),
        ('{"\\ud800": 1}', "not valid Unicode"),
        ("{", "line 1, column 2"),
        ("", "line 1, column 1"),
        ("[]", "expected an object, found a list"),
        ("null", "expected an object, found null"),
        ('{"a": 1} x', "line 1, column 10"),
    ],
)
def test_strict_json(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        read_schema(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        read_schema(tmp_path / "none.json")
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path, tmp_path / "pipe.json"):
        with pytest.raises(SchemaError, match="not a regular file"):
            read_schema(path)
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(SchemaError, match="not UTF-8"):
        read_schema(tmp_path / "latin.json")
    (tmp_path / "big.json").write_bytes(b" " * (16 * 2**20 + 1))
    with pytest.raises(SchemaError, match="larger than"):
        read_schema(tmp_path / "big.json")
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(document(SEX)).encode())
    assert read_schema(tmp_path / "bom.json").fields[0].name == "sex"
