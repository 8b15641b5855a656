"""The ledger: all or none, never past the total, append-only, safe among threads."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import pickle
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from margent.errors import BudgetError
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.ledger import Ledger
from tests.sizes import rounds

BUDGET = Budget(1)
PURE = Budget(1, accountant="pure")
SEQUENCES = rounds(2_000, 100_000)


def gaussian(s2: int = 10_000, budget: Budget = BUDGET, **changes: object) -> Charge:
    charge = Charge(
        label="one-way tables",
        query="marginal",
        cliques=(("age",),),
        mechanism="discrete-gaussian",
        relation=budget.relation,
        sensitivity_squared=Fraction(1),
        scale_squared=Fraction(s2),
        account=budget.accountant,
        cost=budget.account.gaussian_cost(Fraction(1), Fraction(s2)),
    )
    return dataclasses.replace(charge, **changes)  # type: ignore[arg-type]


def laplace(cost: Fraction) -> Charge:
    return Charge(
        label="counts",
        query="marginal",
        cliques=(("age",),),
        mechanism="discrete-laplace",
        relation="add-remove",
        sensitivity_squared=Fraction(1),
        scale_squared=(1 / cost) ** 2,
        account="pure",
        cost=cost,
    )


WIDE = {name: gaussian(10**12, Budget(1, accountant=name)) for name in ("gdp", "zcdp")}
"""Noise so wide that any price used below is above its own."""


def test_spending_appends_in_order() -> None:
    ledger = Ledger(BUDGET)
    first, second, third = gaussian(), gaussian(20_000), gaussian(40_000)
    assert ledger.spend([first, second]) == range(2)
    assert ledger.spend([third]) == range(2, 3)
    assert ledger.spend([]) == range(3, 3)
    assert ledger.charges == (first, second, third)
    assert ledger.spent == first.cost + second.cost + third.cost
    assert ledger.left == BUDGET.total - ledger.spent
    assert ledger.budget is BUDGET


def test_the_last_fraction_can_be_spent_and_not_one_part_in_10_to_the_40_more() -> None:
    ledger = Ledger(PURE)
    ledger.spend([laplace(Fraction(1, 3))] * 2)
    with pytest.raises(
        BudgetError, match=r"nothing was charged: this costs 0\.333333, and 0\.333333 of the budget's 1"
    ):
        ledger.spend([laplace(Fraction(1, 3) + Fraction(1, 10**40))])
    ledger.spend([laplace(Fraction(1, 3))])
    assert ledger.left == 0
    with pytest.raises(BudgetError):
        ledger.spend([laplace(Fraction(1, 10**40))])


def test_all_or_none() -> None:
    ledger = Ledger(PURE)
    ledger.spend([laplace(Fraction(1, 2))])
    before = (ledger.charges, ledger.spent)
    with pytest.raises(BudgetError):
        ledger.spend([laplace(Fraction(1, 3)), laplace(Fraction(1, 3))])
    with pytest.raises(BudgetError):
        ledger.spend([laplace(Fraction(1, 3)), dataclasses.replace(laplace(Fraction(1, 3)), cost=Fraction(-1))])
    assert (ledger.charges, ledger.spent) == before


class FractionLookalike(Fraction):
    """Compares as nothing at all, like NaN."""

    def __gt__(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __ge__ = __gt__


@pytest.mark.parametrize(
    "cost",
    [
        Fraction(0),
        Fraction(-5),
        0.001,
        float("nan"),
        float("inf"),
        True,
        1,
        "1/1000",
        None,
        FractionLookalike(1, 1000),
    ],
    ids=repr,
)
def test_costs_that_are_not_exact_and_positive_are_refused(cost: object) -> None:
    ledger = Ledger(BUDGET)
    with pytest.raises(BudgetError, match="its cost must be an exact Fraction above 0"):
        ledger.spend([gaussian(cost=cost)])
    assert ledger.charges == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"account": "zcdp"},
            "priced by accountant 'zcdp', the budget's is 'gdp': price it with budget.account",
        ),
        ({"relation": "replace"}, "relation 'replace', the budget's is 'add-remove'"),
        ({"person_rows": 2}, "is for at most 2 rows of a person, the budget for single records"),
        ({"delta": Fraction(1, 10**12)}, "uses up delta 1e-12 itself"),
        ({"delta": Fraction(-1)}, "uses up delta -1 itself"),
        ({"delta": 0.0}, "uses up delta 0.0 itself"),
        ({"delta": float("nan")}, "uses up delta nan itself"),
        ({"mechanism": "gauss"}, "unknown mechanism 'gauss'"),
        ({"sensitivity_squared": 1.0}, "squared sensitivity must be a Fraction above 0, not 1.0"),
        ({"scale_squared": None}, "squared noise scale must be a Fraction above 0, not None"),
        ({"scale_squared": Fraction(0)}, "squared noise scale must be a Fraction above 0, not 0"),
        ({"mechanism": "exponential"}, "an exponential mechanism has no noise scale"),
        ({"cost": Fraction(1, 20_001)}, "less than Gaussian noise can: price it with budget.account"),
    ],
)
def test_charges_that_do_not_belong_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        Ledger(BUDGET).spend([gaussian(**changes)])  # type: ignore[arg-type]


def test_all_faults_of_all_charges_come_at_once() -> None:
    wrong = gaussian(account="zcdp", relation="replace", cost=Fraction(-1))
    with pytest.raises(BudgetError) as caught:
        Ledger(BUDGET).spend([gaussian(), wrong, "a charge"])  # type: ignore[list-item]
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert lines[1].startswith("  charge 1 (one-way tables): is priced by")
    assert lines[4] == "  charge 2 (?): is not a Charge"


def choice(cost: Fraction, **changes: object) -> Charge:
    """One choice at epsilon 1/10 among one candidate, in the zcdp account."""
    facts: dict[str, object] = {"epsilon": Fraction(1, 10), "scale_squared": None}
    return gaussian(account="zcdp", mechanism="exponential", cost=cost, **(facts | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": None}, "epsilon of a choice must be a Fraction above 0"),
        ({"epsilon": Fraction(11, 100)}, "less than its choices can"),
        ({"choices": 2}, "from 1 to its 1 candidates"),
        ({"choices": 0}, "from 1 to its 1 candidates"),
        ({"choices": 2, "cliques": (("a",), ("b",))}, "less than its choices can"),
        ({"scale_squared": Fraction(1)}, "no noise scale"),
    ],
)
def test_choices_below_their_price_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        Ledger(Budget(1, accountant="zcdp")).spend([choice(Fraction(1, 800), **changes)])


def test_laplace_noise_below_its_price_is_refused() -> None:
    right = laplace(Fraction(1, 3))
    with pytest.raises(BudgetError, match="less than Laplace noise can"):
        Ledger(PURE).spend([dataclasses.replace(right, cost=Fraction(333, 1000))])
    with pytest.raises(BudgetError, match="squares of fractions"):
        Ledger(PURE).spend([dataclasses.replace(right, scale_squared=Fraction(10))])


def test_a_pure_ledger_takes_no_gaussian_noise() -> None:
    with pytest.raises(BudgetError, match="no budget with delta 0 can pay for"):
        Ledger(PURE).spend([gaussian(account="pure", cost=Fraction(1, 2))])


def test_exponential_charges_pass() -> None:
    ledger = Ledger(Budget(1, accountant="zcdp"))
    cost = ledger.budget.account.exponential_cost(Fraction(1, 10))
    ledger.spend([choice(cost)])
    assert ledger.spent == Fraction(1, 800)


def test_a_huge_price_is_a_refusal_not_a_crash() -> None:
    with pytest.raises(BudgetError, match="this costs a number beyond 1e308"):
        Ledger(BUDGET).spend([gaussian(cost=Fraction(10**400))])


def test_deltas_of_charges_are_taken_from_the_part_set_apart() -> None:
    budget = Budget(1, "1e-9", delta_for_atoms="3e-10")
    ledger = Ledger(budget)
    own = gaussian(budget=budget, delta=Fraction(1, 10**10))
    ledger.spend([own, own])
    assert (ledger.delta_spent, ledger.delta_left) == (Fraction(2, 10**10), Fraction(1, 10**10))
    with pytest.raises(
        BudgetError, match="uses up delta 2e-10 itself, and 1e-10 of the 3e-10 set apart for that is left"
    ):
        ledger.spend([own, own])
    with pytest.raises(BudgetError, match="this costs"):
        ledger.spend([dataclasses.replace(own, cost=Fraction(1))])
    assert (len(ledger.charges), ledger.delta_left) == (2, Fraction(1, 10**10))
    ledger.spend([own])
    ledger.spend([gaussian(budget=budget)])
    assert ledger.delta_left == 0
    with pytest.raises(BudgetError, match="uses up delta 1e-300 itself"):
        ledger.spend([dataclasses.replace(own, delta=Fraction(1, 10**300))])


def test_ledgers_are_not_copied() -> None:
    ledger = Ledger(BUDGET)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            duplicate(ledger)


def test_charges_are_immutable() -> None:
    ledger = Ledger(BUDGET)
    ledger.spend([gaussian()])
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.charges[0].cost = Fraction(0)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ledger.spent = Fraction(0)  # type: ignore[misc]


class SlowFraction(Fraction):
    """Gives other threads time between reading what was spent and acting on it."""

    def __sub__(self, other: object) -> Fraction:
        time.sleep(1e-4)
        return Fraction(self) - other  # type: ignore[operator, no-any-return]


def paid_by_threads(ledger: Ledger) -> list[range]:
    """The places won when 16 threads attempt 300 charges of 1/100."""
    ledger._total = SlowFraction(1)

    def attempt(_: int) -> range | None:
        try:
            return ledger.spend([laplace(Fraction(1, 100))])
        except BudgetError:
            return None

    with ThreadPoolExecutor(16) as pool:
        return [place for place in pool.map(attempt, range(300)) if place is not None]


def test_threads_together_spend_the_total_exactly() -> None:
    ledger = Ledger(PURE)
    places = paid_by_threads(ledger)
    assert ledger.spent == 1
    assert sorted(place.start for place in places) == list(range(100))
    assert len(ledger.charges) == 100


class MeetingFraction(Fraction):
    """Holds a thread that has read what was spent until a second one has read it too, or for half a second."""

    meeting: threading.Barrier

    def __sub__(self, other: object) -> Fraction:
        with contextlib.suppress(threading.BrokenBarrierError):
            self.meeting.wait(timeout=0.5)
        return Fraction(self) - other  # type: ignore[operator, no-any-return]


def paid_by_two_at_once(ledger: Ledger) -> int:
    """How many of two threads win the whole total when both read what is left before either acts, if they can."""
    ledger._total = MeetingFraction(1)
    ledger._total.meeting = threading.Barrier(2)

    def attempt(_: int) -> int:
        try:
            return len(ledger.spend([laplace(Fraction(1))]))
        except BudgetError:
            return 0

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(attempt, range(2)))


def test_planted_bug_without_the_lock_threads_overspend() -> None:
    assert paid_by_two_at_once(Ledger(PURE)) == 1
    ledger = Ledger(PURE)
    ledger._lock = contextlib.nullcontext()  # type: ignore[assignment]
    assert paid_by_two_at_once(ledger) == 2


class LedgerModel(RuleBasedStateMachine):
    """Any sequence of batches, good and bad, against plain rational sums."""

    @initialize()
    def open(self) -> None:
        self.ledger = Ledger(PURE)
        self.written: list[Charge] = []

    @rule(costs=st.lists(st.fractions(Fraction(1, 500), Fraction(1, 2), max_denominator=500), max_size=5))
    def spend(self, costs: list[Fraction]) -> None:
        batch = [laplace(cost) for cost in costs]
        if sum(costs) + sum(charge.cost for charge in self.written) <= 1:
            assert self.ledger.spend(batch) == range(len(self.written), len(self.written) + len(batch))
            self.written += batch
        else:
            with pytest.raises(BudgetError):
                self.ledger.spend(batch)

    @rule(bad=st.sampled_from([Fraction(-1, 2), Fraction(0), float("nan"), -5.0, True, float("-inf")]))
    def spend_nonsense(self, bad: object) -> None:
        nonsense = dataclasses.replace(laplace(Fraction(1, 1000)), cost=bad)  # type: ignore[arg-type]
        with pytest.raises(BudgetError):
            self.ledger.spend([laplace(Fraction(1, 1000)), nonsense])

    @invariant()
    def agrees(self) -> None:
        assert self.ledger.charges == tuple(self.written)
        assert self.ledger.spent == sum((charge.cost for charge in self.written), Fraction(0))
        assert 0 <= self.ledger.left == 1 - self.ledger.spent


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_random_sequences_against_plain_sums() -> None:
    """All three accounts, with and without delta of their own: 10^5 sequences under audit, 2,000 otherwise."""
    rng = random.Random(20_240)
    budgets = [PURE, *(Budget(1, "1e-9", name, delta_for_atoms="5e-10") for name in ("gdp", "zcdp"))]
    for _ in range(SEQUENCES):
        budget = rng.choice(budgets)
        most_delta = budget.delta_for_atoms
        ledger, spent, delta, paid = Ledger(budget), Fraction(0), Fraction(0), 0
        for _ in range(6):
            costs = [budget.total * Fraction(1, rng.randint(1, 60)) for _ in range(rng.randint(1, 3))]
            own = [most_delta * rng.choice([0, 0, Fraction(1, 3), Fraction(1, rng.randint(1, 9))]) for _ in costs]
            batch = [
                laplace(cost) if budget is PURE else dataclasses.replace(WIDE[budget.accountant], cost=cost, delta=part)
                for cost, part in zip(costs, own, strict=True)
            ]
            try:
                ledger.spend(batch)
            except BudgetError:
                assert spent + sum(costs) > budget.total or delta + sum(own) > most_delta
            else:
                spent, delta, paid = spent + sum(costs), delta + sum(own), paid + len(batch)
                assert spent <= budget.total
                assert delta <= most_delta
        assert (ledger.spent, ledger.delta_spent, len(ledger.charges)) == (spent, delta, paid)
