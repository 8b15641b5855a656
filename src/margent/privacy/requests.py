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

from margent.privacy.accounting import Account
from margent.privacy.charge import Charge, Relation
from margent.schema.domain import Clique, Domain, Merge
from margent.schema.fields import Schema
from margent.transcript import NoisyMarginal, Scores

NO_MERGES: Mapping[str, Merge] = {}


@dataclass(frozen=True, slots=True)
class MarginalRequest:
    """Ask for the contingency table over ``clique`` plus discrete Gaussian noise of parameter s^2 in each cell.

    Units: records squared; ``scale_squared`` lies on the public scale grid.
    Privacy: sensitivity per relation in `margent.privacy.queries.marginal_sensitivity_squared`.
    """

    clique: Clique
    scale_squared: Fraction
    merged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRequest:
    """Ask for one score a clique, each with its own draw of discrete Gaussian noise of parameter s^2.

    ``expected`` gives, for kind "independence", the public counts of single columns (built from noisy answers
    only) from whose products the tables' distances are measured.

    Units: ``scale_squared`` in squared lattice units of the score (`margent.privacy.queries.SCORE_LATTICE`: the
    score is a whole number of them), because the noise is priced and drawn on that lattice.
    Privacy: one charge for the vector; sensitivities in `margent.privacy.queries`.
    """

    kind: Literal["indif", "independence"]
    cliques: tuple[Clique, ...]
    scale_squared: Fraction
    merged: bool = False
    expected: Mapping[str, NDArray[np.float64]] | None = None


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
    def relation(self) -> Relation:
        """Which tables count as neighbours in this run."""
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
