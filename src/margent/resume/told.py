"""What an interrupted run has charged, in words; from its state alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from margent.resume.facts import covering
from margent.resume.journal import Journal

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.resume.state import RunState


@dataclass(frozen=True)
class Told:
    """``sentences`` for a person; ``lost``: whether the last question's answer is lost."""

    sentences: tuple[str, ...]
    lost: bool


def run_of(state: RunState) -> str:
    """The random id of the run whose state this is.

    Privacy: a release holds the same id.
    Raises: UsageError where the state is in use or damaged.
    """
    journal = Journal.opened(state.folder)
    try:
        return journal.run
    finally:
        journal.close()


def told(state: RunState, budget: Budget) -> Told:
    """What the run whose state this is has charged of ``budget``, what is kept and what was lost.

    Privacy: charges are public.
    Raises: UsageError where the state is in use or damaged.
    """
    journal = Journal.opened(state.folder)
    try:
        calls = journal.calls()
    finally:
        journal.close()
    charges = [charge for call in calls for charge in call.charges]
    spent = sum((charge.cost for charge in charges), Fraction(0))
    share = 100 * float(spent / budget.total)
    kept = sum(len(call.charges) for call in calls if call.answered)
    lines = [
        f"Charged so far: {share:.4g} % of the run's budget, for {len(charges)} answers; {kept} of them are kept in "
        f"{state.folder}, which only you can read, and are not paid again."
    ]
    lost = bool(calls) and not calls[-1].answered
    if lost:
        gone = [charge for call in calls if not call.answered for charge in call.charges]
        whole = covering(budget.protecting(charges[0].person_rows), gone)
        cost = 100 * float(sum(charge.cost for charge in calls[-1].charges) / budget.total)
        lines.append(
            f"The last question ({cost:.4g} % of the run's budget) was charged and its answer is lost: it stays spent. "
            f"Bought anew (--pay-again), the release's epsilon is {float(whole.epsilon):.6g} instead of "
            f"{float(budget.epsilon):.6g}."
        )
    return Told(tuple(lines), lost)
