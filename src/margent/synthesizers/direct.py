"""Records straight from one noisy table over all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.postprocessing.merging import Spread
from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import Table, evidence, working_domain
from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.stream import Stream
from margent.synthesizers.blocks import sampled_counts
from margent.synthesizers.columns import Columns, columns_of, sampleable_codes
from margent.synthesizers.shares import WHOLE, Share, shuffled_codes
from margent.transcript import Transcript


@dataclass(frozen=True)
class Direct:
    """The nearest table without negative cells, each cell's count rounded up or down.

    Takes transcripts that hold one table over all columns of more than one (written) code.

    Privacy: none: post-processing. Source: the Laplace baseline of Li, Dang, Wang, Li 2021.
    """

    spread: Spread = "projected"
    name: str = "direct"

    def build(self, transcript: Transcript, progress: Progress) -> DirectModel:
        """Project the full table onto the simplex of its noisy total.

        Privacy: none: post-processing.
        Raises: UsageError where the transcript has no such table.
        """
        progress("consistency", 0.0)
        working = working_domain(transcript, sampleable_codes(transcript))
        known = evidence(transcript, working)
        needed = {name for name in working.full.names if working.domain.size(name) > 1}
        full = [table for table in known.tables if needed <= set(table.clique)]
        if needed and not full:
            raise UsageError(
                f"synthesizer {self.name!r} needs one noisy table over all columns, which these answers (of method "
                f"{transcript.method!r}) do not hold: method 'laplace' buys one; any answers will do for 'descent'"
            )
        # The least noise a cell, where there are several.
        best = min(full, key=lambda table: (float(table.variance.sum()), table.clique), default=Table((), *_ONE_CELL))
        total = max(known.total, 1.0)
        table = Table(best.clique, norm_sub(best.values, total), best.variance)
        progress("consistency", 1.0)
        singles = [table] if table.clique else []
        columns = columns_of(transcript, working, singles, self.spread)
        return DirectModel(table, columns, round(known.total))


_ONE_CELL = (np.ones(()), np.ones(()))


@dataclass(frozen=True, eq=False)
class DirectModel:
    """A table over all columns, how working codes are told apart, and the number of records."""

    table: Table
    columns: Columns
    total: int

    @property
    def domain(self) -> Domain:
        """The codes' domain, unmerged."""
        return self.columns.working.full

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw ``rows`` records: shape (rows, d), in random order. Privacy: none: post-processing."""
        cells = shuffled_codes(self.table.values.ravel(), rows, Stream(seed, "direct"), share)
        places = np.unravel_index(cells, self.table.values.shape) if self.table.clique else ()
        drawn = {name: np.zeros(rows, dtype=np.int32) for name in self.domain.names}
        drawn |= {name: codes.astype(np.int32) for name, codes in zip(self.table.clique, places, strict=True)}
        progress("records", 1.0)
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Counts of ``total`` sampled records over each clique. Privacy: none: post-processing."""
        return sampled_counts(self, cliques, seed)
