"""Codes of a hierarchy counted together along its branches: low siblings first, then what is low of their cousins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from margent.schema.fields import Schema
from margent.schema.hierarchy import groups_at
from margent.schema.labels import scalar_text


def branches_of(schema: Schema) -> dict[str, tuple[tuple[int, ...], ...]]:
    """For each column with a hierarchy, the group of every listed value at each level, finest first.

    Privacy: none: a function of the schema.
    """
    found = {}
    for field in schema.modelled:
        if field.hierarchy is not None and field.listed is not None:
            texts = [scalar_text(item.value) for item in field.listed]
            levels = range(len(field.hierarchy.levels))
            found[field.name] = tuple(groups_at(field.hierarchy, texts, level)[1] for level in levels)
    return found


def branches(counts: NDArray[np.float64], levels: Sequence[Sequence[int]], bar: float) -> NDArray[np.int64]:
    """Group numbers along a tree: a code at or above the bar alone, low siblings together until they reach it.

    The low codes of one parent are counted together. If the m of them sum to at least sqrt(m) bars (the noise of a sum
    grows so), they are a group; else they go up, to be counted with all others that went up to the same grandparent,
    and so on. What is left at the root is one group.

    Shapes: k noisy counts; each level has the group of every code; k group numbers, in order of their first code.
    Units: standard deviations of one count.
    Privacy: none: post-processing.

    >>> branches(np.array([9.0, 2.0, 2.5, 0.1, 1.0, 0.0]), [(0, 0, 0, 1, 1, 2)], 3.0).tolist()
    [0, 1, 1, 2, 2, 2]
    """
    groups = np.full(counts.size, -1, dtype=np.int64)
    settled = np.flatnonzero(counts >= bar)
    groups[settled] = settled  # any number will do until they are put in order
    for level in levels:
        above = np.asarray(level)
        waiting = np.flatnonzero(groups < 0)
        for parent in np.unique(above[waiting]).tolist():
            members = waiting[above[waiting] == parent]
            if counts[members].sum() >= bar * math.sqrt(members.size):
                groups[members] = members[0]
    left = np.flatnonzero(groups < 0)
    if left.size:
        groups[left] = left[0]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)
