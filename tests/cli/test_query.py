"""`margent query` on whole outcomes: the table, CSV, JSON, limits, names that need quotes, refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from margent.answers.answer import QueryAnswer
from margent.cli import run
from margent.cli.query import _show
from tests.cli.test_synthesize import synthesize
from tests.conftest import SCHEMA, people_rows, write_csv


@pytest.fixture
def out(people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert synthesize(people_csv, people_schema, tmp_path / "OUT", "--method", "priview", "--seed", "1") == 0
    capsys.readouterr()
    return tmp_path / "OUT"


def said(words: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert run(words) == code
    caught = capsys.readouterr()
    return caught.err if code else caught.out


def test_a_table_for_people(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(["query", str(out), "sex,work", "--top", "2"], capsys).splitlines()
    assert lines[0].split() == ["sex", "work", "count", "±"]
    counts = [int(line.split()[-2]) for line in lines[1:3]]
    assert counts == sorted(counts, reverse=True)
    assert lines[3].startswith("and 13 more cells (--all shows them")
    assert lines[4].startswith("Measured: sex, work were counted together in ")
    everything = said(["query", str(out), "sex,work", "--all"], capsys)
    assert "more cells" not in everything
    for label in ("field, remote", 'the "lab"', "(missing)", "(unlisted)"):
        assert label in everything


def test_cells_of_nothing_but_noise_are_for_who_asks_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    answer = QueryAnswer(
        columns=("sex", "works"),
        labels=(("F", "M", "(unlisted)"), ("(missing)", "yes", "(unlisted)")),
        counts=np.array([[1.0, 50.0, 30.0], [2.0, 60.0, -2.0], [3.0, 4.0, 0.0]]),
        errors=np.full((3, 3), 5.0),
        measured=True,
        sources=(("sex", "works"),),
        method="priview",
    )
    _show(answer, 30)
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in shown[1:6]] == [
        ["M", "yes"], ["F", "yes"], ["F", "(unlisted)"], ["M", "(missing)"], ["F", "(missing)"],
    ], "a column that cannot be read is told of, and missing cells are an answer"  # fmt: skip
    assert shown[6].startswith("and 4 more cells (--all shows them; in 4 of them records would not fit the schema")
    _show(answer, None)
    assert capsys.readouterr().out.count("(unlisted)") == 6


def test_csv_and_json_hold_the_same(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(["query", str(out), "work,sex", "--csv"], capsys))))
    document = json.loads(said(["query", str(out), "work,sex", "--json"], capsys))
    assert len(rows) == len(document["cells"]) == 15
    for row, cell in zip(rows, document["cells"], strict=True):
        assert [row["work"], row["sex"]] == cell["labels"]
        assert float(row["count"]) == pytest.approx(cell["count"], abs=0.01)
        assert float(row["low"]) == pytest.approx(max(0, cell["count"] - cell["error"]), abs=0.011)
        assert row["kind"] == document["kind"] == "measured"
    assert document["confidence"] == 0.95
    assert sum(cell["count"] for cell in document["cells"]) == pytest.approx(400, abs=60)
    few = json.loads(said(["query", str(out), "work,sex", "--json", "--top", "4"], capsys))
    assert len(few["cells"]) == 4
    assert few["cellsLeftOut"] == 11


def test_a_model_is_called_one(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(people_csv, people_schema, tmp_path / "OUT", "--method", "independent") == 0
    capsys.readouterr()
    told = said(["query", str(tmp_path / "OUT"), "sex,work"], capsys)
    assert "Modelled: sex, work were never counted together" in told
    assert "is in no bar" in told
    assert json.loads(said(["query", str(tmp_path / "OUT"), "sex,work", "--json"], capsys))["kind"] == "modelled"


def test_a_name_with_a_comma_goes_between_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(json.dumps(SCHEMA))
    document["fields"][0]["name"] = "sex, at birth"
    (tmp_path / "s.json").write_text(json.dumps(document))
    header = [field["name"] for field in document["fields"]]
    table = write_csv(tmp_path / "t.csv", people_rows(200), header)
    assert synthesize(table, tmp_path / "s.json", tmp_path / "OUT", "--method", "independent") == 0
    capsys.readouterr()
    assert said(["query", str(tmp_path / "OUT"), '"sex, at birth",age'], capsys).startswith("sex, at birth  age")


def test_resampled_releases_answer_the_same(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resample", str(out), "--rows", "10", "-o", str(tmp_path / "OUT2")]) == 0
    capsys.readouterr()
    first = said(["query", str(out), "sex,work,age", "--csv"], capsys)
    assert first == said(["query", str(tmp_path / "OUT2"), "sex,work,age", "--csv"], capsys)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["salary,id"], 2, "there is no column 'salary'; 'id' is not modeled"),
        (["sex,sex"], 2, "named twice"),
        (["sex,,age"], 2, "commas between"),
        (["sex", "--csv", "--json"], 2, "exclude each other"),
        (["sex", "--all", "--top", "3"], 2, "exclude each other"),
        (["sex", "--top", "0"], 2, "--top must be"),
    ],
)
def test_refusals(words: list[str], code: int, message: str, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in said(["query", str(out), *words], capsys, code)


def test_a_folder_that_is_no_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is this a release folder" in said(["query", str(tmp_path), "sex"], capsys, 3)
