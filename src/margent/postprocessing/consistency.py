"""Make overlapping noisy tables agree, and make them non-negative, without asking for anything more.

Two tables that share columns A each imply a table over A; the best common answer weighs each by its
precision, and the smallest change that brings a table to it spreads the difference over the cells above each
cell of A. Doing so for every shared A from small to large leaves all of them in agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.simplex import Projection, norm_cut, norm_sub, threshold_cut
from margent.postprocessing.tables import Table
from margent.schema.domain import Clique


def shared_cliques(cliques: Sequence[Clique]) -> list[Clique]:
    """All intersections of the cliques, and every column that at least two of them hold; small first.

    The empty clique (the total) comes first, then single columns, and so on; within a size by name.

    Privacy: none: names are public.

    >>> shared_cliques([("a", "b", "c"), ("a", "b", "d"), ("b", "e")])
    [(), ('a',), ('b',), ('a', 'b')]
    """
    sets = [frozenset(names) for names in sorted(set(cliques))]
    closed = {frozenset({name}) for names in sets for name in names}
    # Meeting a set of one or two columns gives it back or less, so only larger ones can add more.
    frontier = {names for names in sets if len(names) > 2}
    closed |= set(sets)
    while frontier:
        met = {one & other for one in frontier for other in closed if len(one & other) > 1}
        frontier = {names for names in met if names not in closed and len(names) > 2}
        closed |= met
    holders = {names: sum(names <= other for other in sets) for names in closed if len(names) > 2}
    for names in closed - holders.keys():
        holders[names] = 0
    for other in sets:
        for name in other:
            holders[frozenset({name})] += 1
        for names in _pairs(other):
            if names in holders:
                holders[names] += 1
    shared = [tuple(sorted(names)) for names, count in holders.items() if count > 1]
    return [(), *sorted(shared, key=lambda names: (len(names), names))]


def _pairs(names: frozenset[str]) -> list[frozenset[str]]:
    ordered = sorted(names)
    return [frozenset({one, two}) for place, one in enumerate(ordered) for two in ordered[place + 1 :]]


@dataclass(frozen=True, eq=False)
class _Share:
    """How table ``table`` meets one shared clique: which axes to sum over, and how a difference is spread."""

    table: int
    summed: tuple[int, ...]
    variance: NDArray[np.float64]
    spread: NDArray[np.float64]

    def implied(self, values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """What the table says about the shared clique."""
        implied: NDArray[np.float64] = values[self.table].sum(axis=self.summed)
        return implied


@dataclass(frozen=True, eq=False)
class _Step:
    """One shared clique with all tables above it."""

    shares: tuple[_Share, ...]
    weights: tuple[NDArray[np.float64], ...]
    combined: NDArray[np.float64]
    restores_total: bool


class Agreement:
    """The passes that make tables agree, prepared once for a list of cliques and cell variances.

    Privacy: none: post-processing.
    Source: PrivSyn 2021 section 5 and PriView 2014 for uneven budgets; the update adds difference/g to each
    of the g cells above a shared cell (the published code also multiplies by the budget, and then one pass
    does not make tables agree).
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        """Prepare the passes over tables of distinct cliques."""
        self.tables = tuple(tables)
        self._steps = [
            step
            for names in shared_cliques([table.clique for table in self.tables])
            if (step := self._step(names)) is not None
        ]

    def _step(self, names: Clique) -> _Step | None:
        shares = []
        for place, table in enumerate(self.tables):
            if not set(names) <= set(table.clique):
                continue
            summed = tuple(axis for axis, name in enumerate(table.clique) if name not in names)
            above = table.variance.sum(axis=summed, keepdims=True)
            shares.append(_Share(place, summed, above.sum(axis=summed), table.variance / above))
        if not shares:
            return None
        # Weights that differ between cells could break the agreement reached on a subset of ``names``, which
        # for a single column is only the total, and that is restored.
        precise = len(names) <= 1
        precisions = [1.0 / share.variance if precise else 1.0 / share.variance.mean() for share in shares]
        combined = 1.0 / np.sum(precisions, axis=0)
        weights = tuple(np.asarray(precision * combined) for precision in precisions)
        return _Step(tuple(shares), weights, np.asarray(combined), restores_total=len(names) == 1)

    def reach(self, values: list[NDArray[np.float64]], total: float) -> None:
        """One pass, in place: afterwards all tables sum to ``total`` and agree on everything they share.

        Shapes: ``values[i]`` has the shape of table i. Units: records.
        """
        for step in self._steps:
            implied = [share.implied(values) for share in step.shares]
            target = np.asarray(total)
            if implied[0].ndim:
                target = np.zeros_like(implied[0])
                for weight, value in zip(step.weights, implied, strict=True):
                    target += weight * value
                if step.restores_total:
                    target += step.combined * ((total - target.sum()) / step.combined.sum())
            for share, value in zip(step.shares, implied, strict=True):
                difference = np.expand_dims(target - value, share.summed)
                values[share.table] += difference * share.spread


@dataclass(frozen=True)
class Consistency:
    """Alternate agreement and projection until no cell is negative: consistent tables of one total.

    At most ``rounds`` of least-squares projection ("norm-sub") come first, then ``cut_rounds`` of "norm-cut";
    the loop ends once the negative mass of every table is at most ``tolerance`` of the total. The limit lies
    in the set of consistent non-negative tables; it is not the nearest point of it.

    Privacy: none: post-processing. Source: PrivSyn 2021 section 5 and its published schedule "N3".
    """

    rounds: int = 400
    cut_rounds: int = 101
    tolerance: float = 1e-4

    def apply(self, tables: Sequence[Table], total: float) -> list[Table]:
        """Tables of at least 0 that sum to ``total`` and agree, in L1, up to 4 ``tolerance`` times the total.

        Where the rounds end before the negative mass is so small, they agree less well.

        Units: records; ``total`` must be positive for the shapes to be kept.
        """
        agreement = Agreement(tables)
        values = [table.values.astype(np.float64, copy=True) for table in tables]
        schedule: list[Projection] = [norm_sub for _ in range(self.rounds)]
        schedule += [norm_cut for _ in range(self.cut_rounds)]
        for project in schedule:
            agreement.reach(values, total)
            if all(float(-np.minimum(value, 0.0).sum()) <= self.tolerance * total for value in values):
                break
            values = [project(value, total) for value in values]
        return [
            Table(table.clique, norm_sub(value, total), table.variance)
            for table, value in zip(tables, values, strict=True)
        ]


@dataclass(frozen=True)
class Thresholded:
    """One pass of agreement, then every table is cut at a threshold of its own: at least 0, but no longer in agreement.

    Privacy: none: post-processing.
    Source: JTree (Chen, Xiao, Zhang, Xu 2015) section 6.
    """

    def apply(self, tables: Sequence[Table], total: float) -> list[Table]:
        """Tables of at least 0 that sum to ``total``. Units: records; ``total`` must be positive."""
        values = [table.values.astype(np.float64, copy=True) for table in tables]
        Agreement(tables).reach(values, total)
        return [
            Table(table.clique, threshold_cut(value, total), table.variance)
            for table, value in zip(tables, values, strict=True)
        ]
