"""Named axes with sizes: the domain that codes live in, and the cliques that marginals are taken over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

Clique = tuple[str, ...]
"""A sorted tuple of distinct column names: the columns that one marginal counts together."""


def clique(names: Iterable[str]) -> Clique:
    """Return the names as a clique: sorted, without repeats.

    Privacy: none: names are public.

    >>> clique(["sex", "age"])
    ('age', 'sex')
    """
    return tuple(sorted(set(names)))


def outermost(cliques: Iterable[Clique]) -> list[Clique]:
    """The cliques that lie in no other one, in their order, each once.

    Privacy: none: names are public.

    >>> outermost([("a",), ("a", "b"), ("b", "c"), ("b",), ("a", "b")])
    [('a', 'b'), ('b', 'c')]
    """
    distinct = {names: set(names) for names in cliques}
    return [names for names, own in distinct.items() if not any(own < other for other in distinct.values())]


@dataclass(frozen=True, slots=True)
class Merge:
    """A public map from the codes of one column onto fewer groups: code v belongs to ``groups[v]``.

    Under the column's own name a merge takes the column's place; under another name it stands beside the column, so
    that one request may ask about several levels of a hierarchy.

    Shapes: ``groups`` has one entry a code; its values are 0 .. size - 1, each of them present.
    Privacy: none: built from the schema or from noisy answers only.
    Source: PrivSyn section 5 ("filter and combine").
    """

    column: str
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        # Counted, not listed: a file may claim a group of any number.
        if self.groups and (min(self.groups) < 0 or len(set(self.groups)) != self.size):
            raise ValueError(f"merge of {self.column!r}: groups must be 0..size-1, each present")

    @property
    def size(self) -> int:
        """How many groups the column's codes are merged into."""
        return max(self.groups, default=-1) + 1


NO_MERGES: Mapping[str, Merge] = MappingProxyType({})


@dataclass(frozen=True)
class Domain:
    """Ordered columns with the number of codes of each; sizes are Python integers and never overflow.

    Shapes: ``names`` and ``sizes`` have one entry a modeled column (d of them).
    Privacy: none: a function of the schema.

    >>> domain = Domain(("sex", "age"), (2, 100))
    >>> domain.cells(("age", "sex")), domain.shape(("age", "sex"))
    (200, (100, 2))
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes) or len(set(self.names)) != len(self.names):
            raise ValueError("a domain needs one size for each of its distinct names")
        if any(size < 1 for size in self.sizes):
            raise ValueError("every column of a domain needs at least one code")

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Column name to its place among ``names``."""
        return {name: place for place, name in enumerate(self.names)}

    def size(self, name: str) -> int:
        """Number of codes of one column."""
        return self.sizes[self.position[name]]

    def shape(self, names: Iterable[str]) -> tuple[int, ...]:
        """Sizes of the given columns, in the given order: the shape of their contingency table."""
        position, sizes = self.position, self.sizes
        return tuple([sizes[position[name]] for name in names])

    def cells(self, names: Iterable[str]) -> int:
        """Cells c of the contingency table over the given columns, as an exact Python integer."""
        position, sizes = self.position, self.sizes
        return math.prod([sizes[position[name]] for name in names])

    def merged(self, merges: Mapping[str, Merge]) -> Domain:
        """Return this domain with the given columns cut down to their groups, and a further one for every other name.

        >>> Domain(("zip",), (9,)).merged({"zip@county": Merge("zip", (0, 0, 0, 0, 1, 1, 1, 1, 1))})
        Domain(names=('zip', 'zip@county'), sizes=(9, 2))
        """
        sizes = tuple(
            merges[name].size if name in merges else size for name, size in zip(self.names, self.sizes, strict=True)
        )
        beside = sorted(name for name in merges if name not in self.position)
        return Domain((*self.names, *beside), (*sizes, *(merges[name].size for name in beside)))
