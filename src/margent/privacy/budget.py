"""A budget: how much privacy a data set may lose, between which neighbors, and who counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margent.errors import UsageError
from margent.privacy.accounting import Account, account_named
from margent.privacy.neighbors import Neighbors, Relation
from margent.privacy.statement import DELTA_LIMITS, Numeral, check_delta, check_epsilon, exact, shown

DEFAULT_DELTA = Fraction(1, 10**9)
WORTH_A_REMARK = Fraction(1, 10**7)
"""A delta above this is too large for a table of some millions of people."""


@dataclass(frozen=True, init=False)
class Budget:
    """The promise (epsilon, delta) for one neighbor relation and unit, priced by one accountant; exact.

    Numbers may be given as int, float, text or Fraction; a float means its shortest decimal text. ``delta``
    is 1e-9 unless given, and 0 with accountant 'pure'. ``delta_for_atoms`` (default 0) is the part of delta set
    apart for charges that use up delta themselves (selection of values from the data); noise has the rest.
    ``person_rows`` is the most rows counted of a protected person, None where the unit is a record; a run takes it
    from its schema (`protecting`).

    Units: epsilon and delta as in (epsilon, delta)-differential privacy; ``total`` in the account's unit.
    Raises: UsageError listing everything wrong with the values.

    >>> budget = Budget(0.1, delta="1e-6")
    >>> budget.epsilon, budget.delta, budget.account.name
    (Fraction(1, 10), Fraction(1, 1000000), 'gdp')
    """

    epsilon: Fraction
    delta: Fraction
    accountant: str
    relation: Relation
    delta_for_atoms: Fraction
    person_rows: int | None

    def __init__(
        self,
        epsilon: Numeral | None = None,
        delta: Numeral | None = None,
        accountant: str = "gdp",
        relation: Relation = "add-remove",
        *,
        delta_for_atoms: Numeral = 0,
        person_rows: int | None = None,
    ) -> None:
        """Read the values exactly; UsageError lists all that is wrong with them."""
        faults: list[str] = []
        values = {
            "accountant": _collect(faults, lambda: account_named(accountant).name),
            "epsilon": _collect(faults, lambda: _epsilon(epsilon)),
            "delta": _collect(faults, lambda: _delta(delta, accountant)),
            "relation": _collect(faults, lambda: Neighbors(relation, person_rows).relation),
            "delta_for_atoms": _collect(faults, lambda: exact(delta_for_atoms, "the part of delta for atoms")),
            "person_rows": person_rows,
        }
        if not faults:
            faults += _part_faults(values["delta"], values["delta_for_atoms"])
        if faults:
            raise UsageError("\n".join(faults))
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def account(self) -> Account:
        """How charges against this budget are priced."""
        return account_named(self.accountant)

    @property
    def neighbors(self) -> Neighbors:
        """Between which tables the promise holds."""
        return Neighbors(self.relation, self.person_rows)

    def protecting(self, person_rows: int | None) -> Budget:
        """The same promise for a unit: a record (None), or a person of whom at most so many rows are counted.

        Raises: UsageError where the budget was made for another unit, or the relation does not go with it.

        >>> str(Budget(1).protecting(4).neighbors)
        'add or remove one person with at most 4 rows'
        """
        if self.person_rows not in (None, person_rows):
            raise UsageError(
                f"the budget is for persons with at most {self.person_rows} rows each, the schema's unit is another: "
                "make a budget for this schema"
            )
        return Budget(
            self.epsilon,
            self.delta,
            self.accountant,
            self.relation,
            delta_for_atoms=self.delta_for_atoms,
            person_rows=person_rows,
        )

    @property
    def total(self) -> Fraction:
        """The most that charges may add up to, in the account's unit, at what atoms leave of delta; rounded down."""
        return self.account.total(self.epsilon, self.delta - self.delta_for_atoms)

    @property
    def advice(self) -> tuple[str, ...]:
        """What a careful reader would remark about these numbers, in plain sentences; never an error."""
        remarks = []
        if self.epsilon > 10:
            remarks.append(
                f"epsilon {float(self.epsilon):g} is above 10: so loose a bound on what the release reveals "
                "about a person promises little; 1 is a common choice, smaller protects more"
            )
        if self.delta > WORTH_A_REMARK:
            remarks.append(
                f"delta {float(self.delta):g} should be well below 1 over the number of people in the table: "
                f"it suits tables of far fewer than {float(1 / self.delta):.3g} people"
            )
        return tuple(remarks)


def _collect(faults: list[str], read: Callable[[], object]) -> object:
    try:
        return read()
    except UsageError as fault:
        faults.append(str(fault))
        return None


def _epsilon(value: object) -> Fraction:
    if value is None:
        raise UsageError("epsilon is missing: say how much privacy may be spent, for example epsilon 1")
    return check_epsilon(exact(value, "epsilon"))


def _delta(value: object, accountant: str) -> Fraction:
    if value is None:
        return Fraction(0) if accountant == "pure" else DEFAULT_DELTA
    delta = exact(value, "delta")
    if accountant == "pure":
        if delta != 0:
            raise UsageError("delta must be 0 with accountant 'pure': leave it out, or choose accountant 'gdp'")
        return delta
    return check_delta(delta)


def _part_faults(delta: Any, part: Any) -> list[str]:
    """What is wrong with the part for atoms, once both are exact numbers."""
    if part == 0 or 0 < part <= delta - DELTA_LIMITS[0]:
        return []
    if delta == 0:
        return ["the part of delta for atoms must be 0 with accountant 'pure', which has no delta to set apart"]
    return [
        f"the part of delta for atoms must be below delta, since noise needs the rest; it is {shown(part)} "
        f"of {shown(delta)}: a tenth of delta is a common choice"
    ]
