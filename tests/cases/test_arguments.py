"""Epsilon, rows and seed, sensible or not, and releases that are moved, newer or damaged."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import margent
from margent.cli import run
from tests.cases.made_up import SMALL, as_float, rows_of, schema_file, small_table, synthesize


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "-inf", "1,5", "", "one", "1e999", "0x1"])
def test_an_epsilon_that_makes_no_sense_is_refused_before_the_table_is_opened(
    epsilon: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = schema_file(tmp_path, SMALL)
    assert synthesize(tmp_path / "absent.csv", schema, tmp_path / "OUT", epsilon=epsilon) == 2
    assert "epsilon" in capsys.readouterr().err


def test_one_epsilon_however_it_is_written(tmp_path: Path) -> None:
    budgets = {margent.Budget(written) for written in (1, 1.0, "1", "1.0", "1e0", "2/2")}
    assert len(budgets) == 1
    for written in ("1e-9", "0.01", "10", "1000"):
        out, rows = tmp_path / written, ("--rows", "50") if written == "1e-9" else ()
        assert synthesize(small_table(tmp_path), schema_file(tmp_path, SMALL), out, *rows, epsilon=written) == 0
        for facts in (out / "summary.json", out / "charges.json", out / "measurements" / "transcript.json"):
            assert not re.search(r"NaN|Infinity", facts.read_text())


def test_a_large_epsilon_shows_the_table_and_a_tiny_one_does_not(tmp_path: Path) -> None:
    table, schema = small_table(tmp_path, 400), schema_file(tmp_path, SMALL)
    deviations = {}
    for epsilon in ("0.001", "100"):
        assert synthesize(table, schema, tmp_path / epsilon, "--rows", "2000", epsilon=epsilon) == 0
        charges = json.loads((tmp_path / epsilon / "charges.json").read_text())["charges"]
        deviations[epsilon] = min(as_float(charge["scaleSquared"]) ** 0.5 for charge in charges)
    ages = [int(row[1]) for row in rows_of(tmp_path / "100" / "synthetic.csv")[1:]]
    assert sum(20 <= age < 70 for age in ages) > 0.98 * len(ages)
    assert deviations["0.001"] > 400 > 100 * deviations["100"], "in records, of which the table has 400"


@pytest.mark.usefixtures("no_charge")
def test_where_even_the_number_of_records_is_noise_somebody_must_say_how_many_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At epsilon 1e-9 the noise of the total is billions, and half of all runs would fill the memory."""
    schema = schema_file(tmp_path, SMALL)
    assert synthesize(small_table(tmp_path), schema, tmp_path / "OUT", epsilon="1e-9") == 5
    assert "--rows" in capsys.readouterr().err
    assert run(["plan", "--schema", str(schema), "--epsilon", "1e-9", "--expect-rows", "40"]) == 0
    assert "say --rows" in capsys.readouterr().out
    assert run(["plan", "--schema", str(schema), "--epsilon", "0.01"]) == 0
    assert "say --rows" not in capsys.readouterr().out


@pytest.mark.parametrize("rows", ["-1", "3.5", "3.0", "x", "True", "1e3", "+1", " 1"])
def test_a_number_of_rows_that_makes_no_sense_is_refused(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(tmp_path / "absent.csv", schema_file(tmp_path, SMALL), tmp_path / "OUT", "--rows", rows) == 2
    assert "--rows" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [-1, 3.5, 3.0, "10", True])
def test_and_so_it_is_from_python(rows: Any, tmp_path: Path) -> None:
    synthesizer = margent.TableSynthesizer(margent.read_schema(schema_file(tmp_path, SMALL)), epsilon=1)
    synthesizer.fit(small_table(tmp_path))
    with pytest.raises(margent.UsageError, match="rows"):
        synthesizer.sample(rows)


def test_no_rows_are_a_typed_table_and_the_default_is_the_noisy_number(tmp_path: Path) -> None:
    schema = margent.read_schema(schema_file(tmp_path, SMALL))
    synthesizer = margent.TableSynthesizer(schema, epsilon=0.05).fit(pd.read_csv(small_table(tmp_path, 400)))
    none = synthesizer.sample(0)
    assert len(none) == 0
    assert list(none.columns) == ["sex", "age"]
    assert list(none["sex"].cat.categories) == ["F", "M"]
    assert str(none["age"].dtype) == "Int64"
    assert len(synthesizer.sample()) == len(synthesizer.sample())
    # The noise of a total at epsilon 0.05 has a deviation above 100; five runs that all hit 400 would show a leak.
    table = small_table(tmp_path, 400)
    fitted = [margent.TableSynthesizer(schema, epsilon=0.05).fit(table) for _ in range(5)]
    assert {len(each.sample()) for each in fitted} != {400}


def test_many_rows_are_written_in_blocks(tmp_path: Path) -> None:
    out = tmp_path / "OUT"
    options = ("--rows", "150000", "--format", "csv.gz", "--method", "independent")
    assert synthesize(small_table(tmp_path), schema_file(tmp_path, SMALL), out, *options) == 0
    with gzip.open(out / "synthetic.csv.gz", "rt") as file:
        assert sum(1 for _ in file) == 150_001


def test_two_runs_differ_and_the_seed_of_the_sampling_is_published(tmp_path: Path) -> None:
    schema, table = schema_file(tmp_path, SMALL), small_table(tmp_path)
    for name in ("A", "B"):
        assert synthesize(table, schema, tmp_path / name, "--seed", "4", "--rows", "50") == 0
    answers = [(tmp_path / name / "measurements" / "answers.i64").read_bytes() for name in ("A", "B")]
    assert answers[0] != answers[1]
    assert json.loads((tmp_path / "A" / "summary.json").read_text())["seed"] == 4
    for name in ("charges.json", "measurements/transcript.json"):
        assert "seed" not in (tmp_path / "A" / name).read_text()


def test_a_release_can_be_moved_and_a_newer_or_damaged_one_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    out = home / "OUT"
    assert synthesize(small_table(home), schema_file(home, SMALL), out, "--seed", "4") == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    table = before[out / "synthetic.csv"]
    assert run(["resample", str(out), "--seed", "4", "-o", str(tmp_path / "B")]) == 0
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, "sampling changes nothing"
    moved = out.rename(tmp_path / "moved")
    (home / "t.csv").unlink()
    assert run(["resample", str(moved), "--seed", "4", "-o", str(tmp_path / "C")]) == 0
    assert (tmp_path / "B" / "synthetic.csv").read_bytes() == (tmp_path / "C" / "synthetic.csv").read_bytes() == table
    facts = moved / "measurements" / "transcript.json"
    document = json.loads(facts.read_text())
    for change, words in (
        ({"version": 99}, "version"),
        ({"format": "pickle"}, "not a Margent measurements file"),
        ({"answers": None}, "damaged or altered"),
    ):
        facts.write_text(json.dumps(document | change))
        capsys.readouterr()
        assert run(["resample", str(moved), "-o", str(tmp_path / "D")]) == 3
        assert words in capsys.readouterr().err
        assert not (tmp_path / "D").exists()
