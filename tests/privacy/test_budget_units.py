"""The column that tells persons apart is one for all runs of a data set: k rows of each are else k rows of no one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from margent import Category, Identifier, Schema, synthesize
from margent.cli import run as command
from margent.cli.budget import promise
from margent.errors import BudgetError
from margent.privacy import budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import entry_text, read_entry
from margent.privacy.budget_file import BudgetFile
from margent.schema.fields import PersonUnit
from tests.privacy.budget_entries import ZERO, declaration, reservation, run_id

HOSTILE = ['a "run": "x', '", "run": "', "\\", "\x00\x1b[2J", "\u202evisit", "", " id ", "é" * 3000, "{0}%s'; --"]


@pytest.fixture
def patients(tmp_path: Path) -> BudgetFile:
    file = BudgetFile(tmp_path / "b", "patients")
    file.init(Budget(3), unit="person:2")
    return file


def schema_of(column: str) -> Schema:
    return Schema([Identifier("patient"), Identifier("visit"), Category("a", ["x", "y"])], unit=PersonUnit(column, 2))


def test_runs_whose_persons_are_told_apart_by_another_column_are_refused(
    patients: BudgetFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("patient,visit,a\n" + "".join(f"p{row // 50},v{row},x\n" for row in range(200)))
    given = {"budget": Budget("0.5"), "budget_file": patients, "method": "independent", "rows": 1}
    assert "told apart" not in promise(patients.balance())
    synthesize(table, schema_of("patient"), **given)  # type: ignore[arg-type]
    with pytest.raises(BudgetError) as caught:
        synthesize(table, schema_of("visit"), **given)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "nothing was charged: the data set 'patients' was declared on other terms, for ever:\n"
        "  column that tells persons apart: the run's is 'visit', that of the data set's runs so far 'patient'. Keep "
        "that column's name in table and schema; where it is really another unit, declare another data set "
        "(--data-set) for it"
    )
    synthesize(table, schema_of("patient"), **given)  # type: ignore[arg-type]
    assert patients.balance().runs == 2
    capsys.readouterr()
    assert command(["budget", "show", str(patients.path)]) == 0
    assert "protected: person:2, told apart by the column 'patient'; neighbors" in capsys.readouterr().out
    assert command(["budget", "show", str(patients.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dataSets"][0]["unitField"] == "patient"


def test_two_first_runs_at_once_do_not_both_say_the_column(
    patients: BudgetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = patients.balance()
    patients.reserve(Budget("0.5"), PersonUnit("patient", 2), run_id())
    monkeypatch.setattr(BudgetFile, "balance", lambda _: before)  # as it was when the other run looked
    with pytest.raises(BudgetError, match="nothing was charged: column that tells persons apart: the run's is 'visit'"):
        patients.reserve(Budget("0.5"), PersonUnit("visit", 2), run_id())


@pytest.mark.parametrize("column", HOSTILE)
def test_any_column_comes_back_as_it_was(column: str, tmp_path: Path) -> None:
    path, run = tmp_path / "b", run_id()
    budget_store.declare(path, declaration(unit="person:2"))
    wanted = reservation(declaration().total / 9, run=run, unit_field=column, spent=declaration().total / 9)
    assert read_entry(entry_text(wanted)) == wanted
    budget_store.reserve(path, wanted)
    assert budget_store.read(path)[0]["people"].unit_field == column
    for other in (None, column + "x"):
        with pytest.raises(budget_store.OtherUnitError):
            budget_store.reserve(path, reservation(declaration().total / 9, unit_field=other))
    with pytest.raises(BudgetError, match="is in it already"):
        budget_store.reserve(path, reservation(declaration().total / 9, run=run, unit_field=column))
    budget_store.reserve(path, reservation(declaration().total / 9, run="0" * 32, unit_field=column))
    assert "\x1b" not in promise(budget_store.read(path)[0]["people"])


def test_a_column_that_is_no_text_is_refused_before_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "b"
    budget_store.declare(path, declaration(unit="person:2"))
    with pytest.raises(BudgetError, match="nothing was charged"):
        budget_store.reserve(path, reservation(declaration().total / 9, unit_field="\ud800"))
    assert budget_store.read(path)[0]["people"].spent == ZERO
