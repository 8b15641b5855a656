"""Budgets: exact reading of numbers, refusals that name the field and the next step, advice."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margent.errors import UsageError
from margent.privacy.budget import Budget
from margent.privacy.statement import exact


def test_defaults() -> None:
    budget = Budget(1)
    assert (budget.epsilon, budget.delta) == (1, Fraction(1, 10**9))
    assert (budget.accountant, budget.relation) == ("gdp", "add-remove")
    assert budget.total == budget.account.total(Fraction(1), Fraction(1, 10**9))
    assert f"{float(budget.total):.5g}" == "0.016557"
    assert f"{float(Budget(1, accountant='zcdp').total):.5g}" == "0.014973"


def test_pure_budget_has_delta_zero_by_itself() -> None:
    budget = Budget("0.5", accountant="pure")
    assert (budget.delta, budget.total) == (0, Fraction(1, 2))
    assert Budget(1, 0, "pure").delta == Budget(1, "0.0", "pure").delta == 0
    with pytest.raises(UsageError, match="delta must be 0 with accountant 'pure': leave it out, or choose"):
        Budget(1, 1e-9, "pure")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1e-9, "1/1000000000"),
        (0.1, "1/10"),
        (np.float64(0.1), "1/10"),
        (5e-324, f"5/{10**324}"),
        (np.int64(3), "3"),
        ("1e-9", "1/1000000000"),
        (" 1 ", "1"),
        ("2.50", "5/2"),
        (".5", "1/2"),
        ("1.", "1"),
        ("1E+2", "100"),
        ("1/3", "1/3"),
        (Decimal("0.1"), "1/10"),
        (Fraction(2, 7), "2/7"),
        (0, "0"),
    ],
)
def test_numbers_mean_what_was_typed(written: object, meant: str) -> None:
    assert exact(written, "x") == Fraction(meant)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_a_float_means_its_shortest_text(value: float) -> None:
    assert exact(value, "x") == Fraction(repr(value))
    assert float(exact(value, "x")) == value


NOT_NUMBERS = [
    True,
    np.True_,
    float("nan"),
    float("inf"),
    Decimal("NaN"),
    Decimal("Infinity"),
    Decimal("1e-999999999"),
    Decimal("-1"),
    -(10**5000),
    -1,
    -1e-9,
    "-1",
    "1,5",
    "1_000",
    "nan",
    "inf",
    "one",
    "",
    "1e",
    "1/0",
    "0x10",
    "١",
    "1e999999999",
    "9" * 100,
    b"1",
    [1],
    1j,
    np.float32(0.1),
    "1 2",
]


@pytest.mark.parametrize(
    "value",
    NOT_NUMBERS,
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) else type(value).__name__,
)
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(UsageError, match=r"^epsilon must") as caught:
        Budget(value)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
    with pytest.raises(UsageError, match=r"^delta must"):
        Budget(1, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"epsilon is missing: .*for example epsilon 1"),
        ({"epsilon": 0}, r"epsilon must be above 0.*it is 0: 1 is a common choice"),
        ({"epsilon": "1e5"}, r"epsilon must be above 0, from 1e-12 to 10000; it is 100000"),
        ({"epsilon": "1,5"}, r"epsilon .*'1,5': write the decimal point as '\.'"),
        ({"epsilon": 1, "delta": 0}, r"delta must be above 0.*delta 0 needs accountant 'pure'"),
        ({"epsilon": 1, "delta": 1}, r"delta .*to 0.1; it is 1: take 1e-9"),
        ({"epsilon": 1, "accountant": "rdp"}, r"no accountant 'rdp': choose one of gdp, zcdp, pure"),
        ({"epsilon": 1, "relation": "swap"}, r"relation must be 'add-remove' or 'replace', not 'swap'"),
    ],
)
def test_messages_name_the_field_and_the_next_step(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Budget(**arguments)  # type: ignore[arg-type]


def test_all_faults_come_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Budget("x", -1, "rdp", "swap")  # type: ignore[arg-type]
    assert len(str(caught.value).splitlines()) == 4


def test_budgets_are_frozen_values() -> None:
    budget = Budget(0.5, 1e-6, "zcdp", "replace")
    assert budget == Budget("1/2", Fraction(1, 10**6), "zcdp", "replace")
    assert hash(budget) == hash(dataclasses.replace(budget))
    assert dataclasses.replace(budget, epsilon=Fraction(1)).epsilon == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = Fraction(2)  # type: ignore[misc]


def test_advice_is_given_but_never_forced() -> None:
    assert Budget(1, accountant="pure").advice == ()
    assert Budget(10).advice == ()
    assert Budget(10, "1e-7").advice == ()
    (about_delta,) = Budget(10, "1e-6").advice
    assert "1 over the number of people" in about_delta
    assert "1e+06 people" in about_delta
    about_epsilon, _ = Budget("10.5", "1e-6").advice
    assert "epsilon 10.5 is above 10" in about_epsilon


def test_a_part_of_delta_is_set_apart_for_atoms() -> None:
    budget = Budget(1, "1e-9", delta_for_atoms="1e-10")
    assert budget.total == budget.account.total(Fraction(1), Fraction(9, 10**10)) < Budget(1).total
    assert Budget(1).delta_for_atoms == 0
    assert dataclasses.replace(budget, epsilon=Fraction(2)).delta_for_atoms == Fraction(1, 10**10)
    Budget(1, "1e-9", delta_for_atoms=Fraction(1, 10**9) - Fraction(1, 10**300))
    for part in ("1e-9", "2e-9", Fraction(1, 10**9) - Fraction(1, 10**301)):
        with pytest.raises(UsageError, match="part of delta for atoms must be below delta"):
            Budget(1, "1e-9", delta_for_atoms=part)
    with pytest.raises(UsageError, match="must be 0 with accountant 'pure'"):
        Budget(1, accountant="pure", delta_for_atoms="1e-10")
    with pytest.raises(UsageError, match="the part of delta for atoms must not be negative"):
        Budget(1, delta_for_atoms=-1)
