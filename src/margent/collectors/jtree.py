"""JTree's buying half, repaired: a private dependency graph, its junction tree, and cliques measured in clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from margent.collectors.clusters import Split, merged_cliques, part
from margent.collectors.densemarg import shrunk
from margent.collectors.dependency import Caps, Kind, as_distances, edge_threshold, grown
from margent.collectors.first_tables import FirstTables, first_stage, first_tables
from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage, candidates_note, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.dependence import score_distances
from margent.privacy.accounting import Account
from margent.privacy.budget import Budget
from margent.privacy.queries import SCORE_LATTICE, marginal_law, score_law
from margent.privacy.requests import MOST_RECORDS, ChoiceRequest, Curator, MarginalRequest, PublicTables, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Choice, CliqueTree, NoisyMarginal, Scores, Transcript


@dataclass(frozen=True)
class JTree:
    """Buy one-ways (a fifth), the dependence of pairs (a tenth), and the clusters of a junction tree (the rest).

    Under an account with delta every pair gets a noisy score, and pairs above a threshold are edges, the strongest
    first, as far as they are worth the noise of the tables that they make larger. Under pure epsilon one-ways take
    three tenths, and a number of pairs fixed beforehand is chosen by the exponential mechanism, which tells no scores.

    - ``score``: how dependence is measured: "independence" (distance from the product of the noisy one-ways, the
      quietest), "r" (distance from the product of the exact margins), or, where records are replaced and ``records`` is
      their public number, "mutual-information" (as published, and five to ten times as noisy).
    - ``cramer``: pairs of a smaller Cramer's V are no edges (0: all may be); see
      `margent.collectors.dependency.edge_threshold`.
    - ``choices_a_column``: under pure epsilon this many times (columns - 1) pairs are chosen.
    - ``score_noise``: where the noise of a score would be more than this share of the noisy total, none is bought.
    - ``table_noise``: most of the records that noise alone may put wrong in a pair's table.
    - ``max_table_cells``, ``max_tree_cells``: of one table, and of all cliques' tables together.
    - ``merge_below``: codes with a one-way count under so many standard deviations are counted as one group.
    - ``split``: how clusters share the budget, for least summed variance or in equal parts as published.

    Privacy: Gaussian releases, or Laplace ones and choices where the account is pure; sensitivities as registered.
    Source: JTree (Chen, Xiao, Zhang, Xu 2015), its threshold test, clustering objective and sampling step replaced (see
    ``docs/how-it-works/jtree.md``).
    """

    one_way_share: Fraction = Fraction(1, 5)
    pure_one_way_share: Fraction = Fraction(3, 10)
    pick_share: Fraction = Fraction(1, 10)
    score: Kind = "independence"
    records: int | None = None
    cramer: float = 0.05
    choices_a_column: int = 2
    score_noise: float = 0.25
    table_noise: float = 0.1
    max_table_cells: int = 1_000_000
    max_tree_cells: int = 10_000_000
    merge_below: float = 3.0
    split: Split = "least"
    name: str = "jtree"

    def __post_init__(self) -> None:
        """Check shares and limits. Raises: UsageError."""
        first = self.one_way_share, self.pure_one_way_share
        if not all(shares_leave_a_rest(share, self.pick_share) for share in first):
            raise UsageError("jtree: the shares of one-ways and pairs must be positive, their sum below 1")
        if self.score == "mutual-information" and self.records is None:
            raise UsageError("jtree: score 'mutual-information' needs records, the public number of records")
        require_between(
            self,
            records=(1, MOST_RECORDS),
            cramer=(0, 1),
            choices_a_column=(1, 1_000_000),
            score_noise=(0, 1e6),
            table_noise=(0, 1e6),
            max_table_cells=(4, MOST_CELLS),
            max_tree_cells=(4, MOST_CELLS),
            merge_below=(0, 1e6),
        )

    @property
    def _tables(self) -> PublicTables | None:
        return PublicTables(self.records) if self.score == "mutual-information" and self.records is not None else None

    def _first_share(self, account: Account) -> Fraction:
        """Under Laplace noise small parts buy next to nothing, so one-ways get more and the cliques rest on them."""
        return self.pure_one_way_share if account.scale_power == 1 else self.one_way_share

    def most_cells(self, domain: Domain) -> int:
        """Most cells of the tree's tables: of cliques as far as the caps allow, or of single columns at any cap.

        Units: cells. Privacy: none: public facts only.
        """
        columns = informative_columns(domain)
        widest = min(domain.cells(columns), self.max_table_cells)
        # A chordal graph has no more maximal cliques than columns.
        return max(sum(domain.shape(columns)), min(len(columns) * widest, self.max_tree_cells))

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """Three stages; one where there are no pairs. Privacy: none: public facts only."""
        columns, first_share = informative_columns(domain), self._first_share(budget.account)
        first = first_stage(domain, budget, first_share)
        if len(columns) < 2:
            return (first,)
        own = [domain.cells(pair) for pair in combinations(columns, 2)]
        cells = [min(count, self.max_table_cells) for count in own]
        share, rest = budget.total * self.pick_share, 1 - first_share - self.pick_share
        score = score_law(self.score, len(cells), share, budget.neighbors, budget.account, self._tables)
        note = candidates_note(own, self.max_table_cells)
        if budget.account.scale_power == 1:
            note = f"no score is told: {self._choices(len(columns), len(cells))} pairs are chosen; " + note
        widest = max(first.largest, min(domain.cells(columns), self.max_table_cells))
        return (
            first,
            score_stage(
                "dependence of pairs",
                self.pick_share,
                cells,
                score.in_units_of(SCORE_LATTICE[self.score]),
                note,
            ),
            Stage(
                name="clusters of cliques",
                share=rest,
                questions=len(columns),
                largest=widest,
                cells=max(widest, min(len(columns) * widest, self.max_tree_cells)),
                law=marginal_law(budget.total * rest / len(columns), budget.neighbors, budget.account),
                note="as if there were as many cliques as columns, of one size; fewer and smaller ones have less noise",
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget in three stages, each sized from public facts and earlier noisy answers."""
        domain, columns = curator.domain, informative_columns(curator.domain)
        if not columns:
            return Transcript(curator.schema, domain, self.name, curator.charges, ())
        first_share, share = self._first_share(curator.account), budget.total * self.pick_share
        first = first_tables(curator, budget, first_share, self.merge_below, self.name)
        if len(columns) == 1:
            return Transcript(curator.schema, domain, self.name, curator.charges, first.one_ways)
        answers, edges, distances = self._pick(curator, share, first)
        left = budget.total * (1 - first_share) - share * len(answers)
        caps = Caps(
            self.max_table_cells,
            self.max_tree_cells,
            most_noise=2 * self.table_noise * first.total,
            alone=marginal_law(left, curator.neighbors, curator.account).mean_absolute,
            scale_power=curator.account.scale_power,
        )
        cliques = grown(edges, columns, first.domain, caps, distances)
        measured = self._measure(curator, cliques, first.merges, left)
        return Transcript(
            schema=curator.schema,
            domain=domain,
            method=self.name,
            charges=curator.charges,
            answers=(*first.one_ways, *answers, *measured),
            merges=first.merges,
            structure=CliqueTree(cliques),
        )

    def _pick(
        self, curator: Curator, share: Fraction, first: FirstTables
    ) -> tuple[tuple[Scores | Choice, ...], Sequence[Clique], Mapping[Clique, float] | None]:
        """What is bought about pairs, the edges in order of strength, and distances from independence where told."""
        pairs, merged = first.pairs(self.max_table_cells), bool(first.merges)
        if not pairs:
            return (), (), None
        expected = first.known.counts if self.score == "independence" else None
        if curator.account.scale_power == 1:
            choices = self._choices(sum(size > 1 for size in first.domain.sizes), len(pairs))
            each = curator.account.exponential_epsilon(share / choices)
            wanted = ChoiceRequest(self.score, pairs, each, choices, merged, expected, self._tables)
            choice = curator.choose(wanted, label="dependence of pairs", merges=first.merges)
            return (choice,), choice.cliques, None
        law = score_law(self.score, len(pairs), share, curator.neighbors, curator.account, self._tables)
        if math.sqrt(law.in_units_of(SCORE_LATTICE[self.score]).variance) > self.score_noise * first.total:
            return (), (), None
        request = ScoreRequest(self.score, pairs, law, merged, expected, self._tables)
        scores = curator.scores(request, label="dependence of pairs", merges=first.merges)
        distances, size = self._distances(scores, first), first.domain.size
        # Where every pair may be an edge, they come by how far they are from independence for their sizes.
        least, cramer = (1.0, self.cramer) if self.cramer > 0 else (0.0, 1.0)
        excess = {
            pair: distances[pair] / first.total / edge_threshold(cramer, (size(pair[0]), size(pair[1])))
            for pair in pairs
        }
        edges = sorted((pair for pair in pairs if excess[pair] >= least), key=lambda pair: (-excess[pair], pair))
        return (scores,), edges, distances

    def _distances(self, scores: Scores, first: FirstTables) -> dict[Clique, float]:
        """Distances of all pairs from independence, what noise explains of them taken out. Units: records."""
        if self.score == "independence":
            distances = score_distances(scores, first.known.counts, first.known.deviations, first.total)
        else:
            distances = as_distances(self.score, shrunk(scores.records(), math.sqrt(scores.variance)), first.total)
        return {pair: float(distance) for pair, distance in zip(scores.cliques, distances, strict=True)}

    def _choices(self, columns: int, pairs: int) -> int:
        """How many pairs are chosen, fixed by public facts and the one-ways' noisy codes."""
        return max(1, min(self.choices_a_column * (columns - 1), pairs))

    def _measure(
        self, curator: Curator, cliques: Sequence[Clique], merges: Mapping[str, Merge], left: Fraction
    ) -> tuple[NoisyMarginal, ...]:
        """One table a cluster; a column alone in its clique keeps all its codes."""
        lone = {names[0] for names in cliques if len(names) == 1}
        domain = curator.domain.merged({name: merge for name, merge in merges.items() if name not in lone})
        power = curator.account.scale_power
        clusters = merged_cliques(cliques, domain, power, split=self.split, most_cells=self.max_table_cells)
        parts = [part(cluster.weight(domain), power, self.split) for cluster in clusters]
        whole = sum(parts)
        laws = {
            own: marginal_law(left * Fraction(own, whole), curator.neighbors, curator.account) for own in set(parts)
        }
        requests = [
            MarginalRequest(cluster.columns, laws[own], merged=bool(merges) and len(cluster.columns) > 1)
            for cluster, own in zip(clusters, parts, strict=True)
        ]
        return curator.measure(requests, label="clusters of cliques", merges=merges)
