"""The budget file: terms for ever, caps on every path, refusals that say what fits, hostile files."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import margent
from margent.errors import BudgetError, UsageError
from margent.privacy import budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import Balance, balances, entry_text, read_entry, sealed
from margent.privacy.budget_file import BudgetFile, Released, checked_unit, require_complete, unit_name
from margent.privacy.budget_rest import fitting_epsilon
from margent.schema.fields import PersonUnit
from tests.privacy.budget_entries import declaration, reservation

SEQUENCES = 100_000 if "MARGENT_AUDIT" in os.environ else 1_000


def run_id() -> str:
    return secrets.token_hex(16)


@pytest.fixture
def people(tmp_path: Path) -> BudgetFile:
    file = BudgetFile(tmp_path / "people.budget", "people")
    file.init(Budget(3))
    return file


def test_init_makes_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        BudgetFile(tmp_path / "b", "people").init(Budget(1))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["b"], "one file is the whole truth"


def test_commits_are_on_disk_and_in_one_file(people: BudgetFile) -> None:
    with budget_store._opened(people.path) as file:
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
        people.reserve(Budget(1, accountant="zcdp", relation="replace"), "person:4", run_id())
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
    pupils.reserve(pupils.budget("1/3"), "person:2", run_id())
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


def edited(path: Path, *statements: str) -> None:
    """What somebody with a database editor does: triggers away, change, triggers back."""
    with sqlite3.connect(path, isolation_level=None) as file:
        triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            file.execute(statement)
        for _, sql in triggers:
            file.execute(sql)
    file.close()


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
    edited(path, f"UPDATE entries SET body = '{text}', hash = '{sealed(seal, text)}' WHERE number = 2")
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


def hostile_files() -> dict[str, Callable[[Path], object]]:
    def database(*statements: str) -> Callable[[Path], object]:
        def make(path: Path) -> None:
            BudgetFile(path, "people").init(Budget(1))
            edited(path, *statements)

        return make

    def link(path: Path) -> None:
        BudgetFile(path.with_name("real"), "people").init(Budget(1))
        path.symlink_to("real")

    def hard_link(path: Path) -> None:
        BudgetFile(path.with_name("real"), "people").init(Budget(1))
        os.link(path.with_name("real"), path)

    def huge(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        os.truncate(path, budget_store.MAX_BYTES + 1)

    def cut(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        os.truncate(path, path.stat().st_size // 2)

    def flipped(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        raw = bytearray(path.read_bytes())
        for place in range(100, len(raw), 97):
            raw[place] ^= 0x55
        path.write_bytes(raw)

    return {
        "absent": lambda path: None,
        "empty": lambda path: path.touch(),
        "text": lambda path: path.write_text("epsilon: 100\n" * 500),
        "noise": lambda path: path.write_bytes(random.Random(4).randbytes(20_000)),
        "folder": lambda path: path.mkdir(),
        "fifo": os.mkfifo,
        "dangling link": lambda path: path.symlink_to("nowhere"),
        "link": link,
        "hard link": hard_link,
        "huge": huge,
        "cut": cut,
        "flipped": flipped,
        "another program's": database("PRAGMA application_id = 7"),
        "later version": database("PRAGMA user_version = 2"),
        "a trigger that refunds": database(
            "CREATE TRIGGER t AFTER INSERT ON entries BEGIN UPDATE entries SET body = '' WHERE number = new.number; END"
        ),
        "a view": database("CREATE VIEW v AS SELECT * FROM entries"),
        "another column": database("ALTER TABLE entries ADD COLUMN refunded"),
        "write-ahead log": database("PRAGMA journal_mode = WAL"),
        "no declaration": database("DELETE FROM entries"),
    }


@pytest.mark.parametrize("kind", hostile_files())
def test_hostile_files_are_refused_with_a_typed_error_and_left_alone(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "b"
    hostile_files()[kind](path)
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir() if item.is_file()}
    file = BudgetFile(path, "people")
    for attempt in (file.balance, lambda: file.reserve(Budget(1), "row", run_id()),
                    lambda: budget_store.reserve(path, reservation(Fraction(1, 9)))):  # fmt: skip
        with pytest.raises(BudgetError) as caught:
            attempt()
        assert str(path) in str(caught.value)
    if kind not in ("absent", "empty", "no declaration"):
        with pytest.raises((BudgetError, UsageError)):
            file.init(Budget(5))
    if kind not in ("absent", "empty", "no declaration", "write-ahead log"):
        assert {item.name: item.read_bytes() for item in tmp_path.iterdir() if item.is_file()} == before


@pytest.mark.parametrize(
    "name", ["b?mode=memory", "b#x", "b%2e%2e", ":memory:", "file:b", "ü b\u2028", "b';DROP TABLE entries;--"]
)
def test_a_file_name_is_a_file_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = BudgetFile(name, "people")
    file.init(Budget(1))
    file.reserve(Budget(1), "row", run_id())
    assert file.balance().left == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_path_that_is_none(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "b", Path("a\0b")):
        with pytest.raises(BudgetError):
            BudgetFile(path).balance()
        with pytest.raises(UsageError, match="cannot be made"):
            BudgetFile(path, "people").init(Budget(1))
    with pytest.raises(UsageError, match="a budget file is a path, not int"):
        BudgetFile(3)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no such permissions there")
def test_a_file_that_may_not_be_written_to_refuses_every_run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b"
        BudgetFile(path, "people").init(Budget(1))
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        script = (
            "import os, sys, margent\nfrom margent import Budget, BudgetError, BudgetFile\nmargent.__version__\n"
            "file = BudgetFile(sys.argv[1])\n"
            "run = Budget(1)\nassert run.total > 0 == file.balance().spent\n"
            "if os.geteuid() == 0:  # who may write anywhere\n    os.setgid(65534)\n    os.setuid(65534)\n"
            "assert file.balance().spent == 0\n"
            "try:\n    file.reserve(run, 'row', 'ab' * 16)\n"
            "except BudgetError as fault:\n    print(fault)\n"
        )
        environment = os.environ | {"PYTHONPATH": str(Path(margent.__file__).parents[1])}
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, env=environment, check=False
        )
        assert "cannot be written to; nothing was charged" in done.stdout, done.stderr
        Path(folder).chmod(0o755)
        assert BudgetFile(path).balance().spent == 0


def test_a_file_held_by_another_program_refuses_in_time(people: BudgetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_store, "WAIT", 0.05)
    holder = sqlite3.connect(people.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(BudgetError, match="other runs held it for"):
        people.reserve(people.budget(1), "row", run_id())
    holder.execute("ROLLBACK")
    holder.close()
    assert people.balance().spent == 0


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


class FileModel(RuleBasedStateMachine):
    """Any sequence of declarations, runs, copies and refusals against plain rational sums."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "b"
        self.caps = {"a": Fraction(1)}
        self.paid: dict[str, list[Fraction]] = {"a": []}
        budget_store.declare(self.path, declaration(data_set="a"))

    @rule(name=st.sampled_from("abc"), cap=st.fractions("1/10", 2, max_denominator=50))
    def declare(self, name: str, cap: Fraction) -> None:
        if name in self.caps:
            with pytest.raises(UsageError):
                budget_store.declare(self.path, declaration(data_set=name, total=cap))
        else:
            budget_store.declare(self.path, declaration(data_set=name, total=cap))
            self.caps[name], self.paid[name] = cap, []

    @rule(name=st.sampled_from("abcd"), cost=st.fractions("1/50", "3/4", max_denominator=50))
    def reserve(self, name: str, cost: Fraction) -> None:
        wanted = reservation(cost, data_set=name)
        if name not in self.caps:
            with pytest.raises(BudgetError, match="no data set"):
                budget_store.reserve(self.path, wanted)
        elif sum(self.paid[name]) + cost <= self.caps[name]:
            self.paid[name].append(cost)
            assert budget_store.reserve(self.path, wanted).spent == sum(self.paid[name])
        else:
            with pytest.raises(budget_store.CapReachedError):
                budget_store.reserve(self.path, wanted)

    @rule(cost=st.sampled_from([Fraction(0), Fraction(-1, 2)]))
    def refund(self, cost: Fraction) -> None:
        with pytest.raises(BudgetError):
            budget_store.reserve(self.path, reservation(cost, data_set="a"))

    @rule()
    def copy_and_go_on(self) -> None:
        copy = self.path.with_name(secrets.token_hex(4))
        shutil.copyfile(self.path, copy)
        self.path = copy

    @invariant()
    def agrees(self) -> None:
        held, hashes = budget_store.read(self.path)
        assert {name: [entry.cost for entry in balance.reservations] for name, balance in held.items()} == self.paid
        assert {name: balance.declaration.total for name, balance in held.items()} == self.caps
        assert all(balance.spent == sum(self.paid[name]) <= self.caps[name] for name, balance in held.items())
        assert len(hashes) == len(self.caps) + sum(map(len, self.paid.values()))

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestFileModel = FileModel.TestCase
TestFileModel.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)


def test_random_sequences_of_reservations_against_a_plain_sum() -> None:
    """In memory: the arithmetic of `Balance`, which the file applies to its last entry."""
    rng = random.Random(17)
    for _ in range(SEQUENCES):
        cap, part = Fraction(rng.randint(1, 99), rng.randint(1, 99)), Fraction(rng.randint(0, 9), 10**9)
        balance = Balance(declaration(total=cap, delta_for_atoms=part))
        spent = atoms = Fraction(0)
        for _ in range(rng.randint(1, 8)):
            cost = cap * Fraction(rng.randint(-1, 60), rng.randint(60, 120))
            delta = Fraction(rng.choice([0, 0, 1, 3]), 10**9)
            wanted = reservation(cost, delta_for_atoms=delta, spent=spent + cost, delta_spent=atoms + delta)
            if cost <= 0 or spent + cost > cap or atoms + delta > part:
                with pytest.raises(ValueError, match="does not allow"):
                    balance.after(wanted)
            else:
                balance = balance.after(wanted)
                spent, atoms = spent + cost, atoms + delta
            assert (balance.spent, balance.delta_spent) == (spent, atoms)
            assert balance.left >= 0 <= balance.delta_left


def test_balances_of_nothing() -> None:
    assert balances([]) == {}
