"""Counting queries: how many rows have their codes inside chosen sets of a few columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import CodedTable, Column

BATCH = 64
"""Queries answered in one pass: one bit each of a word a row."""


@dataclass(frozen=True, eq=False)
class Query:
    """Rows that have, in each named column (by place), a code whose entry in the mask is true.

    Shapes: each mask has one entry a code of its column.
    """

    masks: Mapping[int, NDArray[np.bool_]]


def answers(table: CodedTable, queries: Sequence[Query]) -> NDArray[np.int64]:
    """How many rows each query counts; exact.

    Shapes: q queries -> (q,).

    >>> table = CodedTable("t", "real", [np.array([0, 1, 1], np.uint8)], 3)
    >>> answers(table, [Query({0: np.array([False, True])}), Query({})]).tolist()
    [2, 3]
    """
    counts = np.zeros(len(queries), dtype=np.int64)
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        counts[start : start + len(batch)] = _batch(table, batch)
    return counts


def _batch(table: CodedTable, batch: Sequence[Query]) -> NDArray[np.int64]:
    every = np.uint64(2**64 - 1)
    rows = np.full(table.rows, every)
    for place in sorted({place for query in batch for place in query.masks}):
        size = next(query.masks[place].size for query in batch if place in query.masks)
        lookup = np.full(size, every)
        for bit, query in enumerate(batch):
            if place in query.masks:
                lookup[~query.masks[place]] &= ~(np.uint64(1) << np.uint64(bit))
        rows &= lookup[table.codes[place]]
    counts = np.zeros(len(batch), dtype=np.int64)
    for bit in range(len(batch)):
        counts[bit] = np.count_nonzero(rows & (np.uint64(1) << np.uint64(bit)))
    return counts


def interval(column: Column, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Two uniform codes of an ordinal column and all between; of another column each code with chance one half."""
    mask = np.zeros(column.size, dtype=bool)
    if column.ordinal:
        low, high = np.sort(rng.integers(0, column.inner, 2))
        mask[low : high + 1] = True
        return mask
    return rng.random(column.size) < 0.5


def covering(column: Column, width: float, rng: np.random.Generator, *, contiguous: bool) -> NDArray[np.bool_]:
    """A share ``width`` of a column's codes (at least one): neighbors where asked and meaningful, else any."""
    mask = np.zeros(column.size, dtype=bool)
    if contiguous and column.ordinal:
        length = max(1, int(width * column.inner))
        start = int(rng.integers(0, column.inner - length + 1))
        mask[start : start + length] = True
    else:
        mask[rng.choice(column.size, max(1, int(width * column.size)), replace=False)] = True
    return mask
