"""Dates that follow others, in the dialogue: asked once there is another, checked at once, kept with Enter."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from margent.cli import run
from margent.schema.editing.dialogue import Dialogue
from margent.schema.editing.relative import bases_of
from margent.schema.parts import EdgeBins
from margent.schema.read import schema_from_json
from tests.schema.editing.test_dialogue import draft, play

YEAR = {"minimum": ["2020-01-01"], "maximum": ["2020-12-31"], "bins": ["month"]}


def test_a_date_may_follow_another() -> None:
    dialogue = Dialogue(draft("in", "at", "out"))
    answers = YEAR | {
        "kind": ["5", "7", "5"],
        "bins": ["month", "hour", "0|1|3|8|300"],
        "relativeTo": ["in", "in|day|0", "at|day|0|300", "in|hour|0|300", "in|day|9|1", "in | day | 0 | 300"],
        "unit": ["no"],
    }
    refused = play(dialogue, answers)
    assert [fault.split(":")[0].split(",")[0] for fault in refused] == [
        "expected the other column",
        "expected the other column",
        "the other column is one of 'in'",
        "the unit is one of day",
        "the unit is one of day",
    ]
    schema = schema_from_json(dialogue.result)
    out = schema.fields[2]
    assert out.relative_to is not None
    assert (out.relative_to.field, out.relative_to.unit, out.relative_to.maximum) == ("in", "day", 300)
    assert out.bins == EdgeBins((0, 1, 3, 8, 300)), "edges are whole numbers of days, and no dates"
    assert (out.minimum, out.maximum) == (None, None)


def test_few_differences_need_no_bins_and_many_do() -> None:
    for most, bins in (("9", None), ("400", 20)):
        dialogue = Dialogue(draft("in", "out"))
        assert play(dialogue, YEAR | {"kind": ["5", "5"], "relativeTo": [f"in|day|0|{most}"], "bins": ["month"]}) == []
        assert dialogue.result["fields"][1]["margent"].get("bins") == bins, "Enter took what was proposed"


def test_a_date_that_followed_another_can_stand_alone_again() -> None:
    relative = {"relativeTo": {"field": "in", "unit": "day", "minimum": 0, "maximum": 9}, "bins": [0, 2, 9]}
    day = {"name": "in", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}}
    fields = [day | {"margent": {"bins": "month"}}, {"name": "out", "type": "date", "margent": relative}]
    before = {"fields": fields, "margent": {"unit": "row"}}
    dialogue = Dialogue(before, ["out"])
    assert play(dialogue, {}) == []
    assert dialogue.result == before, "Enter keeps it"
    alone = {"relativeTo": ["no"], "minimum": ["2020-01-01"], "maximum": ["2021-01-31"], "bins": ["quarter"]}
    assert play(again := Dialogue(before, ["out"]), alone) == []
    assert again.result["fields"][1] == {
        "name": "out",
        "type": "date",
        "constraints": {"minimum": "2020-01-01", "maximum": "2021-01-31"},
        "margent": {"bins": "quarter"},
    }


def test_no_circle_is_offered_and_nothing_where_there_is_no_other_date() -> None:
    def day(name: str, base: str | None = None, **more: Any) -> dict[str, Any]:
        block = {} if base is None else {"relativeTo": {"field": base}}
        return {"name": name, "type": "date", "margent": block} | more

    fields = [day("a"), day("b", "a"), day("c", "b"), day("d", margent={"role": "drop"}), day("e", type="datetime")]
    assert bases_of(fields, fields[0]) == []
    assert bases_of(fields, fields[1]) == ["a"]
    assert bases_of(fields, fields[2]) == ["a", "b"]
    circle = [day("a", "b"), day("b", "a")]
    assert bases_of(circle, circle[0]) == []
    only = Dialogue(draft("in"))
    play(only, YEAR | {"kind": ["5"]})
    assert (0, "relativeTo") not in only.answered


def test_answers_on_one_line_pass_over_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "S.json"
    schema.write_text(json.dumps(draft("in", "out", "paid")))
    line = "5 2020-01-01 2020-12-31 iso month no"
    typed = [line, line, "5", "out|week|0|9", "", "every value", "yes", "q"]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{each}\n" for each in typed)))
    assert run(["schema", "edit", str(schema)]) == 0
    said = capsys.readouterr().out
    assert "Columns it can follow" not in said
    assert "such as in|day|0|365" in said
    first, second, third = json.loads(schema.read_text())["fields"]
    assert second == first | {"name": "out"}
    assert third["margent"] == {"relativeTo": {"field": "out", "unit": "week", "minimum": 0, "maximum": 9}}
