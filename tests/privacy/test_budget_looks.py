"""Looks and reservations in a budget file: what is out of turn is not written, and is seen where somebody forged it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from margent.errors import BudgetError
from margent.privacy import budget_disk, budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import GENESIS, Entry, Look, balances, entry_text, read_entry, seal_of
from margent.privacy.budget_file import BudgetFile
from margent.privacy.budget_releases import Released, require_complete
from tests.privacy.budget_entries import ZERO, declaration, edited, reservation, run_id

RUN, OTHER = "a" * 32, "b" * 32
MARKS = [f"{number:032x}" for number in range(9)]
QUARTER = Fraction(1, 4)


def a_look(calls: int, **changes: Any) -> Look:
    """The run's look of that number, with the sums of one quarter reserved."""
    return replace(Look("people", RUN, calls, MARKS[calls], QUARTER, ZERO, "now", "test"), **changes)


def first(**changes: Any) -> Entry:
    return reservation(QUARTER, run=RUN, spent=QUARTER, **changes)


def rows_of(*entries: Entry) -> list[tuple[int, str, str, str]]:
    rows, seal = [], GENESIS
    for number, entry in enumerate(entries, start=1):
        text = entry_text(entry)
        seal = seal_of(seal, text)
        rows.append((number, entry.data_set, text, seal))
    return rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two data sets, a run of the first."""
    for name in ("people", "visits"):
        budget_store.declare(tmp_path / "b", declaration(data_set=name))
    budget_store.reserve(tmp_path / "b", reservation(QUARTER, run=RUN))
    return tmp_path / "b"


def test_looks_follow_one_another_and_change_no_sum(path: Path) -> None:
    for calls in (1, 2, 3):
        budget_store.look(path, a_look(calls), MARKS[calls - 1] if calls > 1 else "")
        budget_store.reserve(path, reservation(Fraction(1, 10)))  # another run between two looks
    balance = budget_store.read(path)[0]["people"]
    assert balance.spent == QUARTER + Fraction(3, 10)
    assert (balance.runs, len(balance.reservations)) == (4, 4), "looks are no runs"
    assert balance.looks[RUN].calls == 3
    assert budget_store.read(path)[0]["visits"].looks == {}


@pytest.mark.parametrize(
    ("wanted", "before", "words"),
    [
        (a_look(1), "", "another copy"),
        (a_look(2), "", "another copy"),
        (a_look(2), MARKS[7], "another copy"),
        (a_look(3), MARKS[2], "older copy of the file"),
        (a_look(2, run=OTHER), MARKS[1], "is not in it"),
        (a_look(2, data_set="visits"), MARKS[1], "is not in it"),
        (a_look(2, mark="none"), MARKS[1], "could not be read again"),
        (a_look(2, when="\n"), MARKS[1], "could not be read again"),
    ],
)
def test_a_look_out_of_turn_is_refused_and_nothing_is_written(
    wanted: Look, before: str, words: str, path: Path
) -> None:
    budget_store.look(path, a_look(1), "")
    held = path.read_bytes()
    with pytest.raises(BudgetError, match=words):
        budget_store.look(path, wanted, before)
    assert path.read_bytes() == held


FORGED: dict[str, tuple[tuple[Entry, ...], str]] = {
    "no run": ((a_look(1),), "a run that is not known"),
    "another data set's run": (
        (declaration(data_set="visits"), first(), a_look(1, data_set="visits", spent=ZERO)),
        "a run that is not known",
    ),
    "skipped": ((first(), a_look(2)), "a look out of turn"),
    "twice": ((first(), a_look(1), a_look(1)), "a look out of turn"),
    "a refund": ((first(), a_look(1, spent=ZERO)), "a look that changes sums"),
    "a charge": ((first(), a_look(1, spent=Fraction(1, 2))), "a look that changes sums"),
    "delta": ((first(), a_look(1, delta_spent=Fraction(1, 10**12))), "a look that changes sums"),
    "a mark that is none": ((first(), a_look(1, mark="f" * 31)), "no mark"),
    "a run that is none": ((first(), a_look(1, run="f" * 31)), "no run id"),
    "sums that forget a run": (
        (first(), reservation(QUARTER, spent=2 * QUARTER), a_look(1)),
        "a look that changes sums",
    ),
    "a column where rows are protected": ((first(unit_field="id"),), "a column that tells persons apart"),
}


@pytest.mark.parametrize(("forged", "words"), FORGED.values(), ids=FORGED.keys())
def test_forged_looks_with_hashes_of_their_own_are_seen(forged: tuple[Entry, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        balances(rows_of(declaration(), *forged))
    assert balances(rows_of(declaration(), first(), a_look(1), a_look(2)))["people"].looks[RUN].calls == 2


EDITS = {
    "a look taken out": "DELETE FROM entries WHERE number = 4",
    "a lower count": 'UPDATE entries SET body = replace(body, \'"calls": "2"\', \'"calls": "1"\')',
    "another mark": f"UPDATE entries SET body = replace(body, '{MARKS[2]}', '{MARKS[3]}')",
    "another run's": f"UPDATE entries SET body = replace(body, '{RUN}', '{OTHER}') WHERE number > 3",
    "a look that is a run": "UPDATE entries SET body = replace(body, '\"look\"', '\"reserve\"') WHERE number = 4",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_edited_looks_are_seen(statement: str, path: Path) -> None:
    for calls in (1, 2):
        budget_store.look(path, a_look(calls), MARKS[calls - 1] if calls > 1 else "")
    edited(path, statement)
    with pytest.raises(BudgetError, match="damaged or altered"):
        budget_store.read(path)
    with pytest.raises(BudgetError, match="damaged or altered"):
        BudgetFile(path, "people").unlooked(RUN, MARKS[1:3])


REFUSED: dict[str, Callable[[], Any]] = {
    "an id for the second time": lambda: reservation(QUARTER, run=RUN),
    "another data set's id": lambda: reservation(QUARTER, run=RUN, data_set="visits"),
    "an unknown run that pays again": lambda: reservation(QUARTER, run=OTHER, kind="again"),
    "another data set's run that pays again": lambda: reservation(QUARTER, run=RUN, kind="again", data_set="visits"),
    "no id": lambda: reservation(QUARTER, run="my-run"),
    "an id in capitals": lambda: reservation(QUARTER, run="A" * 32),
    "an id of an injection": lambda: reservation(QUARTER, run='", "run": "' + "a" * 21),
    "a kind that is none": lambda: reservation(QUARTER, kind="refund"),
    "a time that is no line": lambda: reservation(QUARTER, when="a\nb"),
    "a column where rows are protected": lambda: reservation(QUARTER, unit_field="id"),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_what_would_make_the_file_unreadable_is_refused(refused: Callable[[], Any], path: Path) -> None:
    held = path.read_bytes()
    with pytest.raises(BudgetError, match="nothing was charged"):
        budget_store.reserve(path, refused())
    assert path.read_bytes() == held
    assert budget_store.read(path)[0]["people"].spent == QUARTER


def test_whatever_is_appended_in_whatever_order_the_file_stays_readable(path: Path) -> None:
    rng, written = random.Random(3), 0
    ids = [RUN, OTHER, "c" * 32, "d" * 32, "e", ""]
    for _ in range(300):
        name, run, calls = rng.choice(["people", "visits", "none"]), rng.choice(ids), rng.randint(1, 3)
        try:
            if rng.random() < 0.5:
                mark, before = rng.choice(MARKS), rng.choice(["", *MARKS[:4]])
                budget_store.look(path, a_look(calls, data_set=name, run=run, mark=mark), before)
            else:
                kind = rng.choice(["reserve", "again", "look"])
                wanted = reservation(Fraction(1, 1000), data_set=name, run=run, kind=kind)
                budget_store.reserve(path, wanted)
            written += 1
        except BudgetError:
            pass
        budget_store.read(path)
    assert written > 8


def test_a_full_file_begins_no_run_and_ends_those_that_have_begun(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_store, "MAX_BYTES_FOR_A_RUN", path.stat().st_size - 1)
    with pytest.raises(BudgetError, match="the file is full"):
        budget_store.reserve(path, reservation(QUARTER))
    budget_store.look(path, a_look(1), "")
    budget_store.reserve(path, reservation(QUARTER, run=RUN, kind="again"))


def test_no_entry_makes_a_file_too_large_to_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks of many runs at once could: then nobody, whatever their run, could read the file any more."""
    limit = path.stat().st_size + 2 * 4096
    monkeypatch.setattr(budget_store, "MAX_BYTES", limit)
    monkeypatch.setattr(budget_disk, "MAX_BYTES", limit)
    marks = ["", *(f"{place:032x}" for place in range(1, 200))]
    first = a_look(1)

    def look_on() -> None:
        for calls in range(1, 200):
            budget_store.look(path, replace(first, calls=calls, mark=marks[calls]), marks[calls - 1])

    with pytest.raises(BudgetError, match="the file is full"):
        look_on()
    assert path.stat().st_size <= limit
    before = budget_store.read(path)[1]
    assert len(before) > 10, "looks were written while there was room"
    with pytest.raises(BudgetError, match="the file is full"):
        budget_store.reserve(path, reservation(QUARTER, run=RUN, kind="again"))
    assert budget_store.read(path)[1] == before


@pytest.mark.parametrize("letters", [247, 248, 255, 256])
def test_a_name_without_room_for_a_journal_s_leaves_no_file(letters: int, tmp_path: Path) -> None:
    file = BudgetFile(tmp_path / ("b" * letters), "people")
    if letters == 247:
        file.init(Budget(1))
        assert file.balance().runs == 0
    else:
        with pytest.raises(BudgetError, match="take a shorter name"):
            file.init(Budget(1))
        assert list(tmp_path.iterdir()) == []


OLD = (
    '{"kind": "declare", "data_set": "people", "relation": "add-remove", "unit": "person:2", "accountant": "pure", '
    '"epsilon": "1", "delta": "0", "delta_for_atoms": "0", "total": "1", "when": "now", "margent": "test"}',
    '{"kind": "reserve", "data_set": "people", "run": "cccccccccccccccccccccccccccccccc", "epsilon": "1/4", "delta": '
    '"0", "delta_for_atoms": "0", "cost": "1/4", "spent": "1/4", "delta_spent": "0", "when": "now", "margent": "test"}',
    '{"kind": "again", "data_set": "people", "run": "cccccccccccccccccccccccccccccccc", "epsilon": "1/4", "delta": '
    '"0", "delta_for_atoms": "0", "cost": "1/8", "spent": "3/8", "delta_spent": "0", "when": "now", "margent": "test"}',
)
"""Entries as they were written before looks and columns were."""


def test_a_file_of_before_is_read_and_written_to(tmp_path: Path) -> None:
    path, seal = tmp_path / "b", GENESIS
    with sqlite3.connect(path) as file:
        for statement in budget_disk.OBJECTS:
            file.execute(statement)
        file.execute(f"PRAGMA application_id = {budget_disk.APPLICATION}")
        file.execute("PRAGMA user_version = 1")
        for number, text in enumerate(OLD, start=1):
            assert entry_text(read_entry(text)) == text
            seal = seal_of(seal, text)
            file.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (number, "people", text, seal))
    file.close()
    balance = budget_store.read(path)[0]["people"]
    assert (balance.spent, balance.unit_field, balance.looks) == (Fraction(3, 8), None, {})
    budget_store.look(path, a_look(1, run="c" * 32), "")
    budget_store.reserve(path, reservation(QUARTER, unit_field="id"))
    balance = budget_store.read(path)[0]["people"]
    assert (balance.spent, balance.unit_field, balance.looks["c" * 32].calls) == (Fraction(5, 8), "id", 1)
    with budget_disk.opened(path) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,), "so that an older Margent says: upgrade"


def test_releases_of_one_run_are_of_one_list_of_answers(people: BudgetFile) -> None:
    run = run_id()
    people.reserve(people.budget(1), "row", run)
    one, other = (Released(run, Budget(1).total, digest=digest) for digest in "xy")
    require_complete(people.balances(), {"OUT": one, "OUT2": one})
    with pytest.raises(BudgetError, match="OUT2: it is of the same run as OUT, and their charges or noisy answers"):
        require_complete(people.balances(), {"OUT": one, "OUT2": other})
