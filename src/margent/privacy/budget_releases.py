"""Whether a budget file accounts for releases: each run is in it at its price or more, and was bought once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from margent.errors import BudgetError
from margent.privacy.budget_chain import Balance


@dataclass(frozen=True, slots=True)
class Released:
    """What a release says it took: its run id, and the sums over its charges of cost and of delta used up itself.

    ``digest``: of its charges and noisy answers, equal for all releases that were drawn from one run's. ``terms``:
    accountant and relation of its charges; a cost in another account's unit compares with nothing.
    """

    run: str
    cost: Fraction
    delta: Fraction = Fraction(0)
    digest: str = ""
    terms: tuple[str, str] | None = None


def require_complete(balances: Mapping[str, Balance], released: Mapping[str, Released]) -> None:
    """Refuse a file that lacks the run of a release, or holds it at a lower price than the release's charges.

    ``released`` gives for each release (in words) what it took. Releases of one run must be of one list of answers:
    it was reserved once.

    Raises: BudgetError naming every such release.
    """
    held: dict[str, Released] = {}
    for entry in (entry for balance in balances.values() for entry in balance.reservations):
        before = held.get(entry.run, Released(entry.run, Fraction(0)))
        held[entry.run] = Released(entry.run, before.cost + entry.cost, before.delta + entry.delta_for_atoms)
    declared = {
        entry.run: (balance.declaration.accountant, balance.declaration.relation)
        for balance in balances.values()
        for entry in balance.reservations
    }
    faults = []
    first: dict[str, str] = {}
    for where, taken in released.items():
        if taken.run not in held:
            faults.append(
                f"  {where}: its run is not in the file. Either it was made without this file (--single-release, or "
                "another file), or this is an older copy of the file, which would spend again what was spent: put "
                "the latest copy back"
            )
        elif taken.terms not in (None, declared[taken.run]):
            faults.append(f"  {where}: its charges are on other terms (accountant, relation) than its run's data set")
        elif taken.cost > held[taken.run].cost:
            faults.append(f"  {where}: its charges add up to more than the file reserved for its run")
        elif taken.delta > held[taken.run].delta:
            faults.append(f"  {where}: its charges use up more delta themselves than the file reserved for its run")
        elif released[first.setdefault(taken.run, where)].digest != taken.digest:
            faults.append(
                f"  {where}: it is of the same run as {first[taken.run]}, and their charges or noisy answers differ. "
                "The run was reserved once and asked twice (its state was copied and went on in two places, or one "
                "release was altered): publish one of them at most"
            )
    if faults:
        raise BudgetError("the budget file does not account for these releases:\n" + "\n".join(faults))
