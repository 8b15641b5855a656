"""Copies of a run's state under a budget file: one goes on, whoever is first; older copies of either are refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from margent import Budget, BudgetFile, Release, RunState, synthesize
from margent.cli import run as command
from margent.counts.source import StreamedCounts
from margent.errors import BudgetError, UsageError
from margent.privacy import budget_store
from margent.privacy.budget_store import MovedOnError
from margent.resume import journal
from margent.resume.journal import FILE, Journal
from margent.resume.state import KeptRun
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.resume.interrupting import Cut, pinned

__all__ = ["pinned"]
CAP = Budget(9)
BUDGET = Budget(1)


class Situation:
    """A table, a budget file, and runs that keep their state wherever they are told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.table = write_csv(folder / "t.csv", people_rows(300))
        self.file = BudgetFile(folder / "b.budget", "people")
        self.file.init(CAP)

    def run(self, state: Path, **options: bool) -> Release:
        return synthesize(
            self.table,
            schema_from_json(SCHEMA),
            budget=BUDGET,
            budget_file=self.file,
            method="dense",
            rows=20,
            state=RunState(state, **options),
        )

    def cut_before(self, question: int, state: Path, **options: bool) -> None:
        """Run until a question (counted from 1, in this process) is about to be asked."""
        genuine, asked = KeptRun.answer, [0]

        def answer(self: KeptRun, *given: Any, **more: Any) -> Any:
            asked[0] += 1
            if asked[0] == question:
                raise Cut
            return genuine(self, *given, **more)

        with self.monkeypatch.context() as patch:
            patch.setattr(KeptRun, "answer", answer)
            with pytest.raises(Cut):
                self.run(state, **options)

    def entries(self) -> tuple[str, ...]:
        return budget_store.read(self.file.path)[1]

    def looks(self) -> int:
        (last,) = self.file.balance().looks.values()
        return last.calls


@pytest.fixture
def situation(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Situation:
    return Situation(scratch, monkeypatch)


def copies_of(state: Path, number: int) -> list[Path]:
    return [Path(shutil.copytree(state, state.with_name(f"{state.name}{copy}"))) for copy in range(number)]


def charged(state: Path) -> list[tuple[int, str]]:
    """The charges in a state, each with the number of its call, read without the code under test."""
    file = sqlite3.connect(state / FILE)
    try:
        return file.execute("SELECT call, body FROM charges ORDER BY number").fetchall()
    finally:
        file.close()


def calls_in(state: Path) -> int:
    return charged(state)[-1][0]


def numbers(release: Release) -> list[Any]:
    return [answer.counts.tolist() for answer in release.transcript.marginals]


def test_of_six_copies_one_goes_on(situation: Situation) -> None:
    state = situation.folder / "s"
    situation.cut_before(2, state)
    assert situation.looks() == 1
    copies = copies_of(state, 6)
    release = situation.run(copies[0], resume=True)
    assert situation.looks() == calls_in(copies[0]) > 1
    before = situation.entries()
    for copy in [*copies[1:], state]:
        written = charged(copy)
        for pay_again in (False, True):
            with pytest.raises(MovedOnError, match=r"another copy of this run's state went on, or this is an older"):
                situation.run(copy, resume=True, pay_again=pay_again)
        assert charged(copy) == written, "a refused copy charges nothing"
    assert situation.entries() == before
    assert situation.file.balance().spent == BUDGET.total >= release.transcript.spent


def test_planted_bug_copies_that_tell_the_file_nothing_ask_anew_and_verify_sees_it(
    situation: Situation, capsys: pytest.CaptureFixture[str]
) -> None:
    state, outs = situation.folder / "s", [situation.folder / name for name in ("A", "B")]
    situation.monkeypatch.setattr(KeptRun, "_charged", lambda self, charges: self._journal.charged(charges) and None)
    situation.cut_before(2, state)
    releases = [situation.run(copy, resume=True) for copy in copies_of(state, 2)]
    assert numbers(releases[0]) != numbers(releases[1])
    for release, out in zip(releases, outs, strict=True):
        release.save(out)
    assert command(["resample", str(outs[0]), "-o", str(situation.folder / "C"), "-q"]) == 0
    path = str(situation.file.path)
    assert command(["budget", "verify", path, str(outs[0]), str(situation.folder / "C")]) == 0
    capsys.readouterr()
    assert command(["budget", "verify", path, *map(str, outs)]) == 4
    said = capsys.readouterr().err
    assert f"{outs[1]}: it is of the same run as {outs[0]}, and their charges or noisy answers differ" in said


def test_a_copy_that_comes_too_late_for_its_look_is_refused_for_ever(situation: Situation) -> None:
    """Both pass the check on resuming; the other goes on between this one's charge and its word to the file."""
    state = situation.folder / "s"
    situation.cut_before(2, state)
    (other,) = copies_of(state, 1)
    genuine, looked = Journal.charged, list[str]()

    def charged_and_overtaken(self: Journal, charges: Any) -> str:
        mark = genuine(self, charges)
        if not looked:
            looked.append(mark)
            situation.run(other, resume=True)
        return mark

    def count(*given: Any, original: Callable[..., Any] = StreamedCounts.count, **options: Any) -> Any:
        looked.append("at rows")
        return original(*given, **options)

    with situation.monkeypatch.context() as patch:
        patch.setattr(Journal, "charged", charged_and_overtaken)
        patch.setattr(StreamedCounts, "count", count)
        with pytest.raises(MovedOnError):
            situation.run(state, resume=True)
    looks = looked.count("at rows")
    whole = situation.looks()
    assert looks >= whole - 1, "the other looked"
    for pay_again in (False, True):  # by now it has as many calls as the file knew when it came too late
        with pytest.raises(MovedOnError):
            situation.run(state, resume=True, pay_again=pay_again)
    assert situation.looks() == whole
    assert situation.file.balance().spent == BUDGET.total


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
def test_of_six_copies_at_once_one_goes_on(situation: Situation) -> None:
    state = situation.folder / "s"
    situation.cut_before(2, state)
    copies = copies_of(state, 6)
    genuine = StreamedCounts.count

    def slow(*given: Any, **options: Any) -> Any:
        time.sleep(0.2)
        return genuine(*given, **options)

    situation.monkeypatch.setattr(StreamedCounts, "count", slow)
    children = []
    for copy in copies:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                situation.run(copy, resume=True)
                code = 0
            except MovedOnError:
                code = 4
            finally:
                os._exit(code)
        children.append(child)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 4, 4, 4, 4, 4]
    assert situation.file.balance().spent == BUDGET.total


@pytest.mark.usefixtures("pinned")  # with real noise a run now and then asks two questions and not three
def test_a_snapshot_of_before_the_last_charge_is_refused(situation: Situation) -> None:
    state = situation.folder / "s"
    situation.cut_before(2, state)
    (snapshot,) = copies_of(state, 1)
    situation.cut_before(3, state, resume=True)
    assert situation.looks() == 2
    before = situation.entries(), charged(snapshot)
    with pytest.raises(MovedOnError, match="go on with the latest state"):
        situation.run(snapshot, resume=True)
    assert (situation.entries(), charged(snapshot)) == before
    situation.run(state, resume=True)


def test_copies_that_ask_nothing_new_give_the_same_answers(situation: Situation) -> None:
    state = situation.folder / "s"
    whole = situation.run(state)
    before = situation.entries()
    for copy in copies_of(state, 3):
        assert numbers(situation.run(copy, resume=True)) == numbers(whole)
    assert situation.entries() == before


@pytest.fixture
def failing_look(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Raises, at the budget file's look, what is put into the list."""
    genuine, faults = budget_store.look, list[BaseException]()

    def look(*given: Any) -> None:
        if faults:
            raise faults.pop()
        genuine(*given)

    monkeypatch.setattr(budget_store, "look", look)
    return faults


@pytest.mark.parametrize("question", [1, 2])
@pytest.mark.parametrize("kind", [Cut, BudgetError])
def test_a_crash_between_the_charge_and_the_word_to_the_file_stays_resumable(
    question: int, kind: type[BaseException], situation: Situation, failing_look: list[BaseException]
) -> None:
    """No look came of it, on any path; it is held as a lost answer, and the file catches up before the next look."""
    state = situation.folder / "s"
    if question == 2:
        situation.cut_before(2, state)
    failing_look.append(kind("here"))
    looks: list[int] = []
    genuine = StreamedCounts.count

    def count(*given: Any, **options: Any) -> Any:
        looks.append(situation.looks())
        return genuine(*given, **options)

    situation.monkeypatch.setattr(StreamedCounts, "count", count)
    with pytest.raises(kind):
        situation.run(state, resume=question == 2)
    assert not looks
    assert calls_in(state) == question
    before = situation.entries()
    with pytest.raises(BudgetError, match="answer was lost"):
        situation.run(state, resume=True)
    assert situation.entries() == before
    release = situation.run(state, resume=True, pay_again=True)
    assert looks[0] == question + 1, "each look at rows comes after the file's"
    assert situation.looks() == calls_in(state)
    assert situation.file.balance().spent == release.budget.total > BUDGET.total


@pytest.mark.usefixtures("pinned")  # with real noise a run now and then asks two questions and not three
def test_an_older_copy_of_the_file_is_refused(situation: Situation) -> None:
    state, older = situation.folder / "s", situation.folder / "older"
    situation.cut_before(1, state)
    shutil.copy(situation.file.path, older)
    situation.cut_before(3, state, resume=True)
    shutil.copy(older, situation.file.path)
    with pytest.raises(BudgetError, match=r"fewer looks of the interrupted run .* put the latest copy back"):
        situation.run(state, resume=True)


def test_a_state_is_of_one_data_set(situation: Situation) -> None:
    visits = BudgetFile(situation.file.path, "visits")
    visits.init(CAP)
    state = situation.folder / "s"
    with situation.monkeypatch.context() as patch:
        patch.setattr(KeptRun, "ledger", lambda *_: (_ for _ in ()).throw(Cut()))
        with pytest.raises(Cut):
            situation.run(state)
    people, situation.file = situation.file, visits
    with pytest.raises(UsageError, match='data set of the budget file: was "people", is "visits"'):
        situation.run(state, resume=True)
    situation.file = people
    situation.run(state, resume=True)
    assert (people.balance().runs, visits.balance().runs) == (1, 0)


def test_a_name_that_was_left_out_is_the_name(situation: Situation) -> None:
    state = situation.folder / "s"
    named, situation.file = situation.file, BudgetFile(situation.file.path)
    situation.cut_before(2, state)
    BudgetFile(named.path, "others").init(CAP)
    situation.file = named
    situation.run(state, resume=True)


def test_a_state_that_another_process_made_meanwhile_is_left_alone(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, facts = scratch / "s", {"run": {}, "table": {}}
    genuine, others = journal.flush, list[Journal]()

    def flush(path: Path) -> None:
        if not others and ".part" in path.name:  # this one stands before its rename; the other makes the state now
            monkeypatch.setattr(journal, "flush", genuine)
            others.append(Journal.made(folder, "a" * 32, facts))
        genuine(path)

    monkeypatch.setattr(journal, "flush", flush)
    with pytest.raises(UsageError, match="cannot be kept there"):
        Journal.made(folder, "b" * 32, facts)
    assert others[0].run == "a" * 32
    assert (folder / FILE).is_file()
    assert [path.name for path in scratch.iterdir()] == ["s"], "and its own draft is gone"
