"""The command line on whole outcomes: outputs, messages, exit codes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from margent.cli import run
from margent.privacy import ledger
from tests.conftest import SCHEMA, people_rows, write_csv

COLUMNS = [field["name"] for field in SCHEMA["fields"]]


def synthesize(table: Path, schema: Path, out: Path, *extra: str) -> int:
    return run(
        [
            "synthesize",
            str(table),
            "--schema",
            str(schema),
            "--epsilon",
            "3",
            "--single-release",
            "-o",
            str(out),
            *extra,
        ]
    )


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_release_has_exactly_the_allowed_files_and_a_table_inside_the_schema(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "OUT"
    assert synthesize(people_csv, people_schema, out, "--rows", "250", "--seed", "7") == 0
    assert files_of(out) == {
        "synthetic.csv",
        "datapackage.json",
        "charges.json",
        "summary.json",
        "release.html",
        "measurements/transcript.json",
        "measurements/answers.i64",
    }
    header, *rows = rows_of(out / "synthetic.csv")
    assert header == COLUMNS
    assert len(rows) == 250
    for sex, work, age, since, _ in rows:
        assert sex in {"F", "M"}
        assert work in {"office", "field, remote", 'the "lab"', "none", ""}
        assert 0 <= int(age) <= 99
        assert since == "" or "2020-01-01" <= since <= "2021-12-31"
    assert len({row[4] for row in rows}) == 250, "identifiers are fresh and distinct"
    said = capsys.readouterr().out
    for part in (
        "Protected: every single row",
        "epsilon 3",
        "May be published",
        "not good enough",
        "release.html",
    ):
        assert part in said


def test_dependence_survives(people_schema: Path, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "many.csv", people_rows(5000))
    assert synthesize(table, people_schema, tmp_path / "OUT", "--rows", "4000") == 0
    rows = rows_of(tmp_path / "OUT" / "synthetic.csv")[1:]
    women = [row for row in rows if row[0] == "F" and row[1]]
    assert sum(row[1] in {"office", "field, remote"} for row in women) > 0.9 * len(women)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "feather"])
def test_resample_without_data_gives_the_same_bytes(
    kind: str, people_csv: Path, people_schema: Path, tmp_path: Path
) -> None:
    first, second, other = tmp_path / "A", tmp_path / "B", tmp_path / "C"
    assert synthesize(people_csv, people_schema, first, "--seed", "11", "--format", kind) == 0
    people_csv.unlink()
    assert run(["resample", str(first), "--seed", "11", "-o", str(second)]) == 0
    assert run(["resample", str(first), "--seed", "12", "-o", str(other)]) == 0
    name = f"synthetic.{kind}"
    assert (first / name).read_bytes() == (second / name).read_bytes()
    assert (first / name).read_bytes() != (other / name).read_bytes()
    for file in ("measurements/transcript.json", "measurements/answers.i64", "charges.json"):
        assert (first / file).read_bytes() == (second / file).read_bytes()


def test_two_runs_with_one_seed_differ_because_the_noise_has_no_seed(
    people_csv: Path, people_schema: Path, tmp_path: Path
) -> None:
    for name in ("A", "B"):
        assert synthesize(people_csv, people_schema, tmp_path / name, "--seed", "11") == 0
    integers = [(tmp_path / name / "measurements" / "answers.i64").read_bytes() for name in ("A", "B")]
    assert integers[0] != integers[1]


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (["--epsilon", "0"], 2, "epsilon"),
        (["--epsilon", "-1"], 2, "epsilon"),
        (["--epsilon", "nan"], 2, "epsilon"),
        (["--epsilon", "inf"], 2, "epsilon"),
        (["--epsilon", "1,5"], 2, "epsilon"),
        (["--delta", "0"], 2, "delta"),
        (["--delta", "2"], 2, "delta"),
        (["--delta", "nan"], 2, "delta"),
        (["--rows", "-1"], 2, "--rows"),
        (["--rows", "1.5"], 2, "--rows"),
        (["--seed", "x"], 2, "--seed"),
        (["--method", "magic"], 2, "privsyn"),
        (["--format", "xlsx"], 2, "parquet"),
        (["--accountant", "none"], 2, "gdp"),
        (["--budget", "b.json"], 2, "--single-release"),
        (["--schema", "absent.json"], 3, "absent.json"),
    ],
)
def test_bad_options_are_refused_before_the_table_is_opened(
    change: list[str],
    code: int,
    words: str,
    people_schema: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The table does not exist: whoever opened it would fail with another code and message.
    assert synthesize(tmp_path / "no-such-table.csv", people_schema, tmp_path / "OUT", *change) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""
    assert not (tmp_path / "OUT").exists()


def test_epsilon_is_never_defaulted(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["synthesize", str(people_csv), "--schema", str(people_schema), "--single-release"]
    assert run([*arguments, "-o", str(tmp_path / "OUT")]) == 2
    assert "--epsilon is missing" in capsys.readouterr().err


def test_without_a_budget_the_single_release_must_be_said(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", "1"]
    assert run([*arguments, "-o", str(tmp_path / "OUT")]) == 2
    assert "--single-release" in capsys.readouterr().err


def test_an_existing_output_is_refused_before_any_charge(
    people_csv: Path,
    people_schema: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "OUT"
    out.mkdir()
    (out / "mine.txt").write_text("keep")

    def spend(*_: object) -> None:
        raise AssertionError("a charge was made")

    monkeypatch.setattr(ledger.Ledger, "spend", spend)
    assert synthesize(people_csv, people_schema, out) == 2
    assert "exists already" in capsys.readouterr().err
    assert files_of(out) == {"mine.txt"}


def test_a_header_that_differs_is_refused_with_all_faults(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_csv(tmp_path / "t.csv", [["F", "1", "2", "3", "4"]], ["sex", "job", "age", "age", "id"])
    assert synthesize(table, people_schema, tmp_path / "OUT") == 3
    said = capsys.readouterr().err
    for name in ("job", "work", "since", "age"):
        assert name in said
    assert not (tmp_path / "OUT").exists()


def test_a_semicolon_file_gets_a_hint(people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("sex;work;age;since;id\nF;office;3;2020-02-02;P1\n")
    assert synthesize(table, people_schema, tmp_path / "OUT") == 3
    assert '--delimiter ";"' in capsys.readouterr().err
    assert synthesize(table, people_schema, tmp_path / "OUT", "--delimiter", ";") == 0


def test_the_output_is_spelled_as_the_input_and_so_is_a_resample(people_schema: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("".join(f"{'FM'[row % 2]};office;{row % 90};2020-02-02;P{row}\n" for row in range(300)))
    first, second, tsv = tmp_path / "A", tmp_path / "B", tmp_path / "C"
    options = ["--delimiter", ";", "--no-header", "--seed", "3"]
    assert synthesize(table, people_schema, first, *options) == 0
    assert run(["resample", str(first), "--seed", "3", "-o", str(second)]) == 0
    text = (first / "synthetic.csv").read_text()
    assert text.splitlines()[0].count(";") == 4
    assert text.splitlines()[0].split(";")[0] in "FM"
    assert (second / "synthetic.csv").read_text() == text
    package = json.loads((first / "datapackage.json").read_text())
    assert package["resources"][0]["dialect"] == {"delimiter": ";", "quoteChar": '"', "header": False}
    assert run(["resample", str(first), "--format", "tsv", "-o", str(tsv)]) == 0
    assert (tsv / "synthetic.tsv").read_text().splitlines()[0].split("\t") == COLUMNS


@pytest.mark.parametrize("content", ["", "\x00\x01\x02PAR1"])
def test_an_unreadable_container_is_refused(
    content: str, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / ("t.csv" if not content else "t.parquet")
    table.write_text(content)
    assert synthesize(table, people_schema, tmp_path / "OUT") == 3
    assert str(table) in capsys.readouterr().err


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one_row_are_legal(rows: int, people_schema: Path, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", people_rows(rows))
    assert synthesize(table, people_schema, tmp_path / "OUT") == 0
    assert rows_of(tmp_path / "OUT" / "synthetic.csv")[0] == COLUMNS


@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_any_number_of_rows_can_be_asked_for(
    wanted: int, people_csv: Path, people_schema: Path, tmp_path: Path
) -> None:
    assert synthesize(people_csv, people_schema, tmp_path / "OUT", "--rows", str(wanted)) == 0
    assert len(rows_of(tmp_path / "OUT" / "synthetic.csv")) == wanted + 1


def test_many_unlisted_cells_are_told_from_the_noisy_answer(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [[*(["f"] if place % 2 else ["F"]), *row[1:]] for place, row in enumerate(people_rows(400))]
    table = write_csv(tmp_path / "t.csv", rows)
    assert synthesize(table, people_schema, tmp_path / "OUT") == 0
    said = capsys.readouterr().out
    assert "Warning: column 'sex'" in said
    assert "column 'age'" not in said
    summary = json.loads((tmp_path / "OUT" / "summary.json").read_text())
    assert summary["unlisted"][0]["noisyShare"] == pytest.approx(0.5, abs=0.15)
    assert "Look at the schema" in (tmp_path / "OUT" / "release.html").read_text()


CANARY = "SSN 123-45-6789 HIV+"


@pytest.mark.parametrize(
    "row",
    [
        [CANARY] * 5,
        ["F", CANARY],
        ["F", "office", CANARY, CANARY, CANARY, CANARY, CANARY],
        ["F", "office", "1e999", "2020-13-45", CANARY],
        ['"' + CANARY],
    ],
)
def test_no_row_stops_a_run_or_leaves_a_trace(
    row: list[str], people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    lines = [COLUMNS, *people_rows(30), row, *people_rows(30, seed=2)]
    table.write_bytes(
        "\n".join(",".join(f'"{c}"' if "," in c or '"' in c[1:] else c for c in line) for line in lines).encode()
    )
    out = tmp_path / "OUT"
    assert synthesize(table, people_schema, out) == 0
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err
    for path in out.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes()
            assert b"123-45" not in path.read_bytes()


def test_json_output_is_one_object(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(people_csv, people_schema, tmp_path / "OUT", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["epsilon"] == "3"
    assert 0.98 * summary["budget"] <= summary["spent"] <= summary["budget"]


def test_a_bug_is_reported_without_the_text_of_the_exception(
    people_csv: Path,
    people_schema: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError(CANARY)

    monkeypatch.setattr("margent.counts.engines.StreamedCounts", broken)
    assert synthesize(people_csv, people_schema, tmp_path / "OUT") == 1
    said = capsys.readouterr().err
    assert "bug" in said
    assert CANARY not in said
    assert not (tmp_path / "OUT").exists()
    assert not list(tmp_path.glob(".OUT*"))


def test_a_column_that_cannot_be_read_is_told_from_the_noisy_answer(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dates in another format than the schema's are counted as missing; nobody would notice before publishing."""
    rows = [[*row[:3], "31/12/2021" if row[3] else "", row[4]] for row in people_rows(4000)]
    table = write_csv(tmp_path / "t.csv", rows)
    assert synthesize(table, people_schema, tmp_path / "OUT") == 0
    said = capsys.readouterr().out
    assert "Warning: column 'since': about" in said
    assert said.count("Warning") == 1, "one cell in 17 of the column 'work' is missing: that is no reason to warn"
    summary = json.loads((tmp_path / "OUT" / "summary.json").read_text())
    assert [entry["column"] for entry in summary["mostlyMissing"]] == ["since"]
    assert "could not be read" in (tmp_path / "OUT" / "release.html").read_text()


def test_a_column_whose_records_are_nearly_all_in_one_bin_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Costs under equal bins; not so a yes-or-no column, days of which each is a code of its own, or few bins."""
    schema = tmp_path / "s.json"
    money = {"type": "number", "constraints": {"minimum": 0, "maximum": 100_000, "required": True}}
    fields = [
        {"name": "cost", **money, "margent": {"bins": 20}},
        {"name": "fee", **money, "margent": {"bins": [0, 10, 20, 30, 40, 100_000]}},
        {"name": "paid", **money, "margent": {"bins": 2}},
        {"name": "days", "type": "integer", "constraints": {"minimum": 0, "maximum": 30, "required": True}},
    ]
    schema.write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))
    rows = [[str(place % 50), str(place % 50), str(place % 50), "0"] for place in range(3000)]
    table = write_csv(tmp_path / "t.csv", rows, ["cost", "fee", "paid", "days"])
    assert synthesize(table, schema, tmp_path / "OUT") == 0
    said = capsys.readouterr().out
    assert said.count("Warning") == 1
    share = re.search(r"column 'cost': about (\d+) % of its cells .* are in one of its 20 bins, 0 to 5000, and", said)
    assert share is not None
    assert int(share[1]) > 90
    (entry,) = json.loads((tmp_path / "OUT" / "summary.json").read_text())["crowded"]
    assert (entry["column"], entry["bin"], entry["bins"]) == ("cost", "0 to 5000", 20)
    assert entry["noisyShare"] > 0.9
    assert "edges that lie close there" in (tmp_path / "OUT" / "release.html").read_text()
