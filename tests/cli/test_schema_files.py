"""`margent schema import | edit | export | json-schema` from end to end, and what they refuse."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from margent.cli import run
from margent.privacy import curator
from tests.conftest import SCHEMA
from tests.schema.imports.test_postgresql import DUMP


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody types anything, unless a test says what."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))


def says(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_import_edit_and_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dump.sql").write_text(
        "CREATE TABLE t (id serial PRIMARY KEY, sex text CHECK (sex IN ('F','M')), age int CHECK (age >= 0));"
        "INSERT INTO t VALUES (1);"
    )
    schema = tmp_path / "S.json"
    assert run(["schema", "import", str(tmp_path / "dump.sql"), "-o", str(schema)]) == 0
    said = capsys.readouterr().out
    assert "3 columns from a PostgreSQL table definition" in said
    assert "INSERT: not read" in said
    assert "2 questions are left for you" in said
    before = schema.read_text()
    schema.chmod(0o640)
    says(monkeypatch, "?", "-1", "120", "", "no")
    assert run(["schema", "edit", str(schema)]) == 0
    said = capsys.readouterr().out
    assert "above maximum" in said
    assert "known without the table" in said
    assert "No question is open" in said
    assert schema.read_text() != before
    assert schema.stat().st_mode & 0o777 == 0o640
    assert run(["schema", "check", str(schema)]) == 0


def test_leaving_saves_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "S.json"
    schema.write_text(json.dumps({"fields": [{"name": "a", "type": "todo"}, {"name": "b", "type": "todo"}]}))
    says(monkeypatch, "4", "", "", "", "b", "", "q")
    assert run(["schema", "edit", str(schema), "-o", str(tmp_path / "T.json")]) == 0
    assert json.loads(schema.read_text())["fields"][0]["type"] == "todo"
    written = json.loads((tmp_path / "T.json").read_text())
    assert [field["type"] for field in written["fields"]] == ["boolean", "todo"]
    assert "question is left" in capsys.readouterr().out
    says(monkeypatch, "b", r"\q", "q")
    assert run(["schema", "edit", str(tmp_path / "T.json"), "b"]) == 0
    assert "This is the first question" in (said := capsys.readouterr().out)
    assert "a number from 1 to 11" in said


def test_a_column_is_left_out_with_x_and_a_menu_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "S.json"
    schema.write_text(json.dumps({"fields": [{"name": name, "type": "todo"} for name in "abcdef"]}))
    says(monkeypatch, "x", "e", "x", "4", "Y", "N", "", "?", "x", r"\x", "q")
    assert run(["schema", "edit", str(schema)]) == 0
    said = capsys.readouterr().out
    assert said.count("Its 6 columns: a, b, c, d, e, f.") == 1
    assert "this question is about the whole table" in said
    assert said.count("9  a month of a year") == 2, "in the first question, and where ? was answered"
    assert "answer with a number" in said, "a letter that is meant as a value"
    fields = json.loads(schema.read_text())["fields"]
    assert [field.get("margent", {}).get("role", field["type"]) for field in fields] == [
        "drop", "boolean", "drop", "todo", "drop", "todo",
    ]  # fmt: skip


def test_answers_may_follow_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "S.json"
    schema.write_text(json.dumps({"fields": [{"name": name, "type": "todo"} for name in "abcd"]}))
    says(
        monkeypatch,
        "2 0 110 no more than asked",  # a: whole
        "3 0 9 many", "1", "", "",  # b: decimals are no number; asked for, then bins and whether cells are empty
        "1 day ward|night ward", "", "no",
        "5 2020-01-01 2020-12-31 %d.%m.%Y month no",
        "q",
    )  # fmt: skip
    assert run(["schema", "edit", str(schema)]) == 0
    said = capsys.readouterr().out
    assert "Not asked for, and not used: more than asked" in said
    assert "'many' is no answer to what is asked next" in said
    assert json.loads(schema.read_text())["fields"] == [
        {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 110, "required": True}},
        {"name": "b", "type": "number", "constraints": {"minimum": 0, "maximum": 9},
         "margent": {"bins": 20, "decimals": 1}},
        {"name": "c", "type": "string", "categories": ["day ward", "night ward"], "constraints": {"required": True}},
        {"name": "d", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31",
         "required": True}, "margent": {"bins": "month"}, "format": "%d.%m.%Y"},
    ]  # fmt: skip


def test_the_check_tells_what_is_left_out_and_who_is_protected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = {
        "type": "date",
        "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
        "margent": {"bins": "month"},
    }
    fields = [
        {"name": "id", "type": "string", "margent": {"role": "identifier"}},
        {"name": "memo", "type": "string", "margent": {"role": "drop"}},
        {"name": "in"} | day,
        {"name": "out"} | day,
    ]
    schema = tmp_path / "S.json"
    schema.write_text(json.dumps({"fields": fields, "margent": {"unit": {"field": "id", "maxRows": 1}}}))
    assert run(["schema", "check", str(schema)]) == 0
    said = capsys.readouterr().out
    assert "Fresh ids are written for 'id'." in said
    assert "Not in the result: 'memo'." in said
    assert "as told apart by 'id'; at most 1 row of each are counted" in said
    assert "Note: 'in', 'out' are drawn each for itself" in said
    relative = {"relativeTo": {"field": "in", "unit": "day", "minimum": 0, "maximum": 9}, "bins": 5}
    fields[3] = {"name": "out", "type": "date", "margent": relative}
    schema.write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))
    assert run(["schema", "check", str(schema)]) == 0
    said = capsys.readouterr().out
    assert "drawn each for itself" not in said
    assert "Protected: every single row." in said


def test_a_draft_of_many_columns_speaks_of_spreadsheets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for many, told in ((19, False), (20, True)):
        (tmp_path / "t.csv").write_text(",".join(f"c{place}" for place in range(many)) + "\n")
        assert run(["schema", "draft", str(tmp_path / "t.csv"), "-o", str(tmp_path / f"{many}.json")]) == 0
        assert ("sheet.csv" in capsys.readouterr().out) == told
    assert run(["schema", "export", str(tmp_path / "20.json"), "--csv", str(tmp_path / "s.csv")]) == 0
    header = (tmp_path / "s.csv").read_text().splitlines()[0].split(",")
    assert {"decimals", "format", "trueValues", "falseValues", "unit", "maxRows"} <= set(header)


def test_the_end_of_a_pipe_is_a_way_to_leave(typed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "S.json"
    schema.write_text(json.dumps({"fields": [{"name": "a", "type": "todo"}]}))
    before = schema.read_bytes()
    assert run(["schema", "edit", str(schema)]) == 0
    assert "Nothing was changed" in capsys.readouterr().out
    assert schema.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["S.json"]


def test_interrupted_edits_leave_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.StringIO):
        def readline(self, size: int = -1, /) -> str:
            line = super().readline()
            if not line:
                raise KeyboardInterrupt
            return line

    schema = tmp_path / "S.json"
    schema.write_text(json.dumps({"fields": [{"name": "a", "type": "todo"}, {"name": "b", "type": "todo"}]}))
    before = schema.read_bytes()
    monkeypatch.setattr("sys.stdin", Interrupted("4\n"))
    assert run(["schema", "edit", str(schema)]) == 130
    assert schema.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["S.json"]


def test_sheets_go_out_and_come_back(people_schema: Path, tmp_path: Path) -> None:
    sheet, again = tmp_path / "sheet.csv", tmp_path / "again.json"
    assert run(["schema", "export", str(people_schema), "--csv", str(sheet)]) == 0
    assert run(["schema", "import", str(sheet), "-o", str(again)]) == 0
    assert json.loads(again.read_text()) == SCHEMA


def test_a_release_can_be_exported(people_csv: Path, people_schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "OUT"
    arguments = ["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", "1"]
    assert run([*arguments, "--single-release", "-o", str(out)]) == 0
    names = sorted(path.name for path in out.iterdir())
    plain, croissant, sheet = tmp_path / "t.json", tmp_path / "c.json", tmp_path / "s.csv"
    assert run(["schema", "export", str(out), "--table-schema", str(plain), "--croissant", str(croissant),
                "--csv", str(sheet)]) == 0  # fmt: skip
    made = json.loads(croissant.read_text())
    (file,) = made["distribution"]
    assert file["contentUrl"] == "synthetic.csv"
    assert len(file["sha256"]) == 64
    assert "Protected: every single row" in made["description"]
    assert [field["name"] for field in json.loads(plain.read_text())["fields"]] == ["sex", "work", "age", "since", "id"]
    assert run(["schema", "export", str(out), "--csv", str(out / "x.csv")]) == 2
    assert sorted(path.name for path in out.iterdir()) == names
    (out / "INTERNAL-x").write_text("")
    assert run(["schema", "export", str(out), "--csv", str(tmp_path / "y.csv")]) == 3


def test_what_is_refused_leaves_no_file(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dump.sql").write_text(DUMP)
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    out = str(tmp_path / "S.json")
    for words, code in (
        (["import", str(tmp_path / "dump.sql"), "-o", out], 2),
        (["import", str(tmp_path / "none"), "-o", out], 3),
        (["import", str(people_schema), "-o", out], 2),
        (["import", str(people_schema), "--format", "csv", "-o", out], 2),
        (["import", str(tmp_path / "dump.sql"), "--table", "people", "-o", str(people_schema)], 2),
        (["export", str(people_schema)], 2),
        (["export", str(people_schema), "--csv", out, "--croissant", out], 2),
        (["export", str(tmp_path / "folder"), "--csv", out], 3),
        (["edit", str(people_schema), "none"], 2),
        (["edit", str(tmp_path / "dump.sql")], 3),
    ):
        assert run(["schema", *words]) == code, words
        said = capsys.readouterr()
        assert "bug" not in said.err
        assert "secret" not in said.err + said.out
    assert sorted(tmp_path.rglob("*")) == before


def test_no_table_is_looked_at(people_schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a table was opened")

    monkeypatch.setattr("margent.tables.source.open_table", opened)
    monkeypatch.setattr(curator.DataCurator, "measure", opened)
    (tmp_path / "sheet.csv").write_text("name,type\na,int\n")
    assert run(["schema", "import", str(tmp_path / "sheet.csv"), "-o", str(tmp_path / "S.json")]) == 0
    assert run(["schema", "export", str(tmp_path / "S.json"), "--csv", str(tmp_path / "again.csv")]) == 0


def test_the_json_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "json-schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_hostile_names_do_not_steer_the_terminal(
    tmp_path: Path, typed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b[31m\nmargent: fine"
    (tmp_path / "p.json").write_text(json.dumps({"schema": {name: {"dtype": "int", "kind": "\x1b"}}}))
    assert run(["schema", "import", str(tmp_path / "p.json"), "-o", str(tmp_path / "S.json")]) == 0
    assert run(["schema", "edit", str(tmp_path / "S.json")]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert not any(line.startswith("margent: fine") for line in said.out.splitlines())
