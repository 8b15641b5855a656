"""Ancestral sampling from a Bayesian network: every column drawn given its parents, in the network's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.consistency import Consistency
from margent.postprocessing.tables import evidence, working_domain
from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.synthesizers.blocks import expected_or_sampled
from margent.synthesizers.columns import Columns, columns_of, sampleable_codes
from margent.synthesizers.conditionals import Conditionals, conditionals_of, required_network, with_views
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import Transcript

MOST_EXACT_CELLS = 1_000_000
"""Cells of a table with all ancestors of its columns up to which the model's marginals are computed, not counted."""


@dataclass(frozen=True)
class Ancestral:
    """Records from the conditionals of a network, each column drawn given its parents.

    Takes transcripts that come with a Bayesian network. ``tables`` are made to agree first ("consistent"), or taken as
    bought ("noisy"); cells below 0 count as 0 either way.

    Privacy: none: post-processing. Source: PrivBayes (Zhang et al. 2014); what differs is in
    ``docs/how-it-works/privbayes.md``.
    """

    tables: Literal["consistent", "noisy"] = "consistent"
    consistency: Consistency = field(default_factory=Consistency)
    name: str = "ancestral"

    def build(self, transcript: Transcript, progress: Progress) -> AncestralModel:
        """Make conditionals of the noisy tables.

        Privacy: none: post-processing.
        Raises: UsageError where the transcript has no network.
        """
        network = required_network(transcript, self.name)
        progress("consistency", 0.0)
        wide, written = with_views(transcript)
        working = working_domain(wide, written)
        known = evidence(wide, working)
        tables = known.tables
        if self.tables == "consistent" and tables:
            tables = tuple(self.consistency.apply(tables, max(known.total, 1.0)))
        law = conditionals_of(network, transcript, working, tables)
        plain = working_domain(transcript, sampleable_codes(transcript))
        names = set(transcript.domain.names)
        own = [table for table in tables if names.issuperset(table.clique)]
        progress("consistency", 1.0)
        return AncestralModel(law, columns_of(transcript, plain, own, "projected"), round(known.total))


@dataclass(frozen=True, eq=False)
class AncestralModel:
    """The conditionals, how working codes are told apart, and the number of records."""

    law: Conditionals
    columns: Columns
    total: int

    @property
    def domain(self) -> Domain:
        """The codes' domain, unmerged."""
        return self.columns.working.full

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw ``rows`` records: shape (rows, d); the same bytes for the same seed. Privacy: none: post-processing."""
        drawn = self.law.draw(rows, seed, share)
        progress("records", 1.0)
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Exact expected counts where the columns' ancestors are few; counts of ``total`` sampled records otherwise.

        Where rules tie columns together, of sampled records too: those that break a rule were changed.

        Privacy: none: post-processing.
        """

        def expected(names: Clique) -> NDArray[np.float64] | None:
            joint = None if self.columns.rulebook is not None else self.law.joint(names, MOST_EXACT_CELLS)
            return None if joint is None else self.columns.spread(names, joint) * self.total

        return expected_or_sampled(self, cliques, expected, seed)
