"""What a data set is declared for, for ever: its unit, its neighbors, its accountant, and who has to keep to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from margent.errors import BudgetError, UsageError
from margent.privacy.budget_chain import plain_name

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.privacy.budget_chain import Balance
    from margent.schema.fields import Unit


def require_same_terms(balance: Balance, budget: Budget, unit: Unit) -> None:
    """Refuse a run whose neighbors, protected unit or accountant are not the declared ones: costs would not add.

    Nor would they where persons are told apart by another column than in the data set's first run that said it: most
    rows of one person may be those of many others.

    Raises: BudgetError listing all differences.
    """
    terms = balance.declaration
    faults = [
        f"  {what}: the run's is {run!r}, the data set's is {declared!r}"
        for what, run, declared in (
            ("neighbor relation", budget.relation, terms.relation),
            ("protected unit", unit_name(unit), terms.unit),
            ("accountant", budget.accountant, terms.accountant),
        )
        if run != declared
    ]
    column, recorded = unit_field(unit), balance.unit_field
    if column is not None and recorded not in (None, column):
        faults.append(f"  {other_column(column, str(recorded))}")
    if faults:
        raise BudgetError(
            f"nothing was charged: the data set {terms.data_set!r} was declared on other terms, for ever:\n"
            + "\n".join(faults)
        )


def other_column(column: str, recorded: str) -> str:
    """Why a run that tells persons apart by ``column`` is refused, and the next step.

    Privacy: none: column names are public.
    """
    return (
        f"column that tells persons apart: the run's is {column!r}, that of the data set's runs so far {recorded!r}. "
        "Keep that column's name in table and schema; where it is really another unit, declare another data set "
        "(--data-set) for it"
    )


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


def unit_field(unit: Unit) -> str | None:
    """The column that tells persons apart; None where rows are protected.

    Privacy: none: column names are public.
    """
    return None if isinstance(unit, str) else unit.field
