"""The conditional tables of a Bayesian network, from noisy tables: what ancestral sampling draws from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.errors import TranscriptError, UsageError
from margent.postprocessing.tables import Table, WorkingDomain, average, projected
from margent.stream import Stream
from margent.synthesizers.columns import sampleable_codes
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import Network, Node, Transcript


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Pr[child | parents] for every node of a network, in its order, over working codes.

    Shapes: ``tables[child]`` has one axis a parent, in the node's order, then one for the child; each row of it has a
    positive sum. ``views[name]`` maps the working codes of a view's column to those of the view, for the merges that
    stand beside their column, and ``columns[name]`` is that column.
    """

    nodes: tuple[Node, ...]
    tables: Mapping[str, NDArray[np.float64]]
    views: Mapping[str, NDArray[np.int64]]
    columns: Mapping[str, str]

    def draw(self, rows: int, seed: int, share: Share = WHOLE) -> dict[str, NDArray[np.int32]]:
        """Every column's working codes, drawn after its parents', apportioned among the records of like parents.

        Privacy: none: post-processing.
        """
        drawn: dict[str, NDArray[np.int32]] = {}
        for node in self.nodes:
            table = self.tables[node.child]
            groups = np.zeros(rows, dtype=np.int64)
            for name, size in zip(node.parents, table.shape, strict=False):
                groups = groups * size + self._seen(name, drawn[self.columns.get(name, name)])
            stream = Stream(seed, "ancestral", node.child)
            drawn[node.child] = apportioned_within(
                table.reshape(-1, table.shape[-1]), groups, stream, share, node.child
            )
        return drawn

    def joint(self, names: Sequence[str], most_cells: int) -> NDArray[np.float64] | None:
        """Pr[names], axes in that order, or None where it and the ancestors in between have too many cells.

        Privacy: none: post-processing.
        """
        needed = set(names)
        for node in reversed(self.nodes):
            if node.child in needed:
                needed |= {self.columns.get(name, name) for name in node.parents}
        nodes = [node for node in self.nodes if node.child in needed]
        sizes = [self.tables[node.child].shape[-1] for node in nodes]
        if math.prod(sizes) > most_cells or len(sizes) > _MOST_AXES:
            return None
        axis = {node.child: place for place, node in enumerate(nodes)}
        joint = np.ones(sizes)
        for node in nodes:
            index = [self._open(name, axis, sizes) for name in (*node.parents, node.child)]
            joint = joint * self._normalized[node.child][tuple(index)]
        kept = sorted(axis[name] for name in names)
        joint = joint.sum(axis=tuple(place for place in range(len(sizes)) if place not in kept))
        return np.transpose(joint, [kept.index(axis[name]) for name in names])

    @cached_property
    def _normalized(self) -> Mapping[str, NDArray[np.float64]]:
        return {child: table / table.sum(axis=-1, keepdims=True) for child, table in self.tables.items()}

    def _seen(self, name: str, codes: NDArray[np.integer]) -> NDArray[np.integer]:
        return self.views[name][codes] if name in self.views else codes

    def _open(self, name: str, axis: Mapping[str, int], sizes: Sequence[int]) -> NDArray[np.integer]:
        """The codes of a column or view along its column's axis of the joint table."""
        place = axis[self.columns.get(name, name)]
        shape = [1] * len(sizes)
        shape[place] = sizes[place]
        return self._seen(name, np.arange(sizes[place])).reshape(shape)


_MOST_AXES = 32
"""Axes that every version of numpy allows an array."""


def required_network(transcript: Transcript, synthesizer: str) -> Network:
    """The transcript's network, every column of the domain once and after its parents.

    Privacy: none: post-processing.
    Raises: UsageError where it has none; TranscriptError where it is none over the domain.
    """
    network = transcript.structure
    if not isinstance(network, Network):
        raise UsageError(
            f"synthesizer {synthesizer!r} needs a Bayesian network, which these noisy answers (of method "
            f"{transcript.method!r}) do not come with: method 'privbayes' makes one; any answers will do for 'descent'"
        )
    before: set[str] = set()
    origin = {name: merge.column for name, merge in transcript.merges.items()}
    for node in network.nodes:
        if any(origin.get(name, name) not in before for name in node.parents):
            raise TranscriptError("the Bayesian network names a parent before it is drawn")
        before.add(node.child)
    if len(network.nodes) != len(before) or before != set(transcript.domain.names):
        raise TranscriptError("the Bayesian network must name every column of the table once")
    return network


def with_views(transcript: Transcript) -> tuple[Transcript, Mapping[str, NDArray[np.bool_]]]:
    """The same answers with merges beside their column as columns of their own, and the codes that may be written.

    A group may be written if one of its codes may. Privacy: none: post-processing.
    """
    beside = {name: merge for name, merge in transcript.merges.items() if name != merge.column}
    own = {name: merge for name, merge in transcript.merges.items() if name == merge.column}
    written = dict(sampleable_codes(transcript))
    for name, merge in beside.items():
        written[name] = np.bincount(merge.groups, weights=written[merge.column], minlength=merge.size) > 0
    return replace(transcript, domain=transcript.domain.merged(beside), merges=own), written


def conditionals_of(
    network: Network, transcript: Transcript, working: WorkingDomain, tables: Sequence[Table]
) -> Conditionals:
    """Each node's conditional from all tables over it and its parents, summed onto them and averaged by precision.

    Cells below 0 count as 0. A combination of parents without records takes the shares of the same combination of
    fewer parents, the last one left out first; a column without any has even shares.

    Shapes: ``working`` is the domain with views as columns of their own.
    Privacy: none: post-processing.
    """
    origin = {name: merge.column for name, merge in transcript.merges.items() if name != merge.column}
    views = {}
    for name, column in origin.items():
        # Every code of a working code is seen alike: views are of the schema's codes, merged like them or not at all.
        groups = np.asarray(transcript.merges[name].groups, dtype=np.int64)[working.firsts(column)]
        views[name] = working.groups[name][groups]
    known = {}
    for node in network.nodes:
        over = [projected(table, node.clique) for table in tables if set(node.clique) <= set(table.clique)]
        shape = working.domain.shape((*node.parents, node.child))
        known[node.child] = without_gaps(_turned(average(over), node) if over else np.zeros(shape))
    return Conditionals(network.nodes, known, views, origin)


def _turned(table: Table, node: Node) -> NDArray[np.float64]:
    """Counts of at least 0 with the parents' axes first and the child's last."""
    order = [table.clique.index(name) for name in (*node.parents, node.child)]
    return np.maximum(np.transpose(table.values, order), 0.0)


def without_gaps(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows (last axis) without mass take those of the table summed over the last parents, as few as will do.

    Shapes: one axis a parent, then the child's. Privacy: none: post-processing.

    >>> without_gaps(np.array([[[1.0, 3.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])).tolist()
    [[[1.0, 3.0], [1.0, 3.0]], [[1.0, 3.0], [1.0, 3.0]]]
    """
    filled, coarser = table, table
    for axis in range(table.ndim - 2, -1, -1):
        coarser = coarser.sum(axis=axis, keepdims=True)
        filled = np.where(filled.sum(axis=-1, keepdims=True) > 0, filled, coarser)
    return np.where(filled.sum(axis=-1, keepdims=True) > 0, filled, 1.0)


def apportioned_within(
    weights: NDArray[np.float64],
    groups: NDArray[np.integer],
    stream: Stream,
    share: Share = WHOLE,
    label: str = "",
) -> NDArray[np.int32]:
    """One code a record: in every group each code gets its expected count rounded up or down, in random order.

    `margent.synthesizers.apportion.apportion` for all groups at once: systematic sampling, one uniform start a group.

    Shapes: ``weights`` (g, k), each row of positive sum; ``groups`` (n), values below g; n codes below k.
    Privacy: none: post-processing.
    """
    order = np.lexsort((stream.words(groups.size), groups))
    present, counts = np.unique(groups, return_counts=True)
    cuts = np.cumsum(weights[present], axis=1)
    starts = stream.unit(present.size)
    if share.count > 1:
        starts = share.starts(np.zeros(weights.shape[0]), "ancestral", label)[present]
    ends = np.floor(cuts * (counts / cuts[:, -1])[:, np.newaxis] + starts[:, np.newaxis])
    ends = np.where(cuts == cuts[:, -1:], counts[:, np.newaxis], np.minimum(ends, counts[:, np.newaxis]))
    each = np.diff(ends.astype(np.int64), axis=1, prepend=0)
    codes = np.empty(groups.size, dtype=np.int32)
    codes[order] = np.repeat(np.tile(np.arange(weights.shape[1], dtype=np.int32), present.size), each.ravel())
    return codes
