"""A schema that has bins and values bought, from the private table to a release and everything one does with it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from margent import Budget, Category, Integer, Schema, read_release, synthesize
from margent.cli import run
from margent.collectors.purchases import SHARE_AT_MOST, SHARE_EACH, purchases_of, rest_of
from margent.errors import SchemaError, TranscriptError, UsageError
from margent.methods import METHODS, method_named
from margent.plan import make_plan
from margent.privacy import curator as door
from margent.privacy.replay import ReplayCurator
from margent.privacy.replay_purchases import ReplayMerchant
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.read import read_schema, schema_from_json
from margent.schema.write import schema_text, schema_to_json

FIELDS: list[dict[str, Any]] = [
    {"name": "town", "type": "string", "margent": {"openSet": {"maxCategories": 6}}},
    {"name": "trade", "type": "string", "margent": {"openSet": True, "unlisted": {"to": "other"}}},
    {
        "name": "income",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 200_000},
        "margent": {"bins": {"quantiles": 5, "grid": 400}},
    },
    {"name": "sex", "type": "string", "categories": ["F", "M"]},
]
SCHEMA = schema_from_json({"fields": FIELDS, "margent": {"unit": "row"}})
BUDGET = Budget(3, "1e-6", delta_for_atoms="1e-7")


def people(rows: int = 4000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    town = np.array(["Ulm", "Bonn", "Aachen"])[rng.integers(0, 3, rows)].astype(object)
    town[:200] = [f"only {i}" for i in range(min(rows, 200))]
    return pa.table(
        {
            "town": pa.array(town),
            "trade": pa.array(np.array(["smith", "baker", None], dtype=object)[rng.integers(0, 3, rows)]),
            "income": pa.array(np.minimum(np.exp(rng.normal(10, 0.6, rows)), 300_000).astype(np.int64)),
            "sex": pa.array(np.array(["F", "M"])[rng.integers(0, 2, rows)]),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = synthesize(people(), SCHEMA, budget=BUDGET, seed=5, rows=600)
    return release.save(tmp_path_factory.mktemp("bought") / "OUT", file_format="csv")


def test_what_was_bought_is_what_is_written(folder: Path) -> None:
    transcript, budget, summary = read_release(folder)
    assert transcript.declared == SCHEMA
    assert budget == BUDGET
    town, trade, income, _ = transcript.schema.fields
    assert [item.value for item in town.listed or ()] == ["Aachen", "Bonn", "Ulm"]
    assert [item.value for item in trade.listed or ()] == ["baker", "other", "smith"]
    described = json.loads((folder / "datapackage.json").read_text())["resources"][0]["schema"]
    assert schema_from_json(described) == transcript.schema
    rows = [line.split(",") for line in (folder / "synthetic.csv").read_text().splitlines()[1:]]
    assert {row[0] for row in rows} <= {"Aachen", "Bonn", "Ulm", ""}
    values = np.array([int(row[2]) for row in rows if row[2]])
    edges = np.array(income.bins.edges, dtype=np.int64)  # type: ignore[union-attr]
    shares = np.histogram(values, edges)[0] / len(values)
    assert len(shares) == 5
    assert np.abs(shares - 0.2).max() < 0.08  # bins of equal records stay so
    charges = json.loads((folder / "charges.json").read_text())["charges"]
    assert [charge["query"] for charge in charges[:3]] == ["quantiles", "open-set", "open-set"]
    assert sum(Fraction(charge["delta"]) for charge in charges) == BUDGET.delta_for_atoms
    assert sum(Fraction(charge["cost"]) for charge in charges) <= BUDGET.total
    assert summary["rows"] == 600


def test_the_folder_holds_the_declared_schema_and_settles_it_again(folder: Path) -> None:
    stored = json.loads((folder / "measurements" / "transcript.json").read_text())
    assert schema_from_json(stored["schema"]) == SCHEMA
    files = {path.name: path.read_bytes() for path in (folder / "measurements").iterdir()}
    assert measurement_files(read_measurements(folder / "measurements")) == files


@pytest.mark.parametrize("change", ["values", "order", "kind", "place", "cells"])
def test_an_altered_purchase_is_refused(change: str, folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(folder, tmp_path / "copy")) / "measurements"
    document = json.loads((copy / "transcript.json").read_text())
    answers = document["answers"]
    if change == "values":
        answers[1]["values"].append("zz")
    elif change == "order":
        answers[1]["values"].reverse()
    elif change == "kind":
        answers[0]["kind"] = "open-set"
    elif change == "place":
        answers.append(answers.pop(0))
    else:
        answers[0]["cells"] = 3
    (copy / "transcript.json").write_text(json.dumps(document))
    with pytest.raises(TranscriptError):
        read_measurements(copy)


@pytest.mark.parametrize("method", [method for method in METHODS if not method.package], ids=lambda each: each.name)
def test_replay_asks_for_the_same_and_ends_with_the_same_transcript(method: Any) -> None:
    schema = SCHEMA
    release = synthesize(people(1500), schema, budget=BUDGET, method=method.name, seed=1, rows=10)
    transcript = release.transcript
    purchases = purchases_of(schema, BUDGET)
    seller = ReplayMerchant(transcript)
    assert purchases.buy(seller) == transcript.bought
    curator = ReplayCurator(transcript)
    again = method.collector.collect(curator, rest_of(BUDGET, purchases.share))
    whole = replace(again, declared=schema, answers=(*transcript.bought, *again.answers), run=transcript.run)
    assert measurement_files(whole) == measurement_files(transcript)
    with pytest.raises(TranscriptError):
        purchases_of(schema, Budget(2, "1e-6", delta_for_atoms="1e-7")).buy(ReplayMerchant(transcript))


def test_resample_statement_and_evaluate_work_from_the_folder(folder: Path, tmp_path: Path) -> None:

    from pyarrow import csv

    again = tmp_path / "again"
    assert run(["resample", str(folder), "--rows", "50", "--seed", "3", "-o", str(again)]) == 0
    assert len((again / "synthetic.csv").read_text().splitlines()) == 51
    assert run(["statement", str(folder), "--no-selftest", "-o", str(tmp_path / "statement")]) == 0
    said = (tmp_path / "statement").read_text()
    assert "the values of" in said
    assert "were found from the table through noisy answers" in said
    assert "the chance to tell any of those that one unit alone held was at most 1e-07." in said  # both columns' parts
    table, schema = tmp_path / "people.csv", tmp_path / "schema.json"
    csv.write_csv(people(), table)
    schema.write_text(schema_text(SCHEMA))
    internal = ["evaluate", str(table), str(folder), "--schema", str(schema), "--no-learning"]
    assert run([*internal, "-o", str(tmp_path / "INTERNAL")]) == 0
    assert run(["evaluate", str(table), str(table), "--schema", str(schema), "-o", str(tmp_path / "I2")]) == 3


def test_the_command_buys_plans_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(schema_text(SCHEMA))
    options = ["--schema", str(schema), "--epsilon", "3", "--delta", "1e-6"]
    assert run(["plan", *options, "--delta-for-atoms", "1e-7", "--json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert plan["stages"][0]["name"] == "bins and values"
    assert plan["stages"][0]["share"] == pytest.approx(0.15)
    assert sum(stage["share"] for stage in plan["stages"]) == pytest.approx(1)
    assert {column["name"]: column["codes"] for column in plan["columns"]}["town"] == 7
    assert run(["plan", *options]) == 2
    assert "--delta-for-atoms" in capsys.readouterr().err


@pytest.mark.parametrize("budget", [Budget(1, accountant="pure"), Budget(1, "1e-6")], ids=["pure", "no part"])
def test_an_open_set_without_delta_is_refused_in_plain_words_before_anything(budget: Budget) -> None:
    class Untouched:
        def __getattr__(self, name: str) -> object:
            raise AssertionError("the table was touched")

    with pytest.raises(UsageError, match="delta"):
        synthesize(Untouched(), SCHEMA, budget=budget, rows=5)


def test_quantiles_alone_need_no_delta() -> None:
    schema = Schema([Integer("income", 0, 200_000, bins={"quantiles": 4}), Category("sex", ["F", "M"])], unit="row")
    table = people().select(["income", "sex"])
    release = synthesize(table, schema, budget=Budget(3, accountant="pure"), seed=1, rows=20)
    assert release.charges[0]["mechanism"] == "discrete-laplace"
    assert len(release.transcript.schema.fields[0].bins.edges) == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "pure"])
@pytest.mark.parametrize("share", [SHARE_EACH, SHARE_AT_MOST], ids=str)
def test_the_rest_of_a_budget_is_the_rest(accountant: str, share: Fraction) -> None:
    budget = Budget(1, accountant=accountant)
    left = budget.total * (1 - share)
    assert left * (1 - Fraction(1, 10**5)) <= rest_of(budget, share).total <= left
    assert rest_of(budget, Fraction(0)) is budget


@pytest.mark.parametrize(
    "rule",
    [
        {"never": {"town": "Ulm", "sex": "F"}},
        {"if": {"sex": "F"}, "then": {"income": {"below": 5}}},
    ],
)
def test_rules_cannot_speak_of_what_is_bought(rule: dict[str, Any]) -> None:
    document = schema_to_json(SCHEMA)
    document["margent"]["rules"] = [rule]
    with pytest.raises(SchemaError, match="codes of"):
        schema_from_json(document)


def test_rules_between_other_columns_hold_in_a_release_with_bought_values() -> None:
    document = schema_to_json(SCHEMA)
    document["fields"].append({"name": "pregnant", "type": "string", "categories": ["yes", "no"]})
    document["margent"]["rules"] = [{"never": {"sex": "M", "pregnant": "yes"}}]
    schema, table = schema_from_json(document), people()
    again = table.append_column("pregnant", pa.array(["yes", "no"] * (table.num_rows // 2)))
    release = synthesize(again, schema, budget=BUDGET, seed=2, rows=800)
    made = release.table.to_pandas()
    assert not ((made["sex"] == "M") & (made["pregnant"] == "yes")).any()
    assert ((made["sex"] == "F") & (made["pregnant"] == "yes")).any()
    assert [item.value for item in release.transcript.schema.fields[0].listed or ()] == ["Aachen", "Bonn", "Ulm"]


def test_a_strict_reading_checks_the_other_columns() -> None:
    synthesize(people(), SCHEMA, budget=BUDGET, seed=2, rows=5, strict=True)
    wrong = people().set_column(3, "sex", pa.array(["F", "X"] * 2000))
    with pytest.raises(SchemaError, match="sex"):
        synthesize(wrong, SCHEMA, budget=BUDGET, seed=2, rows=5, strict=True)


def test_with_the_answers_pinned_neighbors_and_strangers_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pinned: every count, whatever the rows are, so that the texts told are those that all of the tables have."""

    def pinned(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.full(exact.shape, 900)

    monkeypatch.setattr(door, "_checked_sum", pinned)
    monkeypatch.setattr("margent.pipeline.secrets.token_hex", lambda size: "0" * 2 * size)
    first = people(300).slice(200)
    neighbor, stranger = pa.concat_tables([first, first.slice(0, 1)]), first.take(list(range(99, -1, -1)))
    folders = []
    for table in (first, neighbor, stranger):
        release = synthesize(table, SCHEMA, budget=BUDGET, seed=5, rows=40)
        files = measurement_files(release.transcript)
        folders.append(files | {"table": release.table.to_pandas().to_csv().encode()})
    assert folders[0] == folders[1] == folders[2]


def test_a_plan_is_at_least_as_large_as_any_run() -> None:
    plan = make_plan(SCHEMA, BUDGET, method_named("dense"))
    release = synthesize(people(), SCHEMA, budget=BUDGET, seed=1, rows=10)
    planned = dict(plan.columns)
    domain = release.transcript.domain
    assert all(size <= planned[name] for name, size in zip(domain.names, domain.sizes, strict=True))


def test_a_schema_with_purchases_reads_and_writes_alike(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(schema_text(SCHEMA))
    assert read_schema(path) == SCHEMA
