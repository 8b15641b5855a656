"""A budget that outlives processes: a cap per declared data set, and every run's whole price before its first look.

A run reserves the total of its own budget, in the data set's account. Reserved totals add up to at most the cap's
total, whatever earlier releases made later runs ask: a filter (GDP, zCDP or pure), so all releases together keep
the declared (epsilon, delta). Deltas reserved for atoms add up to at most the part of delta set apart for them.

A release holds a random run id and nothing else of this file. An older copy of the file put back is a whole and
valid file; what gives it away is that it lacks the ids of releases made since (`require_complete`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from margent.errors import BudgetError, UsageError
from margent.privacy import budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_chain import Balance, Declaration, Reservation, plain_name
from margent.privacy.budget_rest import percent, refused
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

    def reserve(self, budget: Budget, unit: str, run: str) -> Balance:
        """Reserve all of ``budget`` under the id ``run``, or nothing; on disk, for good, when this returns.

        Units: what is reserved is ``budget.total`` in the account's unit, and ``budget.delta_for_atoms``.
        Privacy: must be called before the run's first look at rows.
        Raises: BudgetError when the run is of another relation, unit or accountant, or passes the cap (with what is
            left and which epsilon would fit); nothing is then charged.
        """
        before = self.balance()
        require_same_terms(before.declaration, budget, unit)
        try:
            return budget_store.reserve(self.path, _reservation(before, budget, run, budget.total))
        except budget_store.CapReachedError as refusal:
            raise BudgetError(refused(refusal.balance, budget)) from None

    def reserve_again(self, budget: Budget, unit: str, run: str) -> Balance:
        """Reserve what ``budget`` is above what ``run`` has reserved already, or nothing; twice is as good as once.

        ``budget`` is the run's own and, on top, what its lost answers cost (`margent.resume`).

        Privacy: must be called before an interrupted run looks at rows again.
        Raises: BudgetError as `reserve`, or where the file does not know the run: it is an older copy, or another file.
        """
        before = self.balance()
        require_same_terms(before.declaration, budget, unit)
        held = before.of_run(run)
        if not held:
            raise BudgetError(
                f"{self.path}: the interrupted run is not in it: it was begun with another file, or this is an older "
                "copy of the file, which would spend again what was spent: put the latest copy back"
            )
        cost = budget.total - sum((entry.cost for entry in held), Fraction(0))
        atoms = budget.delta_for_atoms - sum((entry.delta_for_atoms for entry in held), Fraction(0))
        if cost <= 0 and atoms <= 0:
            return before
        wanted = _reservation(before, budget, run, max(cost, Fraction(0)))
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


def _reservation(before: Balance, budget: Budget, run: str, cost: Fraction) -> Reservation:
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
    )


def require_same_terms(terms: Declaration, budget: Budget, unit: str) -> None:
    """Refuse a run whose neighbors, protected unit or accountant are not the declared ones: costs would not add.

    Raises: BudgetError listing all differences.
    """
    faults = [
        f"  {what}: the run's is {run!r}, the data set's is {declared!r}"
        for what, run, declared in (
            ("neighbor relation", budget.relation, terms.relation),
            ("protected unit", unit, terms.unit),
            ("accountant", budget.accountant, terms.accountant),
        )
        if run != declared
    ]
    if faults:
        raise BudgetError(
            f"nothing was charged: the data set {terms.data_set!r} was declared on other terms, for ever:\n"
            + "\n".join(faults)
        )


@dataclass(frozen=True, slots=True)
class Released:
    """What a release says it took: its run id, and the sums over its charges of cost and of delta used up itself."""

    run: str
    cost: Fraction
    delta: Fraction = Fraction(0)


def require_complete(balances: Mapping[str, Balance], released: Mapping[str, Released]) -> None:
    """Refuse a file that lacks the run of a release, or holds it at a lower price than the release's charges.

    ``released`` gives for each release (in words) what it took.

    Raises: BudgetError naming every such release.
    """
    held: dict[str, Released] = {}
    for entry in (entry for balance in balances.values() for entry in balance.reservations):
        before = held.get(entry.run, Released(entry.run, Fraction(0)))
        held[entry.run] = Released(entry.run, before.cost + entry.cost, before.delta + entry.delta_for_atoms)
    faults = []
    for where, taken in released.items():
        if taken.run not in held:
            faults.append(
                f"  {where}: its run is not in the file. Either it was made without this file (--single-release, or "
                "another file), or this is an older copy of the file, which would spend again what was spent: put "
                "the latest copy back"
            )
        elif taken.cost > held[taken.run].cost:
            faults.append(f"  {where}: its charges add up to more than the file reserved for its run")
        elif taken.delta > held[taken.run].delta:
            faults.append(f"  {where}: its charges use up more delta themselves than the file reserved for its run")
    if faults:
        raise BudgetError("the budget file does not account for these releases:\n" + "\n".join(faults))


def declaration_faults(name: object, unit: str, cap: Budget | None, relation: str = "add-remove") -> list[str]:
    """All that is wrong with declaring a data set so: no run could ever be made under terms that do not go together.

    ``relation`` counts where there is no ``cap`` to take it from, since that has faults of its own.

    Privacy: none: options.
    """
    faults = []
    if not plain_name(name):
        faults.append("a data set's name has 1 to 100 printable characters and no space at either end")
    try:
        rows = _rows_of(checked_unit(unit))
    except UsageError as fault:
        return [*faults, str(fault)]
    if (relation if cap is None else cap.relation) == "replace" and rows is not None:
        faults.append(
            f"relation 'replace' protects single rows, and the unit {unit} is a person: leave the relation out (a "
            "person is added or removed), or take unit row if that is the promise to make"
        )
    if cap is not None and cap.person_rows not in (None, rows):
        faults.append(
            f"the cap is for persons with at most {cap.person_rows} rows each and the unit is {unit}: "
            f"take unit person:{cap.person_rows}, or a cap without rows of a person"
        )
    return faults


def _rows_of(unit: str) -> int | None:
    """Most rows of a person in a checked unit; None where it is a row."""
    return None if unit == "row" else int(unit.removeprefix("person:"))


def checked_unit(unit: str) -> str:
    """A protected unit as it is declared: "row", or "person:k" with k rows at most (k below 10^6).

    Raises: UsageError for anything else.

    >>> checked_unit("person:4")
    'person:4'
    """
    rows = unit.removeprefix("person:") if isinstance(unit, str) else ""
    if unit == "row":
        return unit
    if rows != unit and rows.isascii() and rows.isdigit() and len(rows) <= 6 and int(rows) >= 1:
        return f"person:{int(rows)}"
    raise UsageError(f"the protected unit is row, or person:k with at most k rows each (person:4), not {unit!r:.40}")


def unit_name(unit: Unit) -> str:
    """A schema's protected unit as a budget file declares it.

    >>> unit_name("row")
    'row'
    """
    return "row" if isinstance(unit, str) else f"person:{unit.max_rows}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version() -> str:
    from margent.version import VERSION

    return VERSION
