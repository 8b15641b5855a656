"""Edited budget files: changed, forged, swapped and unreadable entries are seen."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import BudgetError
from margent.privacy import budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import entry_text, read_entry, seal_of
from margent.privacy.budget_file import BudgetFile
from tests.privacy.budget_entries import declaration, edited, reservation, run_id

EDITS = {
    "a lower price": 'UPDATE entries SET body = replace(body, \'"cost": "1/4"\', \'"cost": "1/9"\') WHERE number = 3',
    "a run taken out": "DELETE FROM entries WHERE number = 3",
    "a run taken out and the rest renumbered": "UPDATE entries SET number = number - 1 WHERE number > 3",
    "two runs swapped": "UPDATE entries SET number = CASE number WHEN 2 THEN -3 WHEN 3 THEN 2 ELSE number END",
    "a higher cap": 'UPDATE entries SET body = replace(body, \'"total": "1"\', \'"total": "9"\')',
    "another data set's": "UPDATE entries SET data_set = 'others' WHERE number = 3",
    "no text": "UPDATE entries SET body = x'ff00' WHERE number = 3",
    "no hash": "UPDATE entries SET hash = '' WHERE number = 3",
    "a number for a hash": "UPDATE entries SET hash = 7 WHERE number = 4",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_edited_entry_is_seen(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "b"
    budget_store.declare(path, declaration())
    for _ in range(3):
        budget_store.reserve(path, reservation(Fraction(1, 4)))
    if "number - 1" in statement:
        edited(path, "DELETE FROM entries WHERE number = 3")
    edited(path, statement)
    with pytest.raises(BudgetError, match="damaged or altered"):
        budget_store.read(path)
    with pytest.raises(BudgetError, match="damaged or altered"):
        BudgetFile(path).reserve(Budget("0.1", accountant="pure"), "row", run_id())


def test_an_entry_forged_with_its_own_hash_is_seen_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "b"
    budget_store.declare(path, declaration())
    for _ in range(2):
        budget_store.reserve(path, reservation(Fraction(1, 4)))
    (seal, *_), text = budget_store.read(path)[1], entry_text(reservation(Fraction(1, 4), spent=Fraction(1, 4)))
    edited(path, f"UPDATE entries SET body = '{text}', hash = '{seal_of(seal, text)}' WHERE number = 2")
    with pytest.raises(BudgetError, match="entry 3: its hash or place differs"):
        budget_store.read(path)
    edited(path, "DELETE FROM entries WHERE number = 3")
    assert len(budget_store.read(path)[1]) == 2, "a forged end is whole: only releases tell (see the docs)"


def test_ordinary_changes_are_refused_by_the_file_itself(people: BudgetFile) -> None:
    with sqlite3.connect(people.path) as file:
        for statement in ("UPDATE entries SET hash = ''", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                file.execute(statement)
    file.close()


TEXTS = ["1e9", "1E999999999", "-1", "0.5", "1/0", "01", " 1", "1/2/3", "nan", "９", "1" * 1501, "2/" + "3" * 1501, ""]


@pytest.mark.parametrize("text", TEXTS)
def test_only_plain_fractions_are_read(text: str) -> None:
    good = entry_text(declaration())
    with pytest.raises(ValueError, match="fraction"):
        read_entry(good.replace('"total": "1"', f'"total": "{text}"'))


def test_fractions_of_too_many_digits_are_refused_before_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "b"
    budget_store.declare(path, declaration())
    with pytest.raises(BudgetError, match="more digits than a budget file keeps"):
        budget_store.reserve(path, reservation(Fraction(1, 10**1500), epsilon=Fraction(1, 10)))
    assert budget_store.read(path)[0]["people"].reservations == ()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")), st.integers(0, 300))
def test_mutated_entries_are_never_read_as_something_else(patch: str, place: int) -> None:
    good = entry_text(reservation(Fraction(1, 3)))
    mutated = good[:place] + patch + good[place + len(patch) :]
    try:
        entry = read_entry(mutated)
    except (ValueError, TypeError, RecursionError):
        return
    assert entry_text(entry) == mutated
