"""The dialogue: questions in order, answers checked at once, back and forth without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError, UsageError
from margent.schema.draft import draft_from_table
from margent.schema.editing.dialogue import Dialogue
from margent.schema.editing.kinds import KINDS, current_kind, set_kind
from margent.schema.open_fields import open_faults
from margent.schema.read import schema_from_json
from tests.schema.imports.test_sheet import FULL


def draft(*names: str) -> dict[str, Any]:
    return draft_from_table(names).document


def play(dialogue: Dialogue, answers: dict[str, list[str]]) -> list[str]:
    """Answer every question by its key, the first answer first; what was refused."""
    refused: list[str] = []
    while (found := dialogue.open_question()) is not None:
        place, question = found
        left = answers.get(question.key, [])
        faults = dialogue.answer(place, question, left.pop(0) if left else "")
        refused += faults
    return refused


def test_a_draft_becomes_a_schema() -> None:
    dialogue = Dialogue(draft("sex", "age", "pay", "day", "at", "id", "memo", "ok", "income"))
    refused = play(
        dialogue,
        {
            "kind": ["1", "2", "number", "5", "6", "10", "11", "4", "2"],
            "values": ["F|M|F", "F|M"],
            "ordered": ["perhaps", "no"],
            "minimum": ["0", "0.5", "2020-01-01", "2020-01-01", "0"],
            "maximum": ["-3", "110", "99.5", "2020-12-31", "2020-12-31", "500000"],
            "decimals": ["many", "1"],
            "bins": ["width x", "10", "month", "day", "25"],
            "format": ["%Q", "%d/%m/%Y", "iso"],
            "timeZone": ["Mars", "Europe/Berlin"],
            "required": ["no"],
            "missing": ["NA|?"],
            "unit": ["maybe", "yes"],
            "person": ["nobody", "id"],
            "rows": ["0", "3"],
        },
    )
    told = " ".join(refused)
    for words in (
        "also entry",
        "yes or no",
        "above maximum",
        "whole number",
        "width 5",
        "%Q",
        "Mars",
        "no such column",
    ):
        assert words in told
    schema = schema_from_json(dialogue.result)
    found = {field.name: field for field in schema.fields}
    assert [item.value for item in found["sex"].listed or ()] == ["F", "M"]
    assert found["sex"].required
    assert (found["age"].minimum, found["age"].maximum, found["age"].bins) == (0, 110, None)
    assert found["day"].spelling.format == "%d/%m/%Y"
    assert found["at"].maximum == "2020-12-31T23:59:59", "a day means all of it"
    assert (found["id"].role, found["memo"].role) == ("identifier", "drop")
    assert found["income"].bins is not None, "many whole numbers need bins"
    assert [token.text for token in schema.missing] == ["", "NA", "?"]
    assert schema.person_rows == 3


def test_codes_that_are_no_numbers_make_a_list_of_texts() -> None:
    document = draft("a") | {"fields": [{"name": "a", "type": "integer", "categories": "todo"}]}
    dialogue = Dialogue(document, ["a"])
    play(dialogue, {"kind": [""], "values": ["1|2|N"]})
    assert dialogue.result["fields"][0]["categories"] == ["1", "2", "N"]
    assert dialogue.result["fields"][0]["type"] == "string"


def test_back_takes_answers_back_one_by_one() -> None:
    begun = draft("age")
    dialogue = Dialogue(begun)
    assert not dialogue.back()
    seen = []
    for text in ("2", "0", "110", "yes"):
        found = dialogue.open_question()
        assert found is not None
        seen.append((json.dumps(dialogue.document), found[0]))
        assert dialogue.answer(*found, text) == []
    for before, place in reversed(seen):
        assert dialogue.back()
        assert json.dumps(dialogue.document) == before
        found = dialogue.open_question()
        assert found is not None
        assert found[0] == place
    assert dialogue.document == begun


def test_enter_keeps_what_stands_and_leaves_open_what_is_not_known() -> None:
    dialogue = Dialogue(FULL, every=True)
    assert play(dialogue, {}) == []
    assert dialogue.result == FULL
    dialogue = Dialogue(draft("a", "b"))
    assert play(dialogue, {}) == []
    assert dialogue.result == draft("a", "b")


def test_a_person_half_told_of_is_asked_for_again() -> None:
    dialogue = Dialogue(draft("a"))
    play(dialogue, {"unit": ["yes"], "person": ["a"]})
    assert dialogue.result["margent"]["unit"] == "todo"


def test_columns_are_left_out_together_before_any_is_asked_about() -> None:
    dialogue = Dialogue(draft("age", "memo", "phone", "sex", "id"))
    found = dialogue.open_question()
    assert found is not None
    assert found[1].key == "leave out"
    assert dialogue.answer(*found, "memo|fone") == ["there is no column 'fone'; did you mean 'phone'?"]
    assert dialogue.answer(*found, "memo, phone") == []
    assert asked_about(dialogue) == [0, 3, 4]
    dropped = {"type": "string", "margent": {"role": "drop"}}
    assert dialogue.result["fields"][1:3] == [{"name": "memo"} | dropped, {"name": "phone"} | dropped]
    few = Dialogue(draft("age", "memo")).open_question()
    assert few is not None
    assert few[1].key == "kind", "of a few columns each is asked about"


def asked_about(dialogue: Dialogue) -> list[int | None]:
    """The columns that are asked about, each skipped."""
    places = []
    while (found := dialogue.open_question()) is not None:
        if found[1].key == "kind":
            places.append(found[0][0])
        dialogue.answer(*found, "")
    return places


def test_x_leaves_a_column_out_whose_type_is_known() -> None:
    known = {"name": "memo", "type": "string", "categories": "todo"}
    dialogue = Dialogue({"fields": [known, {"name": "age", "type": "todo"}]})
    found = dialogue.open_question()
    assert found is not None
    assert found[1].key == "values"
    assert dialogue.leave_out(found[0])
    assert dialogue.result["fields"][0] == {"name": "memo", "type": "string", "margent": {"role": "drop"}}
    found = dialogue.open_question()
    assert found is not None
    assert found[0] == (1, "kind"), "nothing more is asked about it"
    assert dialogue.back()
    assert dialogue.result["fields"][0] == known
    assert not dialogue.leave_out((None, "unit")), "the whole table cannot be left out"


def test_a_column_takes_the_answers_of_another() -> None:
    said = {
        "name": "ward",
        "type": "string",
        "title": "Ward",
        "categories": ["1", "2"],
        "constraints": {"required": True},
    }
    dialogue = Dialogue({"fields": [said, {"name": "next", "type": "todo", "description": "the one after"}]})
    found = dialogue.open_question()
    assert found is not None
    assert dialogue.answer(*found, "like next") == ["'next' has open questions itself; answer those first"]
    assert dialogue.answer(*found, "like wart") == ["there is no such column to be like"]
    assert dialogue.answer(*found, "like ward") == []
    made = dialogue.result["fields"][1]
    own = {"name": "next", "description": "the one after"}
    assert made == {key: value for key, value in said.items() if key != "title"} | own
    found = dialogue.open_question()
    assert found is not None
    assert found[0][0] is None, "its questions are answered"


def test_commas_between_values_are_no_list() -> None:
    dialogue = Dialogue(draft("sex"))
    refused = play(dialogue, {"kind": ["1"], "values": ["F,M", "F|M"]})
    assert refused == ["that is one text, 'F,M'; put | between several, as in F|M, or at the end if it is one"]
    assert dialogue.result["fields"][0]["categories"] == ["F", "M"]
    dialogue = Dialogue(draft("said"))
    assert play(dialogue, {"kind": ["1"], "values": ["yes, always|"]}) == []
    assert dialogue.result["fields"][0]["categories"] == ["yes, always"]


def test_values_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("value\nA10\nB20\n")
    dialogue = Dialogue(draft("code"), folder=tmp_path)
    refused = play(dialogue, {"kind": ["1"], "values": ["cods.csv", "codes.csv"], "unit": ["no"]})
    assert refused == ["cods.csv: there is no such file; check the path"]
    assert dialogue.result["fields"][0]["categories"] == {"file": "codes.csv"}
    schema = schema_from_json(dialogue.result, folder=tmp_path)
    assert [item.value for item in schema.fields[0].listed or ()] == ["A10", "B20"]


def test_the_format_that_was_told_last_is_proposed() -> None:
    dialogue = Dialogue(draft("born", "seen"))
    dates = {"minimum": ["2020-01-01"] * 2, "maximum": ["2020-12-31"] * 2, "format": ["%d/%m/%Y"]}
    assert play(dialogue, {"kind": ["5", "5"]} | dates) == []
    assert [field["format"] for field in dialogue.result["fields"]] == ["%d/%m/%Y"] * 2, "Enter took what was proposed"


def test_bins_can_be_changed_where_every_value_was_kept() -> None:
    bounded = {"name": "height", "type": "integer", "constraints": {"minimum": 30, "maximum": 220}}
    dialogue = Dialogue({"fields": [bounded], "margent": {"unit": "row"}}, ["height"])
    assert play(dialogue, {"bins": ["width 10"]}) == []
    assert dialogue.result["fields"][0]["margent"] == {"bins": {"width": 10}}
    again = Dialogue(dialogue.result, ["height"])
    assert play(again, {"bins": ["every value"]}) == []
    assert "bins" not in again.result["fields"][0].get("margent", {})


def test_the_table_is_named_and_its_source_told() -> None:
    dialogue = Dialogue(draft("age"))
    play(dialogue, {"kind": ["11"], "unit": ["no"], "name": ["stays"], "provenance": ["the codebook of 2024"]})
    assert dialogue.result["name"] == "stays"
    assert dialogue.result["margent"] == {"unit": "row", "provenance": "the codebook of 2024"}


def test_only_named_columns_are_asked_about() -> None:
    dialogue = Dialogue(FULL, ["dose", "ok"])
    places = set()
    while (found := dialogue.open_question()) is not None:
        places.add(found[0][0])
        dialogue.answer(*found, "")
    assert places == {3, 6}
    with pytest.raises(UsageError, match="'doze'"):
        Dialogue(FULL, ["doze"])


@pytest.mark.parametrize(
    "document",
    [[], {}, {"fields": []}, {"fields": [3]}, {"fields": [{"name": 3, "type": "todo"}]}, {"fields": [{"name": "a"}]},
     {"fields": [{"name": "a", "type": "x", "margent": 3}]}, {"fields": [{"name": "a", "type": "x"}], "margent": []},
     {"fields": [{"name": "a", "type": "x", "format": 3}]}],
)  # fmt: skip
def test_what_cannot_be_edited_is_refused(document: Any) -> None:
    with pytest.raises(SchemaError):
        Dialogue(document)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["", "1", "2", "3", "6", "9", "b", "yes", "no", "a|b", "0", "99", "2020-01-01", "month", "id", "%d"]
            ),
            st.text(max_size=6),
        ),
        max_size=30,
    ),
    st.booleans(),
)
def test_whatever_is_answered_the_columns_hold_together(answers: list[str], every: bool) -> None:
    dialogue = Dialogue(FULL if every else draft("x", "y"), every=every)
    for text in answers:
        found = dialogue.open_question()
        if found is None:
            break
        if text == "b":
            dialogue.back()
        else:
            dialogue.answer(*found, text)
        for field in dialogue.result["fields"]:
            assert open_faults(field, ()) == []


def test_every_kind_is_told_from_its_own_field() -> None:
    for kind in KINDS:
        field: dict[str, Any] = {"name": "a", "type": "todo", "description": "kept"}
        set_kind(field, kind)
        assert current_kind(field) == kind
        assert field["description"] == "kept"
        assert open_faults(field, ()) == []
