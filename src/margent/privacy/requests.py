"""What may be asked of the data, as frozen records, and the door's protocol.

A collector builds requests; whoever stands at the door answers them: `DataCurator` from exact counts plus
exact noise, `ReplayCurator` from a transcript, a scripted one in tests. Requests hold public facts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.privacy.accounting import Account
from margent.privacy.charge import Charge
from margent.privacy.laws import Law
from margent.privacy.neighbors import Neighbors
from margent.privacy.statement import check_positive
from margent.schema.domain import NO_MERGES, Clique, Domain, Merge
from margent.schema.fields import Schema
from margent.transcript import Choice, NoisyMarginal, Scores

ScoreKind = Literal["indif", "independence", "r", "f", "mutual-information", "distance"]
_MOST_EXPECTED = 1e100
MOST_RECORDS = 2**52
"""Up to here the rounding of mutual information stays below its lattice (``proofs/mutual-information.md``)."""


@dataclass(frozen=True, slots=True)
class PublicTables:
    """What is public of the tables that mutual information is asked of: at most ``records`` records in each.

    ``binary``: one of the two columns of every pair has at most two codes (or groups, where merged), which makes the
    score move about half as far. The curator holds both against the tables.

    Privacy: none: the number of records is public where records are replaced, the codes are always.
    Raises: UsageError where the number of records is not a whole number in 1 .. 2^52.

    >>> PublicTables(48_842)
    PublicTables(records=48842, binary=False)
    """

    records: int
    binary: bool = False

    def __post_init__(self) -> None:
        """Check what the price depends on."""
        if type(self.records) is not int or not 1 <= self.records <= MOST_RECORDS:
            raise UsageError(f"the public number of records must be a whole number from 1 to {MOST_RECORDS}")


@dataclass(frozen=True, slots=True)
class MarginalRequest:
    """Ask for the contingency table over ``clique`` plus independent noise of ``law`` in each cell.

    ``interaction``: ask for what the table says beyond its margins instead (`margent.privacy.interactions`).

    Units: records, or parts of one, as many as the table has cells, for an interaction; the law's scale lies on the
    public scale grid.
    Privacy: sensitivities per relation in `margent.privacy.queries`.
    """

    clique: Clique
    law: Law
    merged: bool = False
    interaction: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRequest:
    """Ask for one score a clique, each with its own draw of noise of ``law``.

    ``expected`` gives, for kind "independence", the public counts of single columns (built from noisy answers
    only) from whose products the tables' distances are measured; ``model``, for kind "distance", the public counts of
    each clique, of any number of columns; ``tables``, for kind "mutual-information", what is public of the tables.
    For the kinds that tell how two columns depend, ``children`` may name one column a clique: the score is then of that
    column and all the others of the clique taken together as one. Kind "f" is always of a child, of at most two codes.

    Units: ``law`` in lattice units of the score (`margent.privacy.queries.SCORE_LATTICE`: the score is a whole
    number of them), because the noise is priced and drawn on that lattice.
    Privacy: one charge for the vector; sensitivities in `margent.privacy.queries`.
    """

    kind: ScoreKind
    cliques: tuple[Clique, ...]
    law: Law
    merged: bool = False
    expected: Mapping[str, NDArray[np.float64]] | None = None
    tables: PublicTables | None = None
    children: tuple[str, ...] = ()
    model: Mapping[Clique, NDArray[np.float64]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceRequest:
    """Ask which ``choices`` of ``cliques`` score highest: one after another, without replacement.

    Each is chosen by the exponential mechanism at ``epsilon`` among those left: Pr[c] proportional to
    exp(epsilon score_c / (2 Delta)). No score is told. ``expected``, ``tables``, ``children`` and ``model`` as in
    `ScoreRequest`; with children a candidate is a clique and its child.

    Privacy: one charge of ``choices`` times the price of one choice; Delta in `margent.privacy.queries`.
    Raises: UsageError where there are fewer candidates than choices, or epsilon is not a positive Fraction.
    """

    kind: ScoreKind
    cliques: tuple[Clique, ...]
    epsilon: Fraction
    choices: int = 1
    merged: bool = False
    expected: Mapping[str, NDArray[np.float64]] | None = None
    tables: PublicTables | None = None
    children: tuple[str, ...] = ()
    model: Mapping[Clique, NDArray[np.float64]] | None = None

    def __post_init__(self) -> None:
        """Check what the price depends on."""
        named = list(zip(self.cliques, self.children, strict=False)) if self.children else list(self.cliques)
        if not 1 <= self.choices <= len(named) or len(set(named)) != len(named):
            raise UsageError(
                f"{self.choices} choices among {len(named)} candidates: ask for at least one choice, "
                "and name at least as many candidates, each once"
            )
        check_positive(self.epsilon, "the epsilon of a choice")


def require_scorable(request: ScoreRequest | ChoiceRequest, domain: Domain) -> None:
    """Refuse what the registered sensitivities of scores are not proved for.

    A score of dependence is of a pair of columns, or of a child and all others of its clique; a distance from a model
    is of any clique. What is expected has one finite count a code (or cell) each: a longer one would be held against
    each cell several times over, and one record would then move the score by as many. The smaller price of binary
    columns holds where each pair has one.

    Shapes: ``domain`` is the (merged) domain in which the request is answered.
    Privacy: none: public facts; called before the charge.
    Raises: UsageError naming the pair.
    """
    if request.children or request.kind == "f":
        _require_children(request, domain)
        return
    for pair in request.cliques:
        if request.kind == "distance":
            _require_modeled(request, pair, domain)
            continue
        if len(pair) != 2 or len(set(pair)) != 2 or not set(pair) <= set(domain.names):
            raise UsageError(f"a score is of two columns of the table, and {pair!r} is not that: ask for pairs")
        if request.kind == "independence" and not all(_is_expectation(request, name, domain) for name in pair):
            raise UsageError(
                f"the score of {pair!r} needs an expectation for both columns: one finite count a code, of the domain "
                "that is asked about (merged or not)"
            )
        if request.tables is not None and request.tables.binary and min(domain.shape(pair)) > 2:
            raise UsageError("binary=True needs a column of at most two codes in every pair: leave it out")


def _require_children(request: ScoreRequest | ChoiceRequest, domain: Domain) -> None:
    """Every clique has its child, and the kind is one whose sensitivity holds for tables of the two sides."""
    if request.kind in ("independence", "distance") or len(request.children) != len(request.cliques):
        raise UsageError(
            f"a score of kind {request.kind!r} takes "
            + (
                "one child a clique: name them"
                if request.kind == "f"
                else "children only where each clique has one: leave them out"
            )
        )
    for names, child in zip(request.cliques, request.children, strict=True):
        if len(names) < 2 or len(set(names)) != len(names) or child not in names or not set(names) <= set(domain.names):
            raise UsageError(f"a child and at least one other column of the table are needed: {child!r}, {names!r}")
        if request.tables is not None and request.tables.binary and domain.size(child) > 2:
            raise UsageError(f"binary=True needs children of at most two codes, and {child!r} has more: leave it out")
        if request.kind == "f" and domain.size(child) > 2:
            raise UsageError(f"score 'f' is of a child of at most two codes, and {child!r} has more: ask for 'r'")


def _require_modeled(request: ScoreRequest | ChoiceRequest, names: Clique, domain: Domain) -> None:
    """The model has one finite count a cell of the clique's table."""
    if not names or len(set(names)) != len(names) or not set(names) <= set(domain.names):
        raise UsageError(f"a distance is of one or more columns of the table, and {names!r} is not that")
    if not _is_counts((request.model or {}).get(names), domain.shape(names)):
        raise UsageError(f"the distance of {names!r} needs the model's counts: one finite count a cell of its table")


def _is_expectation(request: ScoreRequest | ChoiceRequest, name: str, domain: Domain) -> bool:
    return _is_counts((request.expected or {}).get(name), (domain.size(name),))


def _is_counts(counts: object, shape: tuple[int, ...]) -> bool:
    return (
        isinstance(counts, np.ndarray)
        and counts.shape == shape
        and bool(np.abs(counts).sum() <= _MOST_EXPECTED)  # so no NaN, and a product of two is finite
    )


class Curator(Protocol):
    """The only one who may be asked; answers in order, charges before it looks."""

    @property
    def schema(self) -> Schema:
        """The public schema."""
        ...

    @property
    def domain(self) -> Domain:
        """The codes' domain, a function of the schema."""
        ...

    @property
    def account(self) -> Account:
        """How charges are priced in this run."""
        ...

    @property
    def neighbors(self) -> Neighbors:
        """Which tables count as neighbors in this run."""
        ...

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges written so far, in order."""
        ...

    def measure(
        self, requests: Sequence[MarginalRequest], *, label: str, merges: Mapping[str, Merge] = NO_MERGES
    ) -> tuple[NoisyMarginal, ...]:
        """Answer the requests, all of them paid for together before the first look."""
        ...

    def scores(self, request: ScoreRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Scores:
        """Answer one vector of scores, paid for before the look."""
        ...

    def choose(self, request: ChoiceRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Choice:
        """Name the cliques chosen, in order, paid for before the look."""
        ...
