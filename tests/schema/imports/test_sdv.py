"""SDV metadata, new and old, of one table and of several."""

from __future__ import annotations

from typing import Any

import pytest

from margent.errors import SchemaError, UsageError
from margent.schema.imports.sdv import from_sdv
from tests.schema.imports.drafts import by_name

GUESTS: dict[str, Any] = {
    "primary_key": "guest",
    "alternate_keys": ["card"],
    "sequence_key": "hotel",
    "columns": {
        "guest": {"sdtype": "email", "pii": True},
        "card": {"sdtype": "credit_card_number"},
        "hotel": {"sdtype": "id", "regex_format": "H[0-9]"},
        "rewards": {"sdtype": "boolean"},
        "room": {"sdtype": "categorical"},
        "stars": {"sdtype": "categorical", "order": ["1", "2", "3"]},
        "rate": {"sdtype": "numerical"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "in": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "at": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
        "odd": {"sdtype": "datetime", "datetime_format": "%Q"},
        "address": {"sdtype": "address", "pii": True},
        "what": {"sdtype": "unknown", "pii": False},
    },
}


def test_one_table_of_several() -> None:
    document = {"METADATA_SPEC_VERSION": "V1", "tables": {"guests": GUESTS, "hotels": {"columns": {}}}}
    with pytest.raises(UsageError, match="'guests', 'hotels'"):
        from_sdv(document, "m.json")
    with pytest.raises(UsageError, match="no such table"):
        from_sdv(document, "m.json", "rooms")
    made = from_sdv(document, "m.json", "guests")
    fields = by_name(made)
    assert [name for name in fields if fields[name].get("margent") == {"role": "identifier"}] == [
        "guest",
        "card",
        "hotel",
    ]
    assert fields["address"]["margent"] == {"role": "drop"}
    assert fields["rewards"] == {"type": "boolean"}
    assert fields["room"] == {"type": "string", "categories": "todo"}
    assert fields["stars"] == {"type": "integer", "categories": [1, 2, 3], "categoriesOrdered": True}
    assert fields["rate"]["margent"] == {"bins": "todo", "decimals": "todo"}
    assert fields["nights"]["type"] == "integer"
    assert (fields["in"]["type"], fields["in"]["format"]) == ("date", "%d %b %Y")
    assert (fields["at"]["type"], "format" in fields["at"]) == ("datetime", False)
    assert "format" not in fields["odd"]
    assert fields["what"] == {"type": "todo"}
    assert "/tables/guests/sequence_key" in {note.pointer for note in made.left_out}
    assert made.draft.document["margent"]["unit"] == "todo"


def test_single_and_older_spellings() -> None:
    assert set(by_name(from_sdv({"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", **GUESTS}, "m.json"))) == set(
        GUESTS["columns"]
    )
    old = {
        "tables": {
            "users": {
                "primary_key": "id",
                "fields": {
                    "id": {"type": "id", "subtype": "integer"},
                    "age": {"type": "numerical", "subtype": "integer"},
                    "pay": {"type": "numerical", "subtype": "float"},
                    "born": {"type": "datetime", "format": "%Y-%m-%d"},
                    "name": {"type": "categorical", "pii": True, "pii_category": "name"},
                },
            }
        }
    }
    fields = by_name(from_sdv(old, "m.json"))
    assert fields["id"] == {"type": "integer", "margent": {"role": "identifier"}}
    assert [fields[name]["type"] for name in ("age", "pay", "born")] == ["integer", "number", "date"]
    assert fields["name"]["margent"] == {"role": "drop"}


def test_what_is_no_metadata() -> None:
    for document in ([], {"tables": 3}, {"tables": {"a": 3}}, {"columns": 3}, {"columns": {}}, {"columns": {"a": 3}}):
        with pytest.raises(SchemaError):
            from_sdv(document, "m.json")
    with pytest.raises(UsageError, match="leave it out"):
        from_sdv(GUESTS, "m.json", "guests")
