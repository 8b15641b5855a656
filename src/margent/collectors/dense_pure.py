"""What `dense` buys under pure epsilon: few pairs, each bought well, picked by noisy scores or by choices.

Under Laplace noise a budget epsilon buys variance 2/epsilon^2, so small parts buy next to nothing: the expected
error of a shrunk table, .8 sqrt(v/(1 + epsilon^2 v/2)) a cell, is flat at epsilon = 0 and convex only beyond
epsilon = v^(-1/2). The program that divides a Gaussian budget among all pairs is no longer convex, and a second
one-way table does not add to the first as it does there. So a pair is bought whole or not at all: PrivSyn's greedy
criterion, with the exponents of Laplace noise (`margent.collectors.allocation`), picks from noisy scores; where m
scores at scale m/epsilon drown in their noise, a number of pairs fixed beforehand is chosen instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from margent.collectors.allocation import allocate
from margent.collectors.densemarg import select_pairs
from margent.collectors.one_ways import informative_columns, one_way_requests, one_way_stage
from margent.collectors.stage import Stage, coarsening_note, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.dependence import Counts, score_distances
from margent.privacy.budget import Budget
from margent.privacy.laws import Law
from margent.privacy.queries import marginal_law, score_law
from margent.privacy.requests import ChoiceRequest, Curator, MarginalRequest, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge
from margent.transcript import Answer, Choice, Scores


@dataclass(frozen=True, eq=False)
class Known:
    """What the one-ways taught: candidate pairs, single columns with their noise a code, total, merges.

    Units: records. Privacy: none: public facts and noisy answers.
    """

    pairs: tuple[Clique, ...]
    singles: Mapping[str, Counts]
    noise: Mapping[str, Counts]
    total: float
    merges: Mapping[str, Merge]


@dataclass(frozen=True)
class Pure:
    """Buy one-ways, then scores or choices of pairs, then the pairs.

    ``one_way_share`` and ``pick_share`` of the budget. ``score_noise``: scores of all m pairs are bought while their
    noise (sqrt 2 m/epsilon records) is at most this share of the noisy total. Otherwise ``choices_a_column`` times
    (columns - 1) pairs are chosen, or as many as leave an average candidate's table wrong by at most
    ``pair_noise`` of the records through noise alone; where that is fewer than columns - 1, too few to connect
    all columns, no pair is bought and everything goes to one-ways.

    Privacy: Laplace releases and choices by the exponential mechanism; sensitivities as registered for `marginal`
    and `independence`.
    Source: ours (``docs/how-it-works/dense.md``).
    """

    one_way_share: Fraction = Fraction(30, 100)
    pick_share: Fraction = Fraction(5, 100)
    score_noise: float = 0.1
    pair_noise: float = 0.3
    choices_a_column: int = 2
    most_cells: int = 10_000_000

    def __post_init__(self) -> None:
        """Check the shares. Raises: UsageError."""
        if not shares_leave_a_rest(self.one_way_share, self.pick_share):
            raise UsageError("dense: the pure shares of one-ways and picks must be positive and sum to less than 1")

    def stages(self, domain: Domain, budget: Budget, merge_above: int, max_pair_cells: int) -> tuple[Stage, ...]:
        """Three stages, for two or more columns. Privacy: none: public facts only."""
        columns = informative_columns(domain)
        cells = sorted(min(domain.cells(pair), max_pair_cells) for pair in combinations(columns, 2))
        law = score_law("independence", len(cells), budget.total * self.pick_share, budget.neighbors, budget.account)
        share = 1 - self.one_way_share - self.pick_share
        choices = max(1, min(self.choices_a_column * (len(columns) - 1), len(cells)))
        parts = allocate(
            budget.total * self.one_way_share, [domain.size(name) for name in columns], budget.account.scale_power
        )
        return (
            one_way_stage(domain, budget, self.one_way_share, parts),
            score_stage(
                "dependence of pairs",
                self.pick_share,
                cells,
                law,
                f"{coarsening_note(domain, merge_above, max_pair_cells)}; or, below about "
                f"{math.sqrt(law.variance) / self.score_noise:,.0f} rows, a choice of {choices} pairs",
            ),
            Stage(
                name="pairs",
                share=share,
                questions=len(cells),
                largest=cells[-1],
                cells=max(min(sum(cells), self.most_cells), sum(cells[-choices:])),
                law=marginal_law(budget.total * share / choices, budget.neighbors, budget.account),
                note=f"error as if {choices} pairs of one size were bought; the fewer are worth it, the less noise",
                new=0,
            ),
        )

    def collect(self, curator: Curator, budget: Budget, left: Fraction, known: Known) -> tuple[Answer, ...]:
        """Spend ``left`` on picking pairs and on the pairs picked; on one-ways once more where there are none."""
        if not known.pairs:
            return self._one_ways_again(curator, left)
        share = budget.total * self.pick_share
        law = score_law("independence", len(known.pairs), share, curator.neighbors, curator.account)
        picked: Answer
        if math.sqrt(law.variance) <= self.score_noise * known.total:
            picked, pairs = self._by_scores(curator, known, law, left - share)
        elif choices := self._choices(curator, known, left - share):
            picked = self._by_choice(curator, known, share, choices)
            pairs = picked.cliques
        else:
            return self._one_ways_again(curator, left)
        left -= share
        if not pairs:
            return (picked, *self._one_ways_again(curator, left))
        merged = curator.domain.merged(known.merges)
        parts = allocate(left, [merged.cells(pair) for pair in pairs], curator.account.scale_power)
        requests = [
            MarginalRequest(pair, marginal_law(part, curator.neighbors, curator.account), merged=bool(known.merges))
            for pair, part in zip(pairs, parts, strict=True)
        ]
        return (picked, *curator.measure(requests, label="pairs", merges=known.merges))

    def _by_scores(self, curator: Curator, known: Known, law: Law, left: Fraction) -> tuple[Scores, tuple[Clique, ...]]:
        """Noisy distances of all pairs from independence, and the pairs that are worth their noise."""
        request = ScoreRequest("independence", known.pairs, law, merged=bool(known.merges), expected=known.singles)
        scores = curator.scores(request, label="dependence of pairs", merges=known.merges)
        distances = score_distances(scores, known.singles, known.noise, known.total)
        merged = curator.domain.merged(known.merges)
        error = marginal_law(left, curator.neighbors, curator.account).mean_absolute
        cells = [merged.cells(pair) for pair in known.pairs]
        places = select_pairs(distances, cells, error, self.most_cells, curator.account.scale_power)
        return scores, tuple(known.pairs[place] for place in places)

    def _choices(self, curator: Curator, known: Known, left: Fraction) -> int:
        """How many pairs to choose: a function of sizes, budget and the noisy total; 0 where too few can be paid for.

        k tables of average sqrt(c) share epsilon so that each is off by k (sqrt c)^2 e / 2 records in total variation,
        e the mean absolute noise of a cell that had all of epsilon.
        """
        merged = curator.domain.merged(known.merges)
        roots = [math.sqrt(merged.cells(pair)) for pair in known.pairs]
        one = marginal_law(left, curator.neighbors, curator.account).mean_absolute * (sum(roots) / len(roots)) ** 2 / 2
        spanning = len({name for pair in known.pairs for name in pair}) - 1
        affordable = int(min(self.pair_noise * known.total / max(one, 1e-9), 1e9))
        return min(self.choices_a_column * spanning, affordable, len(roots)) if affordable >= spanning else 0

    def _by_choice(self, curator: Curator, known: Known, share: Fraction, choices: int) -> Choice:
        """The pairs farthest from independence, by the exponential mechanism, one after another."""
        request = ChoiceRequest(
            "independence",
            known.pairs,
            curator.account.exponential_epsilon(share / choices),
            choices,
            merged=bool(known.merges),
            expected=known.singles,
        )
        return curator.choose(request, label="choice of pairs", merges=known.merges)

    def _one_ways_again(self, curator: Curator, left: Fraction) -> tuple[Answer, ...]:
        """All one-ways with what is left."""
        columns = informative_columns(curator.domain)
        sizes = [curator.domain.size(name) for name in columns]
        parts = allocate(left, sizes, curator.account.scale_power)
        return curator.measure(one_way_requests(curator, columns, parts), label="one-way marginals again")
