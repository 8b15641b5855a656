"""Relation and unit as one type: what it refuses, and that a budget and its ledger hold on to it."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from margent.errors import BudgetError, UsageError
from margent.privacy.budget import Budget
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import marginal_charge
from margent.privacy.requests import MarginalRequest

REQUEST = MarginalRequest(("a",), Gaussian(Fraction(1024)))


@pytest.mark.parametrize(
    ("relation", "rows", "message"),
    [
        ("swap", None, "must be 'add-remove' or 'replace'"),
        (None, None, "must be 'add-remove' or 'replace'"),
        (["replace"], None, "must be 'add-remove' or 'replace'"),
        ("add-remove", 0, "at least 1"),
        ("add-remove", -1, "at least 1"),
        ("add-remove", 2.0, "at least 1"),
        ("add-remove", True, "at least 1"),
        ("replace", 1, "protects single rows"),
    ],
)
def test_what_no_mechanism_is_priced_for_is_refused(relation: str, rows: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Neighbors(relation, rows)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        Budget(1, relation=relation, person_rows=rows)  # type: ignore[arg-type]


def test_a_person_of_one_row_is_another_unit_than_a_row() -> None:
    assert Neighbors("add-remove", 1) != Neighbors()
    assert Neighbors("add-remove", 1).unit_rows == Neighbors().unit_rows == 1
    budget = Budget(1).protecting(1)
    charge = marginal_charge(REQUEST, "one-ways", budget.neighbors, budget.account)
    assert charge.neighbors == budget.neighbors
    Ledger(budget).spend([charge])
    with pytest.raises(BudgetError, match="is for at most 1 rows of a person, the budget for single records"):
        Ledger(Budget(1)).spend([charge])
    with pytest.raises(BudgetError, match="is for single records, the budget for at most 1 rows of a person"):
        Ledger(budget).spend([dataclasses.replace(charge, person_rows=None)])


def test_a_budget_is_made_for_a_unit_once() -> None:
    budget = Budget(2, "1e-6", "zcdp").protecting(4)
    assert budget == Budget(2, "1e-6", "zcdp", person_rows=4) == budget.protecting(4)
    assert budget.total == Budget(2, "1e-6", "zcdp").total
    for other in (None, 5):
        with pytest.raises(UsageError, match="another"):
            budget.protecting(other)
    with pytest.raises(UsageError, match="protects single rows"):
        Budget(1, relation="replace").protecting(2)


def test_names_say_who_is_protected() -> None:
    assert [str(each) for each in (Neighbors(), Neighbors("replace"), Neighbors("add-remove", 1))] == [
        "add or remove one record",
        "replace one record",
        "add or remove one person with at most 1 row",
    ]
