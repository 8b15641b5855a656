"""Pairs for a random field: one-ways, scores of all pairs, and the pairs that pay and fit in a junction tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margent.collectors.densemarg import select_pairs
from margent.collectors.first_tables import FirstTables, first_stage, first_tables, measured, scored
from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage, candidates_note, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.junction import tree_cells
from margent.privacy.budget import Budget
from margent.privacy.queries import marginal_law, score_law
from margent.privacy.requests import Curator
from margent.schema.domain import Clique, Domain
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Answer, Transcript


@dataclass(frozen=True)
class CappedPairs:
    """Buy one-ways (a quarter), distances of all pairs from independence (a twentieth), and all chosen pairs at once.

    Pairs are added one by one, each time the one that lowers the expected error most, while the junction tree of all
    of them stays within ``most_tree_cells``; one that would pass the cap is passed over for good. What has no pair
    worth its noise buys one-ways again. ``max_pair_cells`` and ``merge_below`` as in `Mst`.

    Privacy: Gaussian releases, or Laplace ones where the account is pure; sensitivities as registered for `marginal`
    and `independence`.
    Source: one pass of scores and one of tables under a cap as in SWIFT (Google's dpsynth, 2026); the choice is
    PrivSyn's (Zhang et al. 2021) on scores of sensitivity 1 without the bias of noisy one-ways.
    """

    one_way_share: Fraction = Fraction(25, 100)
    score_share: Fraction = Fraction(5, 100)
    merge_below: float = 3.0
    max_pair_cells: int = 1_000_000
    most_tree_cells: int = 1_000_000
    name: str = "pgm"

    def __post_init__(self) -> None:
        """Check the shares. Raises: UsageError."""
        if not shares_leave_a_rest(self.one_way_share, self.score_share):
            raise UsageError("pgm: the shares of one-ways and scores must be positive, their sum below 1")
        require_between(self, merge_below=(0, 1e6), max_pair_cells=(4, MOST_CELLS), most_tree_cells=(1, MOST_CELLS))

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """Three stages, the last at most; one where there are no pairs. Privacy: none: public facts only."""
        columns = informative_columns(domain)
        first = first_stage(domain, budget, self.one_way_share)
        if len(columns) < 2:
            return (first,)
        own = [domain.cells(pair) for pair in combinations(columns, 2)]
        cells = [min(count, self.max_pair_cells) for count in own]
        law = score_law("independence", len(cells), budget.total * self.score_share, budget.neighbors, budget.account)
        rest = 1 - self.one_way_share - self.score_share
        return (
            first,
            score_stage(
                "dependence of pairs",
                self.score_share,
                cells,
                law,
                candidates_note(own, self.max_pair_cells),
            ),
            Stage(
                name="pairs under the junction-tree cap",
                share=rest,
                questions=max(len(cells), len(columns)),
                largest=max(*cells, first.largest),
                cells=max(sum(cells), first.cells),
                law=marginal_law(budget.total * rest / len(cells), budget.neighbors, budget.account),
                note=f"a model of at most {self.most_tree_cells:,} cells; the fewer pairs are worth it, the less noise",
                new=0,
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget in three stages, each sized from public facts and earlier noisy answers."""
        domain = curator.domain
        if not informative_columns(domain):
            return Transcript(curator.schema, domain, self.name, curator.charges, ())
        first = first_tables(curator, budget, self.one_way_share, self.merge_below, self.name)
        answers: tuple[Answer, ...] = first.one_ways
        if len(first.one_ways) > 1:
            left = budget.total * (1 - self.one_way_share)
            chosen: list[Clique] = []
            if pairs := first.pairs(self.max_pair_cells):
                share = budget.total * self.score_share
                scores, apart = scored(curator, first, pairs, share, "dependence of pairs")
                answers, left = (*answers, scores), left - share
                chosen = self._choose(curator, first, pairs, apart, left)
            covered = {name for pair in chosen for name in pair}
            alone = [(name,) for name in informative_columns(domain) if chosen and name not in covered]
            answers = (
                *answers,
                *measured(curator, first.merges, [*chosen, *alone], left, "pairs under the junction-tree cap"),
            )
        return Transcript(curator.schema, domain, self.name, curator.charges, answers, first.merges)

    def _choose(
        self,
        curator: Curator,
        first: FirstTables,
        pairs: Sequence[Clique],
        apart: NDArray[np.float64],
        share: Fraction,
    ) -> list[Clique]:
        """DenseMarg's greedy choice, but for pairs that the model has no room for."""
        domain = first.domain
        singles: list[Clique] = [(name,) for name in domain.names]

        def fits(chosen: Sequence[int], place: int) -> bool:
            return tree_cells([*singles, *(pairs[each] for each in [*chosen, place])], domain) <= self.most_tree_cells

        error = marginal_law(share, curator.neighbors, curator.account).mean_absolute
        places = select_pairs(
            apart,
            [domain.cells(pair) for pair in pairs],
            error,
            scale_power=curator.account.scale_power,
            allowed=fits,
        )
        return [pairs[place] for place in places]
