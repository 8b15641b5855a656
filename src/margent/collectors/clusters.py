"""Which cliques of a junction tree are measured together: each cluster is one table over the union of its cliques.

A clique's table summed from its cluster's table has noise in every cell of the cluster, so a cluster of j cliques and
c cells brings j c times the variance of a cell. What that variance is depends on how many tables share the budget, and
on the law. With m tables and weights w = j c the summed variance is, up to a constant of the budget,

| split of the budget | Gaussian (cost falls with the variance) | Laplace (cost falls with the scale) |
|---|---|---|
| equal | m sum w | m^2 sum w |
| least variance: shares as w^(1/2), w^(1/3) | (sum w^(1/2))^2 | (sum w^(1/3))^3 |

Merging pays where m counts for much, so under Laplace noise more than under Gaussian noise. JTree's printed program for
this choice has the same value for every assignment of cliques to clusters; this is the problem that its text describes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal

from margent.collectors.allocation import cube_root
from margent.schema.domain import Clique, Domain, clique

Split = Literal["equal", "least"]
_SHIFT = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cliques that are measured as one table, over the union of their columns. Privacy: none: names are public."""

    cliques: tuple[Clique, ...]

    @property
    def columns(self) -> Clique:
        """The columns of the cluster's table."""
        return clique(name for names in self.cliques for name in names)

    def weight(self, domain: Domain) -> int:
        """Cells of the table times the cliques summed from it. Units: cells."""
        return len(self.cliques) * domain.cells(self.columns)


def part(weight: int, scale_power: int, split: Split = "least") -> int:
    """In what proportion a table of this weight gets budget; in whole numbers, the same on every machine.

    ``scale_power`` is the account's: 2 where costs fall with the variance, 1 where with the scale.

    Privacy: none: public facts only.
    Source: Lagrange multipliers for sum w/rho, sum w/epsilon^2 (see the module).

    >>> part(100, 2) >> 20, part(27_000, 1) >> 20, part(7, 1, "equal")
    (10, 30, 1)
    """
    if split == "equal":
        return 1
    return math.isqrt(weight << (2 * _SHIFT)) if scale_power == 2 else cube_root(weight << (3 * _SHIFT))


def merged_cliques(
    cliques: Sequence[Clique],
    domain: Domain,
    scale_power: int,
    *,
    split: Split = "least",
    most_cells: int = 1_000_000,
    exact_up_to: int = 9,
) -> tuple[Cluster, ...]:
    """The clusters of least summed variance whose tables have at most ``most_cells`` cells.

    Up to ``exact_up_to`` cliques the best of all partitions is found (over all subsets, not all partitions); beyond,
    clusters are merged pair by pair while that lowers the sum. A clique over the cap stays alone.

    Privacy: none: public facts only.
    Source: JTree 2015, section 5, with its objective corrected.

    >>> tree = [("a", "b"), ("b", "c"), ("c", "d")]
    >>> domain = Domain(("a", "b", "c", "d"), (3, 3, 3, 3))
    >>> [len(merged_cliques(tree, domain, power)) for power in (2, 1)]  # Gaussian, Laplace
    [3, 2]
    """
    ordered = sorted(cliques)
    if len(ordered) <= exact_up_to:
        return _best(ordered, domain, scale_power, split, most_cells)
    return _greedy(ordered, domain, scale_power, split, most_cells)


def _best(
    cliques: Sequence[Clique], domain: Domain, scale_power: int, split: Split, most_cells: int
) -> tuple[Cluster, ...]:
    """Dynamic programming over subsets: for each subset and number of clusters, the least sum of costs.

    The number of clusters matters only where parts are equal, and costs nothing to keep where they are not.
    """
    costs: dict[int, int] = {}
    for mask in range(1, 1 << len(cliques)):
        cluster = Cluster(tuple(names for place, names in enumerate(cliques) if mask >> place & 1))
        if len(cluster.cliques) == 1 or domain.cells(cluster.columns) <= most_cells:
            costs[mask] = _cost(cluster, domain, scale_power, split)

    @cache
    def least(rest: int) -> dict[int, tuple[int, tuple[int, ...]]]:
        """For each number of clusters the least sum over partitions of ``rest``, with the partition."""
        if not rest:
            return {0: (0, ())}
        first, found = rest & -rest, dict[int, tuple[int, tuple[int, ...]]]()
        others = block = rest ^ first
        while True:  # over all subsets of the others
            cost = costs.get(block | first)
            if cost is not None:
                for many, (sum_, blocks) in least(others ^ block).items():
                    option = (sum_ + cost, (block | first, *blocks))
                    if many + 1 not in found or option < found[many + 1]:
                        found[many + 1] = option
            if not block:
                return found
            block = (block - 1) & others

    power = 2 if scale_power == 1 else 1
    options = least((1 << len(cliques)) - 1)
    value = {many: sum_ * many**power if split == "equal" else sum_ for many, (sum_, _) in options.items()}
    blocks = options[min(value, key=lambda many: (value[many], -many))][1]
    return tuple(Cluster(tuple(names for place, names in enumerate(cliques) if block >> place & 1)) for block in blocks)


def _cost(cluster: Cluster, domain: Domain, scale_power: int, split: Split) -> int:
    """What a cluster adds to the sum that is made least: its weight where parts are equal, else its part."""
    weight = cluster.weight(domain)
    return weight if split == "equal" else part(weight, scale_power)


def _greedy(
    cliques: Sequence[Clique], domain: Domain, scale_power: int, split: Split, most_cells: int
) -> tuple[Cluster, ...]:
    """Merge the two clusters that lower the summed variance most, while any two do."""
    clusters = [Cluster((names,)) for names in cliques]
    power = 2 if scale_power == 1 else 1
    costs = [_cost(cluster, domain, scale_power, split) for cluster in clusters]
    joined: dict[tuple[Cluster, Cluster], tuple[Cluster, int] | None] = {}
    while len(clusters) > 1:
        before, many = sum(costs), len(clusters)
        best: tuple[int, int, int] | None = None
        for one, other in combinations(range(many), 2):
            key = (clusters[one], clusters[other])
            if key not in joined:
                union = Cluster((*clusters[one].cliques, *clusters[other].cliques))
                fits = domain.cells(union.columns) <= most_cells
                joined[key] = (union, _cost(union, domain, scale_power, split)) if fits else None
            found = joined[key]
            if found is None:
                continue
            after = before - costs[one] - costs[other] + found[1]
            change = after * (many - 1) ** power - before * many**power if split == "equal" else after - before
            if change < 0 and (best is None or (change, one, other) < best):
                best = (change, one, other)
        if best is None:
            break
        _, one, other = best
        union_found = joined[clusters[one], clusters[other]]
        assert union_found is not None
        clusters[one], costs[one] = union_found
        del clusters[other], costs[other]
    return tuple(clusters)
