"""Independent columns: each drawn from its own noisy shares, no two related."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.consistency import Consistency
from margent.postprocessing.merging import Spread
from margent.postprocessing.tables import evidence, working_domain
from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.stream import Stream
from margent.synthesizers.blocks import sampled_counts
from margent.synthesizers.columns import Columns, columns_of, sampleable_codes
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import Transcript


@dataclass(frozen=True)
class IndependentColumns:
    """The product of the one-way shares. Takes any transcript; all it uses of a table is its margins.

    Privacy: none: post-processing.
    """

    spread: Spread = "projected"
    name: str = "independent"

    def build(self, transcript: Transcript, progress: Progress) -> IndependentModel:
        """Make the tables agree and keep their margins."""
        progress("consistency", 0.0)
        working = working_domain(transcript, sampleable_codes(transcript))
        known = evidence(transcript, working)
        tables = Consistency().apply(known.tables, max(known.total, 1.0))
        progress("consistency", 1.0)
        return IndependentModel(columns_of(transcript, working, tables, self.spread), round(known.total))


@dataclass(frozen=True, eq=False)
class IndependentModel:
    """Shares of every column, and the number of records."""

    columns: Columns
    total: int

    @property
    def domain(self) -> Domain:
        """The codes' domain, unmerged."""
        return self.columns.working.full

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw ``rows`` records of independent columns: shape (rows, d). Privacy: none: post-processing."""
        drawn = {
            name: self.columns.alone(name, rows, Stream(seed, "independent", name), share) for name in self.domain.names
        }
        rules = self.columns.rules
        if rules is not None and rows > 0:
            records = np.stack([drawn[name] for name in self.domain.names], axis=1)
            records = rules.balanced(records, Stream(seed, "independent", "rules"), share)
            drawn = dict(zip(self.domain.names, np.ascontiguousarray(records.T), strict=True))
        progress("records", 1.0)
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Exact expected counts: outer products of shares, times ``total``; counts of sampled records where rules hold.

        Privacy: none: post-processing.
        """
        if self.columns.rulebook is not None:
            return sampled_counts(self, cliques, seed)
        tables = []
        for names in cliques:
            table = np.asarray(float(self.total))
            for name in names:
                table = np.multiply.outer(table, self.columns.full_shares(name))
            tables.append(table)
        return tables
