"""Our own method's buying half: one-ways, unbiased scores of all pairs, then one program for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from margent.collectors.allocation import allocate
from margent.collectors.dense_pure import Known, Pure
from margent.collectors.first_tables import candidate_pairs
from margent.collectors.one_ways import informative_columns, one_way_requests, one_way_stage
from margent.collectors.stage import SLIVER, Stage, coarsening_note, score_stage, shares_leave_a_rest
from margent.collectors.waterfill import Program, largest_kappa, sketch, stacked_pairs, variance_factors
from margent.errors import UsageError
from margent.postprocessing.coarsening import coarsened
from margent.postprocessing.dependence import score_distances
from margent.postprocessing.posterior import OneWays, improved_one_ways
from margent.postprocessing.tables import evidence, working_domain
from margent.privacy.budget import Budget
from margent.privacy.interactions import interaction_gain, interaction_sensitivity_squared
from margent.privacy.queries import interaction_law, marginal_law, marginal_sensitivity_squared, score_law
from margent.privacy.requests import Curator, MarginalRequest, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Answer, NoisyMarginal, Scores, Transcript


@dataclass(frozen=True)
class Dense:
    """Buy one-ways, then scores, then whatever lowers the predicted error over all pairs most.

    ``one_way_share``: the first slice of one-ways. ``score_share``: for the distances of all pairs from
    independence, each of sensitivity 1; where their noise is more than ``score_noise`` of the noisy total, scores
    and pairs are not worth buying and everything goes to one-ways. ``one_way_weight``: how much of a one-way's
    error is taken to enter each pair of its column. ``merge_above``: in columns of more codes than this, codes
    under three standard deviations are counted together in pair tables, neighbors where codes have an order.
    ``max_pair_cells``: columns whose pair would have more cells lose their lightest codes in the same way.

    ``pure``: what is bought instead where the account is pure (delta 0).

    Privacy: Gaussian releases; sensitivities as registered for `marginal` and `independence`.
    Source: ours (``docs/how-it-works/dense.md``).
    """

    one_way_share: Fraction = Fraction(15, 100)
    score_share: Fraction = Fraction(5, 100)
    score_noise: float = 0.25
    one_way_weight: float = 0.5
    merge_above: int = 300
    max_pair_cells: int = 1_000_000
    pure: Pure = field(default_factory=Pure)
    name: str = "dense"

    def __post_init__(self) -> None:
        if not shares_leave_a_rest(self.one_way_share, self.score_share):
            raise UsageError("dense: the shares of one-ways and scores must be positive and sum to less than 1")
        require_between(
            self,
            score_noise=(0, 1e6),
            one_way_weight=(0, 1e6),
            merge_above=(1, MOST_CELLS),
            max_pair_cells=(4, MOST_CELLS),
        )

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """Three stages, the last at most all pairs. Privacy: none: public facts only."""
        columns = informative_columns(domain)
        if len(columns) < 2:
            parts = [budget.total] * len(columns)
            return (one_way_stage(domain, budget, Fraction(1), parts),)
        if budget.account.scale_power == 1:
            return self.pure.stages(domain, budget, self.merge_above, self.max_pair_cells)
        sizes = [domain.size(name) for name in columns]
        first = allocate(budget.total * self.one_way_share, sizes)
        cells = [min(domain.cells(pair), self.max_pair_cells) for pair in combinations(columns, 2)]
        share = budget.total * self.score_share
        rest = 1 - self.one_way_share - self.score_share
        return (
            one_way_stage(domain, budget, self.one_way_share, first),
            score_stage(
                "dependence of pairs",
                self.score_share,
                cells,
                score_law("independence", len(cells), share, budget.neighbors, budget.account),
                coarsening_note(domain, self.merge_above, self.max_pair_cells),
            ),
            Stage(
                name="pairs and more one-ways",
                share=rest,
                questions=len(cells) + len(columns),
                largest=max(cells),
                cells=sum(cells) + sum(sizes),
                law=marginal_law(budget.total * rest / len(cells), budget.neighbors, budget.account),
                note="as if every pair were bought whole; the fewer are worth it, the less noise",
                parts=max(cells),
                new=0,
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget in three stages, each sized from public facts and earlier noisy answers."""
        domain, columns = curator.domain, informative_columns(curator.domain)
        if not columns:
            return Transcript(curator.schema, domain, self.name, curator.charges, ())
        sizes = [domain.size(name) for name in columns]
        lone, pure = len(columns) == 1, curator.account.scale_power == 1
        share = self.pure.one_way_share if pure else self.one_way_share
        first = budget.total if lone else budget.total * share
        parts = allocate(first, sizes, curator.account.scale_power)
        one_ways = curator.measure(one_way_requests(curator, columns, parts), label="one-way marginals")
        if lone:
            return Transcript(curator.schema, domain, self.name, curator.charges, one_ways)
        left = budget.total - first

        merges = coarsened(curator.schema, one_ways, self.merge_above, self.max_pair_cells)
        known, total = self._singles(curator, one_ways, merges)
        pairs = candidate_pairs(domain.merged(merges), self.max_pair_cells)
        if pure:
            later = self.pure.collect(
                curator, budget, left, Known(pairs, known.counts, known.deviations, total, merges)
            )
            answers: tuple[Answer, ...] = (*one_ways, *later)
            return Transcript(curator.schema, domain, self.name, curator.charges, answers, merges)
        scores: tuple[Scores, ...] = ()
        share = budget.total * self.score_share
        law = score_law("independence", max(len(pairs), 1), share, curator.neighbors, curator.account)
        if pairs and math.sqrt(law.variance) <= self.score_noise * total:
            # Distances of all candidates from independence: one Gaussian release of L2 sensitivity sqrt(m).
            request = ScoreRequest("independence", pairs, law, merged=bool(merges), expected=known.counts)
            scores = (curator.scores(request, label="dependence of pairs", merges=merges),)
            left -= share
        owned = dict(zip(columns, (float(part) for part in parts), strict=True))
        # The program reckons with noise of variance 1/(2 rho); a wider sensitivity is a smaller budget.
        unit = float(marginal_sensitivity_squared(curator.neighbors))
        owned = {name: part / unit for name, part in owned.items()}
        bought, more = self._program(scores, known, owned, total, float(left) / unit, domain, merges)
        answers = (
            *one_ways,
            *scores,
            *self._measure(curator, bought, more, merges, left),
        )
        return Transcript(curator.schema, domain, self.name, curator.charges, answers, merges)

    def _singles(
        self, curator: Curator, one_ways: tuple[NoisyMarginal, ...], merges: Mapping[str, Merge]
    ) -> tuple[OneWays, float]:
        """What is believed of the one-ways over the merged domain, and their total."""
        so_far = Transcript(curator.schema, curator.domain, self.name, curator.charges, one_ways, merges)
        known = evidence(so_far, working_domain(so_far))
        total = max(known.total, 1.0)
        return improved_one_ways(known, total), total

    def _program(
        self,
        scores: Sequence[Scores],
        known: OneWays,
        owned: Mapping[str, float],
        total: float,
        left: float,
        domain: Domain,
        merges: Mapping[str, Merge],
    ) -> tuple[dict[Clique, float], dict[str, float]]:
        """Budgets of the pairs and of further one-ways that are predicted to lower the error most."""
        pairs = scores[0].cliques if scores else ()
        sketches = {name: sketch(counts) for name, counts in known.counts.items()}
        distances = score_distances(scores[0], known.counts, known.deviations, total) if scores else np.zeros(0)
        expected, weights = stacked_pairs([(sketches[one], sketches[two]) for one, two in pairs], total)
        columns = list(owned)
        most = np.array([largest_kappa(known.counts[one], known.counts[two]) for one, two in pairs])
        program = Program(
            expected=expected,
            weights=weights,
            kappas=variance_factors(distances, expected, weights, most),
            gains=np.array([self._gain(pair, domain, merges) for pair in pairs]),
            sizes=np.array([known.cells(name) for name in columns]),
            shares=np.full(len(columns), self.one_way_weight * max(len(columns) - 1, 1)),
            owned=np.array([owned[name] for name in columns]),
        )
        pair_budgets, single_budgets = program.solve(left)
        return (
            {pair: float(part) for pair, part in zip(pairs, pair_budgets, strict=True) if part > 0},
            {name: float(part) for name, part in zip(columns, single_budgets, strict=True) if part > 0},
        )

    def _measure(
        self,
        curator: Curator,
        bought: Mapping[Clique, float],
        more: Mapping[str, float],
        merges: Mapping[str, Merge],
        left: Fraction,
    ) -> tuple[NoisyMarginal, ...]:
        """Measure the pairs and one-ways at their budgets, which are made to add up to ``left`` exactly."""
        wanted: list[tuple[Clique, float]] = [*bought.items(), *(((name,), part) for name, part in more.items())]
        # Slivers that would buy nothing but noise are given to the others.
        wanted = [(names, part) for names, part in wanted if part > float(SLIVER * left)]
        beyond = [len(names) > 1 and whole_margins(names, merges) for names, _ in wanted]
        moved = [
            interaction_sensitivity_squared(curator.domain.shape(names), curator.neighbors)
            if apart
            else marginal_sensitivity_squared(curator.neighbors)
            for (names, _), apart in zip(wanted, beyond, strict=True)
        ]
        parts = in_steps(left, [part for _, part in wanted], moved)
        requests = []
        for (names, _), part, apart in zip(wanted, parts, beyond, strict=True):
            if apart:
                law = interaction_law(part, curator.domain.shape(names), curator.neighbors, curator.account)
                requests.append(MarginalRequest(names, law, interaction=True))
            else:
                law = marginal_law(part, curator.neighbors, curator.account)
                requests.append(MarginalRequest(names, law, merged=bool(merges) and len(names) > 1))
        # One after another where one law serves them: what draws from it is then prepared once.
        requests.sort(key=lambda request: request.law.scale_squared)
        return curator.measure(requests, label="pairs and more one-ways", merges=merges)

    @staticmethod
    def _gain(pair: Clique, domain: Domain, merges: Mapping[str, Merge]) -> float:
        return interaction_gain(domain.shape(pair)) if whole_margins(pair, merges) else 1.0


def whole_margins(names: Clique, merges: Mapping[str, Merge]) -> bool:
    """Whether the margins of a pair are one-ways that were asked for as they are: then its interaction is bought.

    A column of merged codes has hundreds of groups, so that its margin is a small part of a table, and worth having.

    Privacy: none: public facts and post-processing.
    """
    return not any(name in merges for name in names)


STEPS_AN_OCTAVE = 8
"""Squared scales differ by whole eighths of powers of two: few noise laws, each of which takes milliseconds to prepare,
serve thousands of tables, and the error of a budget 4 % off its optimum is larger by a thousandth."""


def in_steps(whole: Fraction, parts: Sequence[float], moved: Sequence[Fraction]) -> list[Fraction]:
    """Budgets nearly in the proportions of ``parts`` that add up to ``whole`` exactly, and buy few scales of noise.

    What a budget b buys of a table whose squared sensitivity is D^2 has a scale of s^2 = D^2/2b: those are made to
    differ by whole steps. ``moved`` are the D^2, for tables and interactions of many shapes together.

    Units: the account's. Privacy: none: post-processing.
    """
    if not parts:
        return []
    logs = [math.log2(squared) - math.log2(part) for squared, part in zip(moved, parts, strict=True)]
    least = min(logs)
    steps = [round(STEPS_AN_OCTAVE * (each - least)) for each in logs]
    relative = [squared * _falling(step) for squared, step in zip(moved, steps, strict=True)]
    total = sum(relative, Fraction(0))
    return [whole * each / total for each in relative]


def _falling(step: int) -> Fraction:
    """About 2^-(step/8), the same on every machine."""
    octaves, eighths = divmod(step, STEPS_AN_OCTAVE)
    return Fraction(round(2**40 * 2 ** (-eighths / STEPS_AN_OCTAVE)), 2 ** (40 + octaves))
