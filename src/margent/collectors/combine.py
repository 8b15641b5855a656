"""PrivSyn's Algorithm 2: pairs that form a clique with few cells are measured as one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from margent.schema.domain import Clique, Domain, clique


def combine(pairs: Sequence[Clique], domain: Domain, gamma: int = 5000, steps: int = 200_000) -> tuple[Clique, ...]:
    """Replace pairs by cliques of at most ``gamma`` cells, largest cliques first.

    From the largest size down to 3, a clique of the pair graph is accepted if it has at most ``gamma`` cells
    and shares at most two columns with all columns accepted so far; pairs inside an accepted clique are
    dropped. Within a size, cliques of small columns come first (ties by the domain's order), so the outcome
    does not depend on any hash order.

    A dense graph has exponentially many cliques. Every column of a pair has at least two codes, so no clique
    of ``gamma`` cells has more than log2(gamma) columns; and the search at each size ends after ``steps``
    extensions, which the graph and gamma alone decide.

    Privacy: none: public facts and earlier noisy answers only.
    Source: PrivSyn 2021, Algorithm 2 (the printed listing has its last lines in the wrong order).

    >>> domain = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))
    >>> combine([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")], domain)
    (('a', 'b', 'c'), ('c', 'd'))
    """
    neighbors: dict[str, set[str]] = {}
    for one, other in pairs:
        neighbors.setdefault(one, set()).add(other)
        neighbors.setdefault(other, set()).add(one)
    order = sorted(neighbors, key=lambda name: (domain.size(name), domain.position[name]))
    search = _Search({name: domain.size(name) for name in order}, neighbors, gamma)
    accepted: list[Clique] = []
    largest = min(len(order), max(gamma, 1).bit_length() - 1)
    for size in range(largest, 2, -1):
        search.left = steps
        for names in search.cliques(size, order):
            accepted.append(clique(names))
            search.covered.update(names)
    inside = {(one, other) for names in accepted for place, one in enumerate(names) for other in names[place + 1 :]}
    return (*accepted, *(pair for pair in pairs if clique(pair) not in inside))


def largest_combined(sizes: Sequence[int], gamma: int) -> int:
    """Most cells of one table that `combine` makes of columns of at most these sizes; 0 where it makes none.

    Privacy: none: public facts only.

    >>> largest_combined((2, 3, 4, 5), 5000), largest_combined((2, 3, 4, 5), 70), largest_combined((9, 9, 9), 7)
    (120, 70, 0)
    """
    return max(_largest_by_new(sizes, gamma).values(), default=0)


def most_combined(sizes: Sequence[int], gamma: int) -> int:
    """Most cells of all tables together that `combine` makes of columns of at most these sizes.

    Each accepted clique shares at most two columns with those before it, so one of t + 2 columns brings t new ones (the
    first two come with the first), and all together bring at most the columns but two. The sum is largest where all
    have the t of most cells for a new column.

    Privacy: none: public facts only.

    >>> most_combined((3,) * 40, 50), most_combined((2, 3, 4, 5), 5000)
    (1026, 120)
    """
    left = len(sizes) - 2
    return max((cells * left // new for new, cells in _largest_by_new(sizes, gamma).items()), default=0)


def _largest_by_new(sizes: Sequence[int], gamma: int) -> dict[int, int]:
    """For each t, the most cells of a clique of t + 2 columns, of which each has two codes or more once merged."""
    falling = sorted(sizes, reverse=True)
    most = min(len(falling), max(gamma, 1).bit_length() - 1)
    return {size - 2: min(gamma, math.prod(falling[:size])) for size in range(3, most + 1)}


@dataclass
class _Search:
    """Depth-first search for acceptable cliques; ``covered`` grows as the caller accepts what it yields."""

    sizes: Mapping[str, int]
    neighbors: Mapping[str, set[str]]
    gamma: int
    covered: set[str] = field(default_factory=set)
    left: int = 0

    def cliques(self, size: int, order: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield cliques of ``size`` columns, in order, each acceptable at the moment it is yielded."""
        yield from self._extend((), 1, order, size)

    def _extend(
        self, names: tuple[str, ...], cells: int, candidates: Sequence[str], size: int
    ) -> Iterator[tuple[str, ...]]:
        missing = size - len(names)
        if missing == 0:
            yield names
            return
        for place, name in enumerate(candidates):
            # Columns come by size, so the ones still to be added have at least as many codes as this one.
            if len(candidates) - place < missing or cells * self.sizes[name] ** missing > self.gamma:
                return
            if self.left <= 0:
                return
            self.left -= 1
            # Asked again at every step, because an acceptance deeper down covers more columns.
            if sum(other in self.covered for other in (*names, name)) > 2:
                if sum(other in self.covered for other in names) > 2:
                    return
                continue
            rest = [other for other in candidates[place + 1 :] if other in self.neighbors[name]]
            yield from self._extend((*names, name), cells * self.sizes[name], rest, size)
