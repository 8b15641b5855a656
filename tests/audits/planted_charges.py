"""Bugs of prices, totals and the order of charge and look, each as somebody once wrote it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from margent.errors import MargentError
from margent.privacy import curator, gdp, ledger, queries
from tests.audits import gates_charges as gates
from tests.audits.planting import Bug, Plant, setting


def priced(share: Fraction) -> Plant:
    """Every table is charged this share of its price."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = queries.marginal_charge

        def cheap(*arguments: Any, **options: Any) -> Any:
            import dataclasses

            charge = genuine(*arguments, **options)
            return dataclasses.replace(charge, cost=charge.cost * share)

        patch.setattr(queries, "marginal_charge", cheap)
        patch.setattr(ledger, "_mechanism_fault", lambda charge: None)

    return plant


def only_the_first(patch: pytest.MonkeyPatch) -> None:
    genuine = ledger.Ledger.spend

    def spend(self: Any, charges: Sequence[Any]) -> range:
        genuine(self, charges[:1])
        return range(len(charges))

    patch.setattr(ledger.Ledger, "spend", spend)


def looked_first(patch: pytest.MonkeyPatch) -> None:
    genuine = curator.DataCurator.measure

    def measure(self: Any, requests: Any, **options: Any) -> Any:
        self.source.count([request.clique for request in requests])
        return genuine(self, requests, **options)

    patch.setattr(curator.DataCurator, "measure", measure)


def refunded(patch: pytest.MonkeyPatch) -> None:
    genuine = curator.DataCurator.measure

    def measure(self: Any, requests: Any, **options: Any) -> Any:
        before = self.ledger._charges
        try:
            return genuine(self, requests, **options)
        except MargentError:
            self.ledger._charges = before
            raise

    patch.setattr(curator.DataCurator, "measure", measure)


def unlocked(patch: pytest.MonkeyPatch) -> None:
    """Afford, think, write: two threads can both afford the last of it."""

    def spend(self: Any, charges: Sequence[Any]) -> range:
        cost = sum((charge.cost for charge in charges), Fraction(0))
        if cost > self.left:
            raise ledger.BudgetError("too much")
        time.sleep(0.002)
        self._charges += tuple(charges)
        self._spent += cost
        return range(len(self._charges) - len(charges), len(self._charges))

    patch.setattr(ledger.Ledger, "spend", spend)


def unchecked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger, "_exact_positive", lambda value: True)
    patch.setattr(ledger, "_mechanism_fault", lambda charge: None)


def too_much_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger.Ledger, "left", property(lambda self: self._total * Fraction(12, 10) - self._spent))


def total(factor: Fraction) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = gdp.GdpAccount.total
        patch.setattr(gdp.GdpAccount, "total", lambda self, e, d: genuine(self, e, d) * factor)

    return plant


def delta_as(factor: int) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = gdp.GdpAccount.total
        patch.setattr(gdp.GdpAccount, "total", lambda self, e, d: genuine(self, e, d * factor))

    return plant


def continuous_price(patch: pytest.MonkeyPatch) -> None:
    """Discrete noise priced as if it were continuous: at s^2 = 1/2 that is 2 % too cheap."""
    patch.setattr(gdp.GdpAccount, "gaussian_cost", lambda self, d2, s2: d2 / (2 * s2))


BUGS: tuple[Bug, ...] = (
    Bug("composition forgotten", gates.every_answer_is_charged_at_its_price, priced(Fraction(1, 2))),
    Bug("a thousandth of the price forgotten", gates.every_answer_is_charged_at_its_price, priced(Fraction(999, 1000))),
    Bug("only the first table charged", gates.every_answer_is_charged_at_its_price, only_the_first),
    Bug("discrete noise priced as continuous", gates.every_answer_is_charged_at_its_price, continuous_price),
    Bug("looked before the charge", gates.charges_come_before_looks_and_stay, looked_first),
    Bug("refunded after a failure", gates.charges_come_before_looks_and_stay, refunded),
    Bug("two threads spend the last of it", gates.the_budget_is_never_passed, unlocked),
    Bug("a fifth more than there is", gates.the_budget_is_never_passed, too_much_left),
    Bug(
        "charges of nothing",
        gates.the_budget_is_never_passed,
        unchecked,
    ),
    Bug(
        "charges below any price",
        gates.the_budget_is_never_passed,
        setting("margent.privacy.ledger._mechanism_fault", lambda charge: None),
    ),
    Bug("one percent over the total", gates.the_stated_epsilon_is_true, total(Fraction(101, 100))),
    Bug("delta taken ten times", gates.the_stated_epsilon_is_true, delta_as(10)),
)
