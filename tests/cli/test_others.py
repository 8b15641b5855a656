"""The commands around a run: schema draft and check, plan, rehearse, methods, demo."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from margent.cli import run
from margent.privacy import curator
from tests.conftest import people_rows, write_csv


def test_draft_from_csv_reads_the_header_only(
    people_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "draft", str(people_csv), "-o", str(tmp_path / "S.json")]) == 0
    text = (tmp_path / "S.json").read_text()
    document = json.loads(text)
    assert [field["name"] for field in document["fields"]] == ["sex", "work", "age", "since", "id"]
    assert {field["type"] for field in document["fields"]} == {"todo"}
    assert "office" not in text
    assert "questions are left" in capsys.readouterr().out
    assert run(["schema", "check", str(tmp_path / "S.json")]) == 3
    assert capsys.readouterr().err.count("/fields/") == 5


def test_draft_from_parquet_takes_declared_types_and_no_values(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"age": pa.array([44, 45]), "city": pa.array(["Paris", "Rome"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "t.parquet")
    assert run(["schema", "draft", str(tmp_path / "t.parquet"), "-o", str(tmp_path / "S.json")]) == 0
    text = (tmp_path / "S.json").read_text()
    assert json.loads(text)["fields"][0]["type"] == "integer"
    assert "44" not in text
    assert "Paris" not in text


def test_draft_of_public_data_runs_through(people_csv: Path, tmp_path: Path) -> None:
    assert run(["schema", "draft", str(people_csv), "--public-data", "-o", str(tmp_path / "S.json")]) == 0
    document = json.loads((tmp_path / "S.json").read_text())
    document["margent"]["unit"] = "row"
    (tmp_path / "S.json").write_text(json.dumps(document))
    assert run(["schema", "check", str(tmp_path / "S.json"), str(people_csv)]) == 0
    arguments = ["synthesize", str(people_csv), "--schema", str(tmp_path / "S.json"), "--epsilon", "1"]
    assert run([*arguments, "--single-release", "-o", str(tmp_path / "OUT")]) == 0


def test_draft_needs_exactly_one_source(tmp_path: Path, people_csv: Path) -> None:
    assert run(["schema", "draft", "-o", str(tmp_path / "S.json")]) == 2
    both = ["schema", "draft", str(people_csv), "--codebook", str(people_csv), "-o", str(tmp_path / "S.json")]
    assert run(both) == 2
    assert not (tmp_path / "S.json").exists()


def test_no_draft_is_made_of_a_first_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts").mkdir()
    for bare in (tmp_path / "bare.csv", tmp_path / "parts" / "part-0.csv"):
        bare.write_text("secretive,37\nM,40\n")
    for table in (tmp_path / "bare.csv", tmp_path / "parts"):
        assert run(["schema", "draft", str(table), "--no-header", "-o", str(tmp_path / "S.json")]) == 3
        said = capsys.readouterr()
        assert "names no columns" in said.err
        assert "secretive" not in said.out + said.err
        assert not (tmp_path / "S.json").exists()


def test_what_cannot_be_written_is_no_bug(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    sheet, out = tmp_path / "sheet.csv", tmp_path / "S.json"
    sheet.write_text("name,type\nage,int\n")
    monkeypatch.setattr(Path, "write_bytes", full)
    for words in (
        ["draft", str(people_csv), "-o"],
        ["import", str(sheet), "-o"],
        ["export", str(people_schema), "--csv"],
    ):
        assert run(["schema", *words, str(out)]) == 3
        assert "S.json: cannot be written: No space left on device" in capsys.readouterr().err
        assert not out.exists()


def test_a_number_of_thousands_of_digits_is_a_wrong_option(
    people_schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "--schema", str(people_schema), "--epsilon", "1", "--rows", "9" * 5000]) == 2
    assert "--rows must be a whole number" in capsys.readouterr().err


def test_check_lists_codes_and_compares_headers(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "check", str(people_schema), str(people_csv), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["ok"]
    assert [column["name"] for column in checked["columns"]] == ["sex", "work", "age", "since"]
    other = write_csv(tmp_path / "o.csv", people_rows(2), ["sex", "work", "age", "when", "id"])
    assert run(["schema", "check", str(people_schema), str(other)]) == 3
    said = capsys.readouterr().err
    assert "since" in said
    assert "when" in said


def test_plan_reads_no_data_and_compares_budgets(
    people_schema: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a table was opened")

    monkeypatch.setattr("margent.tables.source.open_table", opened)
    assert run(["plan", "--schema", str(people_schema), "--epsilon", ".5,2", "--expect-rows", "10000"]) == 0
    said = capsys.readouterr().out
    assert said.count("Verdict with 10,000 rows") == 2
    assert "one-way marginals" in said
    assert run(["plan", "--schema", str(people_schema), "--epsilon", ".5,2", "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)
    assert [plan["epsilon"] for plan in plans] == ["1/2", "2"]
    assert sum(stage["share"] for stage in plans[0]["stages"]) == pytest.approx(1)
    errors = [plan["stages"][0]["cellErrorRecords"] for plan in plans]
    assert errors[0] > 2 * errors[1]


def test_plan_without_epsilon_says_so(people_schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--schema", str(people_schema)]) == 2
    assert "--epsilon is missing" in capsys.readouterr().err


def test_a_plan_over_the_memory_is_refused_before_the_table_is_opened(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("margent.plan.machine_memory", lambda: 2**20)
    arguments = ["synthesize", str(tmp_path / "absent.csv"), "--schema", str(people_schema), "--epsilon", "1"]
    assert run([*arguments, "--single-release", "-o", str(tmp_path / "OUT")]) == 5
    assert "memory" in capsys.readouterr().err
    assert not (tmp_path / "OUT").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rehearsal_needs_no_table_and_can_be_synthesized(kind: str, people_schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "R"
    arguments = ["rehearse", "--schema", str(people_schema), "--rows", "300", "--seed", "1", "--format", kind]
    assert run([*arguments, "-o", str(out)]) == 0
    table = out / f"rehearsal.{kind}"
    assert run(["schema", "check", str(out / "schema.json"), str(table)]) == 0
    arguments = ["synthesize", str(table), "--schema", str(people_schema), "--epsilon", "1", "--single-release"]
    assert run([*arguments, "-o", str(tmp_path / "OUT")]) == 0


def test_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"privsyn", "independent"} <= {method["name"] for method in listed["methods"]}
    assert sum(method["default"] for method in listed["methods"]) == 1
    assert run(["methods"]) == 0
    assert "(default)" in capsys.readouterr().out


def test_demo_does_the_whole_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("statsmodels", reason="the demonstration's table ships inside statsmodels")
    assert run(["demo", "-o", str(tmp_path / "demo")]) == 0
    said = capsys.readouterr().out
    for words in ("20,190 person-years", "Protected", "Spent", "release.html", "Close to the noisy answers"):
        assert words in said
    assert (tmp_path / "demo" / "release" / "synthetic.csv").exists()


def test_a_demo_that_cannot_be_written_says_so_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mkdir(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert run(["demo", "-o", str(tmp_path / "demo")]) == 3
    assert "demo: cannot be written: Permission denied" in capsys.readouterr().err
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_interruption_leaves_nothing_and_says_so(
    people_csv: Path,
    people_schema: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(curator.DataCurator, "scores", interrupted)
    arguments = ["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", "1"]
    assert run([*arguments, "--single-release", "-o", str(tmp_path / "OUT")]) == 130
    assert "stays charged" in capsys.readouterr().err
    assert not (tmp_path / "OUT").exists()


def test_a_draft_is_one_line_a_column_and_shows_how_to_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"c{place}" for place in range(60)]
    table = write_csv(tmp_path / "wide.csv", [["1"] * 60], names)
    assert run(["schema", "draft", str(table), "-o", str(tmp_path / "S.json")]) == 0
    lines = (tmp_path / "S.json").read_text().splitlines()
    assert sum('"name"' in line for line in lines) == len([line for line in lines if '"todo"' in line]) - 1 == 60
    said = capsys.readouterr().out
    assert "... and 55 more" in said
    assert said.count("identifier") == 2, "how to answer is told once, and shown once"
    answers = [line.strip().split("   ")[0] for line in said.splitlines() if line.startswith('  {"name"')]
    fields = [json.loads(answer) for answer in answers]
    assert len(fields) >= 6
    (tmp_path / "A.json").write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))
    assert run(["schema", "check", str(tmp_path / "A.json")]) == 0


def test_a_public_draft_leaves_out_what_has_no_code(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {"a": [1, 2], "tags": [["x"], []], "span": pa.array([1, 2]).cast(pa.duration("s")), "b": ["u", "v"]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    arguments = ["schema", "draft", str(tmp_path / "t.parquet"), "--public-data", "-o", str(tmp_path / "S.json")]
    assert run(arguments) == 0
    document = json.loads((tmp_path / "S.json").read_text())
    document["margent"]["unit"] = "row"
    roles = [field.get("margent", {}).get("role", "model") for field in document["fields"]]
    assert [field["name"] for field in document["fields"]] == ["a", "tags", "span", "b"]
    assert roles == ["model", "drop", "drop", "model"]
    (tmp_path / "S.json").write_text(json.dumps(document))
    assert run(["schema", "check", str(tmp_path / "S.json"), str(tmp_path / "t.parquet")]) == 0


def test_check_shows_how_the_schema_spells_cells_and_reads_none(
    people_csv: Path, people_schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(people_schema.read_text())
    document["fields"][3]["format"] = "%d.%m.%Y"
    people_schema.write_text(json.dumps(document))
    people_csv.write_text(people_csv.read_text().splitlines()[0] + "\n")
    assert run(["schema", "check", str(people_schema), str(people_csv), "--json"]) == 0
    examples = {column["name"]: column["examples"] for column in json.loads(capsys.readouterr().out)["columns"]}
    assert examples["sex"] == ["F", "M"]
    assert all(cell[-8:] in (".01.2020", ".02.2020", ".03.2020") for cell in examples["since"][:1])
    assert run(["schema", "check", str(people_schema), str(people_csv)]) == 0
    said = capsys.readouterr().out
    assert "'F'   'M'" in said
    assert "'' or '?'" in said


def test_schema_and_table_in_the_wrong_order(
    people_csv: Path, people_schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "check", str(people_csv), str(people_schema)]) == 2
    assert "the schema comes first" in capsys.readouterr().err


def test_the_kind_of_a_table_can_be_told(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people_csv.rename(tmp_path / "people.txt")
    assert run(["schema", "check", str(people_schema), str(table)]) == 3
    assert "--kind csv" in capsys.readouterr().err
    assert run(["schema", "check", str(people_schema), str(table), "--kind", "csv"]) == 0
    assert run(["schema", "check", str(people_schema), str(table), "--kind", "xlsx"]) == 2
    book = table.rename(tmp_path / "people.xlsx")
    capsys.readouterr()
    assert run(["schema", "draft", str(book), "-o", str(tmp_path / "S.json")]) == 3
    assert "as CSV" in capsys.readouterr().err


def test_the_verdict_names_the_columns_that_are_too_fine(
    people_schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(people_schema.read_text())
    document["fields"][1]["categories"] = [f"job {place}" for place in range(2000)]
    people_schema.write_text(json.dumps(document))
    plan = ["plan", "--schema", str(people_schema), "--epsilon", "1", "--expect-rows"]
    assert run([*plan, "20000"]) == 0
    said = capsys.readouterr().out
    assert "Too fine for so few rows" in said
    assert "work (2,001): give" in said
    for rows, words in (("20", "mostly noise"), ("10000000", "good")):
        assert run([*plan, rows]) == 0
        assert f"rows: {words}" in capsys.readouterr().out
    assert run([*plan, "20000", "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)
    assert made["verdict"]["tooFine"] == ["work"]
    assert 0 < made["verdict"]["oneWayErrorFrom"] < made["verdict"]["oneWayErrorTo"] <= 1
