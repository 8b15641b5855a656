"""Every question that may be asked of rows, with its sensitivity for each neighbor relation, and its charge.

| query | lattice | add-remove | replace |
|---|---|---|---|
| `marginal` (one table) | 1 record | L2 = 1 | L2 = sqrt 2 |
| `independence` (a vector of m scores) | 1 record | sqrt m | 2 sqrt m |
| `indif` (a vector of m scores) | 1/256 record | 4 sqrt m | 20/3 sqrt m (rounded up to 1/256) |

A *lattice* is the unit in which the exact answer is an integer; noise is drawn, and privacy priced, in that
unit. Brute force over all small tables checks every line of the table (``tests/privacy/test_sensitivity.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from margent.privacy.accounting import Account
from margent.privacy.charge import Charge, Relation
from margent.privacy.requests import MarginalRequest, ScoreRequest

SCORE_LATTICE: Mapping[str, int] = {"indif": 256, "independence": 1}
"""Lattice of each score: how many units make one record."""

_SCORE_SENSITIVITY: Mapping[tuple[str, Relation], Fraction] = {
    # InDif moves by at most 4n/(n+1) < 4 when a record is added to n (PrivSyn Lemma 4).
    ("indif", "add-remove"): Fraction(4),
    # Under replacement by at most 6 + 4/n (twice PrivBayes' bound for R times n), and, as a removal and an
    # addition, by at most 8 (n - 1)/n; the smaller of the two is largest at n = 6. PrivSyn's 4 is not enough.
    ("indif", "replace"): Fraction(20, 3),
    # The L1 distance from a fixed table moves by one a record, and rounding to records keeps that (see scores.py).
    ("independence", "add-remove"): Fraction(1),
    ("independence", "replace"): Fraction(2),
}


def marginal_sensitivity_squared(relation: Relation) -> Fraction:
    """Squared L2 sensitivity of one contingency table, in records squared.

    Adding or removing a record moves one cell by one; replacing one moves at most two cells by one each.

    Privacy: registered sensitivity of `marginal`.

    >>> marginal_sensitivity_squared("add-remove"), marginal_sensitivity_squared("replace")
    (Fraction(1, 1), Fraction(2, 1))
    """
    return Fraction(1 if relation == "add-remove" else 2)


def score_sensitivity_squared(kind: str, count: int, relation: Relation) -> Fraction:
    """Squared L2 sensitivity of a vector of ``count`` scores, in squared lattice units.

    m ceil(lattice * Delta)^2. The floor adds nothing beyond the ceiling: floors of two numbers that differ by
    at most D differ by an integer below D + 1.

    Privacy: registered sensitivity of the score ``kind``.
    Source: PrivSyn section 4.2 and Lemma 4 for InDif, with the constant for replacement corrected.
    """
    units = math.ceil(SCORE_LATTICE[kind] * _SCORE_SENSITIVITY[kind, relation])
    return Fraction(count * units * units)


def marginal_charge(request: MarginalRequest, label: str, relation: Relation, account: Account) -> Charge:
    """The charge that buys one noisy marginal. Public: computed before any look at the data."""
    sensitivity_squared = marginal_sensitivity_squared(relation)
    return Charge(
        label=label,
        query="marginal",
        cliques=(request.clique,),
        mechanism="discrete-gaussian",
        relation=relation,
        sensitivity_squared=sensitivity_squared,
        scale_squared=request.scale_squared,
        account=account.name,
        cost=account.gaussian_cost(sensitivity_squared, request.scale_squared),
    )


def score_charge(request: ScoreRequest, label: str, relation: Relation, account: Account) -> Charge:
    """The charge that buys one vector of scores. Public: computed before any look at the data."""
    sensitivity_squared = score_sensitivity_squared(request.kind, len(request.cliques), relation)
    return Charge(
        label=label,
        query=request.kind,
        cliques=request.cliques,
        mechanism="discrete-gaussian",
        relation=relation,
        sensitivity_squared=sensitivity_squared,
        scale_squared=request.scale_squared,
        account=account.name,
        cost=account.gaussian_cost(sensitivity_squared, request.scale_squared),
    )
