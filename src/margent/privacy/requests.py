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
from margent.schema.domain import Clique, Domain, Merge
from margent.schema.fields import Schema
from margent.transcript import Choice, NoisyMarginal, Scores

ScoreKind = Literal["indif", "independence"]
NO_MERGES: Mapping[str, Merge] = {}


@dataclass(frozen=True, slots=True)
class MarginalRequest:
    """Ask for the contingency table over ``clique`` plus independent noise of ``law`` in each cell.

    Units: records; the law's scale lies on the public scale grid.
    Privacy: sensitivities per relation in `margent.privacy.queries`.
    """

    clique: Clique
    law: Law
    merged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRequest:
    """Ask for one score a clique, each with its own draw of noise of ``law``.

    ``expected`` gives, for kind "independence", the public counts of single columns (built from noisy answers
    only) from whose products the tables' distances are measured.

    Units: ``law`` in lattice units of the score (`margent.privacy.queries.SCORE_LATTICE`: the score is a whole
    number of them), because the noise is priced and drawn on that lattice.
    Privacy: one charge for the vector; sensitivities in `margent.privacy.queries`.
    """

    kind: ScoreKind
    cliques: tuple[Clique, ...]
    law: Law
    merged: bool = False
    expected: Mapping[str, NDArray[np.float64]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceRequest:
    """Ask which ``choices`` of ``cliques`` score highest: one after another, without replacement.

    Each is chosen by the exponential mechanism at ``epsilon`` among those left: Pr[c] proportional to
    exp(epsilon score_c / (2 Delta)). No score is told. ``expected`` as in `ScoreRequest`.

    Privacy: one charge of ``choices`` times the price of one choice; Delta in `margent.privacy.queries`.
    Raises: UsageError where there are fewer candidates than choices, or epsilon is not a positive Fraction.
    """

    kind: ScoreKind
    cliques: tuple[Clique, ...]
    epsilon: Fraction
    choices: int = 1
    merged: bool = False
    expected: Mapping[str, NDArray[np.float64]] | None = None

    def __post_init__(self) -> None:
        """Check what the price depends on."""
        if not 1 <= self.choices <= len(set(self.cliques)) or len(set(self.cliques)) != len(self.cliques):
            raise UsageError(
                f"{self.choices} choices among {len(self.cliques)} candidates: ask for at least one choice, "
                "and name at least as many candidates, each once"
            )
        check_positive(self.epsilon, "the epsilon of a choice")


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
