"""Which parents a column may get: the maximal sets of placed columns, perhaps generalized, under a cap of cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from margent.schema.domain import Clique, Domain, Merge, clique
from margent.transcript import Node

Views = Mapping[str, tuple[tuple[str, int], ...]]
"""Each column's views, finest first, as (name, number of codes): itself, then the levels of its hierarchy."""

_VISITS_A_SET = 50
"""Sets looked at for one that is maximal, before a degree counts as too wide to enumerate."""


class _TooManyError(Exception):
    """More sets than there may be; never leaves this module."""


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    """How many candidates one choice may have, and how many cells their tables may have together."""

    candidates: int
    cells: int


def views_of(domain: Domain, merges: Mapping[str, Merge]) -> Views:
    """The views of every column: itself, and the merges that stand beside it, which must come finest first.

    Privacy: none: public facts only.

    >>> views_of(Domain(("zip",), (9,)), {"zip@county": Merge("zip", (0, 0, 0, 0, 1, 1, 1, 1, 1))})
    {'zip': (('zip', 9), ('zip@county', 2))}
    """
    views = {name: [(name, size)] for name, size in zip(domain.names, domain.sizes, strict=True)}
    for name, merge in merges.items():
        views[merge.column].append((name, merge.size))
    return {name: tuple(listed) for name, listed in views.items()}


def maximal_parent_sets(columns: Sequence[str], views: Views, cap: int, degree: int, limit: int) -> list[Clique] | None:
    """All sets of at most ``degree`` columns, each at one of its views, of at most ``cap`` cells, that are maximal.

    Maximal: no column can be added, at any of its views, and none be taken at a finer one, without passing the cap or
    the degree. The empty set is none. None where there are more than ``limit``.

    Units: cells of the parents' table. Privacy: none: public facts only.
    Source: PrivBayes (Zhang et al. 2017), algorithms 5 and 6.

    >>> views = {"age": (("age", 9), ("age@decade", 3)), "sex": (("sex", 2),), "job": (("job", 5),)}
    >>> maximal_parent_sets(["age", "sex", "job"], views, 10, 3, 100)
    [('age',), ('age@decade', 'sex'), ('job', 'sex')]
    """
    found: list[Clique] = []
    visits = 0
    least = [min(size for _, size in views[name]) for name in columns]

    def visit(place: int, chosen: list[tuple[str, int]], steps: list[tuple[int, int]], cells: int) -> None:
        """``steps`` holds, for each chosen view, its size and that of the next finer one (0: there is none)."""
        nonlocal visits
        if place == len(columns) or len(chosen) == degree:
            visits += 1
            if visits > _VISITS_A_SET * limit:
                raise _TooManyError
            if chosen and maximal(chosen, steps, cells):
                if len(found) == limit:
                    raise _TooManyError
                found.append(clique(name for name, _ in chosen))
            return
        finer = 0
        for view in views[columns[place]]:
            if cells * view[1] <= cap:
                visit(place + 1, [*chosen, view], [*steps, (view[1], finer)], cells * view[1])
            finer = view[1]
        visit(place + 1, chosen, steps, cells)

    def maximal(chosen: list[tuple[str, int]], steps: list[tuple[int, int]], cells: int) -> bool:
        if any(finer and cells // size * finer <= cap for size, finer in steps):
            return False
        if len(chosen) == degree:
            return True
        names = {name for name, _ in chosen}
        return not any(
            cells * smallest <= cap
            for column, smallest in zip(columns, least, strict=True)
            if names.isdisjoint(name for name, _ in views[column])
        )

    try:
        visit(0, [], [], 1)
    except _TooManyError:
        return None
    return found


def candidate_nodes(
    placed: Sequence[str], children: Sequence[str], views: Views, cap: int, limits: CandidateLimits
) -> list[Node]:
    """Every child with each of its maximal parent sets among the placed columns: what one choice is made from.

    The table of a child and its parents has at most ``cap`` cells. Where that gives more candidates than ``limits``
    allow, parent sets are restricted to the largest number of members (degree) that stays within them; where even
    single parents are too many, only the first children take part, each with all of its parents.

    Privacy: none: sizes, names and noisy answers only; no candidate depends on the data in any other way.
    """
    kept: list[Node] = []
    for degree in range(1, len(placed) + 1):
        nodes = _of_degree(placed, children, views, cap, limits, degree)
        if nodes is None or (degree > 1 and all(len(node.parents) < degree for node in nodes)):
            return kept if nodes is None else nodes
        kept = nodes
    return kept


def _of_degree(
    placed: Sequence[str], children: Sequence[str], views: Views, cap: int, limits: CandidateLimits, degree: int
) -> list[Node] | None:
    """The candidates with at most ``degree`` parents, or None where those are too many; of one parent, the first."""
    sizes = {name: size for listed in views.values() for name, size in listed}
    nodes: list[Node] = []
    cells = 0
    sets_under: dict[int, list[Clique] | None] = {}
    most = limits.candidates if degree > 1 else sum(len(views[name]) for name in placed)
    for child in children:
        under = cap // sizes[child]
        if under not in sets_under:
            sets_under[under] = maximal_parent_sets(placed, views, under, degree, most)
        parent_sets = sets_under[under]
        if parent_sets is None:
            return None
        more = [Node(child, parents) for parents in parent_sets]
        cells += sum(_cells(node, sizes) for node in more)
        if (nodes or degree > 1) and (len(nodes) + len(more) > limits.candidates or cells > limits.cells):
            return nodes if degree == 1 else None
        nodes += more
    return nodes


def _cells(node: Node, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in (node.child, *node.parents))
