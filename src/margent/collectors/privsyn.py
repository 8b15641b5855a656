"""PrivSyn's buying half: one-ways, dependence scores, the pairs worth their noise, combined and measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

from margent.collectors.combine import combine, largest_combined, most_combined
from margent.collectors.densemarg import connect, select_pairs, shrunk
from margent.collectors.first_tables import candidate_pairs, measured
from margent.collectors.one_ways import informative_columns, one_way_requests, one_way_stage
from margent.collectors.stage import Stage, candidates_note, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.merging import low_count_merges
from margent.privacy.budget import Budget
from margent.privacy.queries import SCORE_LATTICE, marginal_law, score_law
from margent.privacy.requests import Curator, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Answer, Scores, Transcript


@dataclass(frozen=True)
class PrivSyn:
    """Buy one-ways (a tenth), InDif scores of all pairs (a tenth), and the chosen marginals (the rest).

    Which marginals are chosen, how they are combined and how the last share is divided follow from the noisy
    scores alone. A share that finds nothing to buy goes to one-way marginals, so the whole budget is used.

    - ``merge_below``: codes with a one-way count under so many standard deviations are counted as one group.
    - ``shrink_scores``: pull scores towards 0 as far as their noise explains them (False: as published).
    - ``gamma``: most cells of a combined marginal (1: combine nothing).
    - ``max_pair_cells``: pairs with more cells are no candidates.
    - ``max_chosen_cells``: most cells of all chosen pairs together, before pairs are combined or columns connected.
    - ``uncovered``: what becomes of a column in no chosen pair: its one-way is measured again ("isolate"), or
      the pair that ties it most to a covered column is bought too ("connect").

    Privacy: Gaussian releases, or Laplace ones where the account is pure; sensitivities as registered for
    `marginal` and `indif`.
    Source: PrivSyn 2021 sections 4 and 5, with the noise scale, the score's sensitivity under replacement and
    Algorithm 2 corrected (see ``docs/how-it-works/privsyn.md``).
    """

    one_way_share: Fraction = Fraction(1, 10)
    score_share: Fraction = Fraction(1, 10)
    merge_below: float = 3.0
    shrink_scores: bool = True
    gamma: int = 5000
    max_pair_cells: int = 1_000_000
    max_chosen_cells: int = 10_000_000
    uncovered: Literal["isolate", "connect"] = "isolate"
    name: str = "privsyn"

    def __post_init__(self) -> None:
        """Check the shares. Raises: UsageError."""
        if not shares_leave_a_rest(self.one_way_share, self.score_share):
            raise UsageError("privsyn: the shares of one-ways and scores must be positive, their sum below 1")
        require_between(
            self,
            merge_below=(0, 1e6),
            gamma=(1, MOST_CELLS),
            max_pair_cells=(4, MOST_CELLS),
            max_chosen_cells=(1, MOST_CELLS),
        )

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """Three stages, the last two at most; one where there are no pairs.

        Privacy: none: public facts only.
        """
        columns = informative_columns(domain)
        if len(columns) < 2:
            parts = [budget.total] * len(columns)
            return (one_way_stage(domain, budget, Fraction(1), parts),)
        part = budget.total * self.one_way_share / len(columns)
        # Merging can only make tables smaller, and may bring a pair under the cap.
        cells = [min(domain.cells(pair), self.max_pair_cells) for pair in combinations(columns, 2)]
        score = score_law("indif", len(cells), budget.total * self.score_share, budget.neighbors, budget.account)
        rest = 1 - self.one_way_share - self.score_share
        cell = marginal_law(budget.total * rest / len(cells), budget.neighbors, budget.account)
        sizes = domain.shape(columns)
        connecting = len(columns) * max(cells) if self.uncovered == "connect" else 0
        pairs = min(sum(cells), self.max_chosen_cells + connecting)
        return (
            one_way_stage(domain, budget, self.one_way_share, [part] * len(columns)),
            score_stage(
                "dependence of pairs",
                self.score_share,
                cells,
                score.in_units_of(SCORE_LATTICE["indif"]),
                candidates_note([domain.cells(pair) for pair in combinations(columns, 2)], self.max_pair_cells),
            ),
            Stage(
                name="chosen marginals",
                share=rest,
                # Combining leaves no more tables than pairs; columns of no pair are measured alone.
                questions=max(len(cells), len(columns)),
                largest=max(*cells, *sizes, largest_combined(sizes, self.gamma)),
                cells=pairs + most_combined(sizes, self.gamma) + sum(sizes),
                law=cell,
                note="the fewer pairs are worth it, the less noise",
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget in three stages, each sized from public facts and earlier noisy answers."""
        domain = curator.domain
        columns = informative_columns(domain)
        if not columns:
            return Transcript(curator.schema, domain, self.name, curator.charges, ())
        lone = len(columns) == 1
        first = budget.total if lone else budget.total * self.one_way_share
        requests = one_way_requests(curator, columns, [first / len(columns)] * len(columns))
        one_ways = curator.measure(requests, label="one-way marginals")
        if lone:
            return Transcript(curator.schema, domain, self.name, curator.charges, one_ways)
        left = budget.total - first

        merges = low_count_merges(one_ways, self.merge_below)
        merged_domain = domain.merged(merges)

        scores: tuple[Scores, ...] = ()
        chosen: tuple[Clique, ...] = ()
        if candidates := candidate_pairs(merged_domain, self.max_pair_cells):
            share = budget.total * self.score_share
            scores = (self._scores(curator, candidates, merges, share),)
            left -= share
            chosen = self._choose(curator, scores[0], merged_domain, left)
        covered = {name for names in chosen for name in names}
        lonely = [(name,) for name in columns if name not in covered]
        bought = measured(curator, merges, [*chosen, *lonely], left, "chosen marginals")
        answers: tuple[Answer, ...] = (*one_ways, *scores, *bought)
        return Transcript(curator.schema, domain, self.name, curator.charges, answers, merges)

    def _scores(
        self, curator: Curator, pairs: tuple[Clique, ...], merges: Mapping[str, Merge], share: Fraction
    ) -> Scores:
        """InDif of every candidate as one release: variance m Delta^2 / (2 rho) each, or scale m Delta/epsilon."""
        law = score_law("indif", len(pairs), share, curator.neighbors, curator.account)
        request = ScoreRequest("indif", pairs, law, merged=bool(merges))
        return curator.scores(request, label="dependence of pairs", merges=merges)

    def _choose(self, curator: Curator, scores: Scores, domain: Domain, share: Fraction) -> tuple[Clique, ...]:
        """DenseMarg, then combination: the cliques to measure, from noisy scores and public facts."""
        error = marginal_law(share, curator.neighbors, curator.account).mean_absolute
        phi = scores.records()
        if self.shrink_scores:
            phi = shrunk(phi, math.sqrt(scores.variance))
        cells = [domain.cells(pair) for pair in scores.cliques]
        places = list(select_pairs(phi, cells, error, self.max_chosen_cells, curator.account.scale_power))
        if self.uncovered == "connect":
            covered = {name for place in places for name in scores.cliques[place]}
            lonely = [name for name in domain.names if name not in covered]
            places += connect(lonely, scores.cliques, phi, covered)
        return combine([scores.cliques[place] for place in places], domain, self.gamma)
