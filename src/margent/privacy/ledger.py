"""The ledger: an append-only list of charges that can never add up to more than its budget's total.

Two-phase: a caller that wants answers has all of their charges checked and written first, and looks at the
data afterwards. Nothing is ever refunded: a charge whose answer was lost stays spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, NoReturn, get_args

from margent.errors import BudgetError, UsageError
from margent.privacy.accounting import ACCOUNT_NAMES, account_named
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge, Mechanism
from margent.privacy.laws import exact_root
from margent.privacy.statement import EPSILON_LIMITS, shown

if TYPE_CHECKING:
    from margent.transcript import Transcript

MOST_EPSILONS = 4096
"""Different epsilons of choices and Laplace noise whose prices are worked out for a reader: the GDP account takes half
a millisecond for each, and a file from elsewhere could state hundreds of thousands. The methods take one a run."""


class Ledger:
    """sum of costs <= budget.total and sum of deltas <= budget.delta_for_atoms, after every call and on every path.

    That holds whoever calls from whichever thread. Where answers were lost and paid again, each bound is larger by what
    was paid again.

    Units: costs, ``spent`` and ``left`` are in the budget's account: mu^2/2, rho or epsilon.
    Privacy: these sums are the promise. For costs fixed as they come (chosen from earlier noisy answers) the first
    is a GDP, zCDP or pure filter, which keeps (epsilon, delta - delta_for_atoms); the deltas that charges use up
    themselves add to that.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        journal: Callable[[Sequence[Charge]], None] | None = None,
        carried: Sequence[Charge] = (),
        lost: Sequence[Charge] = (),
    ) -> None:
        """Open a ledger under ``budget``, empty but for the charges ``carried`` over from before an interruption.

        ``journal`` is given all charges of a call before they stand here, and returns once they are on disk. ``lost``
        are those of ``carried`` whose answers were lost: they stay spent, and what they cost was paid again on top of
        the budget (`margent.resume`).
        """
        self._budget = budget
        self._total = budget.total + sum((charge.cost for charge in lost), Fraction(0))
        self._delta_total = budget.delta_for_atoms + sum((charge.delta for charge in lost), Fraction(0))
        self._charges: tuple[Charge, ...] = ()
        self._spent = Fraction(0)
        self._delta_spent = Fraction(0)
        self._lock = Lock()
        self._journal: Callable[[Sequence[Charge]], None] | None = None
        self.spend(carried)
        self._journal = journal

    @property
    def budget(self) -> Budget:
        """The budget this ledger keeps."""
        return self._budget

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges in the order they were written."""
        return self._charges

    @property
    def spent(self) -> Fraction:
        """The sum of all costs so far, exactly."""
        return self._spent

    @property
    def left(self) -> Fraction:
        """What may still be spent, exactly; never negative."""
        return self._total - self._spent

    @property
    def delta_spent(self) -> Fraction:
        """The sum of the deltas that charges used up themselves, exactly."""
        return self._delta_spent

    @property
    def delta_left(self) -> Fraction:
        """What is left of the part of delta set apart for that, exactly; never negative."""
        return self._delta_total - self._delta_spent

    def spend(self, charges: Sequence[Charge]) -> range:
        """Write all of ``charges``, or none of them: the places in `charges` where they stand.

        Raises: BudgetError listing every fault, or the sum that passes what is left; nothing is then written.
        """
        wanted = tuple(charges)
        faults = [
            f"charge {place} ({getattr(charge, 'label', '?')}): {fault}"
            for place, charge in enumerate(wanted)
            for fault in self._faults(charge)
        ]
        if faults:
            raise BudgetError("nothing was charged:\n" + "\n".join(f"  {fault}" for fault in faults))
        cost = sum((charge.cost for charge in wanted), Fraction(0))
        delta = sum((charge.delta for charge in wanted), Fraction(0))
        with self._lock:
            if cost > self.left:
                raise BudgetError(
                    f"nothing was charged: this costs {shown(cost)}, and {shown(self.left)} of the budget's "
                    f"{shown(self._total)} is left: ask for less, or for noisier answers"
                )
            if delta > self.delta_left:
                raise BudgetError(
                    f"nothing was charged: this uses up delta {shown(delta)} itself, and {shown(self.delta_left)} of "
                    f"the {shown(self._delta_total)} set apart for that is left: ask for less, or set more "
                    "of delta apart"
                )
            if self._journal is not None and wanted:
                self._journal(wanted)  # where this fails nobody looks, and at worst too much is held as spent
            first = len(self._charges)
            self._charges += wanted
            self._spent += cost
            self._delta_spent += delta
        return range(first, first + len(wanted))

    def takes(self, charge: Charge) -> bool:
        """Whether a charge is on the budget's terms and its price no lower than due; whether it fits is not asked."""
        return next(self._faults(charge), None) is None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Never copied nor pickled: two copies would each spend the budget."""
        raise TypeError("a ledger cannot be copied or pickled: pass the ledger itself")

    def _faults(self, charge: Charge) -> Iterator[str]:
        if type(charge) is not Charge:
            yield "is not a Charge"
            return
        if charge.account != self._budget.accountant:
            yield (
                f"is priced by accountant {charge.account!r}, the budget's is {self._budget.accountant!r}: "
                "price it with budget.account"
            )
        if charge.relation != self._budget.relation:
            yield f"is for the relation {charge.relation!r}, the budget's is {self._budget.relation!r}"
        elif charge.person_rows != self._budget.person_rows:
            yield f"is for {_unit(charge.person_rows)}, the budget for {_unit(self._budget.person_rows)}"
        if not _exact_positive(charge.cost):
            yield f"its cost must be an exact Fraction above 0, not {shown(charge.cost)}"
        elif fault := _mechanism_fault(charge):
            yield fault
        if type(charge.delta) is not Fraction or charge.delta < 0:
            yield f"uses up delta {shown(charge.delta)} itself, which is no exact Fraction of at least 0"
        elif charge.delta > 0 == self._budget.delta_for_atoms:
            yield f"uses up delta {shown(charge.delta)} itself, and none of the budget's is set apart for it"


def require_paid(transcript: Transcript, budget: Budget) -> None:
    """Refuse to state ``budget`` for answers that it cannot have paid for: they cost more, or on other terms.

    Every price is computed anew from the charge's noise and sensitivity, in a time that no forger can set.

    Privacy: none: charges are public.
    Raises: BudgetError with the next step.
    """
    ledger = Ledger(budget)
    _require_few_epsilons(transcript.charges, budget)
    # The sums come first, and the first fault is the last: prices take time, and a forger may state any number of them.
    paid = transcript.spent <= budget.total and transcript.delta_spent <= budget.delta_for_atoms
    if not (paid and all(ledger.takes(charge) for charge in transcript.charges)):
        raise BudgetError(
            "the noisy answers were not bought with this budget: they cost more, or were priced between other "
            "neighbors or by another accountant; give the one they were bought with (margent.read_release returns it)"
        )


def _require_few_epsilons(charges: Sequence[Charge], budget: Budget) -> None:
    found = set()
    for charge in charges if budget.accountant == "gdp" else ():
        if charge.mechanism != "discrete-gaussian":
            found.add((charge.epsilon, charge.sensitivity_squared, charge.scale_squared))
            if len(found) > MOST_EPSILONS:
                raise BudgetError(
                    f"the noisy answers were bought at more than {MOST_EPSILONS:,} different epsilons, whose prices "
                    "would take too long to check, and no method does that: get the release again from whoever made it"
                )


def _unit(person_rows: object) -> str:
    return "single records" if person_rows is None else f"at most {person_rows!r} rows of a person"


def _exact_positive(value: object) -> bool:
    # Only Fraction passes: no float (so no NaN and no infinity), no bool, no lookalike.
    return type(value) is Fraction and value > 0


def _mechanism_fault(charge: Charge) -> str | None:
    """What is wrong with the mechanism's own figures: among them a price below what its account asks for them."""
    if charge.mechanism not in get_args(Mechanism):
        return f"names an unknown mechanism {charge.mechanism!r}"
    if not _exact_positive(charge.sensitivity_squared):
        return f"its squared sensitivity must be a Fraction above 0, not {shown(charge.sensitivity_squared)}"
    if charge.account not in ACCOUNT_NAMES:
        return None  # which is a fault already
    if charge.mechanism == "exponential":
        return _choice_fault(charge)
    if charge.scale_squared is None or not _exact_positive(charge.scale_squared):
        return f"its squared noise scale must be a Fraction above 0, not {shown(charge.scale_squared)}"
    if charge.mechanism == "discrete-gaussian" and charge.account == "pure":
        return "is Gaussian noise, which no budget with delta 0 can pay for"
    if charge.mechanism == "discrete-gaussian":
        return _gaussian_fault(charge)
    try:
        sensitivity, scale = exact_root(charge.sensitivity_squared), exact_root(charge.scale_squared)
    except ValueError:
        return "its squared L1 sensitivity and scale must be squares of fractions"
    if fault := _beyond(sensitivity / scale):
        return fault
    if charge.cost < account_named(charge.account).laplace_cost(sensitivity, scale):
        return f"costs {shown(charge.cost)}, less than Laplace noise can: price it with budget.account"
    return None


def _gaussian_fault(charge: Charge) -> str | None:
    assert charge.scale_squared is not None
    fault = f"costs {shown(charge.cost)}, less than Gaussian noise can: price it with budget.account"
    # No account's price is lower, and most that are too low are told by this alone.
    if charge.cost < charge.sensitivity_squared / (2 * charge.scale_squared):
        return fault
    try:
        due = account_named(charge.account).gaussian_cost(charge.sensitivity_squared, charge.scale_squared)
    except UsageError as refusal:
        return f"has no price: {refusal}"
    return fault if charge.cost < due else None


def _beyond(epsilon: Fraction) -> str | None:
    """What is wrong with an epsilon that no budget has, before its price is worked out."""
    return None if epsilon <= EPSILON_LIMITS[1] else f"is of epsilon {shown(epsilon)}, more than any budget can be"


def _choice_fault(charge: Charge) -> str | None:
    if charge.scale_squared is not None:
        return "an exponential mechanism has no noise scale"
    if charge.epsilon is None or not _exact_positive(charge.epsilon):
        return f"the epsilon of a choice must be a Fraction above 0, not {shown(charge.epsilon)}"
    if fault := _beyond(charge.epsilon):
        return fault
    if type(charge.choices) is not int or not 1 <= charge.choices <= len(charge.cliques):
        return f"its choices must be a whole number from 1 to its {len(charge.cliques)} candidates"
    if charge.cost < charge.choices * account_named(charge.account).exponential_cost(charge.epsilon):
        return f"costs {shown(charge.cost)}, less than its choices can: price it with budget.account"
    return None
