"""A run cut off at every step and resumed ends as the one that was not, and counts every charge; bugs are caught."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margent import Budget, BudgetFile, RunState, Schema, synthesize
from margent.errors import BudgetError, MargentError, TableError, TranscriptError, UsageError
from margent.methods import METHODS
from margent.privacy.charge import Charge
from margent.privacy.ledger import Ledger
from margent.release.charge_json import charge_from_json
from margent.release.measurements import read_measurements
from margent.resume import curators
from margent.resume.journal import FILE, Journal
from margent.resume.state import KeptRun
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.resume.interrupting import EARLY, Cut, content, cut_at, looks_watched, made, paid_again, pinned
from tests.sizes import rounds
from tests.test_bought import BUDGET as BOUGHT_BUDGET
from tests.test_bought import SCHEMA as BOUGHT_SCHEMA
from tests.test_bought import people as bought_people

__all__ = ["pinned"]
BUDGET = Budget(1, "1e-6")
PERSONS = {"fields": SCHEMA["fields"], "missingValues": ["", "?"],
           "margent": {"unit": {"field": "id", "maxRows": 2, "sizes": True}}}  # fmt: skip
Situation = tuple[Any, Schema, Budget, str]


@pytest.fixture(params=[*(method.name for method in METHODS), "bought", "persons"])
def situation(request: pytest.FixtureRequest, scratch: Path) -> Situation:
    """A table, its schema, a budget and a method: each method once, values and bins that are bought, and persons."""
    if request.param == "bought":
        return bought_people(500), BOUGHT_SCHEMA, BOUGHT_BUDGET, "independent"
    table = write_csv(scratch / "people.csv", people_rows(300))
    if request.param == "persons":
        return table, schema_from_json(PERSONS), BUDGET, "mst"
    return table, schema_from_json(SCHEMA), BUDGET, request.param


def declared(path: Path, schema: Schema, budget: Budget) -> BudgetFile:
    file = BudgetFile(path, "people")
    unit = "row" if schema.person_rows is None else f"person:{schema.person_rows}"
    cap = Budget(20, "1e-4", budget.accountant, delta_for_atoms="1e-5" if budget.delta_for_atoms else 0)
    file.init(cap, unit=unit)
    return file


def check_every_cut(
    situation: Situation, folder: Path, monkeypatch: pytest.MonkeyPatch, *, with_file: bool, most: int = 100
) -> int:
    """Cut at each step (or at ``most`` of them), resume, and hold the outcome against the run that was not cut.

    Returns the number of steps.
    """
    table, schema, budget, method = situation

    watched = list[int]()

    def run(out: Path, file: BudgetFile | None, **state: bool) -> Any:
        with looks_watched(out.parent / f".{out.name}.state", monkeypatch) as looks:
            try:
                return made(table, schema, out, budget, method, file, **state)
            finally:
                watched[:] = looks

    with cut_at(None, monkeypatch) as steps:
        run(folder / "whole", declared(folder / "whole.budget", schema, budget) if with_file else None)
    assert watched, "nobody looked"
    chosen = random.Random(method).sample(list(enumerate(steps)), min(most, len(steps)))
    for step, moment in sorted(chosen):
        out = folder / str(step)
        state = RunState(out.parent / f".{out.name}.state")
        file = declared(folder / f"{step}.budget", schema, budget) if with_file else None
        with cut_at(step, monkeypatch), pytest.raises(Cut):
            run(out, file)
        assert not out.exists() or moment in ("before remove", "after remove", "after save")
        if out.exists():
            continue
        written = journaled(state) if state.exists else ()
        if not state.exists:  # nothing had been reserved or charged
            assert file is None or not file.balance().reservations
            release = run(out, file)
        elif lost := lost_of(state):
            with pytest.raises(BudgetError, match="answer was lost"):
                run(out, file, resume=True)
            release = run(out, file, resume=True, pay_again=True)
            assert paid_again(release) == lost > 0
        else:
            release = run(out, file, resume=True)
        assert not state.exists
        transcript = read_measurements(out / "measurements")
        assert list(transcript.charges[: len(written)]) == list(written), "a charge was forgotten"
        spent = sum((charge.cost for charge in transcript.charges), Fraction(0))
        assert spent <= release.budget.total
        if paid_again(release):
            assert content(out, charges=False) == content(folder / "whole", charges=False)
            assert release.budget.epsilon > budget.epsilon
        else:
            assert content(out, charges=True) == content(folder / "whole", charges=True)
            assert release.budget.epsilon == budget.epsilon
        if file is not None:
            held = file.balance().reservations
            assert {entry.run for entry in held} == {transcript.run}
            assert sum(entry.cost for entry in held) == release.budget.total
            assert sum(entry.delta_for_atoms for entry in held) == release.budget.delta_for_atoms
    return len(steps)


def journaled(state: RunState) -> Sequence[Charge]:
    """The charges on disk, read without the code under test."""
    file = sqlite3.connect(state.folder / FILE)
    try:
        rows = file.execute("SELECT body FROM charges ORDER BY number").fetchall()
        return [charge_from_json(json.loads(body)) for (body,) in rows]
    finally:
        file.close()


def lost_of(state: RunState) -> Fraction:
    """What the charges of calls without committed answers cost."""
    file = sqlite3.connect(state.folder / FILE)
    try:
        rows = file.execute("SELECT body FROM charges WHERE call NOT IN (SELECT call FROM calls)").fetchall()
        return sum((charge_from_json(json.loads(body)).cost for (body,) in rows), Fraction(0))
    finally:
        file.close()


@pytest.mark.usefixtures("pinned")
def test_a_run_cut_off_anywhere_ends_as_if_it_had_not_been(
    situation: Situation, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = rounds(12, 100)
    assert check_every_cut(situation, scratch, monkeypatch, with_file=True, most=most) >= 10


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("situation", ["dense", "bought", "persons"], indirect=True)
def test_a_single_release_cut_off_anywhere_ends_as_if_it_had_not_been(
    situation: Situation, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_every_cut(situation, scratch, monkeypatch, with_file=False) >= 8


@pytest.mark.usefixtures("pinned")
def test_a_run_cut_off_again_and_again_ends_too(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each resumed run is cut at its next charge: every loss is counted, and the table is the same."""
    table, schema = write_csv(scratch / "t.csv", people_rows(300)), schema_from_json(SCHEMA)
    made(table, schema, scratch / "whole", BUDGET, "dense", None)
    out = scratch / "OUT"
    state = RunState(scratch / ".OUT.state")
    file = declared(scratch / "people.budget", schema, BUDGET)
    cuts, resume = 0, False
    while True:
        with cut_at(2 * cuts + 1 if cuts else 3, monkeypatch):
            try:
                release = made(table, schema, out, BUDGET, "dense", file, resume=resume, pay_again=resume)
                break
            except Cut:
                cuts, resume = cuts + 1, True
    assert cuts >= 3
    assert not state.exists
    assert paid_again(release) > 0
    assert content(out, charges=False) == content(scratch / "whole", charges=False)
    held = file.balance().reservations
    assert [entry.kind for entry in held] == ["reserve"] + ["again"] * (len(held) - 1)
    assert sum(entry.cost for entry in held) == release.budget.total


# Planted bugs: each makes the check above fail.


def one_answer_for_another(journal: Journal, call: Any, genuine: Callable[..., Any] = Journal.answers) -> Any:
    """The numbers of a question's answers in another order."""
    merges, found = genuine(journal, call)
    numbers = [each[1] for each in found]
    return merges, [(document, other) for (document, _), other in zip(found, numbers[::-1], strict=True)]


def forgetful(run: KeptRun, budget: Budget) -> Ledger:
    """A ledger that counts nothing of before the interruption and lets the run pay what it likes."""
    return Ledger(budget, journal=run._charged)


def refunding(self: Journal, genuine: Callable[..., Any] = Journal.calls) -> Any:
    """A charge without its answer is taken back."""
    return tuple(call for call in genuine(self) if call.answered)


def late(self: Journal, charges: Sequence[Any], genuine: Callable[..., str] = Journal.charged) -> str:
    """The charge is written after the look, with its answer: whatever is cut off, what is on disk goes together."""

    def answered(*given: Any) -> None:
        del self.answered
        genuine(self, charges)
        self.answered(*given)

    self.answered = answered  # type: ignore[method-assign]
    return "0" * 32


BUGS = {
    "answers of another question": ("margent.resume.journal.Journal.answers", one_answer_for_another),
    "a refund": ("margent.resume.journal.Journal.calls", refunding),
    "no charge on disk": ("margent.resume.journal.Journal.charged", late),
    "a forgetful ledger": ("margent.resume.state.KeptRun.ledger", forgetful),
    "any question answered": ("margent.resume.answers.require_same_question", lambda *_: None),
}


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("bug", [name for name in BUGS if name not in ("any question answered", "no charge on disk")])
def test_planted_bugs_are_caught(bug: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    situation = (write_csv(scratch / "t.csv", people_rows(300)), schema_from_json(SCHEMA), BUDGET, "dense")
    where, planted = BUGS[bug]
    monkeypatch.setattr(where, planted)
    with pytest.raises((AssertionError, MargentError, pytest.fail.Exception)):
        check_every_cut(situation, scratch, monkeypatch, with_file=False)


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("method", ["dense", "independent", "mst"])
def test_a_charge_that_is_written_after_the_look_is_caught_in_the_look(
    method: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by nothing else: without those who watch the looks every run that is cut off ends as it should."""
    monkeypatch.setattr(*BUGS["no charge on disk"])
    situation = (write_csv(scratch / "t.csv", people_rows(300)), schema_from_json(SCHEMA), BUDGET, method)
    with pytest.raises(AssertionError, match=EARLY):
        check_every_cut(situation, scratch, monkeypatch, with_file=False)


@pytest.mark.usefixtures("pinned")
def test_an_answer_is_given_to_an_equal_question_only(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that asks otherwise after the interruption gets no committed answer; without the check it would."""
    table, schema = write_csv(scratch / "t.csv", people_rows(300)), schema_from_json(SCHEMA)
    with cut_at(4, monkeypatch), pytest.raises(Cut):
        made(table, schema, scratch / "OUT", BUDGET, "dense", None)
    genuine = curators.ResumedCurator.measure

    def swapped(self: Any, requests: Any, **options: Any) -> Any:
        return genuine(self, requests[::-1], **options)

    with monkeypatch.context() as patch:
        patch.setattr(curators.ResumedCurator, "measure", swapped)
        with pytest.raises(TranscriptError, match="question 1 of the resumed run differs"):
            made(table, schema, scratch / "OUT", BUDGET, "dense", None, resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(curators.ResumedCurator, "measure", swapped)
        patch.setattr(*BUGS["any question answered"])
        made(table, schema, scratch / "OUT", BUDGET, "dense", None, resume=True, pay_again=True)
    made(table, schema, scratch / "whole", BUDGET, "dense", None)
    assert content(scratch / "OUT", charges=False) != content(scratch / "whole", charges=False)


def interrupted(scratch: Path, monkeypatch: pytest.MonkeyPatch, step: int = 6) -> tuple[Path, Schema, Path]:
    table, schema = write_csv(scratch / "t.csv", people_rows(300)), schema_from_json(SCHEMA)
    with cut_at(step, monkeypatch), pytest.raises(Cut):
        made(table, schema, scratch / "OUT", BUDGET, "dense", None)
    return table, schema, scratch / "OUT"


@pytest.mark.usefixtures("pinned")
def test_all_differences_are_listed(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _, out = interrupted(scratch, monkeypatch)
    document = json.loads(json.dumps(SCHEMA))
    document["fields"][2]["margent"]["bins"]["width"] = 20
    with pytest.raises(UsageError) as refusal:
        made(table, schema_from_json(document), out, Budget(2, "1e-6", "zcdp"), "privsyn", None, resume=True)
    told = str(refusal.value)
    for words in (
        'method: was "dense", is "privsyn"',
        'budget/epsilon: was "1", is "2"',
        'budget/accountant: was "gdp", is "zcdp"',
        "schema/fields/2/margent/bins/width: was 10, is 20",
    ):
        assert words in told
    assert told.count("\n") == 4


@pytest.mark.usefixtures("pinned")
def test_another_minor_version_is_refused(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, schema, out = interrupted(scratch, monkeypatch)
    monkeypatch.setattr("margent.resume.facts.VERSION", "97.2.1")
    with pytest.raises(UsageError, match=r'version of Margent: was ".*", is "97\.2"'):
        made(table, schema, out, BUDGET, "dense", None, resume=True)


@pytest.mark.usefixtures("pinned")
def test_a_table_written_to_since_is_refused_before_anything_is_charged(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, schema, out = interrupted(scratch, monkeypatch)
    table.write_text(table.read_text())
    before = journaled(RunState(scratch / ".OUT.state"))
    with pytest.raises(TableError, match="written to since"):
        made(table, schema, out, BUDGET, "dense", None, resume=True, pay_again=True)
    assert journaled(RunState(scratch / ".OUT.state")) == before


@pytest.mark.usefixtures("pinned")
def test_a_state_that_is_held_is_not_resumed_twice(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, schema, out = interrupted(scratch, monkeypatch)
    holder = Journal.opened(scratch / ".OUT.state")
    try:
        with pytest.raises(UsageError, match="another process is going on with this run"):
            made(table, schema, out, BUDGET, "dense", None, resume=True)
    finally:
        holder.close()
    made(table, schema, out, BUDGET, "dense", None, resume=True, pay_again=True)


@pytest.mark.usefixtures("pinned")
def test_a_state_lies_in_nobodys_way_and_under_nobodys_eyes(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, schema, out = interrupted(scratch, monkeypatch)
    folder = scratch / ".OUT.state"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    with pytest.raises(UsageError, match="holds the state of an interrupted run: add --resume"):
        made(table, schema, out, BUDGET, "dense", None)
    with pytest.raises(UsageError, match="there is no interrupted run"):
        made(table, schema, scratch / "OTHER", BUDGET, "dense", None, resume=True)


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "answers"])
def test_a_damaged_state_ends_in_words(damage: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, schema, out = interrupted(scratch, monkeypatch)
    path = scratch / ".OUT.state" / FILE
    if damage == "answers":
        with sqlite3.connect(path) as file:
            file.execute("UPDATE integers SET data = x'00'")
        file.close()
    else:
        whole = path.read_bytes()
        path.write_bytes({"cut": whole[: len(whole) // 2], "garbage": b"x" * len(whole), "empty": b""}[damage])
    with pytest.raises(MargentError):
        made(table, schema, out, BUDGET, "dense", None, resume=True, pay_again=True)


def test_what_lies_on_disk_is_charges_and_noisy_answers(scratch: Path) -> None:
    """With real noise, no exact table and no size of the input is in the file; each number is in the release."""
    table, schema = write_csv(scratch / "t.csv", people_rows(300)), schema_from_json(SCHEMA)
    release = synthesize(table, schema, budget=BUDGET, method="independent", rows=10, state=RunState(scratch / "S"))
    file = sqlite3.connect(scratch / "S" / FILE)
    try:
        names = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        stored = [
            np.frombuffer(data, "<i8") for (data,) in file.execute("SELECT data FROM integers ORDER BY call, place")
        ]
        words = json.dumps(file.execute("SELECT * FROM run").fetchall())
    finally:
        file.close()
    assert names == {"run", "charges", "calls", "answers", "integers"}
    released = [answer.counts.reshape(-1) for answer in release.transcript.marginals]
    assert all(np.array_equal(one, other) for one, other in zip(stored, released, strict=True))
    assert not re.search(rf"\b{table.stat().st_size}\b", words)
    assert str(table.stat().st_mtime_ns) not in words
    assert str(table) not in words
    release.save(scratch / "OUT")
    assert not (scratch / "S").exists()
