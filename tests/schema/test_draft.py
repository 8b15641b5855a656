"""Drafting: from names and declared types, from a codebook, and (for public tables only) from values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.codebook import draft_from_codebook
from margent.schema.codec import Codec
from margent.schema.draft import draft_from_table
from margent.schema.public_draft import PUBLIC_PROVENANCE, draft_from_public_data
from margent.schema.read import schema_from_json

TYPES = pa.schema(
    [
        ("a", pa.int16()),
        ("b", pa.float32()),
        ("c", pa.bool_()),
        ("d", pa.date32()),
        ("e", pa.timestamp("us", "Europe/Berlin")),
        ("f", pa.timestamp("ns")),
        ("g", pa.timestamp("ns", "+02:00")),
        ("h", pa.time64("us")),
        ("i", pa.dictionary(pa.int8(), pa.string())),
        ("j", pa.decimal128(9, 2)),
        ("k", pa.decimal128(9, 0)),
        ("l", pa.list_(pa.int8())),
        ("m", pa.null()),
        ("n", pa.duration("s")),
        ("o", pa.large_string()),
    ]
)


def test_typed_containers_give_their_declared_types() -> None:
    draft = draft_from_table(TYPES.names, TYPES)
    found = {field["name"]: field for field in draft.document["fields"]}
    kinds = "integer number boolean date datetime datetime datetime time string number integer string todo todo string"
    assert [found[name]["type"] for name in TYPES.names] == kinds.split()
    assert [found[name]["margent"]["timeZone"] for name in "efg"] == ["Europe/Berlin", "naive", "UTC"]
    assert found["j"]["margent"]["decimals"] == 2
    assert found["l"]["margent"] == {"role": "drop"}
    with pytest.raises(SchemaError) as caught:
        schema_from_json(draft.document)
    assert set(caught.value.faults) == set(draft.todos)
    assert "/margent/unit" in {todo.pointer for todo in draft.todos}
    assert {todo.pointer for todo in draft.todos if todo.pointer.startswith("/fields/8")} == {"/fields/8/categories"}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=5),
    st.lists(st.one_of(st.none(), st.sampled_from(["x", "y"])), min_size=1, max_size=5),
)
def test_typed_drafts_do_not_depend_on_rows(numbers: list[int], words: list[str | None]) -> None:
    def drafted(numbers: list[Any], words: list[Any]) -> str:
        table = pa.table({"n": pa.array(numbers, pa.int64())})
        other = pa.table({"w": pa.array(words, pa.string()).dictionary_encode()})
        return draft_from_table(["n"], table.schema).text + draft_from_table(["w"], other.schema).text

    assert drafted(numbers, words) == drafted([1], ["z"])


def test_text_files_give_names_only() -> None:
    draft = draft_from_table(["age", " <b>"])
    assert [field["type"] for field in draft.document["fields"]] == ["todo", "todo"]
    assert [field["name"] for field in draft.document["fields"]] == ["age", " <b>"]


def test_answered_drafts_can_be_read() -> None:
    draft = draft_from_table(["age", "sex"])
    document = draft.document
    document["margent"]["unit"] = "row"
    document["fields"][0] |= {"type": "integer", "constraints": {"minimum": 0, "maximum": 110}}
    document["fields"][1] |= {"type": "string", "categories": ["F", "M"]}
    assert Codec(schema_from_json(document)).domain.sizes == (112, 3)


def codebook(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "book.csv"
    path.write_text(text)
    return path


def test_codebooks_with_semicolons_and_yes_spelled_otherwise(tmp_path: Path) -> None:
    draft = draft_from_codebook(codebook(tmp_path, "name;type;values\nicu;;Y|N\n"))
    assert draft.document["fields"] == [{"name": "icu", "type": "string", "categories": ["Y", "N"]}]
    with pytest.raises(SchemaError, match="leave the type empty"):
        draft_from_codebook(codebook(tmp_path, "name;type;values\nicu;boolean;Y|N\n"))


def test_codebooks_with_one_line_a_column_and_one_line_a_code(tmp_path: Path) -> None:
    text = """name,type,minimum,maximum,values,labels,missing,description
id,identifier,,,,,,
age,int,0,110,,,|NA,Age in years
pay,number,0.5,1000,,,,
sex,,,,F|M,female|male,,
region,integer,,,1,North,,Region of the hospital
,,,,2,South,,
,,,,3,East,,
when,date,2020-01-01,2020-12-31,,,,
memo,drop,,,,,,
odd,,,,,,,
"""
    draft = draft_from_codebook(codebook(tmp_path, text))
    found = {field["name"]: field for field in draft.document["fields"]}
    assert found["age"] == {
        "name": "age",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 110},
        "missingValues": ["", "NA"],
        "description": "Age in years",
    }
    assert found["pay"]["constraints"] == {"minimum": 0.5, "maximum": 1000}
    assert found["sex"]["categories"] == [{"value": "F", "label": "female"}, {"value": "M", "label": "male"}]
    assert [item["value"] for item in found["region"]["categories"]] == [1, 2, 3]
    assert [field["margent"]["role"] for field in (found["id"], found["memo"])] == ["identifier", "drop"]
    assert {todo.pointer for todo in draft.todos} == {
        "/margent/unit",
        "/fields/2/margent/bins",
        "/fields/5/margent/bins",
        "/fields/7/type",
    }


def test_a_codebook_asks_for_bins_where_whole_numbers_are_many(tmp_path: Path) -> None:
    draft = draft_from_codebook(codebook(tmp_path, "name,type,minimum,maximum\nage,int,0,110\nincome,int,0,50000\n"))
    assert [todo.pointer for todo in draft.todos] == ["/margent/unit", "/fields/1/margent/bins"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "header"),
        ("age,int\n", "header"),
        ("name,typ\nage,int\n", "did you mean 'type'"),
        ("name,type,,\nage,int,,\n", "'' is unknown or doubled"),
        ("name,Name\nage,int\n", "'name' is unknown or doubled"),
        ("name,type\nage,elephant\n", "'elephant' is not one of"),
        ("name,values,labels\nsex,F|M,female\n", "2 values and 1 labels"),
        ("name,type\n,int\n", "no name"),
        ("name,type\na,int\nb,int\na,int\n", "elsewhere"),
        ("name,type\na,int,3\n", "3 cells"),
        ("name,type,minimum\na,int,x\n", "whole number"),
        ("name,type\n", "no column"),
    ],
)
def test_damaged_codebooks(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        draft_from_codebook(codebook(tmp_path, text))


def test_public_tables_give_values_and_say_so() -> None:
    frame = pd.DataFrame(
        {
            "zip": ["02116", "00501"] * 50,
            "age": range(100),
            "pay": [i * 1000 for i in range(100)],
            "share": [i / 7 for i in range(100)],
            "day": [f"2020-{1 + i % 12:02}-15" for i in range(100)],
            "at": [f"2020-01-{1 + i % 28:02}T12:00:00+01:00" for i in range(100)],
            "key": [f"k{i}" for i in range(100)],
            "memo": [f"m{i // 2}" for i in range(100)],
            "gap": [None, 1.0] * 50,
            "none": [None] * 100,
            "flag": [True, False] * 50,
        }
    )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    draft = draft_from_public_data(table.to_batches(max_chunksize=30), unit="row", max_categories=20)
    schema = schema_from_json(draft.document)
    assert schema.provenance == PUBLIC_PROVENANCE
    found = {field.name: field for field in schema.fields}
    assert [field.type for field in schema.fields] == [
        "string",
        "integer",
        "integer",
        "number",
        "date",
        "datetime",
        "string",
        "string",
        "integer",
        "string",
        "string",
    ]
    assert found["zip"].listed is not None
    assert (found["age"].minimum, found["age"].maximum) == (0, 99)
    assert (found["key"].role, found["memo"].role, found["none"].role) == ("identifier", "drop", "drop")
    assert found["gap"].nullable
    assert found["age"].required
    codec = Codec(schema)
    (batch,) = table.combine_chunks().to_batches()
    for name, codes in zip(codec.domain.names, codec.encode(batch), strict=True):
        assert name not in codec.unlisted_codes or not (codes == codec.unlisted_codes[name]).any()
