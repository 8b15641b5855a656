"""`margent synthesize --resume`: Ctrl-C, kill -9 and two at once, through the command and in processes of their own."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from margent.cli import run
from margent.cli.interrupts import state_beside
from margent.counts.source import StreamedCounts
from margent.privacy.budget_store import read
from margent.resume.state import RunState
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.resume.interrupting import IN_PROCESSES_OF_THEIR_OWN, content, cut_at, pinned
from tests.resume.test_interruptions import journaled
from tests.sizes import rounds

__all__ = ["pinned"]
pytestmark = [
    pytest.mark.usefixtures("pinned"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks"),
]


@pytest.fixture
def place(scratch: Path) -> Path:
    """A folder with a table, its schema and a budget file."""
    write_csv(scratch / "people.csv", people_rows(300))
    (scratch / "schema.json").write_text(json.dumps(SCHEMA))
    assert run(["budget", "init", str(scratch / "people.budget"), "--data-set", "people", "--epsilon", "9"]) == 0
    return scratch


def command(place: Path, out: str = "OUT", *more: str, single: bool = False) -> list[str]:
    budget = ["--single-release"] if single else ["--budget", str(place / "people.budget")]
    return ["synthesize", str(place / "people.csv"), "--schema", str(place / "schema.json"), "--epsilon", "1", *budget,
            "--method", "dense", "--seed", "3", "--rows", "60", "-q", "-o", str(place / out), *more]  # fmt: skip


SECRET = "s3cret"


def printed_command(said: str) -> list[str]:
    (line,) = [line for line in said.splitlines() if line.startswith("Go on with: margent ")]
    return shlex.split(line.removeprefix("Go on with: margent "))


def interrupting(times: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Press Ctrl-C so often in the second look; gives what takes the keyboard away."""
    genuine, looks = StreamedCounts.count, [0]

    def count(*given: Any, **options: Any) -> Any:
        looks[0] += 1
        if looks[0] == 2:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return genuine(*given, **options)

    monkeypatch.setattr(StreamedCounts, "count", count)
    return lambda: monkeypatch.setattr(StreamedCounts, "count", genuine)


@pytest.mark.parametrize("single", [False, True], ids=["budget", "single"])
def test_ctrl_c_waits_for_the_answer_and_says_how_to_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, single: bool
) -> None:
    assert run(command(place, "whole", single=single)) == 0
    capsys.readouterr()
    over = interrupting(1, monkeypatch)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert run(command(place, single=single)) == 130
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    over()
    said = capsys.readouterr().err
    assert "stopping after this question" in said
    assert "nothing was written" in said
    assert "Charged so far:" in said
    assert not (place / "OUT").exists()
    further = printed_command(said)
    assert further == [*command(place, single=single), "--resume"]
    assert run(further) == 0
    assert content(place / "OUT", charges=True) == content(place / "whole", charges=True)
    assert not state_beside(place / "OUT").exists()
    assert run(["budget", "verify", str(place / "people.budget"), *([] if single else [str(place / "OUT")])]) == 0


def test_how_to_go_on_does_not_repeat_a_condition(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(place / "people.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT * FROM read_csv('{place / 'people.csv'}', all_varchar = true)"
        )
    address = f"duckdb:{place / 'people.duckdb'}?table=people"
    given = command(place)
    for table, told in ((address, address), (f"{address}&where=age <> '{SECRET}'", "TABLE")):
        given[1] = table
        over = interrupting(1, monkeypatch)
        assert run(given) == 130
        over()
        said = capsys.readouterr().err
        assert SECRET not in said
        further = printed_command(said)
        assert further == ["synthesize", told, *given[2:], "--resume"]
        assert ("TABLE stands for the address" in said) == (told == "TABLE")
        assert run([*given, "--resume"]) == 0
        given[-1] = str(place / "OUT2")


def test_a_second_ctrl_c_does_not_wait_and_its_loss_is_told_and_counted(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(place, "whole")) == 0
    over = interrupting(2, monkeypatch)
    assert run(command(place)) == 130
    over()
    said = capsys.readouterr().err
    assert "its answer is lost: it stays spent" in said
    further = printed_command(said)
    assert further[-2:] == ["--resume", "--pay-again"]
    assert run(further[:-1]) == 4
    assert "add --pay-again" in capsys.readouterr().err
    assert run(further) == 0
    assert content(place / "OUT", charges=False) == content(place / "whole", charges=False)
    summary = json.loads((place / "OUT/summary.json").read_text())
    told = capsys.readouterr().out
    assert float(summary["epsilon"].split("/")[0]) > 1
    assert "an interruption lost" in told
    assert "an interruption lost" in (place / "OUT/release.html").read_text()
    assert run(["budget", "show", str(place / "people.budget")]) == 0
    assert "again, for answers that an interruption lost" in capsys.readouterr().out
    assert run(["budget", "verify", str(place / "people.budget"), str(place / "OUT"), str(place / "whole")]) == 0


def test_a_run_that_was_cut_off_after_its_last_step_is_complete(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RunState, "remove", lambda _: None)
        assert run(command(place)) == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(RunState, "remove", lambda _: None)
        assert run([*command(place, "OUT"), "--resume", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run"] == json.loads((place / "OUT/summary.json").read_text())["run"]
    assert run([*command(place), "--resume"]) == 0
    assert "was complete already" in capsys.readouterr().out
    assert not state_beside(place / "OUT").exists()


def test_options_that_do_not_go_together_are_refused_before_anything(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(place, "OUT", "--pay-again")) == 2
    assert run(command(place, "OUT", "--resume")) == 2
    assert "there is no interrupted run to resume" in capsys.readouterr().err
    assert run(command(place, "OUT", "--state", str(place / "no/such/folder"))) == 2
    assert not read(place / "people.budget")[0]["people"].reservations


def test_a_cap_that_does_not_cover_the_loss_ends_the_run_in_words(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tight = str(place / "tight.budget")
    assert run(["budget", "init", tight, "--data-set", "people", "--epsilon", "1"]) == 0
    over = interrupting(2, monkeypatch)
    arguments = [tight if word.endswith("people.budget") else word for word in command(place)]
    assert run(arguments) == 130
    over()
    capsys.readouterr()
    assert run([*arguments, "--resume", "--pay-again"]) == 4
    said = capsys.readouterr().err
    assert "of the cap of 'people', and 0 % is left. The run cannot be finished" in said
    assert len(read(Path(tight))[0]["people"].reservations) == 1
    assert not (place / "OUT").exists()


def forked(do: Callable[[], int]) -> int:
    """``do`` in a process of its own; how that ended, as `waitpid` says."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os._exit(do())
        finally:
            os._exit(99)
    return child


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def resumed(place: Path, out: str) -> None:
    """The truth after a kill: OUT is whole or absent, and the run ends by resuming with no charge forgotten."""
    state = state_beside(place / out)
    before = journaled(RunState(state)) if state.exists() else []
    if (place / out).exists():
        assert content(place / out, charges=True).keys() == content(place / "whole", charges=True).keys()
    more = ["--resume", "--pay-again"] if state.exists() else []
    if more or not (place / out).exists():
        assert run(command(place, out, *more)) == 0
    assert not state.exists()
    assert content(place / out, charges=False) == content(place / "whole", charges=False)
    charges = json.loads((place / out / "measurements/transcript.json").read_text())["charges"]
    assert len(charges) >= len(before)
    assert run(["budget", "verify", str(place / "people.budget"), str(place / out)]) == 0


def test_a_kill_at_any_step_loses_no_charge_and_resuming_ends_the_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cut_at(None, monkeypatch, die, IN_PROCESSES_OF_THEIR_OWN) as steps:
        assert run(command(place, "whole")) == 0
    for step in range(len(steps)):
        out = f"OUT{step}"
        with cut_at(step, monkeypatch, die, IN_PROCESSES_OF_THEIR_OWN):
            child = forked(lambda out=out: run(command(place, out)))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        resumed(place, out)
    balance = read(place / "people.budget")[0]["people"]
    assert balance.spent <= balance.declaration.total


def test_kills_at_any_time_lose_no_charge_either(place: Path) -> None:
    started = time.perf_counter()
    assert run(command(place, "whole")) == 0
    usual = time.perf_counter() - started
    chance = random.Random(5)
    for kill in range(rounds(12, 400)):
        if kill % 12 == 0:  # a fresh cap now and then
            (place / "people.budget").unlink()
            assert run(["budget", "init", str(place / "people.budget"), "--data-set", "people", "--epsilon", "9"]) == 0
        out = f"KILL{kill}"
        child = forked(lambda out=out: run(command(place, out)))
        time.sleep(chance.uniform(0, usual))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        resumed(place, out)


def test_of_two_resuming_at_once_one_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = interrupting(1, monkeypatch)
    assert run(command(place)) == 130
    over()
    genuine = StreamedCounts.count

    def slow(*given: Any, **options: Any) -> Any:
        time.sleep(1)
        return genuine(*given, **options)

    monkeypatch.setattr(StreamedCounts, "count", slow)
    children = [forked(lambda: run(command(place, "OUT", "--resume"))) for _ in range(2)]
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 2]
    assert (place / "OUT").exists()
    balance = read(place / "people.budget")[0]["people"]
    assert len(balance.reservations) == 1
