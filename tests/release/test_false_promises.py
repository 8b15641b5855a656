"""A release that promises more privacy than its answers were paid for is refused by everything that reads releases."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from margent import Budget, BudgetFile, from_transcript, query, read_release, synthesize
from margent.cli import run
from margent.errors import BudgetError, TranscriptError
from margent.methods import METHODS
from margent.privacy.accounting import ACCOUNT_NAMES
from margent.privacy.ledger import Ledger
from margent.privacy.registered import least_sensitivity_squared
from margent.release.measurements import read_measurements
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv

TRANSCRIPT, SUMMARY = "measurements/transcript.json", "summary.json"
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of answers that never change: one-way tables, scores of all pairs, and an interaction."""
    transcript = read_measurements(Path(__file__).parent / "golden" / "v5")
    made = from_transcript(transcript, budget=Budget(8, "1e-6"), synthesizer="descent", rows=20, seed=1)
    return made.save(tmp_path_factory.mktemp("promises") / "OUT")


def edited(release: Path, file: str, edit: Edit, into: Path) -> Path:
    copy = Path(shutil.copytree(release, into / "copy"))
    document = json.loads((copy / file).read_text())
    edit(document)
    (copy / file).write_text(json.dumps(document))
    return copy


def every_charge(**changes: Any) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        for charge in document["charges"]:
            charge.update({key: change(charge) for key, change in changes.items()})

    return edit


def one_charge(kind: str, /, **changes: Any) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        charge = next(charge for charge in document["charges"] if charge["query"] == kind)
        charge.update({key: change(charge) for key, change in changes.items()})

    return edit


def cheaper(part: Fraction) -> Callable[[dict[str, Any]], str]:
    return lambda charge: str(Fraction(charge["cost"]) * part)


def smaller(charge: dict[str, Any]) -> str:
    return str(Fraction(charge["sensitivitySquared"]) / 4)


def twice_answered(document: dict[str, Any]) -> None:
    answer = next(answer for answer in document["answers"] if answer["kind"] == "marginal")
    document["answers"].append(answer)


FALSE: dict[str, tuple[str, Edit]] = {
    "a smaller epsilon": (SUMMARY, lambda summary: summary.update(epsilon="1/10")),
    "an epsilon smaller by little": (SUMMARY, lambda summary: summary.update(epsilon="7.998")),
    "a smaller delta": (SUMMARY, lambda summary: summary.update(delta="1e-12")),
    "delta that no charge uses": (SUMMARY, lambda summary: summary.update(deltaForAtoms="9e-7")),
    "another relation": (SUMMARY, lambda summary: summary.update(relation="replace")),
    "another accountant": (SUMMARY, lambda summary: summary.update(accountant="zcdp")),
    "persons": (SUMMARY, lambda summary: summary.update(personRows=4)),
    "the run of another release": (SUMMARY, lambda summary: summary.update(run="0" * 32)),
    "the method of another release": (SUMMARY, lambda summary: summary.update(method="independent")),
    "charges of another account": (TRANSCRIPT, every_charge(account=lambda _: "pure")),
    "charges of another relation": (TRANSCRIPT, every_charge(relation=lambda _: "replace")),
    "charges for nothing": (TRANSCRIPT, every_charge(cost=lambda _: "0")),
    "a charge that gives back": (TRANSCRIPT, one_charge("marginal", cost=lambda _: "-5")),
    "a charge cheaper by one in 10^20": (TRANSCRIPT, one_charge("marginal", cost=cheaper(1 - Fraction(1, 10**20)))),
    "interactions cheaper by one in 10^20": (
        TRANSCRIPT, one_charge("interaction", cost=cheaper(1 - Fraction(1, 10**20))),
    ),
    "half the sensitivity of a table": (
        TRANSCRIPT, one_charge("marginal", sensitivitySquared=smaller, cost=cheaper(Fraction(1, 4))),
    ),
    "half the sensitivity of an interaction": (
        TRANSCRIPT, one_charge("interaction", sensitivitySquared=smaller, cost=cheaper(Fraction(1, 4))),
    ),
    "half the sensitivity of scores": (
        TRANSCRIPT, one_charge("independence", sensitivitySquared=smaller, cost=cheaper(Fraction(1, 4))),
    ),
    "a question that there is not": (TRANSCRIPT, one_charge("marginal", query=lambda _: "free")),
    "delta for a table": (TRANSCRIPT, one_charge("marginal", delta=lambda _: "1/1000000000000")),
    "noise that no budget pays for": (TRANSCRIPT, one_charge("marginal", scaleSquared=lambda _: "1/10000000000")),
    "one charge for two answers": (TRANSCRIPT, twice_answered),
    "noise wider than was paid for": (TRANSCRIPT, lambda document: document["answers"][0].update(variance="1/9")),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_a_false_promise_is_refused(
    name: str, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, edit = FALSE[name]
    copy = edited(release, file, edit, tmp_path)
    with pytest.raises(TranscriptError, match=Path(file).name):
        read_release(copy)
    with pytest.raises(TranscriptError):
        query(copy, ["sex"])
    page = tmp_path / "statement.html"
    for command in (
        ["statement", str(copy), "--no-selftest", "-o", str(page)],
        ["query", str(copy), "sex"],
        ["resample", str(copy), "-o", str(tmp_path / "more")],
    ):
        assert run(command) == 3
        assert Path(file).name in capsys.readouterr().err
    assert not page.exists()
    assert not (tmp_path / "more").exists()


def test_a_false_promise_is_refused_beside_a_budget_file(release: Path, tmp_path: Path) -> None:
    file = BudgetFile(tmp_path / "people.budget", "people")
    file.init(Budget(9))
    copy = edited(release, TRANSCRIPT, FALSE["half the sensitivity of scores"][1], tmp_path)
    assert run(["budget", "verify", str(tmp_path / "people.budget"), str(copy)]) == 3


@pytest.mark.parametrize("key", ["margent", "versions", "synthesizer", "seed", "rows", "format", "epsilon", "delta"])
@pytest.mark.parametrize("value", [None, [], "\x00", -1, "absent"])
def test_what_a_command_needs_of_the_summary_is_asked_for(
    key: str, value: object, release: Path, tmp_path: Path
) -> None:
    def edit(summary: dict[str, Any]) -> None:
        del summary[key]
        if value != "absent":
            summary[key] = value

    if isinstance(value, str) and value != "absent" and key in ("margent", "synthesizer"):
        return  # a text, if an odd one
    with pytest.raises(TranscriptError, match=r"summary\.json: damaged or altered"):
        read_release(edited(release, SUMMARY, edit, tmp_path))


def test_a_summary_of_the_first_versions_has_no_run(release: Path, tmp_path: Path) -> None:
    copy = edited(
        release, SUMMARY, lambda summary: [summary.pop(key) for key in ("run", "settings", "personRows")], tmp_path
    )
    transcript, _, summary = read_release(copy)
    assert summary["run"] == transcript.run != ""


@pytest.mark.parametrize("account", ACCOUNT_NAMES)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_what_was_paid_is_read_back(method: str, relation: Any, account: str, tmp_path: Path) -> None:
    """All methods, accounts and relations: their charges state the registered sensitivities."""
    table = write_csv(tmp_path / "t.csv", people_rows(60))
    budget = Budget("0.37123457", accountant=account, relation=relation)
    made = synthesize(table, schema_from_json(SCHEMA), budget=budget, method=method, seed=1, rows=5)
    transcript, read, _ = read_release(made.save(tmp_path / "OUT"))
    assert read == budget
    assert transcript.charges == made.transcript.charges
    for charge in transcript.charges:
        if charge.query not in ("interaction", "mutual-information"):
            assert least_sensitivity_squared(charge) == charge.sensitivity_squared


@pytest.mark.parametrize("delta", ["1e-60", "1e-300", Fraction(1, 3**40)])
def test_a_budget_of_long_numbers_is_read_back(delta: Any, tmp_path: Path) -> None:
    """What a person types has at most sixty characters; what a release writes is p/q of any length."""
    table = write_csv(tmp_path / "t.csv", people_rows(60))
    budget = Budget("0.37123457", delta)
    made = synthesize(table, schema_from_json(SCHEMA), budget=budget, method="independent", seed=1, rows=5)
    assert read_release(made.save(tmp_path / "OUT"))[1] == budget


def test_a_ledger_takes_no_gaussian_noise_below_its_account_s_price(release: Path) -> None:
    """Up to a scale of 64 a GDP price is above D^2/(2 s^2), which is what zCDP asks."""
    transcript, budget, _ = read_release(release)
    charge = next(charge for charge in transcript.charges if charge.query == "marginal")
    assert charge.scale_squared is not None
    low = (charge.cost + charge.sensitivity_squared / (2 * charge.scale_squared)) / 2
    with pytest.raises(BudgetError, match="less than Gaussian noise can"):
        Ledger(budget).spend([dataclasses.replace(charge, cost=low)])
    with pytest.raises(BudgetError, match="is not on the public grid"):
        Ledger(budget).spend([dataclasses.replace(charge, scale_squared=Fraction(1000, 3), cost=Fraction(1, 100))])
