"""A law over records told by the tables of a junction tree's cliques: exact marginals over any columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.junction import JunctionTree
from margent.schema.domain import Clique, Domain

Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CalibratedTree:
    """p(x) = prod_C p(x_C) / prod_S p(x_S) over cliques C and separators S: tables that agree on what they share.

    Shapes: ``beliefs[i]`` has one axis a column of clique i, all with the same sum ``total``.
    Units: records. Every column of ``domain`` lies in a clique.
    Privacy: none: post-processing.
    """

    domain: Domain
    tree: JunctionTree
    beliefs: tuple[Counts, ...]
    total: float

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent."""
        return self.tree.separators

    @cached_property
    def _first(self) -> Mapping[str, int]:
        """For every column the clique it comes in first: all others that have it hang below that one."""
        first: dict[str, int] = {}
        for place, names in enumerate(self.tree.cliques):
            for name in names:
                first.setdefault(name, place)
        return first

    def _given_separator(self, place: int) -> Counts:
        """A clique's table divided by its sum over each cell of its separator; zeros where that sum is 0.

        Shapes: that of the clique's table.
        """
        names, table = self.tree.cliques[place], self.beliefs[place]
        others = tuple(axis for axis, name in enumerate(names) if name not in self.separators[place])
        sums = table.sum(axis=others, keepdims=True)
        shares: Counts = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
        return shares

    def marginal(self, names: Clique) -> Counts:
        """The law's table over any columns, exactly: everything else is summed out along the tree.

        Shapes: one axis a name, in that order. Units: records.
        """
        holders = [place for place, clique in enumerate(self.tree.cliques) if set(names) <= set(clique)]
        if holders:
            place = min(holders, key=lambda place: (self.beliefs[place].size, place))
            return _contracted([(self.tree.cliques[place], self.beliefs[place])], names)
        parts: list[tuple[Clique, Counts]] = []
        for wanted in self._apart(names):
            part, table = self._together(wanted)
            parts.append((part, table / self.total if parts else table))
        return _contracted(parts, names)

    def _apart(self, names: Clique) -> list[Clique]:
        """The columns by the component of the tree that they lie in."""
        by_root: dict[int, list[str]] = {}
        for name in names:
            by_root.setdefault(self._path(self._first[name])[-1], []).append(name)
        return [tuple(group) for _, group in sorted(by_root.items())]

    def _path(self, place: int) -> list[int]:
        path = [place]
        while (parent := self.tree.parents[path[-1]]) is not None:
            path.append(parent)
        return path

    def _together(self, names: Clique) -> tuple[Clique, Counts]:
        """Sum out everything else from the lowest clique that all the columns' first cliques hang from."""
        paths = [self._path(self._first[name]) for name in names]
        shared = set(paths[0]).intersection(*paths[1:])
        top = max(shared)  # parents come first, so the last shared one is the lowest
        needed = {place for path in paths for place in path[: path.index(top)]}
        below: dict[int, list[tuple[Clique, Counts]]] = {place: [] for place in needed | {top}}
        for place in sorted(needed, reverse=True):
            parent = self.tree.parents[place]
            assert parent is not None
            parts = [(self.tree.cliques[place], self._given_separator(place)), *below[place]]
            present = {name for part, _ in parts for name in part}
            kept = tuple(sorted(present & (set(names) | set(self.separators[place]))))
            below[parent].append((kept, _contracted(parts, kept)))
        return names, _contracted([(self.tree.cliques[top], self.beliefs[top]), *below[top]], names)


def _contracted(parts: Sequence[tuple[Clique, Counts]], names: Clique) -> Counts:
    """Sum of the parts' product over all columns but ``names``."""
    letters = {name: place for place, name in enumerate(sorted({name for part, _ in parts for name in part}))}
    operands: list[Any] = []
    for part, table in parts:
        operands += [table, [letters[name] for name in part]]
    # One path for two operands, whatever their sizes; more are contracted greedily, smallest intermediate first.
    return np.asarray(np.einsum(*operands, [letters[name] for name in names], optimize=len(parts) > 1))
