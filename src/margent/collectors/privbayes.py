"""PrivBayes' buying half: a network grown by private choices, then the table of every column and its parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from margent.collectors.allocation import allocate
from margent.collectors.first_tables import first_stage, one_way_parts
from margent.collectors.one_ways import informative_columns, one_way_requests
from margent.collectors.parent_sets import CandidateLimits, candidate_nodes, views_of
from margent.collectors.stage import Stage, shares_leave_a_rest
from margent.errors import UsageError
from margent.postprocessing.tables import noisy_total
from margent.privacy.budget import Budget
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import marginal_law
from margent.privacy.requests import ChoiceRequest, Curator, MarginalRequest, PublicTables
from margent.schema.domain import Domain, Merge, outermost
from margent.schema.generalization import hierarchy_merges
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Choice, Network, Node, NoisyMarginal, Transcript


@dataclass(frozen=True)
class PrivBayes:
    """Buy one-ways, choose every further column's parents by the exponential mechanism, buy each column's table.

    The rest after ``one_way_share`` is split: ``network_share`` (beta) for the choices, an equal part each, and
    1 - beta for the tables, divided by ``split`` ("equal", as published, or "cells": least summed noise).

    - ``score``: "r" (total variation from independence; any relation), "mutual-information" (relation replace and the
      public number of ``records``) or "f" (all columns of two codes).
    - ``theta``: a table is useful where its cells hold that many times their mean absolute noise on average; parents
      are the largest sets, generalized by hierarchies where that helps, whose table with the child is useful.
    - ``first``: the column without parents, by a public rule: that of fewest or of most codes.
    - ``max_cells``: most cells of a table, however little noise there is.
    - ``max_candidates``, ``max_candidate_cells``: most candidates of a choice, and cells of all their tables; see
      `candidate_nodes` for what gives way.
    - ``records``: their public number, only where records are replaced; otherwise it is taken from the one-ways.

    Privacy: choices by the exponential mechanism, Gaussian releases, or Laplace ones where the account is pure;
    sensitivities as registered for ``score`` and `marginal`.
    Source: PrivBayes (Zhang et al. 2014 and 2017); what differs is in ``docs/how-it-works/privbayes.md``.
    """

    score: Literal["r", "mutual-information", "f"] = "r"
    network_share: Fraction = Fraction(3, 10)
    one_way_share: Fraction = Fraction(1, 10)
    theta: float = 4.0
    split: Literal["equal", "cells"] = "equal"
    first: Literal["fewest", "most"] = "fewest"
    records: int | None = None
    max_cells: int = 100_000
    max_candidates: int = 2_000
    max_candidate_cells: int = 10_000_000
    name: str = "privbayes"

    def __post_init__(self) -> None:
        """Check the parameters. Raises: UsageError."""
        if not (shares_leave_a_rest(self.network_share) and shares_leave_a_rest(self.one_way_share)):
            raise UsageError("privbayes: the shares of one-ways and network must be above 0 and below 1")
        require_between(
            self,
            theta=(1e-6, 1e6),
            max_cells=(1, MOST_CELLS),
            max_candidates=(1, 1_000_000),
            max_candidate_cells=(1, MOST_CELLS),
        )
        if self.records is not None:
            PublicTables(self.records)

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """Three stages, for two or more columns. Privacy: none: public facts only. Raises: as `collect`."""
        self._require(domain, budget.neighbors)
        columns = informative_columns(domain)
        first = first_stage(domain, budget, self.one_way_share)
        if len(columns) < 2:
            return (first,)
        rest, many = 1 - self.one_way_share, len(columns) - 1
        # A table is capped, unless it is of one column alone.
        largest = max(first.largest, min(self.max_cells, domain.cells(columns)))
        share = rest * (1 - self.network_share)
        return (
            first,
            Stage(
                name="choice of parents",
                share=rest * self.network_share,
                questions=many,
                largest=largest,
                cells=max(largest, min(self.max_candidate_cells, self.max_candidates * largest)),
                law=None,
                note=f"a choice a column among at most {self.max_candidates:,} parent sets, by score {self.score}",
                scores=True,
                looks=many,
                new=many,
            ),
            Stage(
                name="tables of the network",
                share=share,
                questions=many + 1,
                largest=largest,
                cells=(many + 1) * largest,
                law=marginal_law(budget.total * share / (many + 1), budget.neighbors, budget.account),
                note=f"of a column and its parents; an average cell holds {self.theta:g} times its noise; "
                "a table inside another one is not bought",
            ),
        )

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget: one-ways, a choice of parents for every further column, the tables of the network.

        What nothing can be chosen with goes to the tables.

        Raises: UsageError where the score has no price here (before anything is charged).
        """
        domain = curator.domain
        self._require(domain, curator.neighbors)
        columns = informative_columns(domain)
        constant = tuple(Node(name) for name in domain.names if name not in columns)
        parts = one_way_parts(domain, budget, self.one_way_share)
        one_ways = curator.measure(one_way_requests(curator, columns, parts), label="one-way marginals")
        if len(columns) < 2:
            network = Network((*(Node(name) for name in columns), *constant))
            return Transcript(curator.schema, domain, self.name, curator.charges, one_ways, structure=network)
        total = max(0.0, noisy_total(one_ways)) if self.records is None else float(self.records)

        left = budget.total * (1 - self.one_way_share)
        network_share = left * self.network_share
        merges = hierarchy_merges(curator.schema)
        cap = self.useful_cells(curator, columns, total, left - network_share)
        nodes, choices, spent = self._grow(curator, columns, merges, cap, network_share / (len(columns) - 1))
        tables = self._measure(curator, nodes, merges, left - spent)
        return Transcript(
            schema=curator.schema,
            domain=domain,
            method=self.name,
            charges=curator.charges,
            answers=(*one_ways, *choices, *tables),
            merges=merges,
            structure=Network((*nodes, *constant)),
        )

    def useful_cells(self, curator: Curator, columns: Sequence[str], total: float, share: Fraction) -> int:
        """Most cells c of a theta-useful table: total / c >= theta E|noise|, noise as equal parts of ``share`` buy.

        d columns have d - 1 tables, and c is at most ``max_cells``; where all columns are binary and have k parents
        d - k, c = 2^(k + 1), for the largest k that allows.

        Units: ``total`` in (noisy) records. Privacy: none: public facts and noisy answers only.
        Source: PrivBayes (Zhang et al. 2017), section 4.2 (binary) and 5.2; for any law of noise.
        """

        def useful(tables: int) -> float:
            law = marginal_law(share / tables, curator.neighbors, curator.account)
            return total / (self.theta * max(law.mean_absolute, 1e-9))

        if max(curator.domain.size(name) for name in columns) == 2:
            degrees = range(len(columns) - 1, 0, -1)
            binary = (2 ** (k + 1) for k in degrees if 2 ** (k + 1) <= min(useful(len(columns) - k), self.max_cells))
            return next(binary, 0)
        return int(min(useful(len(columns) - 1), self.max_cells))

    def _require(self, domain: Domain, neighbors: Neighbors) -> None:
        """Refuse a score that has no price here, and a public number of records where it is private."""
        if self.score == "f" and max(domain.sizes, default=1) > 2:
            raise UsageError("privbayes: score 'f' is for columns of at most two codes each: take score 'r'")
        if self.score == "mutual-information" and (neighbors.relation != "replace" or self.records is None):
            raise UsageError(
                "privbayes: score 'mutual-information' needs relation 'replace' and the public number of records: take "
                "score 'r'"
            )
        if self.records is not None and neighbors.relation != "replace":
            raise UsageError(
                f"privbayes: the number of records is private ({neighbors}): leave records out, or take relation "
                "'replace'"
            )

    def _grow(
        self, curator: Curator, columns: Sequence[str], merges: Mapping[str, Merge], cap: int, share: Fraction
    ) -> tuple[list[Node], list[Choice], Fraction]:
        """The network, the choices that made it, and what they cost at most."""
        views = views_of(curator.domain, merges)
        limits = CandidateLimits(self.max_candidates, self.max_candidate_cells)
        sign = 1 if self.first == "fewest" else -1
        waiting = sorted(columns, key=lambda name: (sign * curator.domain.size(name), curator.domain.position[name]))
        nodes, choices, spent = [Node(waiting.pop(0))], list[Choice](), Fraction(0)
        while waiting:
            placed = [node.child for node in nodes]
            children = [name for name in columns if name in waiting]
            candidates = candidate_nodes(placed, children, views, cap, limits)
            if len(candidates) > 1:
                choice = self._choose(curator, candidates, merges, share)
                choices.append(choice)
                spent += share
                (names,), (child,) = choice.cliques, choice.children
                node = Node(child, tuple(name for name in names if name != child))
            else:  # nothing to choose: nothing to pay
                node = candidates[0] if candidates else Node(waiting[0])
            nodes.append(node)
            waiting.remove(node.child)
        return nodes, choices, spent

    def _choose(
        self, curator: Curator, candidates: Sequence[Node], merges: Mapping[str, Merge], share: Fraction
    ) -> Choice:
        """One child with its parents, by the exponential mechanism."""
        children = tuple(node.child for node in candidates)
        tables = None
        if self.score == "mutual-information" and self.records is not None:
            tables = PublicTables(self.records, binary=all(curator.domain.size(child) <= 2 for child in children))
        request = ChoiceRequest(
            self.score,
            tuple(node.clique for node in candidates),
            curator.account.exponential_epsilon(share),
            merged=bool(merges),
            tables=tables,
            children=children,
        )
        return curator.choose(request, label="choice of parents", merges=merges)

    def _measure(
        self, curator: Curator, nodes: Sequence[Node], merges: Mapping[str, Merge], share: Fraction
    ) -> tuple[NoisyMarginal, ...]:
        """The tables of the network's nodes but for those that lie inside another one."""
        cliques = outermost([node.clique for node in nodes])
        domain = curator.domain.merged(merges)
        weights = [domain.cells(names) if self.split == "cells" else 1 for names in cliques]
        parts = allocate(share, weights, curator.account.scale_power)
        laws = {part: marginal_law(part, curator.neighbors, curator.account) for part in set(parts)}
        requests = [
            MarginalRequest(names, laws[part], merged=not set(names) <= set(curator.domain.names))
            for names, part in zip(cliques, parts, strict=True)
        ]
        return curator.measure(requests, label="tables of the network", merges=merges)
