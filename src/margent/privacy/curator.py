"""The door: exact counts come in, noisy answers go out, and the charge is written in between.

With `margent.privacy.merchant`, which sells bins and values before the codes are fixed, this is where exact counts are
held (besides the operator's own INTERNAL comparisons). Every method below does the same three things in the same
order: price the request from public facts, spend (all of it or nothing), and only then look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margent.counts.source import CountSource
from margent.errors import PlanError, UsageError, sealed
from margent.privacy import scores as exact_scores
from margent.privacy.accounting import Account
from margent.privacy.charge import Charge
from margent.privacy.exponential import exponential_choice
from margent.privacy.interactions import interaction_of
from margent.privacy.laws import Gaussian, Law
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.noise import discrete_gaussian, discrete_laplace, require_drawable
from margent.privacy.queries import SCORE_LATTICE, choice_charge, marginal_charges, score_charge, score_units
from margent.privacy.requests import ChoiceRequest, MarginalRequest, ScoreRequest, require_scorable
from margent.progress import Progress, silent
from margent.schema.domain import NO_MERGES, Clique, Domain, Merge
from margent.schema.fields import Schema
from margent.transcript import Choice, NoisyMarginal, Scores

NO_PUBLIC_NUMBER = (
    "the number of records is not public where a condition (where=), a query, a view or row-level security chooses "
    "them, whatever the relation: what one row says settles if it is counted. Leave the setting records out and take "
    "another score than mutual-information, or give the whole table"
)
CELLS_AT_ONCE = 2**25
"""Exact cells held at a time (256 MiB); a larger request takes several passes over the same snapshot."""


class GaussianNoise(Protocol):
    """Independent draws of the discrete Gaussian; tests put a pinned one in its place, nobody else does."""

    def __call__(self, count: int, scale_squared: Fraction) -> NDArray[np.int64]:
        """Return ``count`` draws with parameter s^2."""
        ...


class LaplaceNoise(Protocol):
    """Independent draws of the discrete Laplace law; pinned in tests only."""

    def __call__(self, count: int, scale: Fraction) -> NDArray[np.int64]:
        """Return ``count`` draws with scale t."""
        ...


class Chooser(Protocol):
    """One draw of the exponential mechanism; pinned in tests only."""

    def __call__(self, scores: list[int], epsilon: Fraction, sensitivity: Fraction) -> int:
        """Return an index i with Pr[i] proportional to exp(epsilon score_i / (2 sensitivity))."""
        ...


@dataclass(frozen=True)
class DataCurator:
    """Answers from exact counts plus exact noise; exact counts never leave its methods.

    ``selected``: what a row says may settle if it is counted (a condition, a query), so that the number of records is
    private whatever the relation.

    Privacy: every answer's charge is in ``ledger`` before the counts it needs are taken.
    """

    schema: Schema
    source: CountSource
    ledger: Ledger
    noise: GaussianNoise = discrete_gaussian
    laplace_noise: LaplaceNoise = discrete_laplace
    chooser: Chooser = exponential_choice
    progress: Progress = field(default=silent)
    selected: bool = False

    @property
    def domain(self) -> Domain:
        """The codes' domain, a function of the schema."""
        return self.source.domain

    @property
    def account(self) -> Account:
        """How charges are priced in this run."""
        return self.ledger.budget.account

    @property
    def neighbors(self) -> Neighbors:
        """Which tables count as neighbors in this run."""
        return self.ledger.budget.neighbors

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges written so far, in order."""
        return self.ledger.charges

    def measure(
        self, requests: Sequence[MarginalRequest], *, label: str, merges: Mapping[str, Merge] = NO_MERGES
    ) -> tuple[NoisyMarginal, ...]:
        """Contingency tables plus independent noise of the request's law in every cell, one charge a table.

        Shapes: answer i has the shape of its clique (merged where the request says so).
        Privacy: L2 sensitivity of a table 1 (add-remove), sqrt 2 (replace) or k (person), L1 1, 2 or k, that of an
        interaction in `margent.privacy.interactions`; charged together, before the look.
        Raises: BudgetError when the charges together pass the budget, PlanError for noise wider than 64-bit counts,
            UsageError for an interaction that has no price (nothing is then charged or looked at).
        """
        for request in requests:
            require_drawable(request.law)
        charges = marginal_charges(requests, label, self.neighbors, self.account, self.domain, merges)
        places = self.ledger.spend(charges)
        answers: list[NoisyMarginal] = []
        cliques = [request.clique for request in requests]
        merged = [request.merged for request in requests]
        for position, exact in self._exact_tables(cliques, merged, merges, label):
            request = requests[position]
            if request.interaction:
                exact = sealed("an interaction could not be computed", partial(interaction_of, exact))  # noqa: PLW2901
            noise = self._draw(exact.size, request.law).reshape(exact.shape)
            answers.append(
                NoisyMarginal(
                    clique=request.clique,
                    counts=sealed("noise could not be added", partial(_checked_sum, exact, noise)),
                    variance=request.law.variance,
                    charge=places[position],
                    merged=request.merged,
                    interaction=request.interaction,
                )
            )
        return tuple(answers)

    def scores(self, request: ScoreRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Scores:
        """One score a clique on its integer lattice, each with its own draw; one charge for the vector.

        Privacy: L2 (Gaussian) or L1 (Laplace) sensitivity of the vector, registered in `margent.privacy.queries`.
        Raises: BudgetError when the charge passes the budget, PlanError for noise wider than 64-bit counts, UsageError
            for what is no pair, has no expectation or no price (nothing is then charged or looked at).
        """
        self._require_priced(request, merges)
        require_drawable(request.law)
        (place,) = self.ledger.spend([score_charge(request, label, self.neighbors, self.account)])
        values = self._exact_scores(request, merges, label)
        noise = self._draw(values.size, request.law)
        lattice = SCORE_LATTICE[request.kind]
        return Scores(
            kind=request.kind,
            cliques=request.cliques,
            values=sealed("noise could not be added", partial(_checked_sum, values, noise)),
            denominator=lattice,
            variance=request.law.variance / lattice**2,
            charge=place,
            merged=request.merged,
            children=request.children,
        )

    def choose(self, request: ChoiceRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Choice:
        """The highest-scoring cliques by the exponential mechanism, one after another, without replacement.

        Privacy: (choices x epsilon)-DP, each choice epsilon-DP given those before it; one charge for all.
        Raises: BudgetError and UsageError as `scores`.
        """
        self._require_priced(request, merges)
        (place,) = self.ledger.spend([choice_charge(request, label, self.neighbors, self.account)])
        values = self._exact_scores(request, merges, label).tolist()
        sensitivity = Fraction(score_units(request.kind, self.neighbors, request.tables))
        left, chosen = list(range(len(values))), list[int]()
        for _ in range(request.choices):
            scores = [values[position] for position in left]
            pick = sealed("no choice could be drawn", partial(self.chooser, scores, request.epsilon, sensitivity))
            chosen.append(left.pop(pick))
        return Choice(
            kind=request.kind,
            cliques=tuple(request.cliques[position] for position in chosen),
            charge=place,
            merged=request.merged,
            children=tuple(request.children[position] for position in chosen) if request.children else (),
        )

    def _require_priced(self, request: ScoreRequest | ChoiceRequest, merges: Mapping[str, Merge]) -> None:
        """Refuse, before the charge, what the registered sensitivities do not hold for."""
        require_scorable(request, self.domain.merged(merges) if request.merged else self.domain)
        if request.tables is not None and self.selected:
            raise UsageError(NO_PUBLIC_NUMBER)

    def _draw(self, count: int, law: Law) -> NDArray[np.int64]:
        if isinstance(law, Gaussian):
            return self.noise(count, law.scale_squared)
        return self.laplace_noise(count, law.scale)

    def _exact_scores(
        self, request: ScoreRequest | ChoiceRequest, merges: Mapping[str, Merge], label: str
    ) -> NDArray[np.int64]:
        values = np.zeros(len(request.cliques), dtype=np.int64)
        merged = [request.merged] * len(request.cliques)
        for position, exact in self._exact_tables(request.cliques, merged, merges, label):
            scored = partial(_score, request, position, exact)
            values[position] = sealed("a score could not be computed", scored)
        return values

    def _exact_tables(
        self, cliques: Sequence[Clique], merged: Sequence[bool], merges: Mapping[str, Merge], label: str
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (position, exact table) in order, holding at most `CELLS_AT_ONCE` cells unless one has more."""
        domains = {True: self.domain.merged(merges), False: self.domain}
        done = 0
        while done < len(cliques):
            end, cells = done, 0
            while end < len(cliques) and merged[end] == merged[done]:
                cells += domains[merged[end]].cells(cliques[end])
                if cells > CELLS_AT_ONCE and end > done:
                    break
                end += 1
            self.progress(label, done / len(cliques))
            asked = partial(self.source.count, cliques[done:end], merges if merged[done] else NO_MERGES)
            tables = sealed("the rows could not be counted", asked)
            yield from enumerate(tables, start=done)
            done = end
        self.progress(label, 1.0)


def _score(request: ScoreRequest | ChoiceRequest, position: int, exact: NDArray[np.int64]) -> int:
    """The exact score of one table."""
    pair = request.cliques[position]
    if request.children:
        axis = pair.index(request.children[position])
        exact = np.moveaxis(exact, axis, 0).reshape(exact.shape[axis], -1)  # the others, taken together as one column
    if request.kind == "distance":
        assert request.model is not None
        return exact_scores.distance(exact, request.model[pair])
    if request.kind == "indif":
        return exact_scores.indif(exact)
    if request.kind == "r":
        return exact_scores.total_variation(exact)
    if request.kind == "f":
        return exact_scores.majority(exact)
    if request.kind == "mutual-information":
        assert request.tables is not None
        # One comes here only where records are replaced and all of a table's are counted (`_require_priced`): their
        # number is public then, the same in every neighbor, so that no row settles whether this is raised.
        if int(exact.sum()) > request.tables.records:
            raise UsageError(
                f"mutual information was priced for at most {request.tables.records} records and the table has more: "
                "give their public number"
            )
        return exact_scores.mutual_information(exact)
    assert request.expected is not None
    rows, columns = request.expected[pair[0]], request.expected[pair[1]]
    return exact_scores.independence_distance(exact, rows, columns, max(float(rows.sum()), 1.0))


def _checked_sum(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exact plus noise in int64; refused, by the noise alone, where the scale is so wide that it could wrap."""
    if noise.size and int(np.abs(noise).max()) >= 2**62:
        raise PlanError(
            "the noise is wider than 64-bit counts: the budget is too small for this many questions; "
            "raise epsilon or drop columns"
        )
    return exact + noise
