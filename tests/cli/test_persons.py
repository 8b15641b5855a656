"""Persons and replaced rows from end to end: plan, run, promise, charges, measurements, resampling."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import margent
from margent import Budget, Category, Identifier, PersonUnit, Schema
from margent.cli import run
from margent.errors import UsageError
from margent.methods import METHODS
from margent.privacy.neighbors import Neighbors
from margent.privacy.replay import ReplayCurator
from margent.release.measurements import measurement_files, read_measurements
from margent.release.reading import read_release
from tests.conftest import SCHEMA, people_rows, write_csv


@pytest.fixture
def by_person(tmp_path: Path) -> Callable[[int], Path]:
    """Schema files of the made-up people, the person protected with so many rows."""

    def made(most: int) -> Path:
        path = tmp_path / f"by-person-{most}.json"
        path.write_text(json.dumps(SCHEMA | {"margent": {"unit": {"field": "id", "maxRows": most}}}))
        return path

    return made


def visits(tmp_path: Path) -> Path:
    """400 rows of 150 people: a third of them with one row, five rows without an id."""
    rows = people_rows(400)
    for place, row in enumerate(rows):
        row[4] = f"P{place if place < 50 else 50 + place % 100}"
    for row in rows[-5:]:
        row[4] = "?"
    return write_csv(tmp_path / "visits.csv", rows)


def synthesize(table: Path, schema: Path, out: Path, *extra: str) -> int:
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "200", "--single-release"]
    return run([*arguments, "-o", str(out), *extra])


@pytest.mark.parametrize("accountant", ["gdp", "pure"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_run_that_protects_persons(
    method: margent.methods.Method,
    accountant: str,
    by_person: Callable[[int], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "OUT"
    assert (
        synthesize(
            visits(tmp_path),
            by_person(2),
            out,
            "--method",
            method.name,
            "--accountant",
            accountant,
            "--expect-people",
            "200",
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "every person, as told apart by the column 'id'" in said
    assert "At most 2 rows of each are counted" in said
    assert "rows without an id are left out" in said
    # 50 people with one row, 100 with three or four (after five rows have lost their id); two of these are kept.
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"] == pytest.approx(250, abs=15)
    assert (summary["relation"], summary["personRows"]) == ("add-remove", 2)
    assert summary["promise"][0] in (out / "release.html").read_text().replace("&#39;", "'")
    charges = json.loads((out / "charges.json").read_text())
    assert charges["personRows"] == 2
    assert {charge["personRows"] for charge in charges["charges"]} == {2}
    # Two rows move a table by 2, in L2 and in L1.
    tables = [charge for charge in charges["charges"] if charge["query"] == "marginal"]
    assert {Fraction(charge["sensitivitySquared"]) for charge in tables} == {Fraction(4)}
    transcript, budget, _ = read_release(out)
    assert budget.neighbors == Neighbors("add-remove", 2)
    again = method.collector.collect(ReplayCurator(transcript), budget)
    assert measurement_files(replace(again, run=transcript.run)) == measurement_files(transcript)
    assert run(["resample", str(out), "--rows", "10", "-o", str(tmp_path / "more")]) == 0
    assert "every person" in capsys.readouterr().out
    assert read_measurements(tmp_path / "more" / "measurements").charges == transcript.charges


def test_ids_are_written_fresh_and_none_of_the_tables_shows(by_person: Callable[[int], Path], tmp_path: Path) -> None:
    assert synthesize(visits(tmp_path), by_person(1), tmp_path / "OUT", "--rows", "30") == 0
    for path in (tmp_path / "OUT").rglob("*"):
        if path.is_file():
            assert b"P120" not in path.read_bytes(), path.name


def test_the_noise_grows_with_the_rows_kept_and_the_plan_compares_them(
    by_person: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["plan", "--schema", str(by_person(3)), "--epsilon", "1", "--expect-people", "5000"]
    assert run([*arguments, "--json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert plan["personRows"] == 3
    errors = {each["maxRows"]: each["stages"][0]["cellErrorRecords"] for each in plan["byRowsKept"]}
    assert list(errors) == [1, 2, 3, 4, 8]
    assert errors[3] == plan["stages"][0]["cellErrorRecords"]
    for rows, error in errors.items():
        # Scales lie on a grid of steps below one part in a thousand.
        assert error == pytest.approx(rows * errors[1], rel=2e-3)
    assert run(arguments) == 0
    said = capsys.readouterr().out
    assert "persons, at most 3 of whose rows are counted" in said
    (line,) = (line for line in said.splitlines() if line.lstrip().startswith("one-way marginals") and "8:" in line)
    assert all(f"{mark}:" in line for mark in ("1", "2", "3*", "4", "8"))


def test_more_people_are_planned_with_more_memory(
    by_person: Callable[[int], Path], people_schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = []
    for schema, people in ((people_schema, []), (by_person(1), []), (by_person(1), ["--expect-people", "10000000"])):
        assert run(["plan", "--schema", str(schema), "--epsilon", "1", "--json", *people]) == 0
        memory.append(json.loads(capsys.readouterr().out)[0]["memoryBytes"])
    assert memory[0] < memory[1] < memory[2]
    assert memory[2] - memory[1] > 32 * (10_000_000 - 2**21)
    assert run(["plan", "--schema", str(by_person(1)), "--epsilon", "1", "--expect-people", "many"]) == 2
    assert "--expect-people" in capsys.readouterr().err


def test_replaced_rows_say_that_their_number_is_public(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(people_csv, people_schema, tmp_path / "OUT", "--relation", "replace") == 0
    assert "how many rows the table has, which counts as public" in capsys.readouterr().out
    charges = json.loads((tmp_path / "OUT" / "charges.json").read_text())
    assert {charge["relation"] for charge in charges["charges"]} == {"replace"}
    assert {Fraction(c["sensitivitySquared"]) for c in charges["charges"] if c["query"] == "marginal"} == {Fraction(2)}


def test_rehearsal_and_check_know_persons(
    by_person: Callable[[int], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rehearse", "--schema", str(by_person(2)), "--rows", "5", "-o", str(tmp_path / "R")]) == 0
    assert run(["schema", "check", str(by_person(2)), str(visits(tmp_path))]) == 0
    assert "not yet" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["plan", "synthesize"])
def test_the_replacement_of_a_person_is_refused_in_plain_words(
    command: str, by_person: Callable[[int], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--schema", str(by_person(2)), "--epsilon", "1", "--relation", "replace"]
    if command == "synthesize":
        options = [str(visits(tmp_path)), *options, "--single-release", "-o", str(tmp_path / "OUT")]
    assert run([command, *options]) == 2
    assert "protects single rows" in capsys.readouterr().err
    assert (
        run([command, *options[:-1], "swap"] if command == "plan" else [command, *options, "--relation", "swap"]) == 2
    )
    assert "add-remove or replace" in capsys.readouterr().err


def test_a_dropped_id_column_must_still_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = [field for field in SCHEMA["fields"] if field["name"] != "id"]
    fields.append({"name": "id", "type": "string", "margent": {"role": "drop"}})
    schema = tmp_path / "s.json"
    schema.write_text(json.dumps(SCHEMA | {"fields": fields, "margent": {"unit": {"field": "id", "maxRows": 1}}}))
    table = write_csv(tmp_path / "t.csv", [row[:4] for row in people_rows(5)], [field["name"] for field in fields[:-1]])
    assert synthesize(table, schema, tmp_path / "OUT") == 3
    assert "id: the schema has this column and the table does not" in capsys.readouterr().err


def test_from_python(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"who": ["a"] * 50 + ["b"] * 30 + [None] * 9, "answer": ["yes", "no"] * 44 + ["yes"]})
    schema = Schema([Identifier("who"), Category("answer", ["yes", "no"], required=True)], unit=PersonUnit("who", 10))
    release = margent.synthesize(frame, schema, budget=Budget(10_000), expect_people=2)
    assert release.rows == 20
    assert release.budget.person_rows == 10
    with pytest.raises(UsageError, match="expect_people"):
        margent.synthesize(frame, schema, budget=Budget(1), expect_people=0)
    with pytest.raises(UsageError, match="another"):
        margent.synthesize(frame, schema, budget=Budget(1, person_rows=3))
    fitted = margent.TableSynthesizer(schema, epsilon=10_000, expect_people=2).fit(frame)
    assert len(fitted.sample(7)) == 7
    assert {charge.neighbors for charge in fitted.transcript_.charges} == {Neighbors("add-remove", 10)}


def test_scales_are_those_of_k_times_a_row() -> None:
    """The charge of a table for k rows at scale k s is that of one row at scale s."""
    account = Budget(1).account
    cost = account.gaussian_cost(Fraction(1), Fraction(256))
    assert math.isclose(account.gaussian_cost(Fraction(16), Fraction(16 * 256)), cost, rel_tol=1e-3)
