"""MST's buying half: one-ways, a maximum spanning tree of dependences, and the tree's pairs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from margent.collectors.first_tables import FirstTables, first_stage, first_tables, measured, scored
from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage, candidates_note, score_stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.junction import components
from margent.privacy.budget import Budget
from margent.privacy.queries import marginal_law, score_law
from margent.privacy.requests import ChoiceRequest, Curator
from margent.schema.domain import Clique, Domain
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Answer, Choice, Scores, Transcript


@dataclass(frozen=True)
class Mst:
    """Buy one-ways (a third), the choice of a spanning tree of pairs (a third), and the tree's pairs (a third).

    The tree is the heaviest by the pairs' distances from independence. With Gaussian noise all distances are
    bought at once; under a pure budget Kruskal's algorithm draws each edge by the exponential mechanism from those that
    join what is not yet joined. Pairs of more than ``max_pair_cells`` cells are no candidates, nor those that would
    bring the model over ``most_tree_cells``; codes with a one-way count under ``merge_below`` standard deviations are
    counted as one group in pairs.

    Privacy: Gaussian releases, or Laplace ones and choices where the account is pure; sensitivities as registered for
    `marginal` and `independence`.
    Source: McKenna, Miklau, Sheldon 2021 (the winner of NIST's 2018 challenge, generalized). All scores at once, and
    budgets by the tables' cells, are ours.
    """

    one_way_share: Fraction = Fraction(1, 3)
    choice_share: Fraction = Fraction(1, 3)
    merge_below: float = 3.0
    max_pair_cells: int = 1_000_000
    most_tree_cells: int = 1_000_000
    name: str = "mst"

    def __post_init__(self) -> None:
        """Check the shares. Raises: UsageError."""
        if not shares_leave_a_rest(self.one_way_share, self.choice_share):
            raise UsageError("mst: the shares of one-ways and of the tree must be positive, their sum below 1")
        require_between(self, merge_below=(0, 1e6), max_pair_cells=(4, MOST_CELLS), most_tree_cells=(1, MOST_CELLS))

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """Three stages; one where there are no pairs. Privacy: none: public facts only."""
        columns = informative_columns(domain)
        first = first_stage(domain, budget, self.one_way_share)
        if len(columns) < 2:
            return (first,)
        own = [domain.cells(pair) for pair in combinations(columns, 2)]
        cells = sorted(min(count, self.max_pair_cells) for count in own)
        edges = len(columns) - 1
        pure = budget.account.scale_power == 1
        # A choice at epsilon falls short of the best as if Laplace noise of scale 2/epsilon had been added.
        asked = 2 * edges if pure else len(cells)
        law = score_law("independence", asked, budget.total * self.choice_share, budget.neighbors, budget.account)
        rest = 1 - self.one_way_share - self.choice_share
        note = candidates_note(own, self.max_pair_cells)
        return (
            first,
            score_stage(
                "a spanning tree of pairs",
                self.choice_share,
                cells,
                law,
                f"{note}; {edges} choices of one pair, each off the best by about so much" if pure else note,
                edges if pure else len(cells),
                looks=edges if pure else 1,
            ),
            Stage(
                name="the tree's pairs",
                share=rest,
                questions=max(edges, len(columns)),
                largest=max(cells[-1], first.largest),
                cells=max(min(sum(cells[-edges:]), self.most_tree_cells), first.cells),
                law=marginal_law(budget.total * rest / edges, budget.neighbors, budget.account),
                note="error as if all pairs had as many cells",
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
            share, left = budget.total * self.choice_share, budget.total * (1 - self.one_way_share)
            tree: tuple[Clique, ...] = ()
            if pairs := first.pairs(self.max_pair_cells):
                chosen, tree = (
                    self._chosen(curator, first, pairs, share)
                    if curator.account.scale_power == 1
                    else self._scored(curator, first, pairs, share)
                )
                answers = (*answers, *chosen)
                left -= sum((curator.charges[answer.charge].cost for answer in chosen), Fraction(0))
            alone = [(name,) for name in informative_columns(domain) if tree and not any(name in pair for pair in tree)]
            answers = (*answers, *measured(curator, first.merges, [*tree, *alone], left, "the tree's pairs"))
        return Transcript(curator.schema, domain, self.name, curator.charges, answers, first.merges)

    def _scored(
        self, curator: Curator, first: FirstTables, pairs: tuple[Clique, ...], share: Fraction
    ) -> tuple[tuple[Scores | Choice, ...], tuple[Clique, ...]]:
        """All distances as one release, and the heaviest forest by what is left of them without the noise."""
        scores, apart = scored(curator, first, pairs, share, "a spanning tree of pairs")
        raw = scores.records()
        order = sorted(range(len(pairs)), key=lambda place: (-apart[place], -raw[place], pairs[place]))
        forest = _Forest(first.domain, self.most_tree_cells)
        for place in order:
            if forest.takes(pairs[place]):
                forest.join(pairs[place])
        return (scores,), tuple(forest.edges)

    def _chosen(
        self, curator: Curator, first: FirstTables, pairs: tuple[Clique, ...], share: Fraction
    ) -> tuple[tuple[Scores | Choice, ...], tuple[Clique, ...]]:
        """Kruskal's algorithm, every edge drawn by the exponential mechanism at an equal part of the share."""
        edges = len({name for pair in pairs for name in pair}) - len(components(pairs))
        epsilon = curator.account.exponential_epsilon(share / edges)
        forest = _Forest(first.domain, self.most_tree_cells)
        choices: list[Choice] = []
        while apart := tuple(pair for pair in pairs if forest.takes(pair)):
            request = ChoiceRequest(
                "independence", apart, epsilon, merged=bool(first.merges), expected=first.known.counts
            )
            choice = curator.choose(request, label="a spanning tree of pairs", merges=first.merges)
            choices.append(choice)
            forest.join(choice.cliques[0])
        return tuple(choices), tuple(forest.edges)


class _Forest:
    """Edges that close no cycle, whose tables have room for at most so many cells beside the single columns."""

    def __init__(self, domain: Domain, most_cells: int) -> None:
        self.domain = domain
        self.room = most_cells - sum(domain.sizes)
        self.edges: list[Clique] = []
        self._joined: dict[str, str] = {}

    def _root(self, name: str) -> str:
        while name in self._joined:
            name = self._joined[name]
        return name

    def takes(self, pair: Clique) -> bool:
        """Whether the pair joins what is not yet joined, and there is room for it."""
        return self._root(pair[0]) != self._root(pair[1]) and self.domain.cells(pair) <= self.room

    def join(self, pair: Clique) -> None:
        """Add an edge that the forest takes."""
        self._joined[self._root(pair[1])] = self._root(pair[0])
        self.room -= self.domain.cells(pair)
        self.edges.append(pair)
