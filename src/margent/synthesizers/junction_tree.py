"""Junction-tree sampling: one clique after another, each drawn given the columns that it shares with those before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.postprocessing.consistency import Consistency, Thresholded
from margent.postprocessing.junction import junction_tree, maximal, tree_cells, triangulated
from margent.postprocessing.merging import Spread
from margent.postprocessing.tree_law import TreeLaw, fitted
from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.settings import MOST_CELLS, require_between
from margent.stream import Stream
from margent.synthesizers.appending import draw_given
from margent.synthesizers.blocks import expected_or_sampled
from margent.synthesizers.columns import Columns, consistent
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import CliqueTree, Transcript


@dataclass(frozen=True)
class JunctionTreeSampling:
    """The law of largest entropy with the noisy tables, on their junction tree, and records that follow it.

    Takes the clique tree that its collector found, or triangulates the graph of the measured tables: any transcript
    whose tree has at most ``most_cells`` cells. A clique that no measured table covers is completed from the tables
    inside it. ``rounds`` bounds the fit; tables that contradict each other never settle. ``consistency``: projections
    that alternate with agreement, or JTree's own `Thresholded`.

    Privacy: none: post-processing.
    Source: JTree (Chen, Xiao, Zhang, Xu 2015) section 6; with cliques completed as in Lauritzen 1996, section 4.3.
    """

    most_cells: int = 10_000_000
    rounds: int = 200
    consistency: Consistency | Thresholded = field(default_factory=Consistency)
    spread: Spread = "projected"
    name: str = "junction-tree"

    def __post_init__(self) -> None:
        """Check cap and rounds. Raises: UsageError."""
        require_between(self, most_cells=(1, MOST_CELLS), rounds=(1, 100_000))

    def refusal(self, cells: int) -> str | None:
        """Why a junction tree of up to so many cells might be refused; None where it is not.

        Privacy: none: public facts only.
        """
        if cells <= self.most_cells:
            return None
        return (
            f"a junction tree of up to {cells:,} cells may be bought, and synthesizer {self.name!r} takes at most "
            f"{self.most_cells:,}: lower max_tree_cells, or raise the other (--set most_cells={cells})"
        )

    def build(self, transcript: Transcript, progress: Progress) -> JunctionTreeModel:
        """Make the noisy tables consistent and fit the law.

        Privacy: none: post-processing.
        Raises: UsageError where the junction tree has too many cells.
        """
        answers = (*transcript.marginals, *transcript.interactions)
        measured = [answer.clique for answer in answers if set(answer.clique) <= set(transcript.domain.names)]
        structure = transcript.structure
        cliques = structure.cliques if isinstance(structure, CliqueTree) else tuple(measured)
        # Whatever is in no clique is a clique of its own; constant columns take no room.
        cliques = maximal((*cliques, *((name,) for name in transcript.domain.names)))
        constant = sum(names == (name,) for names in cliques for name in names if transcript.domain.size(name) == 1)
        cells = tree_cells(cliques, transcript.merged_domain) - constant
        if cells > self.most_cells:
            raise UsageError(
                f"the junction tree of the measured tables has {cells:,} cells, and synthesizer {self.name!r} takes "
                f"at most {self.most_cells:,}: too many pairs of columns were measured for it; "
                "build from these answers with synthesizer 'descent' or 'gum'"
            )
        tables, columns, total = consistent(transcript, self.consistency, self.spread, progress)
        domain = columns.working.domain
        tree = junction_tree(triangulated(cliques, domain))
        targets = {names: table.values for names, table in tables.items() if names and table.values.sum() > 0}
        known = {name for names in targets for name in names}
        targets |= {(name,): columns.shares[name] for name in domain.names if name not in known}
        rulebook = transcript.schema.rulebook
        zeros = None if rulebook is None else rulebook.zeros.merged(columns.working.groups)
        return JunctionTreeModel(self, fitted(tree, domain, targets, zeros=zeros, rounds=self.rounds), columns, total)


@dataclass(frozen=True, eq=False)
class JunctionTreeModel:
    """The fitted law over the working domain, and single columns to tell merged codes apart."""

    settings: JunctionTreeSampling
    law: TreeLaw
    columns: Columns
    total: int

    @property
    def domain(self) -> Domain:
        """The codes' domain, unmerged."""
        return self.columns.working.full

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw ``rows`` records: shape (rows, d); the same bytes for the same seed.

        Within each group of records that agree on a separator the fresh columns are apportioned, so that a table is
        met up to rounding and not up to the error of a resample.

        Privacy: none: post-processing.
        """
        domain, tree = self.law.domain, self.law.tree
        drawn: dict[str, NDArray[np.int32]] = {}
        for place, separator in enumerate(tree.separators):
            fresh = self.law.fresh[place]
            groups = np.zeros(rows, dtype=np.int64)
            for name in separator:
                groups = groups * domain.size(name) + drawn[name]
            given = self.law.conditional(place)
            cells = draw_given(given, given.mean(axis=0), groups, Stream(seed, "junction-tree", *fresh), share, *fresh)
            values = np.unravel_index(cells, domain.shape(fresh))
            drawn.update((name, codes.astype(np.int32)) for name, codes in zip(fresh, values, strict=True))
            progress("records", (place + 1) / len(tree.cliques))
        if not tree.cliques:
            progress("records", 1.0)
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Exact expected counts over each clique; of ``total`` sampled records where that takes too large a table.

        Where rules tie columns together, of sampled records too: those that break a rule were changed.

        Privacy: none: post-processing.
        """

        def expected(names: Clique) -> NDArray[np.float64] | None:
            ruled = self.columns.rulebook is not None
            shares = None if ruled else self.law.table(names, self.settings.most_cells)
            return None if shares is None else self.columns.spread(names, shares) * self.total

        return expected_or_sampled(self, cliques, expected, seed)
