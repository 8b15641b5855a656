"""The budget file: terms for ever, caps on every path, refusals that say what fits."""

from __future__ import annotations

import os
import shutil
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margent
from margent.errors import BudgetError, UsageError
from margent.privacy import budget_disk, budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import Balance
from margent.privacy.budget_file import BudgetFile
from margent.privacy.budget_releases import Released, require_complete
from margent.privacy.budget_rest import fitting_epsilon
from margent.privacy.budget_terms import checked_unit, unit_name
from margent.schema.fields import PersonUnit
from tests.privacy.budget_entries import declaration, reservation, run_id


def test_init_makes_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        BudgetFile(tmp_path / "b", "people").init(Budget(1))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["b"], "one file is the whole truth"


def test_commits_are_on_disk_and_in_one_file(people: BudgetFile) -> None:
    with budget_disk.opened(people.path) as file:
        assert file.execute("PRAGMA synchronous").fetchone() == (3,)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert file.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_a_cap_is_met_exactly_and_a_refusal_says_what_fits(people: BudgetFile) -> None:
    people.reserve(people.budget(2), "row", run_id())
    with pytest.raises(BudgetError) as caught:
        people.reserve(people.budget(2.5), "row", run_id())
    assert str(caught.value) == (
        "nothing was charged: the budget of 'people' does not cover this run: it costs 71.08 % of the cap, and 53.31 % "
        "is left; epsilon 2.145 at delta 1e-09 would fit"
    )
    assert caught.value.exit_code == 4
    people.reserve(people.budget("2.145"), "row", run_id())
    balance = people.balance()
    assert balance.spent == Budget(2).total + Budget("2.145").total <= Budget(3).total
    whole = BudgetFile(people.path, "whole")
    whole.init(Budget(3))
    assert whole.reserve(whole.budget(3), "row", run_id()).left == 0
    with pytest.raises(BudgetError, match="and 0 % is left; no epsilon fits any more"):
        whole.reserve(whole.budget("1e-12"), "row", run_id())


@pytest.mark.parametrize("name", ["gdp", "zcdp", "pure"])
@settings(max_examples=25, deadline=None)
@given(cap=st.sampled_from(["1e-6", "0.1", "1", "3", "25", "4000"]), used=st.fractions(0, 1), delta=st.integers(2, 12))
def test_the_epsilon_that_fits_does_and_hardly_more_would(name: str, cap: str, used: Fraction, delta: int) -> None:
    kept = Budget(cap, accountant=name)
    terms = declaration(accountant=name, epsilon=kept.epsilon, delta=kept.delta, total=kept.total)
    balance = Balance(terms, spent=kept.total * used.limit_denominator(1000))
    at = Fraction(0) if name == "pure" else Fraction(1, 10**delta)
    fits = fitting_epsilon(balance, at)
    if fits is None:
        assert balance.left < Budget("1e-12", at, name).total
        return
    assert Budget(fits, at, name).total <= balance.left
    if fits < 9000:
        assert Budget(fits * Fraction(1003, 1000), at, name).total > balance.left


def test_terms_hold_for_ever(people: BudgetFile) -> None:
    with pytest.raises(BudgetError) as caught:
        people.reserve(Budget(1, accountant="zcdp", relation="replace"), PersonUnit("id", 4), run_id())
    said = str(caught.value).splitlines()
    assert said[0] == "nothing was charged: the data set 'people' was declared on other terms, for ever:"
    assert said[1:] == [
        "  neighbor relation: the run's is 'replace', the data set's is 'add-remove'",
        "  protected unit: the run's is 'person:4', the data set's is 'row'",
        "  accountant: the run's is 'zcdp', the data set's is 'gdp'",
    ]
    with pytest.raises(UsageError, match="declared already; no budget is changed or reset"):
        people.init(Budget(9))
    assert people.balance().spent == 0
    assert people.balance().declaration.epsilon == 3


def test_one_file_holds_many_data_sets_and_their_sums_are_apart(people: BudgetFile) -> None:
    pupils = BudgetFile(people.path, "pupils")
    pupils.init(Budget("0.5", accountant="pure"), unit="person:2")
    pupils.reserve(pupils.budget("1/3"), PersonUnit("id", 2), run_id())
    assert pupils.balance().left == Fraction(1, 6)
    assert people.balance().spent == 0
    assert list(people.balances()) == ["people", "pupils"]
    with pytest.raises(UsageError, match=r"say which data set \(--data-set\); it declares 'people', 'pupils'"):
        BudgetFile(people.path).balance()
    with pytest.raises(BudgetError, match="no data set 'staff' is declared in it"):
        BudgetFile(people.path, "staff").budget(1)
    with pytest.raises(BudgetError, match="no data set 'staff'"):
        budget_store.reserve(people.path, reservation(Fraction(1), data_set="staff"))


def test_the_part_for_atoms_is_kept_apart(tmp_path: Path) -> None:
    file = BudgetFile(tmp_path / "b", "people")
    cap = Budget(1, "1e-9", delta_for_atoms="1e-10")
    assert cap.total == Budget(1, Fraction(9, 10**10)).total < Budget(1).total
    file.init(cap)
    assert file.budget(1).total == cap.total, "a run with the cap's epsilon takes the whole cap"
    half = Budget("0.5", "1e-9", delta_for_atoms="6e-11")
    file.reserve(half, "row", run_id())
    with pytest.raises(
        BudgetError, match="it sets delta 6e-11 apart for atoms, and 4e-11 of the data set's part is left"
    ):
        file.reserve(half, "row", run_id())
    balance = file.reserve(Budget("0.5", "1e-9", delta_for_atoms="4e-11"), "row", run_id())
    assert balance.delta_left == 0
    with pytest.raises(BudgetError, match="apart for atoms"):
        file.reserve(Budget("0.1", "1e-9", delta_for_atoms="1e-300"), "row", run_id())
    file.reserve(Budget("0.1", "1e-9"), "row", run_id())


def test_a_run_takes_its_part_for_atoms_from_the_data_sets(tmp_path: Path) -> None:
    file = BudgetFile(tmp_path / "b", "people")
    file.init(Budget(1, "1e-9", delta_for_atoms="1e-10"))
    run = file.budget("0.5", delta_for_atoms="7e-11")
    assert (run.delta_for_atoms, run.delta) == (Fraction(7, 10**11), Fraction(97, 10**11))
    assert run.total == file.budget("0.5").total, "noise is priced at the same delta, with or without"
    file.reserve(run, "row", run_id())
    assert file.balance().delta_left == Fraction(3, 10**11)
    with pytest.raises(BudgetError, match="sets delta 7e-11 apart for atoms, and 3e-11"):
        file.reserve(file.budget("0.1", delta_for_atoms="7e-11"), "row", run_id())
    with pytest.raises(UsageError, match="the part of delta for atoms must not be negative"):
        file.budget("0.1", delta_for_atoms=-1)
    pure = BudgetFile(file.path, "pure")
    pure.init(Budget(1, accountant="pure"))
    with pytest.raises(UsageError, match="must be 0 with accountant 'pure'"):
        pure.budget("0.1", delta_for_atoms="7e-11")


def test_units() -> None:
    assert [checked_unit(unit) for unit in ("row", "person:1", "person:040")] == ["row", "person:1", "person:40"]
    assert (unit_name("row"), unit_name(PersonUnit("id", 4))) == ("row", "person:4")
    for wrong in ("rows", "person", "person:", "person:0", "person:-1", "person:1.5", "person:9999999", "person:١", 3):
        with pytest.raises(UsageError, match="the protected unit is row, or person:k"):
            checked_unit(wrong)  # type: ignore[arg-type]


def test_terms_that_no_run_could_be_made_under_are_refused_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        BudgetFile(tmp_path / "b", " p").init(Budget(1, relation="replace"), unit="person:2")
    name, unit = str(caught.value).splitlines()
    assert "1 to 100 printable characters" in name
    assert unit.startswith("relation 'replace' protects single rows, and the unit person:2 is a person")
    for wrong in ("row", "person:3"):
        with pytest.raises(UsageError, match="the cap is for persons with at most 2 rows each"):
            BudgetFile(tmp_path / "b", "p").init(Budget(1, person_rows=2), unit=wrong)
    assert not (tmp_path / "b").exists()
    BudgetFile(tmp_path / "b", "p").init(Budget(1, person_rows=2), unit="person:2")


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", ["row", "person:1", "person:3"])
@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "pure"])
def test_what_init_accepts_a_run_can_be_made_under(relation: Any, unit: str, accountant: str, tmp_path: Path) -> None:
    """And what it refuses, no run could be."""
    rows = 0 if unit == "row" else int(unit[-1])
    schema = margent.Schema(
        [margent.Identifier("id"), margent.Category("a", ["x"], required=True)],
        unit=PersonUnit("id", rows) if rows else "row",
    )
    table = pa.table({"id": ["p"], "a": ["x"]})
    file = BudgetFile(tmp_path / "b", "p")
    try:
        file.init(Budget(1, accountant=accountant, relation=relation), unit=unit)
    except UsageError:
        with pytest.raises(UsageError, match="'replace'"):
            margent.synthesize(table, schema, budget=Budget(1, accountant=accountant, relation=relation), rows=1)
    else:
        margent.synthesize(table, schema, budget=file.budget("0.5"), budget_file=file, rows=1)
        assert len(file.balance().reservations) == 1


@pytest.mark.parametrize("name", [None, "", " people", "a\nb", "x\x1b[2J", "n" * 101, "\u202epeople"])
def test_names_that_play_tricks_are_refused(tmp_path: Path, name: str | None) -> None:
    with pytest.raises(UsageError, match="1 to 100 printable characters"):
        BudgetFile(tmp_path / "b", name).init(Budget(1))
    assert not (tmp_path / "b").exists()


def test_a_cut_off_init_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    BudgetFile(tmp_path / "b", "people").init(Budget(1))
    assert BudgetFile(tmp_path / "b").balance().spent == 0


def test_an_older_copy_put_back_is_told_by_the_releases(people: BudgetFile, tmp_path: Path) -> None:
    first, second = run_id(), run_id()
    people.reserve(people.budget(1), "row", first)
    older = Path(shutil.copy(people.path, tmp_path / "older"))
    people.reserve(people.budget(1), "row", second)
    released = {"OUT": Released(first, Budget(1).total), "OUT2": Released(second, Budget(1).total)}
    require_complete(people.balances(), released)
    with pytest.raises(BudgetError, match="OUT2: its run is not in the file") as caught:
        require_complete(BudgetFile(older).balances(), released)
    assert "OUT:" not in str(caught.value)
    dearer = {"OUT": Released(first, Budget(1).total + Fraction(1, 10**30))}
    with pytest.raises(BudgetError, match="OUT: its charges add up to more than the file reserved"):
        require_complete(people.balances(), dearer)
    looser = {"OUT": Released(first, Budget(1).total, Fraction(1, 10**300))}
    with pytest.raises(BudgetError, match="OUT: its charges use up more delta themselves than the file reserved"):
        require_complete(people.balances(), looser)
