"""JTree's dependency graph from noisy answers: which pairs are edges, and which a junction tree can afford."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.collectors.clusters import part
from margent.postprocessing.junction import maximal, triangulated
from margent.schema.domain import Clique, Domain

Kind = Literal["independence", "r", "mutual-information"]
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""Mean absolute value of a normal number of variance one."""


def edge_threshold(cramer: float, sizes: tuple[int, int]) -> float:
    """The distance from independence of a pair whose Cramer's V is ``cramer``, as a share of the records.

    V^2 = chi^2 / (n (k - 1)), k the fewer codes of the two columns. Where chi^2 is spread over the cells as chance
    would, the distance is sqrt(2/pi) sqrt(chi^2 / n) = sqrt(2/pi) V sqrt(k - 1) of the records, and by Jensen's
    inequality it is never more than sqrt(chi^2 / n).

    Units: a share of n. Shapes: ``sizes`` are the codes of the two columns.
    Privacy: none: public facts only.
    Source: JTree 2015, section 4.1, whose threshold of mutual information is V^2 (k - 1) / 2 nats: the same pair's,
    since that is chi^2 / (2 n) near independence.

    >>> round(edge_threshold(0.2, (5, 9)), 3)
    0.319
    """
    return MEAN_ABSOLUTE * cramer * math.sqrt(min(sizes) - 1)


def as_distances(kind: Kind, scores: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """What scores of any kind say of the distance from independence, by the same spread of chi^2 over the cells.

    n R is half of the distance; n I nats are chi^2 / 2, so the distance is sqrt(2/pi) sqrt(2 n (n I)).

    Units: records (record x nat for mutual information) in, records out. Shapes: one entry a pair.
    Privacy: none: post-processing.

    >>> as_distances("r", np.array([30.0]), 1000.0).tolist()
    [60.0]
    >>> as_distances("mutual-information", np.array([80.0]), 1000.0).round(1).tolist()  # theta of V = .2, k = 5
    [319.2]
    """
    positive = np.maximum(scores, 0.0)
    if kind == "mutual-information":
        return np.asarray(MEAN_ABSOLUTE * np.sqrt(2 * total * positive))
    return np.asarray(2 * positive if kind == "r" else positive)


@dataclass(frozen=True, slots=True)
class Caps:
    """What a junction tree may cost: cells of one table, of all, and what noise may do to a pair of columns.

    ``most_noise`` bounds the expected absolute noise of all cells of a pair's table, summed from that of a clique;
    ``alone`` is the mean absolute noise of a cell, had one table the whole budget. ``scale_power`` is the account's.

    Units: records.
    Privacy: none: public facts and earlier noisy answers only.
    """

    most_table_cells: int
    most_tree_cells: int
    most_noise: float
    alone: float
    scale_power: int

    def fit(self, cliques: Sequence[Clique], domain: Domain) -> bool:
        """Whether the tables of these cliques have few enough cells."""
        cells = [domain.cells(names) for names in cliques]
        return max(cells, default=0) <= self.most_table_cells and sum(cells) <= self.most_tree_cells

    def noise(self, cliques: Sequence[Clique], domain: Domain) -> dict[Clique, float]:
        """Expected absolute noise of each pair's table, from the best clique that holds it, each measured by itself.

        A clique of c cells gives each of a pair's p cells a sum of c/p of its own, sqrt(c/p) times the noise of one.
        """
        parts = [part(domain.cells(names), self.scale_power) for names in cliques]
        whole, noise = sum(parts), dict[Clique, float]()
        for names, own in zip(cliques, parts, strict=True):
            one = self.alone * (whole / own) ** (1 / self.scale_power) * math.sqrt(domain.cells(names))
            for pair in combinations(names, 2):
                noise[pair] = min(noise.get(pair, math.inf), one * math.sqrt(domain.cells(pair)))
        return noise


def grown(
    edges: Iterable[Clique],
    columns: Sequence[str],
    domain: Domain,
    caps: Caps,
    distances: Mapping[Clique, float] | None = None,
) -> tuple[Clique, ...]:
    """Maximal cliques of the triangulated graph of as many edges as are affordable, taken in the order given.

    An edge is taken if the tables of the graph that it makes stay within the caps and, where ``distances`` from
    independence are known, if the noise that it adds to all pairs measured so far and to those that it brings in is
    less than the distances of the latter: what would be lost by taking them for independent. An edge whose columns some
    clique holds already costs nothing. Columns without edges are cliques of one. The order is that of a junction tree.

    Units: records.
    Privacy: none: post-processing of noisy answers.
    Source: ours. JTree 2015 has no cap: one strong clique of columns could ask for a table of any size.
    """
    cliques = triangulated([(name,) for name in columns], domain)
    noise: dict[Clique, float] = {}
    for pair in edges:
        if pair in noise:
            continue
        wider = triangulated(maximal((*cliques, pair)), domain)
        if not caps.fit(wider, domain):
            continue
        louder = caps.noise(wider, domain)
        if max(louder.values()) > caps.most_noise:
            continue
        if distances is not None:
            gained = sum(distances.get(each, 0.0) for each in louder if each not in noise)
            if sum(louder.values()) - sum(noise.values()) > gained:
                continue
        cliques, noise = wider, louder
    return cliques
