"""Graphs of columns made chordal, their maximal cliques, and the junction tree that these form.

A law over records whose dependence runs along the edges of a chordal graph is told by the tables of its maximal
cliques alone. How large those tables together are (`tree_cells`) is what every cap on a model is stated in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from margent.errors import UsageError
from margent.schema.domain import Clique, Domain, clique

_LOG_UNITS = 2**20
"""Logarithms are compared in whole numbers of 2^-20, so that sums of them tie alike on every machine."""


def adjacency(cliques: Iterable[Clique]) -> dict[str, frozenset[str]]:
    """The neighbors of every column that the cliques name: all columns that share a clique with it.

    Privacy: none: names are public.

    >>> sorted(adjacency([("a", "b"), ("b", "c"), ("d",)])["b"])
    ['a', 'c']
    """
    near: dict[str, set[str]] = {}
    for names in cliques:
        for name in names:
            near.setdefault(name, set()).update(names)
    return {name: frozenset(near[name] - {name}) for name in sorted(near)}


def components(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """The columns of each connected component of the cliques' graph, by their first name.

    Privacy: none: names are public.

    >>> components([("a", "d"), ("b",), ("c", "d")])
    (('a', 'c', 'd'), ('b',))
    """
    near = adjacency(cliques)
    seen: set[str] = set()
    found = []
    for name in near:
        if name in seen:
            continue
        reached, frontier = {name}, [name]
        while frontier:
            fresh = near[frontier.pop()] - reached
            reached |= fresh
            frontier += fresh
        seen |= reached
        found.append(clique(reached))
    return tuple(found)


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """The cliques that lie inside no other, each once, by name. Privacy: none: names are public.

    >>> maximal([("a",), ("a", "b"), ("c",), ("a", "b")])
    (('a', 'b'), ('c',))
    """
    sets = sorted({frozenset(names) for names in cliques}, key=lambda names: (-len(names), sorted(names)))
    kept: list[frozenset[str]] = []
    for names in sets:
        if not any(names <= other for other in kept):
            kept.append(names)
    return tuple(sorted(tuple(sorted(names)) for names in kept))


def triangulated(cliques: Iterable[Clique], domain: Domain) -> tuple[Clique, ...]:
    """Maximal cliques of a chordal graph that has every edge of the given cliques, in the order of a junction tree.

    Columns are eliminated one after another, each time the one whose fill edges weigh least (an edge weighs the
    logarithm of its pair's cells), then the one whose clique has fewest cells, then by name: a deterministic heuristic,
    which leaves a graph alone that is chordal already. Columns of one clique alone are cliques of one.

    Shapes: the result may be given to `CliqueTree` and `junction_tree` as it is.
    Privacy: none: post-processing.
    Source: Kjaerulff 1990; Koller and Friedman 2009, section 9.4.3 (weighted min-fill).

    >>> domain = Domain(("a", "b", "c", "d"), (9, 2, 9, 2))
    >>> triangulated([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], domain)
    (('a', 'b', 'd'), ('b', 'c', 'd'))
    """
    return junction_tree(maximal(_elimination(adjacency(cliques), domain))).cliques


def tree_cells(cliques: Iterable[Clique], domain: Domain) -> int:
    """Cells of all tables of the triangulated graph's maximal cliques together: the size of a model of these cliques.

    Units: cells, an exact Python integer. Privacy: none: public facts and names only.

    >>> tree_cells([("a", "b"), ("b", "c")], Domain(("a", "b", "c"), (2, 3, 4)))
    18
    """
    return sum(domain.cells(names) for names in maximal(_elimination(adjacency(cliques), domain)))


def _elimination(near: Mapping[str, frozenset[str]], domain: Domain) -> list[Clique]:
    """The clique of every column when it is eliminated, by weighted min-fill."""
    logs = {name: round(_LOG_UNITS * math.log2(domain.size(name))) for name in near}
    left = {name: set(others) for name, others in near.items()}
    costs = {name: _cost(name, left, logs) for name in left}
    found = []
    while left:
        name = min(costs, key=lambda name: (costs[name], name))
        around = left.pop(name)
        del costs[name]
        found.append(clique((name, *around)))
        touched = set(around)
        for one in around:
            left[one].discard(name)
            fresh = around - left[one] - {one}
            if fresh:
                left[one] |= fresh
                # An edge from here to there changes what those who know both ends would have to fill.
                touched |= left[one]
        costs.update((one, _cost(one, left, logs)) for one in touched)
    return found


def _cost(name: str, left: Mapping[str, set[str]], logs: Mapping[str, int]) -> tuple[int, int]:
    """Twice the weight of the edges that eliminating a column fills in, and the logarithm of its clique's cells."""
    around = left[name]
    # Between columns of one code an edge weighs nothing; a unit each still leaves a chordal graph as it is.
    fill = sum(logs[one] + logs[other] + 1 for one in around for other in around - left[one] if other != one)
    return fill, logs[name] + sum(logs[one] for one in around)


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Maximal cliques of a chordal graph with the clique that each hangs from: all it shares with those before it.

    Shapes: ``parents[i] < i``, or None at the root of each connected component.
    Privacy: none: names are public.
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int | None, ...]

    @property
    def separators(self) -> tuple[Clique, ...]:
        """The columns that each clique shares with its parent; none at a root."""
        return tuple(
            () if parent is None else clique(set(names) & set(self.cliques[parent]))
            for names, parent in zip(self.cliques, self.parents, strict=True)
        )


def junction_tree(cliques: Sequence[Clique]) -> JunctionTree:
    """Join the maximal cliques of a chordal graph so that the columns of any two lie in all cliques between them.

    A spanning tree of largest summed separator size (Prim), grown from the first clique by name; ties by name. It
    depends on which cliques there are, not on their order.

    Privacy: none: names are public.
    Source: Jensen and Jensen 1994: such a tree is a junction tree if there is any.
    Raises: UsageError where there is none, that is where the graph is not chordal or a clique is not maximal.

    >>> tree = junction_tree([("a", "b"), ("b", "c"), ("d", "e")])
    >>> tree.parents, tree.separators
    ((None, 0, None), ((), ('b',), ()))
    """
    waiting = sorted(cliques)
    if maximal(waiting) != tuple(waiting):
        raise UsageError("a junction tree is made of cliques none of which lies inside another: leave those out")
    order: list[Clique] = []
    parents: list[int | None] = []
    ties: dict[Clique, tuple[int, int]] = dict.fromkeys(waiting, (0, 0))  # size of separator, minus the parent's place
    seen: set[str] = set()
    while ties:
        names = min(ties, key=lambda names: (-ties[names][0], names))
        size, place = ties.pop(names)
        # All that was met before must lie in the one parent.
        if len(seen & set(names)) != size:
            raise UsageError("these cliques form no junction tree: make their graph chordal first (`triangulated`)")
        parents.append(-place if size else None)
        seen |= set(names)
        ties = {
            other: max(tie, (len(set(names) & set(other)), -len(order)), key=lambda tie: tie[0])
            for other, tie in ties.items()
        }
        order.append(names)
    return JunctionTree(tuple(order), tuple(parents))
