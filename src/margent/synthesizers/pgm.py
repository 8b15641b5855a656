"""A Markov random field of the noisy tables (Private-PGM): the law of most entropy among those that fit them best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margent.errors import PlanError
from margent.postprocessing.calibrated import CalibratedTree
from margent.postprocessing.dependence import MEAN_ABSOLUTE, independent_table
from margent.postprocessing.junction import junction_tree, tree_cells, triangulated
from margent.postprocessing.posterior import OneWays, improved_one_ways
from margent.postprocessing.tables import Evidence, Table, average, evidence, projected, working_domain
from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.settings import MOST_CELLS, require_between
from margent.stream import Stream
from margent.synthesizers.columns import Columns, columns_of, sampleable_codes
from margent.synthesizers.random_field import FieldSettings, fit_field, require_mbi
from margent.synthesizers.shares import WHOLE, Share
from margent.synthesizers.tree_records import draw_records
from margent.transcript import Transcript


@dataclass(frozen=True)
class Pgm:
    """Fit a random field to the noisy tables, each weighed by its precision; draw records along its junction tree.

    The tables' graph is made chordal, and the cliques of that hold at most ``most_cells`` cells together. Tables that
    do not fit under the cap lose what they say of dependence, those that say least of it first: what is left of them
    are their single columns.

    Privacy: none: post-processing. Source: McKenna, Sheldon, Miklau 2019, through the library mbi.
    """

    most_cells: int = 1_000_000
    settings: FieldSettings = field(default_factory=FieldSettings)
    name: str = "pgm"

    def __post_init__(self) -> None:
        """Check the cap. Raises: UsageError."""
        require_between(self, most_cells=(1, MOST_CELLS))

    def refusal(self, domain: Domain) -> str | None:
        """Why single columns might pass the cap, whatever codes noisy answers merge; None where they cannot.

        Privacy: none: public facts only.
        """
        cells = sum(domain.sizes)
        if cells <= self.most_cells:
            return None
        return (
            f"single columns have {cells:,} codes together, and the model of synthesizer {self.name!r} holds at most "
            f"{self.most_cells:,} cells (--set most_cells={cells})"
        )

    def build(self, transcript: Transcript, progress: Progress) -> PgmModel:
        """Fit the field. Takes any transcript.

        Privacy: none: post-processing.
        Raises: PlanError where single columns alone pass the cap; UsageError where mbi is not installed.
        """
        require_mbi()
        progress("model", 0.0)
        working = working_domain(transcript, sampleable_codes(transcript))
        known = evidence(transcript, working)
        total = max(known.total, 1.0)
        tables = fitting(known, total, self.most_cells)
        singles: list[Clique] = [(name,) for name in working.domain.names]
        tree = junction_tree(triangulated([*singles, *(table.clique for table in tables)], working.domain))
        law = fit_field(tables, working.domain, tree, total, self.settings, progress)
        shares = [Table((name,), counts, np.ones_like(counts)) for name, counts in one_ways(law).items()]
        return PgmModel(law, columns_of(transcript, working, shares, "projected"), round(known.total))


@dataclass(frozen=True, eq=False)
class PgmModel:
    """The calibrated law over working codes, the shares of merged codes, and the number of records."""

    law: CalibratedTree
    columns: Columns
    total: int

    @property
    def domain(self) -> Domain:
        """The codes' domain, unmerged."""
        return self.columns.working.full

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw ``rows`` records along the junction tree: shape (rows, d); the same bytes for the same seed.

        Privacy: none: post-processing.
        """
        drawn = draw_records(self.law, rows, Stream(seed, "pgm"), share)
        progress("records", 1.0)
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Exact expected counts of the law, in records of ``total``; needs no seed.

        They are the law's, where rules between columns change the records drawn from it too.

        Privacy: none: post-processing.
        """
        scale = self.total / self.law.total
        return [self.columns.spread(names, self.law.marginal(names) * scale) for names in cliques]


def one_ways(law: CalibratedTree) -> dict[str, NDArray[np.float64]]:
    """The law's table of every single column. Units: records. Privacy: none: post-processing."""
    return {name: law.marginal((name,)) for name in law.domain.names}


def fitting(known: Evidence, total: float, most_cells: int) -> tuple[Table, ...]:
    """The tables whose junction tree has at most ``most_cells`` cells; of the others, their single columns.

    Tables come by what they say of dependence: how many records they are away from the product of their one-ways,
    beyond what noise alone brings about; the weakest are left out first.

    Units: cells. Privacy: none: post-processing.
    Raises: PlanError where single columns alone pass the cap.
    """
    domain = known.working.domain
    kept = [table for table in known.tables if len(table.clique) <= 1]
    cliques: list[Clique] = [(name,) for name in domain.names]
    if (least := tree_cells(cliques, domain)) > most_cells:
        raise PlanError(f"single columns have {least:,} cells together and the model's cap is {most_cells:,}: raise it")
    several = [table for table in known.tables if len(table.clique) > 1]
    if tree_cells([*cliques, *(table.clique for table in several)], domain) > most_cells:
        beliefs = improved_one_ways(known, total)
        several.sort(key=lambda table: (-_dependence_told(table, beliefs, total), table.clique))
    for table in several:
        if tree_cells([*cliques, table.clique], domain) <= most_cells:
            cliques.append(table.clique)
            kept.append(table)
        elif not table.interaction:
            kept += [projected(table, (name,)) for name in table.clique]
    by_clique: dict[Clique, list[Table]] = {}
    for table in kept:
        by_clique.setdefault(table.clique, []).append(table)
    return tuple(average(by_clique[names]) for names in sorted(by_clique))


def _dependence_told(table: Table, beliefs: OneWays, total: float) -> float:
    """|y - product of one-ways|_1 less the mean absolute noise of all cells. Units: records."""
    product = independent_table(beliefs.counts, table.clique, total)
    return float(np.abs(table.values - product).sum() - MEAN_ABSOLUTE * np.sqrt(table.variance).sum())
