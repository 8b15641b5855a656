"""A budget that outlives processes: a cap per declared data set, and every run's whole price before its first look.

A run reserves the total of its own budget, in the data set's account. Reserved totals add up to at most the cap's
total, whatever earlier releases made later runs ask: a filter (GDP, zCDP or pure), so all releases together keep
the declared (epsilon, delta). Deltas reserved for atoms add up to at most the part of delta set apart for them.

A release holds a random run id and nothing else of this file. An older copy of the file put back is a whole and
valid file; what gives it away is that it lacks the ids of releases made since (`margent.privacy.budget_releases`).

A run that keeps its state, which could be copied, also writes each look at rows here before it looks: of all copies
of a state one goes on (`look`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from margent.errors import BudgetError, UsageError
from margent.privacy import budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import Balance, Declaration, Look, Reservation
from margent.privacy.budget_rest import percent, refused
from margent.privacy.budget_terms import (
    checked_unit,
    declaration_faults,
    other_column,
    require_same_terms,
    unit_field,
)
from margent.privacy.statement import exact

if TYPE_CHECKING:
    from margent.privacy.neighbors import Relation
    from margent.privacy.statement import Numeral
    from margent.schema.fields import Unit


@dataclass(frozen=True, init=False)
class BudgetFile:
    """One data set's budget in a file; ``data_set`` may be left out where the file declares only one.

    A *data set* is a name for the people in it: later versions of the same people's table keep the name. Nothing is
    compared with any table's content; that the name is the right one is the operator's word.

    >>> BudgetFile("people.budget", "registry")
    BudgetFile(path=PosixPath('people.budget'), data_set='registry')
    """

    path: Path
    data_set: str | None = None

    def __init__(self, path: str | Path, data_set: str | None = None) -> None:
        if not isinstance(path, str | Path):
            raise UsageError(f"a budget file is a path, not {type(path).__name__}")
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "data_set", data_set)

    def init(self, cap: Budget, *, unit: str = "row") -> Declaration:
        """Declare the data set for ever: relation, accountant, epsilon, delta and its part for atoms from ``cap``.

        Makes the file (readable by its owner alone) or adds to it. ``unit`` is "row" or "person:k".

        Raises: UsageError listing all faults of name, unit and terms (`declaration_faults`), or when it is declared
            already; BudgetError when ``path`` is another file. Nothing is then written.
        """
        if faults := declaration_faults(self.data_set, unit, cap):
            raise UsageError("\n".join(faults))
        entry = Declaration(
            data_set=str(self.data_set),
            relation=cap.relation,
            unit=checked_unit(unit),
            accountant=cap.accountant,
            epsilon=cap.epsilon,
            delta=cap.delta,
            delta_for_atoms=cap.delta_for_atoms,
            total=cap.total,
            when=_now(),
            margent=_version(),
        )
        budget_store.declare(self.path, entry)
        return entry

    def named(self) -> BudgetFile:
        """The same with the data set's name, where it was left out: what else the file may declare meanwhile.

        Raises: as `balance`.
        """
        return self if self.data_set is not None else BudgetFile(self.path, self.balance().declaration.data_set)

    def balances(self) -> Mapping[str, Balance]:
        """All data sets of the file in the order of their declaration; the whole file is checked.

        Raises: BudgetError when it is no budget file, or not as it was written.
        """
        return budget_store.read(self.path)[0]

    def balance(self) -> Balance:
        """This data set's balance; the whole file is checked.

        Raises: BudgetError as `balances`, or when it has no such data set; UsageError when it must be named.
        """
        found = self.balances()
        names = ", ".join(repr(name) for name in found)
        if self.data_set is None:
            if len(found) != 1:
                raise UsageError(f"{self.path}: say which data set (--data-set); it declares {names}")
            return next(iter(found.values()))
        if self.data_set not in found:
            raise BudgetError(f"{self.path}: no data set {self.data_set!r} is declared in it; it declares {names}")
        return found[self.data_set]

    def budget(
        self,
        epsilon: Numeral | None,
        delta: Numeral | None = None,
        *,
        accountant: str | None = None,
        delta_for_atoms: Numeral = 0,
    ) -> Budget:
        """A run's budget on the data set's terms.

        ``delta`` defaults to what noise is priced at in the cap plus ``delta_for_atoms``, the run's own part for
        selecting values from the data (0 unless given; all of it is taken from the data set's part, used or not).

        Raises: as `balance` and `Budget`.
        """
        terms = self.balance().declaration
        if delta is None:
            part = exact(delta_for_atoms, "the part of delta for atoms")
            if terms.delta > 0:  # with delta 0 the part has nothing to come from, which `Budget` says
                delta = terms.delta - terms.delta_for_atoms + part
        return Budget(
            epsilon,
            delta,
            accountant or terms.accountant,
            cast("Relation", terms.relation),
            delta_for_atoms=delta_for_atoms,
        )

    def reserve(self, budget: Budget, unit: Unit, run: str) -> Balance:
        """Reserve all of ``budget`` under the id ``run``, or nothing; on disk, for good, when this returns.

        ``unit`` is the schema's: "row", or a `PersonUnit`, whose column holds for all runs of the data set. ``run``:
        32 random hexadecimal digits, new to the file.

        Units: what is reserved is ``budget.total`` in the account's unit, and ``budget.delta_for_atoms``.
        Privacy: must be called before the run's first look at rows.
        Raises: BudgetError when the run is of another relation, unit or accountant, tells persons apart by another
            column, or passes the cap (with what is left and which epsilon would fit); nothing is then charged.
        """
        before = self.balance()
        require_same_terms(before, budget, unit)
        try:
            return budget_store.reserve(self.path, _reservation(before, budget, unit, run, budget.total))
        except budget_store.CapReachedError as refusal:
            raise BudgetError(refused(refusal.balance, budget)) from None
        except budget_store.OtherUnitError as refusal:  # two first runs at once
            raise BudgetError(f"nothing was charged: {other_column(str(unit_field(unit)), refusal.recorded)}") from None

    def reserve_again(self, budget: Budget, unit: Unit, run: str) -> Balance:
        """Reserve what ``budget`` is above what ``run`` has reserved already, or nothing; twice is as good as once.

        ``budget`` is the run's own and, on top, what its lost answers cost (`margent.resume`).

        Privacy: must be called before an interrupted run looks at rows again.
        Raises: BudgetError as `reserve`, or where the file does not know the run: it is an older copy, or another file.
        """
        before = self.balance()
        require_same_terms(before, budget, unit)
        held = before.of_run(run)
        if not held:
            raise BudgetError(budget_store.not_in_it(self.path))
        cost = budget.total - sum((entry.cost for entry in held), Fraction(0))
        atoms = budget.delta_for_atoms - sum((entry.delta_for_atoms for entry in held), Fraction(0))
        if cost <= 0 and atoms <= 0:
            return before
        wanted = _reservation(before, budget, unit, run, max(cost, Fraction(0)))
        try:
            return budget_store.reserve(
                self.path, replace(wanted, kind="again", delta_for_atoms=max(atoms, Fraction(0)))
            )
        except budget_store.CapReachedError as refusal:
            terms, left = before.declaration, refusal.balance
            raise BudgetError(
                f"nothing more was charged: to buy the lost answers anew takes {percent(cost, terms.total)} % of the "
                f"cap of {terms.data_set!r}, and {percent(left.left, terms.total)} % is left. The run cannot be "
                "finished, and what it reserved stays spent"
            ) from None

    def unlooked(self, run: str, marks: Sequence[str]) -> int:
        """How many of the calls that a resumed run's state holds the file has not been told: 0, or 1 that was cut off.

        ``marks``: those of all calls in the state, in order. A call that the file was not told had no look.

        Privacy: must be called before an interrupted run goes on.
        Raises: BudgetError where another copy of the state went on, or the state or the file is an older copy.
        """
        balance = self.balance()
        if marks and not balance.of_run(run):
            raise BudgetError(budget_store.not_in_it(self.path))
        known = balance.looks.get(run)
        count = 0 if known is None else known.calls
        told = count if len(marks) == count + 1 else len(marks)
        budget_store.require_last(self.path, known, told, marks[told - 1] if told else "")
        return len(marks) - told

    def look(self, run: str, marks: Sequence[str]) -> None:
        """Write that ``run`` is about to look at rows for the call that bears the last of ``marks``; on disk on return.

        ``marks``: those of all calls in the run's state. Of all copies of a state one can: compare and swap.

        Privacy: must be called between a call's charge and its look, where the run keeps its state.
        Raises: BudgetError where the file's last look of this run is not the call before; there must be no look then.
        """
        before = marks[-2] if len(marks) > 1 else ""
        wanted = Look(
            data_set=str(self.named().data_set),
            run=run,
            calls=len(marks),
            mark=marks[-1],
            spent=Fraction(0),
            delta_spent=Fraction(0),
            when=_now(),
            margent=_version(),
        )
        budget_store.look(self.path, wanted, before)


def _reservation(before: Balance, budget: Budget, unit: Unit, run: str, cost: Fraction) -> Reservation:
    """An entry of a run; the store fills in the sums."""
    return Reservation(
        data_set=before.declaration.data_set,
        run=run,
        epsilon=budget.epsilon,
        delta=budget.delta,
        delta_for_atoms=budget.delta_for_atoms,
        cost=cost,
        spent=Fraction(0),
        delta_spent=Fraction(0),
        when=_now(),
        margent=_version(),
        unit_field=unit_field(unit),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version() -> str:
    from margent.version import VERSION

    return VERSION
