"""Every question that may be asked of rows, with its sensitivity for each neighbor relation, and its charge.

| query | lattice | add-remove: L2, L1 | replace: L2, L1 |
|---|---|---|---|
| `marginal` (one table) | 1 record | 1, 1 | sqrt 2, 2 |
| `independence` (a vector of m scores) | 1 record | sqrt m, m | 2 sqrt m, 2 m |
| `indif` (a vector of m scores) | 1/256 record | 4 sqrt m, 4 m | 20/3 sqrt m, 20/3 m (rounded up to 1/256) |

Gaussian noise is priced by L2, Laplace noise by L1, a choice by how far one score moves (m = 1).

A *lattice* is the unit in which the exact answer is an integer; noise is drawn, and privacy priced, in that
unit. Brute force over all small tables checks every line of the table (``tests/privacy/test_sensitivity.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from margent.privacy.accounting import Account
from margent.privacy.charge import Charge, Relation
from margent.privacy.laws import Gaussian, Law
from margent.privacy.requests import ChoiceRequest, MarginalRequest, ScoreRequest
from margent.schema.domain import Clique

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
    return Fraction(count * score_units(kind, relation) ** 2)


def marginal_sensitivity_l1(relation: Relation) -> Fraction:
    """L1 sensitivity of one contingency table, in records: 1, or 2 where a record is replaced.

    Privacy: registered sensitivity of `marginal`.
    """
    return Fraction(1 if relation == "add-remove" else 2)


def score_units(kind: str, relation: Relation) -> int:
    """ceil(lattice * Delta): how far one score can move, in lattice units.

    Privacy: registered sensitivity of the score ``kind``.
    """
    return math.ceil(SCORE_LATTICE[kind] * _SCORE_SENSITIVITY[kind, relation])


def marginal_law(share: Fraction, relation: Relation, account: Account) -> Law:
    """The quietest noise that ``share`` buys for one contingency table. Privacy: none: public facts only."""
    return account.law(share, marginal_sensitivity_l1(relation), marginal_sensitivity_squared(relation))


def score_law(kind: str, count: int, share: Fraction, relation: Relation, account: Account) -> Law:
    """The quietest noise, in lattice units, that ``share`` buys for ``count`` scores. Privacy: none: public facts."""
    l1 = Fraction(count * score_units(kind, relation))
    return account.law(share, l1, score_sensitivity_squared(kind, count, relation))


def marginal_charge(request: MarginalRequest, label: str, relation: Relation, account: Account) -> Charge:
    """The charge that buys one noisy marginal. Public: computed before any look at the data."""
    l1, l2_squared = marginal_sensitivity_l1(relation), marginal_sensitivity_squared(relation)
    return _noisy_charge("marginal", (request.clique,), request.law, label, relation, account, l1, l2_squared)


def score_charge(request: ScoreRequest, label: str, relation: Relation, account: Account) -> Charge:
    """The charge that buys one vector of scores. Public: computed before any look at the data."""
    count = len(request.cliques)
    l1 = Fraction(count * score_units(request.kind, relation))
    l2_squared = score_sensitivity_squared(request.kind, count, relation)
    return _noisy_charge(request.kind, request.cliques, request.law, label, relation, account, l1, l2_squared)


def choice_charge(request: ChoiceRequest, label: str, relation: Relation, account: Account) -> Charge:
    """The charge that buys choices by score. Public: computed before any look at the data."""
    return Charge(
        label=label,
        query=request.kind,
        cliques=request.cliques,
        mechanism="exponential",
        relation=relation,
        sensitivity_squared=Fraction(score_units(request.kind, relation) ** 2),
        scale_squared=None,
        account=account.name,
        cost=request.choices * account.exponential_cost(request.epsilon),
        epsilon=request.epsilon,
        choices=request.choices,
    )


def _noisy_charge(
    query: str,
    cliques: tuple[Clique, ...],
    law: Law,
    label: str,
    relation: Relation,
    account: Account,
    l1: Fraction,
    l2_squared: Fraction,
) -> Charge:
    """Gaussian noise is priced by the L2 sensitivity of the whole answer, Laplace noise by its L1 sensitivity."""
    return Charge(
        label=label,
        query=query,
        cliques=cliques,
        mechanism=law.mechanism,
        relation=relation,
        sensitivity_squared=l2_squared if isinstance(law, Gaussian) else l1**2,
        scale_squared=law.scale_squared,
        account=account.name,
        cost=account.gaussian_cost(l2_squared, law.scale_squared)
        if isinstance(law, Gaussian)
        else account.laplace_cost(l1, law.scale),
    )
