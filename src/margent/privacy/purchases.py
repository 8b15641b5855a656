"""What may be bought before a schema's codes are fixed: requests for bins and values, and what each costs.

| query | L2, L1 sensitivity, one record | one record replaced | a person of k rows | uses up delta |
|---|---|---|---|---|
| `quantiles` (one column on its grid) | 1, 1 | sqrt 2, 2 | k, k | no |
| `open-set` (one column) | 1 | sqrt 2 | k | yes: `margent.privacy.partitions` |
| `person-sizes` (persons by kept rows) | refused | refused | 1, 1 | no |

The first two are contingency tables of one column, a grid's or of all texts there could be, so their sensitivities are
those of `marginal` (``proofs/marginal.md``, ``proofs/person.md``, ``proofs/partition-selection.md``). A person stands
in one cell of the table of sizes, whatever k is (``proofs/person.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from margent.errors import UsageError
from margent.privacy.accounting import Account
from margent.privacy.charge import Charge
from margent.privacy.laws import Gaussian, Law
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import marginal_charge
from margent.privacy.requests import MarginalRequest
from margent.transcript import OpenValues, Quantiles, Sizes

QUANTILES, OPEN_SET, SIZES = "quantiles", "open-set", "person-sizes"


@dataclass(frozen=True, slots=True)
class QuantilesRequest:
    """Ask for the counts of one column on its public grid, plus independent noise of ``law``.

    Privacy: as a marginal of that column.
    """

    column: str
    law: Law


@dataclass(frozen=True, slots=True)
class OpenSetRequest:
    """Ask for the values of one column that are held by many records, at most ``most`` of them.

    Each value's count gets its own noise of ``law``; told are those at or above the threshold that ``delta`` sets.

    Privacy: as a marginal of that column, and ``delta`` of the part set apart.
    """

    column: str
    law: Law
    delta: Fraction
    most: int


@dataclass(frozen=True, slots=True)
class SizesRequest:
    """Ask how many persons have 1, 2, ... kept rows, plus independent noise of ``law``; ``column`` has their ids.

    Privacy: one person more or less moves one of these numbers by one.
    """

    column: str
    law: Law


PurchaseRequest = QuantilesRequest | OpenSetRequest | SizesRequest
ONE_PERSON = Fraction(1)
"""L1 and squared L2 sensitivity of the table of sizes."""


def purchase_charge(request: PurchaseRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys one column's bins or values. Public: computed before any look at the data."""
    charge = marginal_charge(MarginalRequest((request.column,), request.law), label, neighbors, account)
    if isinstance(request, SizesRequest):
        if neighbors.person_rows is None:
            raise UsageError("rows of persons can only be counted where a person is protected: declare that unit")
        cost = (
            account.gaussian_cost(ONE_PERSON, request.law.scale_squared)
            if isinstance(request.law, Gaussian)
            else account.laplace_cost(ONE_PERSON, request.law.scale)
        )
        return replace(charge, query=SIZES, sensitivity_squared=ONE_PERSON, cost=cost)
    if isinstance(request, QuantilesRequest):
        return replace(charge, query=QUANTILES)
    return replace(charge, query=OPEN_SET, delta=request.delta)


class Merchant(Protocol):
    """The only one who may be asked for bins and values; charges before it looks."""

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges written so far, in order."""
        ...

    def quantiles(self, requests: Sequence[QuantilesRequest], *, label: str) -> tuple[Quantiles, ...]:
        """Answer the requests, all of them paid for together before the first look."""
        ...

    def sizes(self, request: SizesRequest, *, label: str) -> Sizes:
        """Answer one request, paid for before the look."""
        ...

    def open_sets(self, requests: Sequence[OpenSetRequest], *, label: str) -> tuple[OpenValues, ...]:
        """Answer the requests, all of them paid for together before the first look."""
        ...
