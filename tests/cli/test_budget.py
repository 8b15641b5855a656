"""`margent budget` and runs under a budget file, from the command line and from Python."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import margent
from margent import Budget, BudgetError, BudgetFile
from margent.cli import run
from margent.counts.source import StreamedCounts
from margent.privacy.curator import DataCurator

NAME = "the-registry-of-quokkas"


@pytest.fixture
def budget_path(tmp_path: Path) -> Path:
    path = tmp_path / "quokkas.sqlite-budget"
    assert run(["budget", "init", str(path), "--data-set", NAME, "--epsilon", "3", "--delta", "1e-8"]) == 0
    return path


def synthesize(table: Path, schema: Path, out: Path, budget_path: Path, epsilon: str = "1", *extra: str) -> int:
    return run(
        ["synthesize", str(table), "--schema", str(schema), "--epsilon", epsilon, "--budget", str(budget_path),
         "--method", "independent", "-o", str(out), *extra]
    )  # fmt: skip


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["budget", "show", str(path), "--json"]) == 0
    (data_set,) = json.loads(capsys.readouterr().out)["dataSets"]
    found: dict[str, Any] = data_set
    return found


def test_runs_add_up_until_the_cap_refuses(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(people_csv, people_schema, tmp_path / "A", budget_path, "2") == 0
    said = capsys.readouterr().out
    assert re.search(rf"Budget of '{NAME}': 4\d\.\d+ % used by 1 run; for a further run epsilon 2\.\d+ at", said)
    assert "Single release" not in said
    assert synthesize(people_csv, people_schema, tmp_path / "B", budget_path, "2.9") == 4
    refusal = capsys.readouterr().err
    fits = re.search(r"epsilon ([0-9.]+) at delta 1e-08 would fit", refusal)
    assert fits is not None
    assert not (tmp_path / "B").exists()
    assert synthesize(people_csv, people_schema, tmp_path / "B", budget_path, fits[1]) == 0
    held = shown(budget_path, capsys)
    spent = Budget(2, "1e-8").total + Budget(fits[1], "1e-8").total
    assert Fraction(held["spent"]) == spent <= Fraction(held["cap"]) == Budget(3, "1e-8").total
    assert [entry["epsilon"] for entry in held["runs"]] == ["2", str(Fraction(fits[1]))]
    assert run(["budget", "show", str(budget_path)]) == 0
    said = capsys.readouterr().out
    assert "all releases under it together are (epsilon 3, delta 1e-08)-differentially private" in said
    assert "informational only" in said


def test_a_release_tells_nothing_of_the_budget_file(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    under, alone = tmp_path / "U", tmp_path / "S"
    assert synthesize(people_csv, people_schema, under, budget_path, "1", "--seed", "3") == 0
    arguments = ["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", "1", "--delta", "1e-8"]
    assert run([*arguments, "--single-release", "--method", "independent", "--seed", "3", "-o", str(alone)]) == 0
    files = [sorted(str(path.relative_to(out)) for path in out.rglob("*")) for out in (under, alone)]
    assert files[0] == files[1]
    held = shown(budget_path, capsys)
    capped = Budget(3, "1e-8").total
    for path in under.rglob("*"):
        if path.is_file():
            content = path.read_bytes().decode("utf-8", "replace")
            for word in (NAME, "quokka", "sqlite-budget", held["cap"], str(float(capped)), held["runs"][0]["when"]):
                assert word not in content, path
    documents = [
        {name: json.loads((out / name).read_text()) for name in ("charges.json", "summary.json", "datapackage.json")}
        for out in (under, alone)
    ]
    assert documents[0]["charges.json"] == documents[1]["charges.json"]
    assert documents[0]["summary.json"]["promise"] == documents[1]["summary.json"]["promise"]
    keys = [{name: keys_of(content) for name, content in document.items()} for document in documents]
    assert keys[0] == keys[1]
    runs = [document["summary.json"]["run"] for document in documents]
    assert runs[0] == held["runs"][0]["run"] != runs[1]


def keys_of(document: object) -> object:
    return {key: keys_of(value) for key, value in document.items()} if isinstance(document, Mapping) else None


def test_verify_knows_every_release_and_tells_an_older_copy(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outs = [tmp_path / name for name in ("A", "B", "C")]
    assert synthesize(people_csv, people_schema, outs[0], budget_path) == 0
    older = shutil.copy(budget_path, tmp_path / "older")
    assert synthesize(people_csv, people_schema, outs[1], budget_path) == 0
    assert run(["resample", str(outs[1]), "-o", str(outs[2])]) == 0, "drawn again: the same run"
    paths = [str(out) for out in outs]
    capsys.readouterr()
    assert run(["budget", "verify", str(budget_path), *paths]) == 0
    assert f"It accounts for {len(paths)} releases: all that were given." in capsys.readouterr().out
    assert run(["budget", "verify", str(budget_path)]) == 0
    assert "No release was given" in capsys.readouterr().out
    assert run(["budget", "verify", str(older), *paths]) == 4
    said = capsys.readouterr().err
    assert "older copy" in said
    assert [f"{out}: its run" in said for out in paths] == [False, True, True]
    run(["budget", "show", str(budget_path), "--json"])
    head = json.loads(capsys.readouterr().out)["head"]
    assert run(["budget", "verify", str(budget_path), "--head", head, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 5, "a declaration, two runs, a look of each"
    assert run(["budget", "verify", str(older), "--head", head]) == 4
    assert run(["budget", "verify", str(budget_path), str(tmp_path)]) == 3


def test_the_price_is_on_disk_before_the_first_look(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, looks = BudgetFile(budget_path), []
    original = StreamedCounts.count

    def watched(self: StreamedCounts, *arguments: Any) -> Any:
        looks.append(len(BudgetFile(budget_path).balance().reservations))
        return original(self, *arguments)

    monkeypatch.setattr(StreamedCounts, "count", watched)
    assert synthesize(people_csv, people_schema, tmp_path / "A", budget_path) == 0
    assert looks
    assert set(looks) == {1}
    assert file.balance().spent == Budget(1, "1e-8").total


def test_a_refused_run_never_looks(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object) -> None:
        raise AssertionError("the data was looked at")

    monkeypatch.setattr(StreamedCounts, "count", look)
    assert synthesize(people_csv, people_schema, tmp_path / "A", budget_path, "4") == 4
    budget_path.write_text("not a budget")
    assert synthesize(people_csv, people_schema, tmp_path / "A", budget_path) == 4


def test_what_can_be_refused_for_free_is_charged_nothing_and_a_crash_is_never_refunded(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = BudgetFile(budget_path)
    assert synthesize(tmp_path / "absent.csv", people_schema, tmp_path / "A", budget_path) == 3
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert synthesize(other, people_schema, tmp_path / "A", budget_path) == 3
    assert synthesize(people_csv, people_schema, tmp_path, budget_path) == 2, "OUT exists"
    assert file.balance().spent == 0

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DataCurator, "measure", interrupted)
    assert synthesize(people_csv, people_schema, tmp_path / "A", budget_path) == 130
    assert file.balance().spent == Budget(1, "1e-8").total


def test_terms_come_from_the_file_and_others_are_refused(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "z"
    terms = ["--accountant", "zcdp", "--relation", "replace", "--delta-for-atoms", "1e-11"]
    assert run(["budget", "init", str(path), "--data-set", "z", "--epsilon", "1", *terms]) == 0
    assert synthesize(people_csv, people_schema, tmp_path / "A", path) == 0, "all of it"
    summary = json.loads((tmp_path / "A" / "summary.json").read_text())
    assert (summary["accountant"], summary["relation"]) == ("zcdp", "replace")
    assert Fraction(summary["delta"]) == Fraction(99, 10**11)
    assert BudgetFile(path).balance().left == 0
    capsys.readouterr()
    assert synthesize(people_csv, people_schema, tmp_path / "B", budget_path, "1", "--accountant", "zcdp") == 4
    assert "accountant: the run's is 'zcdp', the data set's is 'gdp'" in capsys.readouterr().err
    persons = ["budget", "init", str(tmp_path / "p"), "--data-set", "p", "--epsilon", "1", "--unit", "person:4"]
    assert run(persons) == 0
    assert synthesize(people_csv, people_schema, tmp_path / "B", tmp_path / "p") == 4
    assert "protected unit: the run's is 'row', the data set's is 'person:4'" in capsys.readouterr().err


def test_a_part_of_delta_is_set_apart_for_the_data_set_and_taken_from_by_runs(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "b", tmp_path / "A"
    assert run(["budget", "init", str(path), "--data-set", "b", "--epsilon", "1", "--delta-for-atoms", "1e-10"]) == 0
    assert "delta 1e-09, of which 1e-10 for atoms" in capsys.readouterr().out
    arguments = ["plan", "--schema", str(people_schema), "--epsilon", ".5", "--budget", str(path), "--json"]
    assert run([*arguments, "--delta-for-atoms", "2e-10"]) == 0
    (planned,) = json.loads(capsys.readouterr().out)
    assert planned["deltaForAtoms"] == str(Fraction(2, 10**10))
    assert not planned["budgetFile"]["fits"]
    assert synthesize(people_csv, people_schema, out, path, ".5", "--delta-for-atoms", "2e-10") == 4
    assert "sets delta 2e-10 apart for atoms, and 1e-10 of the data set's part is left" in capsys.readouterr().err
    assert synthesize(people_csv, people_schema, out, path, ".5", "--delta-for-atoms", "6e-11") == 0
    assert "Of the part of delta for atoms 60 % is used." in capsys.readouterr().out
    charges = json.loads((out / "charges.json").read_text())
    assert (Fraction(charges["delta"]), Fraction(charges["deltaForAtoms"])) == (
        Fraction(96, 10**11),
        Fraction(6, 10**11),
    )
    assert run(["resample", str(out), "-o", str(tmp_path / "R"), "-q"]) == 0
    assert run(["budget", "verify", str(path), str(out), str(tmp_path / "R")]) == 0
    held = shown(path, capsys)
    assert Fraction(held["deltaSpentOnAtoms"]) == Fraction(6, 10**11)

    transcript = out / "measurements" / "transcript.json"
    document = json.loads(transcript.read_text())
    document["charges"][0]["delta"] = "7/100000000000"
    transcript.write_text(json.dumps(document))
    assert run(["budget", "verify", str(path), str(out)]) == 3
    assert "transcript.json: damaged or altered" in capsys.readouterr().err  # a table uses up no delta


def test_init_tells_all_faults_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terms = ["--epsilon", "0", "--delta", "2", "--relation", "replace", "--unit", "person:4"]
    assert run(["budget", "init", str(tmp_path / "b"), "--data-set", " b", *terms]) == 2
    said = capsys.readouterr().err
    for fault in ("epsilon must be", "delta must be", "1 to 100 printable", "relation 'replace' protects single rows"):
        assert fault in said
    assert run(["budget", "init", str(tmp_path / "b"), "--data-set", "b", "--unit", "people", "--delta", "2"]) == 2
    said = capsys.readouterr().err
    assert "epsilon is missing" in said
    assert "delta must be" in said
    assert "the protected unit is row, or person:k" in said
    assert not (tmp_path / "b").exists()


def test_a_file_that_vanishes_after_the_charge_costs_no_release(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    original = StreamedCounts.count

    def and_gone(self: StreamedCounts, *arguments: Any) -> Any:
        budget_path.unlink(missing_ok=True)
        return original(self, *arguments)

    monkeypatch.setattr(StreamedCounts, "count", and_gone)
    assert synthesize(people_csv, people_schema, tmp_path / "A", budget_path, "1", "--json") == 0
    said = capsys.readouterr().out
    assert "this run is charged; what is left cannot be told now" in json.loads(said[said.index("{") :])["budgetFile"]
    assert (tmp_path / "A").is_dir()


def test_either_a_file_or_a_single_release(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", "1"]
    for extra in ([], ["--single-release", "--budget", str(budget_path)]):
        assert run([*arguments, *extra, "-o", str(tmp_path / "A")]) == 2
        assert "say either --budget B" in capsys.readouterr().err
    assert run([*arguments, "--single-release", "--data-set", "x", "-o", str(tmp_path / "A")]) == 2
    assert run([*arguments, "--budget", str(tmp_path / "absent"), "-o", str(tmp_path / "A")]) == 4
    assert "margent budget init" in capsys.readouterr().err
    assert run(["budget", "init", str(tmp_path / "b"), "--data-set", "x"]) == 2
    assert not (tmp_path / "b").exists()


def test_plan_says_what_would_be_left(
    people_csv: Path, people_schema: Path, tmp_path: Path, budget_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ["plan", "--schema", str(people_schema), "--budget", str(budget_path), "--epsilon"]
    capsys.readouterr()
    assert run([*plan, "1,4"]) == 0
    said = capsys.readouterr().out
    shares = re.search(r"0 % used; this run takes ([0-9.]+) %, and ([0-9.]+) % would be left", said)
    assert shares is not None
    share = 100 * float(Budget(1, "1e-8").total / Budget(3, "1e-8").total)
    assert [float(text) for text in shares.groups()] == pytest.approx([share, 100 - share], abs=0.01)
    assert "`margent synthesize` would refuse" in said
    assert run([*plan, "1,4", "--json"]) == 0
    one, four = (each["budgetFile"] for each in json.loads(capsys.readouterr().out))
    assert (one["fits"], four["fits"]) == (True, False)
    assert one["cost"] == pytest.approx(float(Budget(1, "1e-8").total / Budget(3, "1e-8").total))
    assert run([*plan, "1", "--accountant", "zcdp"]) == 0
    assert "declared on other terms" in capsys.readouterr().out
    assert BudgetFile(budget_path).balance().spent == 0


def test_python(people_csv: Path, people_schema: Path, tmp_path: Path) -> None:
    schema = margent.read_schema(people_schema)
    file = BudgetFile(tmp_path / "b", "people")
    file.init(Budget(1))
    release = margent.synthesize(people_csv, schema, budget=file.budget("0.7"), budget_file=file, method="independent")
    assert release.summary["run"] == file.balance().reservations[0].run
    with pytest.raises(BudgetError, match=r"epsilon 0\.6\d+ at delta 1e-09 would fit"):
        margent.TableSynthesizer(schema, epsilon="0.9", budget_file=file).fit(people_csv)
    with pytest.raises(margent.UsageError, match="budget_file must be a BudgetFile, not PosixPath"):
        margent.synthesize(people_csv, schema, budget=Budget(1), budget_file=tmp_path / "b")  # type: ignore[arg-type]
    assert len(file.balance().reservations) == 1


DOCS = (Path(__file__).parents[2] / "docs" / "budget.md").read_text()


def test_the_commands_of_the_docs(
    people_csv: Path,
    people_schema: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(people_schema, "schema.json")
    first, verifying = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)
    for line in (first + verifying).splitlines():
        assert run(line.split()[1:]) == 0, line
    for _ in range(6):
        BudgetFile("people.budget").reserve(Budget(1), "row", secrets.token_hex(16))
    capsys.readouterr()
    assert run([*first.splitlines()[2].split()[1:-1], "OUT3"]) == 4
    assert capsys.readouterr().err in DOCS


def test_the_python_block_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    exec(compile(block, "budget.md", "exec"), {})
