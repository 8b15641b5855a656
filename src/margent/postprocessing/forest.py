"""A forest of pair tables as a law over records: it carries what follows from the strongest pairs, exactly.

Where dependence runs along a tree, a mixture of few classes cannot follow a hundred separate edges; a forest can,
and the tables of pairs that are several edges apart follow by products of conditionals along the path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.steady import product
from margent.schema.domain import Clique, Domain, clique
from margent.stream import Stream


@dataclass(frozen=True, eq=False)
class Forest:
    """Edges with conditionals: Pr[x] = prod over roots Pr[x_r] times prod over edges Pr[x_child | x_parent].

    Shapes: ``visits`` lists (column, parent or None), parents first; ``given[column]`` is (k_parent, k_column),
    rows summing to one, or (1, k_column) at a root.
    Privacy: none: post-processing.
    """

    domain: Domain
    visits: tuple[tuple[str, str | None], ...]
    given: Mapping[str, NDArray[np.float64]]

    def records(self, rows: int, stream: Stream) -> NDArray[np.int32]:
        """Independent records, every column drawn given its parent.

        Shapes: (rows, d). Privacy: none: post-processing.
        """
        drawn = np.zeros((rows, len(self.domain.names)), dtype=np.int32)
        for name, parent in self.visits:
            steps = np.cumsum(self.given[name], axis=1)
            ladder = (steps / steps[:, -1:] + np.arange(steps.shape[0])[:, np.newaxis]).ravel()
            above = drawn[:, self.domain.position[parent]] if parent is not None else np.zeros(rows, dtype=np.int64)
            found = np.searchsorted(ladder, stream.unit(rows) + above, side="right") - above * steps.shape[1]
            drawn[:, self.domain.position[name]] = np.clip(found, 0, steps.shape[1] - 1)
        return drawn

    def table(self, pair: Clique, total: float) -> NDArray[np.float64]:
        """Expected counts of a pair of columns, axes in clique order.

        Units: records of ``total``. Shapes: (k_a, k_b).
        """
        first, second = pair
        joint = self._from(first).get(second)
        if joint is None:
            return total * np.outer(self.single(first), self.single(second))
        return total * joint

    @cached_property
    def edges(self) -> frozenset[Clique]:
        """The pairs that the forest is made of."""
        return frozenset(clique((name, parent)) for name, parent in self.visits if parent is not None)

    def single(self, name: str) -> NDArray[np.float64]:
        """Shares of one column."""
        return self._singles[name]

    @cached_property
    def _singles(self) -> dict[str, NDArray[np.float64]]:
        singles: dict[str, NDArray[np.float64]] = {}
        for name, parent in self.visits:
            above = np.ones((1, 1)) if parent is None else singles[parent][np.newaxis, :]
            singles[name] = product(above, self.given[name])[0]
        return singles

    @cached_property
    def _neighbors(self) -> dict[str, list[tuple[str, NDArray[np.float64]]]]:
        """Each column's tree neighbors with Pr[neighbor | column]."""
        near: dict[str, list[tuple[str, NDArray[np.float64]]]] = {name: [] for name in self.domain.names}
        for name, parent in self.visits:
            if parent is not None:
                down = self.given[name]
                joint = down * self._singles[parent][:, np.newaxis]
                columns = np.maximum(joint.sum(axis=0), 1e-300)
                near[parent].append((name, down))
                near[name].append((parent, np.ascontiguousarray((joint / columns).T)))
        return near

    @cached_property
    def _reached(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        return {}

    def _from(self, start: str) -> dict[str, NDArray[np.float64]]:
        """Joint shares of ``start`` with every column of its tree, by products along the paths."""
        if start not in self._reached:
            joints: dict[str, NDArray[np.float64]] = {}
            frontier = [(start, "", np.diag(self._singles[start]))]
            while frontier:
                here, came, joint = frontier.pop()
                for name, step in self._neighbors[here]:
                    if name != came:
                        joints[name] = product(joint, step)
                        frontier.append((name, here, joints[name]))
            self._reached[start] = joints
        return self._reached[start]


def spanning_forest(
    weights: Mapping[Clique, float],
    tables: Mapping[Clique, NDArray[np.float64]],
    singles: Mapping[str, NDArray[np.float64]],
    domain: Domain,
) -> Forest:
    """The forest of largest summed weight over the given pairs (Kruskal), with conditionals from their tables.

    Shapes: ``tables[a, b]`` non-negative (k_a, k_b); pairs of weight 0 or less are left out.
    Privacy: none: post-processing.
    """
    home = {name: name for name in domain.names}

    def root(name: str) -> str:
        while home[name] != name:
            home[name] = home[home[name]]
            name = home[name]
        return name

    edges: dict[str, list[str]] = {name: [] for name in domain.names}
    for pair in sorted(weights, key=lambda pair: (-weights[pair], pair)):
        first, second = root(pair[0]), root(pair[1])
        if weights[pair] > 0 and first != second:
            home[first] = second
            edges[pair[0]].append(pair[1])
            edges[pair[1]].append(pair[0])
    visits: list[tuple[str, str | None]] = []
    given: dict[str, NDArray[np.float64]] = {}
    seen: set[str] = set()
    for name in domain.names:
        frontier: list[tuple[str, str | None]] = [] if name in seen else [(name, None)]
        while frontier:
            here, parent = frontier.pop()
            seen.add(here)
            visits.append((here, parent))
            given[here] = _given(here, parent, tables, singles)
            frontier += [(other, here) for other in edges[here] if other not in seen]
    return Forest(domain, tuple(visits), given)


def _given(
    name: str,
    parent: str | None,
    tables: Mapping[Clique, NDArray[np.float64]],
    singles: Mapping[str, NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Pr[name | parent]; where the parent's value has no mass, the column's own shares."""
    own = np.maximum(singles[name], 0.0)
    own = own / own.sum() if own.sum() > 0 else np.full(own.size, 1 / own.size)
    if parent is None:
        return own[np.newaxis, :]
    joint = tables[(parent, name)] if parent < name else tables[(name, parent)].T
    rows = joint.sum(axis=1, keepdims=True)
    return np.where(rows > 0, joint / np.maximum(rows, 1e-300), own[np.newaxis, :])


def independence(pair: Sequence[str], singles: Mapping[str, NDArray[np.float64]], total: float) -> NDArray[np.float64]:
    """The product of two columns' counts over the total.

    Units: records. Shapes: (k_a, k_b). Privacy: none: post-processing.
    """
    return np.outer(singles[pair[0]], singles[pair[1]]) / total
