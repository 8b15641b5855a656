"""Gates for prices, totals and the order of things: charged at the true price, before any look, within the budget."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.errors import BudgetError, MargentError
from margent.privacy import curator as door
from margent.privacy.accounting import account_named
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.requests import MarginalRequest
from margent.schema.domain import Clique, Domain, Merge
from tests.audits.small_table import PAIR, ROOMY, counted


def every_answer_is_charged_at_its_price() -> None:
    """Each answer has its charge, and each charge is priced again, in 200-bit arithmetic."""
    exact = np.array([[3, 0, 1, 0], [0, 2, 0, 0], [1, 1, 4, 0], [0, 0, 0, 0]], dtype=np.int64)
    for name in ("gdp", "zcdp"):
        ledger = Ledger(Budget(3, "1e-3", accountant=name))
        curator = door.DataCurator(PAIR, counted(exact), ledger)
        scale = curator.account.gaussian_scale(Fraction(1), ledger.budget.total / 4)
        answers = curator.measure(
            [MarginalRequest(("a",), Gaussian(scale)), MarginalRequest(("b",), Gaussian(scale))], label="gate"
        )
        assert len(ledger.charges) == len(answers) == 2
        least = sum(_least_price(charge) for charge in ledger.charges)
        assert ledger.spent >= least * (1 - mpf(2) ** -100)
    small = Fraction(1, 2)
    assert account_named("gdp").gaussian_cost(Fraction(1), small) >= _mu_of(small) ** 2 / 2 * (1 - mpf(2) ** -80)


def _least_price(charge: Charge) -> mpf:
    assert charge.scale_squared is not None
    sensitivity = mpf(charge.sensitivity_squared.numerator) / charge.sensitivity_squared.denominator
    if charge.account == "zcdp":
        return sensitivity / 2 / (mpf(charge.scale_squared.numerator) / charge.scale_squared.denominator)
    return sensitivity * _mu_of(charge.scale_squared) ** 2 / 2


def _mu_of(scale_squared: Fraction) -> mpf:
    """g(s) = 2 Phi^-1((1 + p_0) / 2), straight from its definition."""
    with mp.workprec(200):
        top, bottom = scale_squared.numerator, scale_squared.denominator
        total = 1 + 2 * mp.nsum(lambda x: mp.exp(-(x**2) * bottom / (2 * mpf(top))), [1, mp.inf])
        return 2 * mp.sqrt(2) * mp.erfinv(1 / total)


def the_stated_epsilon_is_true() -> None:
    """Totals and epsilons of the accounts against the textbook formula in 200 bits."""
    with mp.workprec(200):
        for epsilon, delta in product(
            (Fraction(1, 5), Fraction(1), Fraction(5)), (Fraction(1, 10**9), Fraction(1, 1000))
        ):
            total = account_named("gdp").total(epsilon, delta)
            mu = mp.sqrt(2 * mpf(total.numerator) / total.denominator)
            eps = mpf(epsilon.numerator) / epsilon.denominator
            loss = mp.ncdf(-eps / mu + mu / 2) - mp.exp(eps) * mp.ncdf(-eps / mu - mu / 2)
            assert loss <= mpf(delta.numerator) / delta.denominator
            assert account_named("gdp").epsilon(total, delta) <= epsilon * (1 + Fraction(1, 10**9))
            assert Budget(epsilon, delta).total == total


class Watched:
    """A count source that notes how many charges were written when it is looked at, and may fail."""

    def __init__(self, inner: CodedCounts, ledger: Ledger, broken: bool = False) -> None:
        self.inner, self.ledger, self.broken = inner, ledger, broken
        self.looks: list[int] = []

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] | None = None) -> list[NDArray[np.int64]]:
        self.looks.append(len(self.ledger.charges))
        if self.broken:
            raise OSError("the disk is gone")
        return self.inner.count(cliques, merges or {})


def charges_come_before_looks_and_stay() -> None:
    exact = np.ones((4, 4), dtype=np.int64)
    for broken in (False, True):
        ledger = Ledger(ROOMY)
        watched = Watched(counted(exact), ledger, broken)
        with contextlib.suppress(MargentError):
            door.DataCurator(PAIR, watched, ledger).measure(
                [MarginalRequest(("a",), Gaussian(Fraction(9))), MarginalRequest(("b",), Gaussian(Fraction(9)))],
                label="gate",
            )
        assert watched.looks
        assert all(charged == 2 for charged in watched.looks)
        assert len(ledger.charges) == 2


def the_budget_is_never_passed() -> None:
    budget = Budget(1)
    scale = budget.account.gaussian_scale(Fraction(1), budget.total / 7)
    cost = budget.account.gaussian_cost(Fraction(1), scale)
    charge = Charge(
        "gate", "marginal", (("a",),), "discrete-gaussian", budget.relation, Fraction(1), scale, "gdp", cost
    )

    def spend(ledger: Ledger, charge: Charge) -> bool:
        try:
            ledger.spend([charge])
        except BudgetError:
            return False
        return True

    ledger = Ledger(budget)
    with ThreadPoolExecutor(8) as threads:
        granted = sum(threads.map(lambda _: spend(ledger, charge), range(40)))
    assert granted == 7
    assert ledger.spent <= budget.total
    for least in (Fraction(0), Fraction(-1)):
        chosen = Charge("gate", "choice", (("a",),), "exponential", budget.relation, Fraction(1), None, "gdp", least)
        assert not spend(Ledger(budget), chosen)
    for least in (Fraction(0), Fraction(-1), cost / 10**9):
        cheap = Charge(
            "gate", "marginal", (("a",),), "discrete-gaussian", budget.relation, Fraction(1), scale, "gdp", least
        )
        assert not spend(Ledger(budget), cheap)
