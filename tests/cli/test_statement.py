"""The statement: what it says, what it refuses, and that it prints on two sheets."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from margent import BudgetFile, synthesize
from margent.cli import run
from margent.release.officer import Account, EarlierRun, Verdict, statement
from tests.test_bought import BUDGET as BOUGHT_BUDGET
from tests.test_bought import SCHEMA as BOUGHT_SCHEMA
from tests.test_bought import people as bought_people


@pytest.fixture
def budget_file(tmp_path: Path) -> Path:
    path = tmp_path / "people.budget"
    assert run(["budget", "init", str(path), "--data-set", "people <b>of</b> Ys", "--epsilon", "3"]) == 0
    return path


@pytest.fixture
def releases(budget_file: Path, people_csv: Path, people_schema: Path, tmp_path: Path) -> list[Path]:
    made = []
    for epsilon in ("0.5", "1"):
        made.append(tmp_path / f"OUT{epsilon}")
        assert run(["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", epsilon,
                    "--budget", str(budget_file), "-o", str(made[-1])]) == 0  # fmt: skip
    return made


def words(page: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.read_text()))


def test_it_says_what_a_privacy_officer_asks(releases: list[Path], budget_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "statement.html"
    assert run(["statement", str(releases[1]), "--budget", str(budget_file), "--no-selftest", "-o", str(page)]) == 0
    said = words(page)
    assert "every single row: whether it was in the table" in said
    assert "by a factor of at most 2.72 on whether it was in the table, and at most 7.39 on what it said" in said
    assert "1 % at most 1.7 % at most 2.7 % at most 7 %" in said
    assert "what it said, to a reader who knows that it was in it 1 % at most 2.7 % at most 7 % at most 36 %" in said
    assert "For one question of each kind, fixed beforehand, a release that lets them change more is made" in said
    assert "with a probability of at most 2.8e-07" in said
    assert "Relatives and households" in said
    assert "epsilon 0.5, delta 1e-09" in said
    assert "(this release)" in said
    assert "made up for the tests" in said
    assert "Discrete Gaussian noise: exact draws" in said
    assert "counted where the schema says, else as missing" in said
    assert "the pairs that differ most" in said
    assert "So is the number of records" not in said
    assert "written before the look at the data that it pays for; releases under one budget file add up to its" in said
    assert "None can stop a run or change its shape, unless a query, or a column" in said
    assert "how much anybody can learn about that unit from its having taken part" in said
    assert "It does not make it nothing." in said
    assert "Not run." in said
    assert "<b>of</b>" not in page.read_text()
    assert said.count("SP 800-226") == 1


def test_a_run_that_paid_again_is_one_run(releases: list[Path], budget_file: Path, tmp_path: Path) -> None:
    page, file = tmp_path / "statement.html", BudgetFile(budget_file)
    file.reserve_again(file.budget("1.25"), "row", json.loads((releases[1] / "summary.json").read_text())["run"])
    assert run(["statement", str(releases[1]), "--budget", str(budget_file), "--no-selftest", "-o", str(page)]) == 0
    said = words(page)
    assert "is spent by 2 runs:" in said
    assert "epsilon 1.25, delta 1e-09 in all, with answers paid again that an interruption lost (this release)" in said


def test_without_a_budget_file_it_says_that_releases_add_up(releases: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "statement.html"
    assert run(["statement", str(releases[0]), "--no-selftest", "-o", str(page)]) == 0
    assert "counts this release alone" in words(page)
    assert "duty to add their epsilons and deltas." in words(page)


def test_a_part_of_the_records_is_not_said_to_be_compared(releases: list[Path], tmp_path: Path) -> None:
    """The page of a table under conditions holds it against nothing."""
    part, page = tmp_path / "PART", tmp_path / "statement.html"
    assert run(["resample", str(releases[0]), "--where", "sex=F", "--rows", "9", "-o", str(part)]) == 0
    assert "Single columns: synthetic against noisy" not in words(part / "release.html")
    assert run(["statement", str(part), "--no-selftest", "-o", str(page)]) == 0
    assert "Not on release.html: the table holds only some of the records" in words(page)
    assert "holds the synthetic table against" not in words(page)


def test_the_wrong_budget_file_is_refused(
    releases: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.budget"
    assert run(["budget", "init", str(other), "--data-set", "others", "--epsilon", "3"]) == 0
    assert (
        run(["statement", str(releases[0]), "--budget", str(other), "--no-selftest", "-o", str(tmp_path / "s.html")])
        == 4
    )
    assert "holds no run of" in capsys.readouterr().err
    assert not (tmp_path / "s.html").exists()


def test_a_release_that_took_another_run_s_id_is_refused(
    releases: list[Path], budget_file: Path, people_csv: Path, people_schema: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Whose charges the file does not account for: dearer than that run's, or on other terms."""
    run_id = json.loads((releases[0] / "summary.json").read_text())["run"]
    for name, options in (("dearer", ["--epsilon", "2"]), ("pure", ["--epsilon", "0.1", "--accountant", "pure"])):
        out, page = tmp_path / name, tmp_path / f"{name}.html"
        assert run(["synthesize", str(people_csv), "--schema", str(people_schema), "--single-release", "--method",
                    "independent", *options, "-o", str(out)]) == 0  # fmt: skip
        for path in (out / "summary.json", out / "measurements" / "transcript.json"):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"run": run_id}))
        capsys.readouterr()
        assert run(["statement", str(out), "--budget", str(budget_file), "--no-selftest", "-o", str(page)]) == 4
        assert ("add up to more" if name == "dearer" else "on other terms") in capsys.readouterr().err
        assert not page.exists()
        assert run(["budget", "verify", str(budget_file), str(out)]) == 4


def test_it_is_never_written_into_a_release_nor_over_a_file(releases: list[Path], tmp_path: Path) -> None:
    inside = releases[0] / "statement.html"
    assert run(["statement", str(releases[0]), "--no-selftest", "-o", str(inside)]) == 2
    assert not inside.exists()
    (releases[1] / "notes").mkdir()
    for other in (
        releases[1] / "statement.html",
        releases[1] / "measurements" / "s.html",
        releases[1] / "notes/s.html",
    ):
        assert run(["statement", str(releases[0]), "--no-selftest", "-o", str(other)]) == 2
        assert not other.exists()
    taken = tmp_path / "taken.html"
    taken.write_text("mine")
    assert run(["statement", str(releases[0]), "--no-selftest", "-o", str(taken)]) == 2
    assert taken.read_text() == "mine"


def test_a_failing_self_test_is_said_and_ends_with_an_error(
    releases: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from margent.audits import selftest

    findings = (selftest.Finding("noise", False, "it was silent", 0.1),)
    monkeypatch.setattr(selftest, "self_test", lambda **_: findings)
    page = tmp_path / "s.html"
    assert run(["statement", str(releases[0]), "-o", str(page)]) == 1
    assert "FAILED on the machine" in words(page)


def sheets_of(page: Path, folder: Path) -> int:
    """How many sheets of A4 a browser prints the page on."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium here to print with")
    sheets = folder / "statement.pdf"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--print-to-pdf={sheets}", "--no-pdf-header-footer",
         f"--user-data-dir={folder / 'profile'}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return len(re.findall(rb"/Type\s*/Page\b", sheets.read_bytes()))


def test_it_prints_on_two_sheets(releases: list[Path], budget_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "statement.html"
    assert run(["statement", str(releases[1]), "--budget", str(budget_file), "-o", str(page)]) == 0
    assert sheets_of(page, tmp_path) == 2


@pytest.mark.parametrize("selected", [False, True])
def test_the_longest_one_prints_on_two_sheets_as_well(selected: bool, tmp_path: Path) -> None:
    """Values that were bought, or rows that a query chose where rows are replaced; twelve runs; every finding."""
    made = synthesize(bought_people(), BOUGHT_SCHEMA, budget=BOUGHT_BUDGET, rows=20)
    transcript, budget = made.transcript, made.budget
    if selected:
        transcript, budget = replace(transcript, from_query=True), replace(budget, relation="replace")
    earlier = [EarlierRun("2026-11-29 11:00", budget.epsilon, budget.delta, str(each), False) for each in range(13)]
    account = Account("people of the register", 50 * budget.epsilon, budget.delta, 0.5, 13, earlier)
    lines = [
        f"a check of the machine that is named at some length, {each}: passed ({'7 of 8, ' * 12})" for each in "abcde"
    ]
    page = tmp_path / "statement.html"
    page.write_text(statement(transcript, budget, made.summary, account=account, verdict=Verdict(True, lines)))
    said = words(page)
    assert "unless a query, or a column that a database computes as it is read, fails on it." in said
    assert "the chance to tell any of those that one unit alone held was at most 1e-07." in said
    assert "Only the last 12 are listed." in said
    assert sheets_of(page, tmp_path) == 2
