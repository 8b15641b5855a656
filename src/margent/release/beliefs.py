"""How far a release can move what a reader believes about one protected unit, and how often it moves it further.

A reader who knows all other units compares two tables. Where they are neighbors, the odds between them change by a
factor of at most e^epsilon; where one is reached from the other in two steps, by e^(2 epsilon): a unit that is known
to be in the table said one thing or another, which by adding and removing is one step out and one step in. How often
they change more is bounded for questions that are fixed before the release is seen, not for one that is found in it.
Proof in ``proofs/beliefs.md``. All figures are rounded against the promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from margent.errors import UsageError
from margent.privacy.budget import Budget
from margent.schema.fields import PersonUnit, Unit

BEFORE = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
"""How likely a reader thought something before: the rows of a table of beliefs."""

_FURTHER = (1.5, 2, 2.5, 3, 4, 6, 10, 30, 100, 1000, 10_000, 10**6)
_UP = Decimal("1.000000001")  # above the error of the floats that are rounded up here


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader may ask about one unit: in words, and how many neighboring tables lie between the answers."""

    words: str
    steps: int


def questions(unit: Unit, budget: Budget) -> tuple[Question, ...]:
    """What readers may ask about one protected unit, nearest first; whether it was there only where that is protected.

    Privacy: none: options.

    >>> [each.steps for each in questions("row", Budget(1))], len(questions("row", Budget(1, relation="replace")))
    ([1, 2], 1)
    """
    person = isinstance(unit, PersonUnit)
    said = "what all of their rows said" if person else "what it said"
    if budget.relation == "replace":
        return (Question(said, 1),)
    return Question("whether they were in the table" if person else "whether it was in the table", 1), Question(said, 2)


def chance_of_more(budget: Budget, steps: int = 1) -> float:
    """At most how often a release changes the odds between tables so many steps apart by more than e^(steps epsilon).

    The two tables are fixed before the release is seen. Where they are (e, d)-DP and e < x = steps epsilon,
    Pr[loss > x] <= d / (1 - e^(e - x)): the least of some d, and once more e^-x of it for odds that move away from the
    truth. Two steps are (e, d)-DP as one step of a budget of 4 B or 4 rho; where a part of delta is for atoms,
    (2 e, (1 + e^e) d)-DP if one step is (e, d)-DP.

    Privacy: none: a function of the budget, all of it spent. 0 where delta is 0.
    Source: ``proofs/beliefs.md``.
    Raises: UsageError for more than two steps.

    >>> f"{chance_of_more(Budget(1)):.1e}", chance_of_more(Budget(1, accountant="pure"))
    ('1.2e-07', 0.0)
    """
    if steps not in (1, 2):
        raise UsageError(f"a belief is bounded between tables one or two steps apart, not {steps}")
    if budget.delta == 0:
        return 0.0
    least, most = 1.0, float(steps * budget.epsilon)
    for nearer, delta in _curve(budget, steps):
        if nearer < most * (1 - 1e-9):
            least = min(least, delta / -math.expm1(nearer - most))
    return min(1.0, least * (1 + math.exp(-most)) * (1 + 1e-6))


def chance_of_any(budget: Budget, asked: Sequence[Question]) -> float:
    """At most how often a release changes the odds more than it should on one of these questions, fixed beforehand.

    The sum of their chances, so that each factor in a sentence is covered by the one figure beside them.

    Privacy: none: a function of the budget. 0 where delta is 0.
    Source: ``proofs/beliefs.md``.

    >>> f"{chance_of_any(Budget(1), questions('row', Budget(1))):.2e}"
    '2.78e-07'
    """
    return min(1.0, math.fsum(chance_of_more(budget, each.steps) for each in asked) * (1 + 1e-12))


def _curve(budget: Budget, steps: int) -> Iterator[tuple[float, float]]:
    """Some (epsilon, delta) that tables ``steps`` apart satisfy once all of the budget is spent."""
    atoms, account = float(budget.delta_for_atoms), budget.account
    grouped = steps**account.scale_power if atoms == 0 else 1
    for further in _FURTHER:
        delta = (budget.delta - budget.delta_for_atoms) * Fraction(further)
        if delta > Fraction(1, 10):
            return
        epsilon = float(account.epsilon(grouped * budget.total, delta))
        if steps == 1 or atoms == 0:
            yield epsilon, float(delta) + atoms
        elif epsilon < 700:
            yield 2 * epsilon, (1 + math.exp(epsilon)) * (float(delta) + atoms)


def belief_after(before: Fraction, epsilon: Fraction) -> float:
    """The most that a belief of ``before`` can become: p e^eps / (1 - p + p e^eps).

    Privacy: none: arithmetic on options.

    >>> round(belief_after(Fraction(1, 100), Fraction(1)), 4)
    0.0267
    """
    odds = float(before / (1 - before)) * math.exp(min(float(epsilon), 700.0))
    return odds / (1 + odds)


def belief_words(share: Fraction | float) -> str:
    """A probability that is not passed, as a percentage rounded up; never shown as certain.

    >>> belief_words(0.0267), belief_words(0.01638), belief_words(0.9933), belief_words(0.99999)
    ('2.7 %', '1.7 %', '99.4 %', 'above 99.9 %')
    """
    if share > 0.999:
        return "above 99.9 %"
    return f"{_up(Decimal(100 * float(share)), 2 if share < 0.99 else 3).normalize():f} %"


def factor_words(epsilon: Fraction) -> str:
    """e^epsilon to three digits, rounded up; a large one by its exponent.

    >>> factor_words(Fraction(1)), factor_words(Fraction(1, 5)), factor_words(Fraction(10)), factor_words(Fraction(20))
    ('2.72', '1.23', '22,100', 'e^20 (above 400,000)')
    """
    if epsilon > 13:
        return f"e^{number(epsilon)} (above 400,000)"
    return f"{_up(Decimal(math.exp(float(epsilon))), 3).normalize():,f}"


def chance_words(chance: float) -> str:
    """A probability that is not passed, to two digits, rounded up.

    >>> chance_words(1.13e-7)
    '1.2e-07'
    """
    return f"{float(_up(Decimal(chance), 2)):.1e}" if chance < 1e-3 else f"{float(_up(Decimal(chance), 2)):g}"


def number(value: Fraction) -> str:
    """A fraction as a person writes it, at most six digits, rounded up: 1, 0.5, 1e-09.

    >>> number(Fraction(1, 2)), number(Fraction(1, 10**9)), number(Fraction("0.12345611"))
    ('0.5', '1e-09', '0.123457')
    """
    near = f"{float(value):.6g}"
    if Fraction(near) >= value:
        return near
    exact = Context(prec=6, rounding=ROUND_CEILING).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{float(exact):.6g}"


def _up(value: Decimal, digits: int) -> Decimal:
    """The least number of so many digits that is not below a float's value, nor below what the float stands for."""
    near = Context(prec=12).plus(value)
    if Context(prec=digits).plus(near) == near:
        return near  # a short number as it was meant: 50 %, not 51 %
    return Context(prec=digits, rounding=ROUND_CEILING).plus(value * _UP)
