"""What may be bought before a schema's codes are fixed: requests for bins and values, and what each costs.

| query | L2, L1 sensitivity, one record | one record replaced | a person of k rows | uses up delta |
|---|---|---|---|---|
| `quantiles` (one column on its grid) | 1, 1 | sqrt 2, 2 | k, k | no |
| `open-set` (one column) | 1 | sqrt 2 | k | yes: `margent.privacy.partitions` |

Both are contingency tables of one column, a grid's or of all texts there could be, so their sensitivities are those of
`marginal` (``proofs/marginal.md``, ``proofs/person.md``, ``proofs/partition-selection.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from margent.privacy.accounting import Account
from margent.privacy.charge import Charge
from margent.privacy.laws import Law
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import marginal_charge
from margent.privacy.requests import MarginalRequest
from margent.transcript import OpenValues, Quantiles

QUANTILES, OPEN_SET = "quantiles", "open-set"


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


PurchaseRequest = QuantilesRequest | OpenSetRequest


def purchase_charge(request: PurchaseRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys one column's bins or values. Public: computed before any look at the data."""
    charge = marginal_charge(MarginalRequest((request.column,), request.law), label, neighbors, account)
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

    def open_sets(self, requests: Sequence[OpenSetRequest], *, label: str) -> tuple[OpenValues, ...]:
        """Answer the requests, all of them paid for together before the first look."""
        ...
