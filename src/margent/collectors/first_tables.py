"""How most methods begin and some end: one-ways with rare codes merged, candidate pairs, and tables by their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margent.collectors.allocation import allocate
from margent.collectors.one_ways import informative_columns, one_way_requests, one_way_stage
from margent.collectors.stage import Stage
from margent.postprocessing.dependence import score_distances
from margent.postprocessing.merging import low_count_merges
from margent.postprocessing.posterior import OneWays, improved_one_ways
from margent.postprocessing.tables import evidence, working_domain
from margent.privacy.budget import Budget
from margent.privacy.queries import marginal_law, score_law
from margent.privacy.requests import Curator, MarginalRequest, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge, clique
from margent.transcript import NoisyMarginal, Scores, Transcript


@dataclass(frozen=True, eq=False)
class FirstTables:
    """Noisy one-ways, the merges of codes that drown in their noise, and what is believed of the columns then.

    ``domain`` is the merged one; ``known`` has one entry a merged code.

    Units: ``total`` in records, at least 1.
    Privacy: none: noisy answers, which the one-ways' charges paid for, and post-processing.
    """

    one_ways: tuple[NoisyMarginal, ...]
    merges: Mapping[str, Merge]
    domain: Domain
    known: OneWays
    total: float

    def pairs(self, most_cells: int) -> tuple[Clique, ...]:
        """`candidate_pairs` of the merged domain."""
        return candidate_pairs(self.domain, most_cells)


def candidate_pairs(domain: Domain, most_cells: int) -> tuple[Clique, ...]:
    """All pairs of columns that are not constant and whose table has at most so many cells.

    Privacy: none: public facts, and merges made of noisy counts.
    """
    several = [name for name in domain.names if domain.size(name) > 1]
    pairs = (clique(pair) for pair in combinations(several, 2))
    return tuple(pair for pair in pairs if domain.cells(pair) <= most_cells)


def one_way_parts(domain: Domain, budget: Budget, share: Fraction) -> list[Fraction]:
    """``share`` of the budget divided among the one-ways so that their summed noise is least; all of it if there is
    but one column to ask about.

    Privacy: none: public facts only.
    """
    sizes = [domain.size(name) for name in informative_columns(domain)]
    whole = budget.total if len(sizes) == 1 else budget.total * share
    return allocate(whole, sizes, budget.account.scale_power) if sizes else []


def first_stage(domain: Domain, budget: Budget, share: Fraction) -> Stage:
    """The plan's line for `first_tables`. Privacy: none: public facts only."""
    several = len(informative_columns(domain)) > 1
    return one_way_stage(domain, budget, share if several else Fraction(1), one_way_parts(domain, budget, share))


def first_tables(curator: Curator, budget: Budget, share: Fraction, merge_below: float, method: str) -> FirstTables:
    """Buy the one-ways; in larger tables codes with a count under ``merge_below`` standard deviations are merged.

    Privacy: the one-ways' charges; the rest is post-processing.
    """
    columns = informative_columns(curator.domain)
    requests = one_way_requests(curator, columns, one_way_parts(curator.domain, budget, share))
    one_ways = curator.measure(requests, label="one-way marginals")
    merges = low_count_merges(one_ways if len(columns) > 1 else (), merge_below)
    so_far = Transcript(curator.schema, curator.domain, method, curator.charges, one_ways, merges)
    known = evidence(so_far, working_domain(so_far))
    total = max(known.total, 1.0)
    return FirstTables(one_ways, merges, curator.domain.merged(merges), improved_one_ways(known, total), total)


def scored(
    curator: Curator, first: FirstTables, pairs: tuple[Clique, ...], share: Fraction, label: str
) -> tuple[Scores, NDArray[np.float64]]:
    """Noisy distances of pairs from independence as one release, and what is left of them without any noise.

    Shapes: one distance a pair. Units: records.
    Privacy: one charge of `independence`, ``share`` at most.
    """
    law = score_law("independence", len(pairs), share, curator.neighbors, curator.account)
    request = ScoreRequest("independence", pairs, law, merged=bool(first.merges), expected=first.known.counts)
    scores = curator.scores(request, label=label, merges=first.merges)
    return scores, score_distances(scores, first.known.counts, first.known.deviations, first.total)


def measured(
    curator: Curator, merges: Mapping[str, Merge], cliques: Sequence[Clique], share: Fraction, label: str
) -> tuple[NoisyMarginal, ...]:
    """Measure the cliques at noise that makes the sum of their errors least; one-ways again where there are none.

    Codes are merged in tables of several columns, and counted one by one in those of a single one.

    Privacy: one charge a table, ``share`` together at most.
    """
    wanted: list[Clique] = list(cliques) or [(name,) for name in informative_columns(curator.domain)]
    merged = curator.domain.merged(merges)
    cells = [(merged if len(names) > 1 else curator.domain).cells(names) for names in wanted]
    parts = allocate(share, cells, curator.account.scale_power)
    laws = {part: marginal_law(part, curator.neighbors, curator.account) for part in set(parts)}
    requests = [
        MarginalRequest(names, laws[part], merged=bool(merges) and len(names) > 1)
        for names, part in zip(wanted, parts, strict=True)
    ]
    return curator.measure(requests, label=label, merges=merges)
