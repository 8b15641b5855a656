"""Any sequence of declarations, runs, copies and refusals, against plain rational sums."""

from __future__ import annotations

import random
import secrets
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from margent.errors import BudgetError, UsageError
from margent.privacy import budget_store
from margent.privacy.budget_chain import Balance, balances
from tests.privacy.budget_entries import declaration, reservation
from tests.sizes import rounds

SEQUENCES = rounds(1_000, 100_000)


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
