"""Every question that may be asked of rows, with its sensitivity for each neighbor relation, and its charge.

| L2, L1 sensitivity | lattice | one record more or less | one record replaced | a person of k rows more or less |
|---|---|---|---|---|
| `marginal` (one table) | 1 record | 1, 1 | sqrt 2, 2 | k, k |
| `independence` (m scores) | 1 record | sqrt m, m | 2 sqrt m, 2 m | k sqrt m, k m |
| `indif` (m scores) | 1/256 record | 4 sqrt m, 4 m | 6 sqrt m, 6 m | 4 k sqrt m, 4 k m |

Gaussian noise is priced by L2, Laplace noise by L1, a choice by how far one score moves (m = 1).

A *lattice* is the unit in which the exact answer is an integer; noise is drawn, and privacy priced, in that
unit. Every entry is proved (``proofs/marginal.md``, ``proofs/independence.md``, ``proofs/indif.md``,
``proofs/person.md``) and held against brute force over all small tables, whose largest change it exceeds by at most a
tenth (``tests/privacy/test_sensitivity.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from margent.privacy.accounting import Account
from margent.privacy.charge import Charge
from margent.privacy.laws import Gaussian, Law
from margent.privacy.neighbors import Neighbors, Relation
from margent.privacy.requests import ChoiceRequest, MarginalRequest, ScoreRequest
from margent.schema.domain import Clique

SCORE_LATTICE: Mapping[str, int] = {"indif": 256, "independence": 1}
"""Lattice of each score: how many units make one record."""

_SCORE_SENSITIVITY: Mapping[tuple[str, Relation], Fraction] = {
    # InDif moves by at most 4n/(n+1) < 4 when a record is added to n (PrivSyn Lemma 4).
    ("indif", "add-remove"): Fraction(4),
    # By at most 6(n-1)/n < 6 when one of n is replaced, and 6 is the least such number: PrivSyn's 4 is not enough.
    ("indif", "replace"): Fraction(6),
    # The L1 distance from a fixed table moves by one a record, and rounding to records keeps that (see scores.py).
    ("independence", "add-remove"): Fraction(1),
    ("independence", "replace"): Fraction(2),
}


def marginal_sensitivity_squared(neighbors: Neighbors) -> Fraction:
    """Squared L2 sensitivity of one contingency table, in records squared.

    Adding or removing a record moves one cell by one; replacing one moves at most two cells by one each; the k
    rows of a person may all lie in one cell.

    Privacy: registered sensitivity of `marginal`.
    Source: ``proofs/marginal.md``, ``proofs/person.md``.

    >>> [str(marginal_sensitivity_squared(each)) for each in (Neighbors(), Neighbors("replace"))]
    ['1', '2']
    >>> str(marginal_sensitivity_squared(Neighbors("add-remove", 4)))
    '16'
    """
    return Fraction(2 if neighbors.relation == "replace" else neighbors.unit_rows**2)


def score_sensitivity_squared(kind: str, count: int, neighbors: Neighbors) -> Fraction:
    """Squared L2 sensitivity of a vector of ``count`` scores, in squared lattice units.

    m ceil(lattice * k Delta)^2, where each of the k rows of a person moves a score by at most Delta. The floor adds
    nothing beyond the ceiling: floors of two numbers that differ by at most D differ by an integer below D + 1.

    Privacy: registered sensitivity of the score ``kind``.
    Source: PrivSyn section 4.2 and Lemma 4 for InDif, with the constant for replacement corrected
    (``proofs/indif.md``); ``proofs/independence.md``; ``proofs/person.md``.
    """
    return Fraction(count * score_units(kind, neighbors) ** 2)


def marginal_sensitivity_l1(neighbors: Neighbors) -> Fraction:
    """L1 sensitivity of one contingency table, in records: k for k rows, 2 where a record is replaced.

    Privacy: registered sensitivity of `marginal`.
    Source: ``proofs/marginal.md``.
    """
    return Fraction(2 if neighbors.relation == "replace" else neighbors.unit_rows)


def score_units(kind: str, neighbors: Neighbors) -> int:
    """ceil(lattice * k Delta): how far one score can move, in lattice units.

    Privacy: registered sensitivity of the score ``kind``.
    """
    return math.ceil(SCORE_LATTICE[kind] * _SCORE_SENSITIVITY[kind, neighbors.relation] * neighbors.unit_rows)


def marginal_law(share: Fraction, neighbors: Neighbors, account: Account) -> Law:
    """The quietest noise that ``share`` buys for one contingency table. Privacy: none: public facts only."""
    return account.law(share, marginal_sensitivity_l1(neighbors), marginal_sensitivity_squared(neighbors))


def score_law(kind: str, count: int, share: Fraction, neighbors: Neighbors, account: Account) -> Law:
    """The quietest noise, in lattice units, that ``share`` buys for ``count`` scores. Privacy: none: public facts."""
    l1 = Fraction(count * score_units(kind, neighbors))
    return account.law(share, l1, score_sensitivity_squared(kind, count, neighbors))


def marginal_charge(request: MarginalRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys one noisy marginal. Public: computed before any look at the data."""
    l1, l2_squared = marginal_sensitivity_l1(neighbors), marginal_sensitivity_squared(neighbors)
    return _noisy_charge("marginal", (request.clique,), request.law, label, neighbors, account, l1, l2_squared)


def score_charge(request: ScoreRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys one vector of scores. Public: computed before any look at the data."""
    count = len(request.cliques)
    l1 = Fraction(count * score_units(request.kind, neighbors))
    l2_squared = score_sensitivity_squared(request.kind, count, neighbors)
    return _noisy_charge(request.kind, request.cliques, request.law, label, neighbors, account, l1, l2_squared)


def choice_charge(request: ChoiceRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys choices by score. Public: computed before any look at the data."""
    return Charge(
        label=label,
        query=request.kind,
        cliques=request.cliques,
        mechanism="exponential",
        relation=neighbors.relation,
        person_rows=neighbors.person_rows,
        sensitivity_squared=Fraction(score_units(request.kind, neighbors) ** 2),
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
    neighbors: Neighbors,
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
        relation=neighbors.relation,
        person_rows=neighbors.person_rows,
        sensitivity_squared=l2_squared if isinstance(law, Gaussian) else l1**2,
        scale_squared=law.scale_squared,
        account=account.name,
        cost=account.gaussian_cost(l2_squared, law.scale_squared)
        if isinstance(law, Gaussian)
        else account.laplace_cost(l1, law.scale),
    )
