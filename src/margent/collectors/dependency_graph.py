"""PrivMRF's graph: edges grown by their noisy dependence while the junction tree stays small, and tables inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from margent.postprocessing.junction import maximal, triangulated
from margent.schema.domain import Clique, Domain, clique


@dataclass(frozen=True, slots=True)
class Caps:
    """Most cells of one clique of the junction tree, and of all of them together."""

    clique: int
    tree: int


def grown_graph(
    values: Mapping[Clique, float], domain: Domain, caps: Caps, size_weight: float = 1e-8, trials: int = 3000
) -> tuple[Clique, ...]:
    """Edges of large summed value less ``size_weight`` times the junction tree's cells, under the caps.

    Local search: edges are added from the largest value down where that pays and fits; then an edge that did not fit
    takes the place of one of less value wherever the graph then fits and is worth more; and what fits beside the
    graph that was made so, which an exchange may have made room for, is added. At most ``trials`` graphs are looked at,
    so wide tables take no longer.

    Shapes: the maximal cliques of the chordal graph, in the order of a junction tree.
    Units: values as shares of the records.
    Privacy: none: post-processing of noisy scores.
    Source: Cai et al. 2021 (PrivMRF), section 4.

    >>> domain = Domain(("a", "b", "c"), (3, 3, 3))
    >>> grown_graph({("a", "b"): 0.3, ("b", "c"): 0.2, ("a", "c"): 0.1}, domain, Caps(9, 100))
    (('a', 'b'), ('b', 'c'))
    """
    singles: list[Clique] = [(name,) for name in domain.names]

    def cells_of(edges: Sequence[Clique]) -> int | None:
        sizes = [domain.cells(names) for names in triangulated([*singles, *edges], domain)]
        return sum(sizes) if max(sizes) <= caps.clique and sum(sizes) <= caps.tree else None

    order = sorted((pair for pair in values if values[pair] > 0), key=lambda pair: (-values[pair], pair))
    edges: list[Clique] = []
    now = sum(domain.cells(names) for names in singles)
    left = trials
    for pair in order:
        if left <= 0:
            break
        left -= 1
        cells = cells_of([*edges, pair])
        if cells is not None and values[pair] > size_weight * (cells - now):
            edges.append(pair)
            now = cells
    for pair in order:
        if pair in edges:
            continue
        for other in sorted(edges, key=lambda each: (values[each], each)):
            if left <= 0 or values[other] >= values[pair]:
                break
            left -= 1
            swapped = [*(each for each in edges if each != other), pair]
            cells = cells_of(swapped)
            if cells is not None and values[pair] - values[other] > size_weight * (cells - now):
                edges, now = swapped, cells
                break
    cliques, before = triangulated([*singles, *edges], domain), 0
    while len(edges) != before:
        before = len(edges)
        for pair in order:
            if left <= 0 or any(set(pair) <= set(names) for names in cliques):
                continue
            left -= 1
            cells = cells_of([*cliques, pair])
            if cells is not None and values[pair] > size_weight * (cells - now):
                edges.append(pair)
                cliques, now = triangulated([*cliques, pair], domain), cells
    return cliques


def network_tables(
    cliques: Sequence[Clique], values: Mapping[Clique, float], domain: Domain, most_cells: float
) -> tuple[Clique, ...]:
    """Tables of at most ``most_cells`` cells that tell most of each clique: a greedy Bayesian network's inside it.

    The first column of a clique is one end of its best edge; then comes, time after time, the column whose parents
    among those before it sum to the largest value: the best ones for as long as the table stays under the cap.
    Tables come by the value of all pairs inside them, the largest first.

    Privacy: none: post-processing of noisy scores.
    Source: Cai et al. 2021 (PrivMRF), section 5.

    >>> domain = Domain(("a", "b", "c"), (2, 2, 2))
    >>> network_tables([("a", "b", "c")], {("a", "b"): 0.3, ("b", "c"): 0.2, ("a", "c"): 0.1}, domain, 4)
    (('a', 'b'), ('b', 'c'))
    """
    tables: list[Clique] = []
    for names in cliques:
        inside = {pair: value for pair, value in values.items() if set(pair) <= set(names)}
        start = min(inside, key=lambda pair: (-inside[pair], pair))[0] if inside else names[0]
        placed, waiting = [start], [name for name in names if name != start]
        while waiting:
            found = [_parents(name, placed, inside, domain, most_cells) for name in waiting]
            _, parents, name = max(found, key=lambda each: (each[0], -domain.position[each[2]]))
            if parents:
                tables.append(clique((name, *parents)))
            placed.append(name)
            waiting.remove(name)
    told = {names: sum(values.get(pair, 0.0) for pair in combinations(names, 2)) for names in maximal(tables)}
    return tuple(sorted(told, key=lambda names: (-told[names], names)))


def _parents(
    name: str, placed: Sequence[str], values: Mapping[Clique, float], domain: Domain, most_cells: float
) -> tuple[float, tuple[str, ...], str]:
    """The column's parents, largest value first, while the table fits; with what they are worth together."""
    parents: list[str] = []
    gain, cells = 0.0, domain.size(name)
    for other in sorted(placed, key=lambda other: (-values.get(clique((name, other)), 0.0), other)):
        value = values.get(clique((name, other)), 0.0)
        if value > 0 and cells * domain.size(other) <= most_cells:
            parents.append(other)
            gain, cells = gain + value, cells * domain.size(other)
    return gain, tuple(parents), name
