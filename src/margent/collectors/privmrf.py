"""PrivMRF's buying half: a graph from scores of all pairs, tables inside its cliques, and rounds of gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from margent.collectors.builder import Builder
from margent.collectors.dependency_graph import Caps, grown_graph, network_tables
from margent.collectors.first_tables import FirstTables, first_stage, first_tables, measured
from margent.collectors.gaps import fitted, gaps, model_counts
from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage, candidates_note, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.privacy.budget import Budget
from margent.privacy.queries import SCORE_LATTICE, marginal_law, score_law
from margent.privacy.requests import Curator, ScoreRequest
from margent.schema.domain import Clique, Domain, clique
from margent.settings import MOST_CELLS, require_between
from margent.stream import Stream
from margent.transcript import Answer, Scores, Transcript

TABLES_A_COLUMN = 2
"""Most first tables, in columns: a dense graph has many cliques, and each has a network of its own."""


@dataclass(frozen=True)
class PrivMrf:
    """Buy one-ways, the score R of all pairs, tables inside the cliques of a graph of them, and tables in rounds.

    The graph grows by R beyond its own noise, under ``most_clique_cells`` and ``most_tree_cells`` of its junction tree.
    A table is useful where the average cell holds ``theta`` times the noise's deviation; no other is ever measured. The
    first tables are those of greedy Bayesian networks inside the cliques; then each of ``rounds`` buys the gaps of at
    most ``candidates`` useful tables of up to ``order`` columns, drawn from inside the cliques by public chance, and
    measures those with the largest gap beyond their noise: ``added`` times the number of columns in all rounds
    together. What finds nothing worth its noise measures the first tables again.

    Privacy: Gaussian releases, or Laplace ones where the account is pure; sensitivities as registered for `marginal`,
    `r` and `distance`.
    Source: Cai, Lei, Wei, Xiao 2021 (PrivMRF); the shares are theirs, with the one-ways taken out of the first tables'.
    No exact count or entropy decides anything here, and the number of records is a noisy one.
    """

    builder: Builder
    one_way_share: Fraction = Fraction(15, 100)
    graph_share: Fraction = Fraction(10, 100)
    first_share: Fraction = Fraction(35, 100)
    gap_share: Fraction = Fraction(10, 100)
    theta: float = 6.0
    rounds: int = 4
    added: float = 0.8
    candidates: int = 100
    order: int = 3
    merge_below: float = 3.0
    max_pair_cells: int = 100_000
    most_clique_cells: int = 200_000
    most_tree_cells: int = 500_000
    name: str = "privmrf"

    def __post_init__(self) -> None:
        """Check the shares and counts. Raises: UsageError."""
        shares = self.one_way_share, self.graph_share, self.first_share, self.gap_share
        if not shares_leave_a_rest(*shares):
            raise UsageError("privmrf: the shares must be positive, their sum below 1")
        require_between(
            self,
            theta=(1e-6, 1e6),
            rounds=(1, 1000),
            added=(1e-6, 1000),
            candidates=(1, 1_000_000),
            order=(2, 100),
            merge_below=(0, 1e6),
            max_pair_cells=(4, MOST_CELLS),
            most_clique_cells=(1, MOST_CELLS),
            most_tree_cells=(1, MOST_CELLS),
        )

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """One-ways, scores, first tables, and all rounds at most. Privacy: none: public facts only."""
        columns = informative_columns(domain)
        first = first_stage(domain, budget, self.one_way_share)
        if len(columns) < 2:
            return (first,)
        own = [domain.cells(pair) for pair in combinations(columns, 2)]
        cells = [min(count, self.max_pair_cells) for count in own]
        score = score_law("r", len(cells), budget.total * self.graph_share, budget.neighbors, budget.account)
        rest = 1 - self.one_way_share - self.graph_share - self.first_share - self.gap_share
        largest = max(min(domain.cells(columns), self.max_pair_cells), first.largest)
        many = self.rounds * self._a_round(len(columns))
        part = budget.total * self.first_share / len(columns)
        gap_part = budget.total * self.gap_share / self.rounds
        return (
            first,
            score_stage(
                "dependence of pairs",
                self.graph_share,
                cells,
                score.in_units_of(SCORE_LATTICE["r"]),
                candidates_note(own, self.max_pair_cells),
            ),
            Stage(
                name="tables inside the graph's cliques",
                share=self.first_share,
                questions=(TABLES_A_COLUMN + 1) * len(columns),
                largest=largest,
                cells=TABLES_A_COLUMN * len(columns) * largest + first.cells,
                law=marginal_law(part, budget.neighbors, budget.account),
                note=f"error as if there were a table a column; a model of at most {self.most_tree_cells:,} cells",
            ),
            Stage(
                name="gaps of the model",
                share=self.gap_share,
                questions=self.rounds * self.candidates,
                largest=largest,
                cells=self.rounds * self.candidates * largest,
                law=score_law("distance", self.candidates, gap_part, budget.neighbors, budget.account),
                note=f"{self.rounds} rounds of at most {self.candidates} tables inside the graph",
                scores=True,
                looks=self.rounds,
                new=self.rounds,
            ),
            Stage(
                name="tables of large gaps",
                share=rest,
                questions=many + (TABLES_A_COLUMN + 1) * len(columns),
                largest=largest,
                cells=(many + TABLES_A_COLUMN * len(columns)) * largest + first.cells,
                law=marginal_law(budget.total * rest / many, budget.neighbors, budget.account),
                note=f"{self.rounds} rounds of at most {self._a_round(len(columns))} tables; or the first ones again",
                looks=self.rounds,
                new=0,
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget in stages and rounds, each sized from public facts and earlier noisy answers."""
        domain = curator.domain
        if not informative_columns(domain):
            return Transcript(curator.schema, domain, self.name, curator.charges, ())
        first = first_tables(curator, budget, self.one_way_share, self.merge_below, self.name)
        answers: list[Answer] = list(first.one_ways)
        if len(first.one_ways) > 1:
            left = budget.total * (1 - self.one_way_share)
            if pairs := first.pairs(self.max_pair_cells):
                begun, cliques, tables = self._begin(curator, budget, first, pairs)
                left -= budget.total * (self.graph_share + self.first_share)
                answers += [*begun, *self._rounds(curator, budget, first, begun, cliques, tables, left)]
            else:
                answers += measured(curator, first.merges, (), left, "tables of large gaps")
        return Transcript(curator.schema, domain, self.name, curator.charges, tuple(answers), first.merges)

    def _begin(
        self, curator: Curator, budget: Budget, first: FirstTables, pairs: tuple[Clique, ...]
    ) -> tuple[list[Answer], tuple[Clique, ...], list[Clique]]:
        """Scores and first tables, with the cliques of the graph and the tables inside them."""
        share = budget.total * self.graph_share
        law = score_law("r", len(pairs), share, curator.neighbors, curator.account)
        request = ScoreRequest("r", pairs, law, merged=bool(first.merges))
        scores = curator.scores(request, label="dependence of pairs", merges=first.merges)
        columns = len(first.one_ways)
        share = budget.total * self.first_share
        cap = self._useful(curator, first, share / columns)
        values = self._values(scores, first)
        useful = {pair: value for pair, value in values.items() if first.domain.cells(pair) <= cap}
        cliques = grown_graph(useful, first.domain, Caps(self.most_clique_cells, self.most_tree_cells))
        tables = list(network_tables(cliques, values, first.domain, cap)[: TABLES_A_COLUMN * columns])
        covered = {name for names in tables for name in names}
        tables += [answer.clique for answer in first.one_ways if not covered.issuperset(answer.clique)]
        bought = measured(curator, first.merges, tables, share, "tables inside the graph's cliques")
        return [scores, *bought], cliques, tables

    def _rounds(
        self,
        curator: Curator,
        budget: Budget,
        first: FirstTables,
        begun: Sequence[Answer],
        cliques: Sequence[Clique],
        tables: Sequence[Clique],
        left: Fraction,
    ) -> list[Answer]:
        """Gaps of the model so far, and the tables where they are large; all of ``left`` is spent."""
        answers: list[Answer] = []
        columns = len(first.one_ways)
        gap_part = budget.total * self.gap_share / self.rounds
        waiting = Fraction(0)  # what rounds that found nothing left over
        bought = {frozenset(names) for names in tables}
        for number in range(self.rounds):
            part = left / (self.rounds - number) - gap_part + waiting
            left -= left / (self.rounds - number)
            noise = part / self._a_round(columns)
            open_tables = self._open(cliques, bought, first, self._useful(curator, first, noise), number)
            if not open_tables:
                waiting = part + gap_part
                continue
            before = [*first.one_ways, *begun, *answers]
            counts = model_counts(fitted(curator, first, before, self.name, self.builder), first, open_tables)
            found = gaps(curator, first, counts, gap_part, "gaps of the model")
            answers.append(found)
            error = marginal_law(noise, curator.neighbors, curator.account).mean_absolute
            worth = {
                names: gap - error * first.domain.cells(names)
                for names, gap in zip(found.cliques, found.records().tolist(), strict=True)
            }
            best = sorted((names for names in worth if worth[names] > 0), key=lambda names: (-worth[names], names))
            chosen = best[: self._a_round(columns)]
            waiting = Fraction(0) if chosen else part
            if chosen:
                answers += measured(curator, first.merges, chosen, part, "tables of large gaps")
                bought |= {frozenset(names) for names in chosen}
        if waiting:
            answers += measured(curator, first.merges, tables, waiting, "tables of large gaps")
        return answers

    def _a_round(self, columns: int) -> int:
        return max(1, math.ceil(self.added * columns / self.rounds))

    def _useful(self, curator: Curator, first: FirstTables, part: Fraction) -> float:
        """Most cells of a table whose average count is theta deviations of the noise that ``part`` buys."""
        law = marginal_law(part, curator.neighbors, curator.account)
        return min(first.total / (self.theta * math.sqrt(law.variance)), float(self.max_pair_cells))

    def _values(self, scores: Scores, first: FirstTables) -> Mapping[Clique, float]:
        """What each score exceeds its own noise by, as a share of the records."""
        beyond = scores.records() - math.sqrt(scores.variance)
        return dict(zip(scores.cliques, (beyond / first.total).tolist(), strict=True))

    def _open(
        self, cliques: Sequence[Clique], bought: set[frozenset[str]], first: FirstTables, cap: float, number: int
    ) -> list[Clique]:
        """Useful tables inside the cliques that no bought table holds; at most ``candidates``, by public chance."""
        found: set[Clique] = set()
        for names in cliques:
            several = [name for name in names if first.domain.size(name) > 1]
            for size in range(2, min(self.order, len(several)) + 1):
                found |= {clique(each) for each in combinations(several, size)}
        left = sorted(
            names
            for names in found
            if first.domain.cells(names) <= cap and not any(set(names) <= table for table in bought)
        )
        picked = Stream(0, "privmrf", str(number)).permutation(len(left))[: self.candidates]
        return [left[place] for place in sorted(picked.tolist())]
