"""Columns of very many codes, cut down to groups that their noisy counts can tell apart and pair tables can afford.

Codes that drown in noise say nothing in a pair table, but their cells cost noise, memory and time. In a column with a
hierarchy, siblings are counted together until they stand out of the noise; in one whose codes have an order, neighbors;
in others all low codes are one group. What is still too large for the cap of a table loses more of its lightest codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.branches import branches, branches_of
from margent.postprocessing.merging import merge_low_counts
from margent.schema.domain import Merge
from margent.schema.fields import Schema
from margent.transcript import NoisyMarginal

DEVIATIONS = 3.0
"""A code, or a run of neighbors, is told apart if its noisy count is at least so many standard deviations."""


def coarsened(schema: Schema, one_ways: Sequence[NoisyMarginal], above: int, cap: int) -> dict[str, Merge]:
    """Merges after which no pair of columns has more than ``cap`` cells.

    Columns of more than ``above`` codes have their low codes merged. If two columns are still too large together, the
    columns over `most_groups` are merged further, the lightest codes first.

    Shapes: ``one_ways`` one marginal a column, over its k codes.
    Privacy: none: post-processing of noisy counts; which codes have an order is in the schema.
    Source: PrivSyn 2021 section 5, "filter and combine"; runs and the cap are ours.
    """
    ordered, trees = ordered_codes(schema), branches_of(schema)

    def along(answer: NoisyMarginal, most: int | None = None) -> Merge | None:
        """The column's codes merged along its hierarchy or order; None without either, or with nothing to merge."""
        (name,) = answer.clique
        if name in trees:
            return merge_branches(answer, trees[name], most)
        return merge_runs(answer, ordered[name], most) if name in ordered else None

    merges: dict[str, Merge] = {}
    for answer in one_ways:
        (name,) = answer.clique
        if answer.counts.size > above:
            alike = name in trees or name in ordered
            merge = along(answer) if alike else merge_low_counts(answer, DEVIATIONS)
            if merge is not None:
                merges[name] = merge
    sizes = [merges[answer.clique[0]].size if answer.clique[0] in merges else answer.counts.size for answer in one_ways]
    most = most_groups(sizes, cap)
    for answer, size in zip(one_ways, sizes, strict=True):
        (name,) = answer.clique
        if size > most:
            merge = along(answer, most)
            # More special codes than groups: no order helps.
            merges[name] = _keep_heaviest(answer, most) if merge is None or merge.size > most else merge
    return merges


def ordered_codes(schema: Schema) -> Mapping[str, int]:
    """For each column whose values have an order: how many codes, from 0 on, are such values; then special ones follow.

    Privacy: none: a function of the schema.
    """
    from margent.schema.codec import Codec

    layouts = Codec(schema).layouts
    return {layout.field.name: layout.values for layout in layouts if layout.cuts is not None or layout.field.ordered}


def most_groups(sizes: Sequence[int], cap: int) -> int:
    """The largest size that columns may keep if no two of them are to have more than ``cap`` cells together.

    Either the largest column alone gives way to the second largest, or both end at the root of the cap.

    Privacy: none: post-processing.

    >>> most_groups([50_000, 100, 7], 1_000_000), most_groups([5_000, 3_000, 7], 1_000_000)
    (10000, 1000)
    """
    second = sorted(sizes)[-2] if len(sizes) > 1 else 1
    return max(cap // second, math.isqrt(cap), 1)


def _keep_heaviest(marginal: NoisyMarginal, most: int) -> Merge:
    """The ``most - 1`` codes of largest noisy count stay, all others are one group, the last one.

    Privacy: none: post-processing of noisy counts.
    """
    (column,) = marginal.clique
    groups = np.full(marginal.counts.size, most - 1)
    kept = np.sort(np.argsort(-marginal.counts, kind="stable")[: most - 1])
    groups[kept] = np.arange(kept.size)
    return Merge(column, tuple(groups.tolist()))


def merge_runs(marginal: NoisyMarginal, values: int, most: int | None = None) -> Merge | None:
    """Count neighboring low codes together until each run stands out of its noise; None if there are none to merge.

    The first ``values`` codes are in order; those after them (special, missing, unlisted) stay apart. With ``most``,
    the bar rises above `DEVIATIONS` until there are at most so many groups.

    Shapes: ``marginal`` is a one-way marginal over k codes.
    Privacy: none: post-processing of noisy counts.
    """
    counts = marginal.counts[:values].astype(np.float64) / math.sqrt(marginal.variance)
    return _merged(marginal, values, lambda bar: runs(counts, bar), most)


def merge_branches(marginal: NoisyMarginal, levels: Sequence[Sequence[int]], most: int | None = None) -> Merge | None:
    """Count low codes together along a hierarchy, siblings first; None if there are none to merge.

    ``levels``: the group of each listed value at each level, finest first; codes after those stay apart. ``most`` as in
    `merge_runs`.

    Shapes: ``marginal`` is a one-way marginal over k codes.
    Privacy: none: post-processing of noisy counts; the hierarchy is in the schema.
    """
    values = len(levels[0])
    counts = marginal.counts[:values].astype(np.float64) / math.sqrt(marginal.variance)
    return _merged(marginal, values, lambda bar: branches(counts, levels, bar), most)


def _merged(
    marginal: NoisyMarginal, values: int, grouped: Callable[[float], NDArray[np.int64]], most: int | None
) -> Merge | None:
    """The groups at the lowest bar (to a twentieth) that leaves at most ``most``; codes after ``values`` stay apart."""
    (column,) = marginal.clique
    others = marginal.counts.size - values
    bar = DEVIATIONS
    groups = grouped(bar)
    if most is not None:
        room = max(most - others, 1)
        low, high = bar, bar
        while groups.max() >= room:
            low, high = high, 2 * high
            groups = grouped(high)
        for _ in range(4 if high > bar else 0):
            middle = math.sqrt(low * high)
            tried = grouped(middle)
            low, high, groups = (middle, high, groups) if tried.max() >= room else (low, middle, tried)
    size = int(groups.max()) + 1
    if size == values:
        return None
    return Merge(column, (*groups.tolist(), *range(size, size + others)))


def runs(counts: NDArray[np.float64], bar: float) -> NDArray[np.int64]:
    """Group numbers along an order: a code at or above the bar alone, lower ones together until they reach it.

    A run of m codes has reached it when its sum is at least sqrt(m) bars: the noise of a sum grows so. What is left
    before a code that stands alone, or at the end, is a run of its own.

    Shapes: k noisy counts, at least one; k group numbers that never fall.
    Units: standard deviations of one count.
    Privacy: none: post-processing.

    >>> runs(np.array([9.0, 1.0, 2.0, 2.5, 0.0, 8.0]), 3.0).tolist()
    [0, 1, 1, 1, 2, 3]
    """
    groups = np.empty(counts.size, dtype=np.int64)
    group, total, length = 0, 0.0, 0
    for code, count in enumerate(counts.tolist()):
        if count >= bar:
            group += length > 0
            total, length = bar, 1
        else:
            total, length = total + count, length + 1
        groups[code] = group
        if total >= bar * math.sqrt(length):
            group, total, length = group + 1, 0.0, 0
    return groups
