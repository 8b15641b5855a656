"""Every question that may be asked of rows, with its sensitivity for each neighbor relation, and its charge.

| L2, L1 sensitivity | lattice | one record more or less | one record replaced | a person of k rows more or less |
|---|---|---|---|---|
| `marginal` (one table) | 1 record | 1, 1 | sqrt 2, 2 | k, k |
| `interaction` (one table) | 1/c record | sqrt D, refused | sqrt(2 D m/(m - 1)), refused | k sqrt D, refused |
| `independence`, `distance` (m scores) | 1 record | sqrt m, m | 2 sqrt m, 2 m | k sqrt m, k m |
| `indif` (m scores) | 1/256 record | 4 sqrt m, 4 m | 6 sqrt m, 6 m | 4 k sqrt m, 4 k m |
| `r` (m scores) | 1/256 record | 2 sqrt m, 2 m | 3 sqrt m, 3 m | 2 k sqrt m, 2 k m |
| `f` (m scores) | 1/2 record | sqrt m, m | sqrt m, m | k sqrt m, k m |
| `mutual-information` (m scores) | 1/256 record x nat | refused | D sqrt m, D m | refused |

Of an interaction c is the number of its cells, D the product of k (k - 1) over its columns' numbers of codes k, and m
the least of these. Of mutual information D = D(n) + 1/256 with D(n) = 2 ln((n + 1)/2) + (n - 1) ln((n + 1)/(n - 1)),
or ln n + (n - 1) ln(n/(n - 1)) where one column of every pair has at most two codes; n is public where records are
replaced, and without n there is no bound.

Gaussian noise is priced by L2, Laplace noise by L1, a choice by how far one score moves (m = 1).

A *lattice* is the unit in which the exact answer is an integer; noise is drawn, and privacy priced, in that
unit. Every entry is proved (``proofs/marginal.md``, ``proofs/interaction.md``, ``proofs/independence.md``,
``proofs/indif.md``, ``proofs/r.md``, ``proofs/f.md``, ``proofs/mutual-information.md``, ``proofs/person.md``) and held
against brute force over all small tables, whose largest change it exceeds by at most a tenth
(``tests/privacy/test_sensitivity.py``, ``tests/privacy/test_dependence_sensitivity.py``,
``tests/privacy/test_f_sensitivity.py``, ``tests/privacy/test_interactions.py``; but for mutual information of two
records).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from margent.errors import UsageError
from margent.privacy.accounting import Account
from margent.privacy.charge import Charge
from margent.privacy.interactions import interaction_sensitivity_squared
from margent.privacy.laws import Gaussian, Law
from margent.privacy.logarithms import LOG_BITS, fixed_log
from margent.privacy.neighbors import Neighbors, Relation
from margent.privacy.requests import ChoiceRequest, MarginalRequest, PublicTables, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge

SCORE_LATTICE: Mapping[str, int] = {
    "indif": 256,
    "independence": 1,
    "distance": 1,
    "r": 256,
    "f": 2,
    "mutual-information": 256,
}
"""Lattice of each score: how many units make one record (one record x nat of mutual information)."""

_SCORE_SENSITIVITY: Mapping[tuple[str, Relation], Fraction] = {
    # InDif moves by at most 4n/(n+1) < 4 when a record is added to n (PrivSyn Lemma 4).
    ("indif", "add-remove"): Fraction(4),
    # By at most 6 - 2(ceil(2 sqrt n) + 1)/n when one of n is replaced, which is reached: PrivSyn's 4 is not enough.
    ("indif", "replace"): Fraction(6),
    # n R is half of InDif.
    ("r", "add-remove"): Fraction(2),
    ("r", "replace"): Fraction(3),
    # n F counts the records that a best rule for the child gets wrong, but for a half of the difference in n.
    ("f", "add-remove"): Fraction(1),
    ("f", "replace"): Fraction(1),
    # The L1 distance from a fixed table moves by one a record, and rounding to records keeps that (see scores.py).
    ("independence", "add-remove"): Fraction(1),
    ("independence", "replace"): Fraction(2),
    ("distance", "add-remove"): Fraction(1),
    ("distance", "replace"): Fraction(2),
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


def score_sensitivity_squared(
    kind: str, count: int, neighbors: Neighbors, tables: PublicTables | None = None
) -> Fraction:
    """Squared L2 sensitivity of a vector of ``count`` scores, in squared lattice units.

    m ceil(lattice * k Delta)^2, where each of the k rows of a person moves a score by at most Delta. The floor adds
    nothing beyond the ceiling: floors of two numbers that differ by at most D differ by an integer below D + 1.

    Privacy: registered sensitivity of the score ``kind``.
    Source: PrivSyn section 4.2 and Lemma 4 for InDif, with the constant for replacement corrected
    (``proofs/indif.md``); ``proofs/independence.md``; ``proofs/r.md``; ``proofs/f.md``;
    ``proofs/mutual-information.md``; ``proofs/person.md``.
    Raises: UsageError as `mutual_information_sensitivity`.
    """
    return Fraction(count * score_units(kind, neighbors, tables) ** 2)


def marginal_sensitivity_l1(neighbors: Neighbors) -> Fraction:
    """L1 sensitivity of one contingency table, in records: k for k rows, 2 where a record is replaced.

    Privacy: registered sensitivity of `marginal`.
    Source: ``proofs/marginal.md``.
    """
    return Fraction(2 if neighbors.relation == "replace" else neighbors.unit_rows)


def mutual_information_sensitivity(neighbors: Neighbors, tables: PublicTables | None) -> Fraction:
    """D(n), how far n I moves when one of at most n records is replaced, rounded up by less than n 2^-61.

    2 ln((n+1)/2) + (n-1) ln((n+1)/(n-1)), or ln n + (n-1) ln(n/(n-1)) where one column of each pair is binary.

    Units: record x nat.
    Privacy: registered sensitivity of `mutual-information`, before the lattice.
    Source: PrivBayes (Zhang et al. 2014), Lemma 4.1; ``proofs/mutual-information.md``.
    Raises: UsageError where records are added or removed (n I then moves by ln n, n private), or n is not given.

    >>> round(float(mutual_information_sensitivity(Neighbors("replace"), PublicTables(48_842))), 3)
    22.206
    """
    if neighbors.relation != "replace":
        raise UsageError(
            "mutual information has no bounded sensitivity where the number of records is private "
            f"({neighbors}): ask for score 'r' or 'independence', or take relation 'replace'"
        )
    if tables is None:
        raise UsageError("mutual information is priced by the public number of records: give tables=PublicTables(n)")
    n = tables.records
    before = (n - 1) * fixed_log(max(n - 1, 1))
    after = n * fixed_log(n) if tables.binary else (n + 1) * fixed_log(n + 1) - 2 * fixed_log(2)
    return Fraction(after - before + 2 * n + 2, 2**LOG_BITS)  # 2n + 2: one unit for each logarithm in the sum


def score_units(kind: str, neighbors: Neighbors, tables: PublicTables | None = None) -> int:
    """ceil(lattice * k Delta): how far one score can move, in lattice units; one more for mutual information.

    That one covers the rounding of the logarithms, which is less than half a unit in each of two scores.

    Privacy: registered sensitivity of the score ``kind``.
    Raises: UsageError as `mutual_information_sensitivity`.
    """
    if kind == "mutual-information":
        return math.ceil(SCORE_LATTICE[kind] * mutual_information_sensitivity(neighbors, tables)) + 1
    return math.ceil(SCORE_LATTICE[kind] * _SCORE_SENSITIVITY[kind, neighbors.relation] * neighbors.unit_rows)


def marginal_law(share: Fraction, neighbors: Neighbors, account: Account) -> Law:
    """The quietest noise that ``share`` buys for one contingency table. Privacy: none: public facts only."""
    return account.law(share, marginal_sensitivity_l1(neighbors), marginal_sensitivity_squared(neighbors))


def score_law(
    kind: str,
    count: int,
    share: Fraction,
    neighbors: Neighbors,
    account: Account,
    tables: PublicTables | None = None,
) -> Law:
    """The quietest noise, in lattice units, that ``share`` buys for ``count`` scores. Privacy: none: public facts."""
    l1 = Fraction(count * score_units(kind, neighbors, tables))
    return account.law(share, l1, score_sensitivity_squared(kind, count, neighbors, tables))


def interaction_law(share: Fraction, sizes: Sequence[int], neighbors: Neighbors, account: Account) -> Law:
    """The quietest noise, in parts of a record (one part a cell), that ``share`` buys for one interaction.

    Privacy: none: public facts only.
    Raises: UsageError where the account prices Laplace noise only, which would gain nothing.
    """
    squared = interaction_sensitivity_squared(sizes, neighbors)
    return Gaussian(_gaussian_only(account).gaussian_scale(squared, share))


def marginal_charge(
    request: MarginalRequest, label: str, neighbors: Neighbors, account: Account, domain: Domain | None = None
) -> Charge:
    """The charge that buys one noisy marginal, or its interaction. Public: computed before any look at the data.

    ``domain``: that in which the request is answered, where it is of an interaction, whose price its sizes tell.

    Raises: UsageError for an interaction that has no price.
    """
    if request.interaction:
        sizes = _require_interaction(request, domain).shape(request.clique)
        squared, account = interaction_sensitivity_squared(sizes, neighbors), _gaussian_only(account)
        named = (request.clique,), ()
        return _noisy_charge("interaction", *named, request.law, label, neighbors, account, Fraction(0), squared)
    l1, l2_squared = marginal_sensitivity_l1(neighbors), marginal_sensitivity_squared(neighbors)
    return _noisy_charge("marginal", (request.clique,), (), request.law, label, neighbors, account, l1, l2_squared)


def score_charge(request: ScoreRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys one vector of scores. Public: computed before any look at the data."""
    count = len(request.cliques)
    l1 = Fraction(count * score_units(request.kind, neighbors, request.tables))
    l2_squared = score_sensitivity_squared(request.kind, count, neighbors, request.tables)
    named = request.cliques, request.children
    return _noisy_charge(request.kind, *named, request.law, label, neighbors, account, l1, l2_squared)


def marginal_charges(
    requests: Sequence[MarginalRequest],
    label: str,
    neighbors: Neighbors,
    account: Account,
    domain: Domain,
    merges: Mapping[str, Merge],
) -> list[Charge]:
    """`marginal_charge` of each request, in the domain in which it is answered: that of the merges where it is merged.

    Privacy: public: computed before any look at the data.
    Raises: UsageError for an interaction that has no price.
    """
    merged = domain.merged(merges)
    return [
        marginal_charge(request, label, neighbors, account, merged if request.merged else domain)
        for request in requests
    ]


def _require_interaction(request: MarginalRequest, domain: Domain | None) -> Domain:
    """Refuse what the registered sensitivity of interactions is not proved for."""
    names = request.clique
    if domain is None or not names or len(set(names)) != len(names) or not set(names) <= set(domain.names):
        raise UsageError(f"an interaction is of one or more columns of the table, and {names!r} is not that")
    lone = [name for name in names if domain.size(name) < 2]
    if lone:
        raise UsageError(f"the interaction of {names!r} is always 0: {lone[0]!r} has one code")
    if not isinstance(request.law, Gaussian):
        raise UsageError("an interaction takes Gaussian noise: its law comes from interaction_law")
    return domain


def _gaussian_only(account: Account) -> Account:
    if account.scale_power == 1:
        raise UsageError("interactions are bought with Gaussian noise, which no budget with delta 0 can pay for")
    return account


def choice_charge(request: ChoiceRequest, label: str, neighbors: Neighbors, account: Account) -> Charge:
    """The charge that buys choices by score. Public: computed before any look at the data."""
    return Charge(
        label=label,
        query=request.kind,
        cliques=request.cliques,
        mechanism="exponential",
        relation=neighbors.relation,
        person_rows=neighbors.person_rows,
        sensitivity_squared=Fraction(score_units(request.kind, neighbors, request.tables) ** 2),
        scale_squared=None,
        account=account.name,
        cost=request.choices * account.exponential_cost(request.epsilon),
        epsilon=request.epsilon,
        choices=request.choices,
        children=request.children,
    )


def _noisy_charge(
    query: str,
    cliques: tuple[Clique, ...],
    children: tuple[str, ...],
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
        children=children,
    )
