"""What is left of a data set's budget, which epsilon would fit into it, and how a refusal says so."""

from __future__ import annotations

from fractions import Fraction

from margent.privacy.accounting import account_named
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import Balance
from margent.privacy.statement import EPSILON_LIMITS


def refused(balance: Balance, budget: Budget) -> str:
    """Why a run does not fit: what it costs, what is left, and which epsilon would fit at its delta.

    Privacy: none: prices are public.
    """
    terms = balance.declaration
    lines = [f"nothing was charged: the budget of {terms.data_set!r} does not cover this run"]
    if budget.total > balance.left:
        lines.append(
            f"it costs {percent(budget.total, terms.total)} % of the cap, and {percent(balance.left, terms.total)} % "
            f"is left; {what_fits(balance, budget.delta - budget.delta_for_atoms)}"
        )
    if budget.delta_for_atoms > balance.delta_left:
        lines.append(
            f"it sets delta {float(budget.delta_for_atoms):.3g} apart for atoms, and {float(balance.delta_left):.3g} "
            "of the data set's part is left"
        )
    return ": ".join([lines[0], "; ".join(lines[1:])])


def what_fits(balance: Balance, delta: Fraction) -> str:
    """The largest epsilon that a further run may have, in words.

    Privacy: none.
    """
    fits = fitting_epsilon(balance, delta)
    if fits is None:
        return "no epsilon fits any more"
    at = "" if balance.declaration.accountant == "pure" else f" at delta {float(delta):.6g}"
    return f"epsilon {float(fits):.6g}{at} would fit"


def fitting_epsilon(balance: Balance, delta: Fraction) -> Fraction | None:
    """An epsilon whose run at ``delta`` fits into what is left, the largest of four digits or nearly; None if none is.

    Privacy: none.
    """
    account = account_named(balance.declaration.accountant)
    if balance.left <= 0:
        return None
    if account.name == "pure":
        delta = Fraction(0)
    highest = min(account.epsilon(balance.left, delta) * (1 + Fraction(1, 10**6)), EPSILON_LIMITS[1])
    digit = Fraction(10) ** (len(str(int(highest))) - 4) if highest >= 1 else _digit_below_one(highest)
    candidate = (highest / digit).__floor__() * digit
    while candidate >= EPSILON_LIMITS[0]:
        if account.total(candidate, delta) <= balance.left:
            return candidate
        candidate -= digit
    return None


def percent(part: Fraction, whole: Fraction) -> str:
    """A share of the cap as a person reads it.

    >>> percent(Fraction(1, 3), Fraction(2))
    '16.67'
    """
    return f"{float(100 * part / whole):.4g}"


def _digit_below_one(value: Fraction) -> Fraction:
    """The unit of the fourth digit of a number in (0, 1)."""
    digit = Fraction(1, 10**4)
    while value < 1000 * digit and digit > EPSILON_LIMITS[0] / 10**4:
        digit /= 10
    return digit
