"""All small contingency tables, and the largest change of a score between neighbors among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.privacy.neighbors import Neighbors

Score = Callable[[NDArray[np.int64]], int]


def compositions(records: int, cells: int) -> NDArray[np.int64]:
    """Every table of so many records in so many cells, one a row."""
    bars = itertools.combinations(range(records + cells - 1), cells - 1)
    edges = np.array(list(bars), dtype=np.int64).reshape(-1, cells - 1)
    ends = np.full((len(edges), 1), records + cells - 1)
    return np.diff(np.concatenate([np.full_like(ends, -1), edges, ends], axis=1), axis=1) - 1


class AllTables:
    """Every table of a shape with at most ``most`` records, and which of them are neighbors."""

    def __init__(self, shape: tuple[int, int], most: int) -> None:
        self.shape, self.cells, self.most = shape, shape[0] * shape[1], most
        every = [compositions(records, self.cells) for records in range(most + 1)]
        self.tables = np.concatenate(every)
        self.records = self.tables.sum(axis=1)
        order = np.argsort(self.code(self.tables))
        self.tables, self.records = self.tables[order], self.records[order]

    def values(self, score: Score) -> NDArray[np.int64]:
        """The score of every table."""
        return np.array([score(table.reshape(self.shape)) for table in self.tables], dtype=np.int64)

    def largest(self, values: NDArray[np.int64], neighbors: Neighbors) -> int:
        """The largest change of a score between two of the tables that are neighbors."""
        found = 0
        for change in self.changes(neighbors):
            other = self.tables + change
            inside = (other >= 0).all(axis=1) & (other.sum(axis=1) <= self.most)
            places = np.searchsorted(self._codes, self.code(other[inside]))
            found = max(found, int(np.abs(values[places] - values[inside]).max(initial=0)))
        return found

    def changes(self, neighbors: Neighbors) -> Iterator[NDArray[np.int64]]:
        """What is added to one table to get a neighbor; the other way round is the same pair."""
        if neighbors.relation == "replace":
            for take, give in itertools.permutations(range(self.cells), 2):
                yield np.eye(self.cells, dtype=np.int64)[give] - np.eye(self.cells, dtype=np.int64)[take]
            return
        for count in range(1, neighbors.unit_rows + 1):
            for group in itertools.combinations_with_replacement(range(self.cells), count):
                yield np.bincount(group, minlength=self.cells).astype(np.int64)

    def code(self, tables: NDArray[np.int64]) -> NDArray[np.int64]:
        """One whole number a table, in the order of `tables`."""
        return tables @ (self.most + 1) ** np.arange(self.cells)

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        return self.code(self.tables)


def climbed(score: Score, shape: tuple[int, int], neighbors: Neighbors, most: int, starts: int, seed: int) -> int:
    """The largest change found by climbing from random tables: records move while the change grows."""
    rng = np.random.default_rng(seed)
    cells, best = shape[0] * shape[1], 0
    moves = list(itertools.permutations(range(cells), 2))
    for _ in range(starts):
        records = int(rng.integers(max(4, most // 2), most + 1))
        table = rng.multinomial(records, rng.dirichlet(np.full(cells, 0.3))).astype(np.int64)
        here, rising = _change(score, table, shape, neighbors), True
        while rising:
            rising = False
            for take, give in moves:
                if table[take]:
                    table[take], table[give] = table[take] - 1, table[give] + 1
                    there = _change(score, table, shape, neighbors)
                    if there > here:
                        here, rising = there, True
                    else:
                        table[take], table[give] = table[take] + 1, table[give] - 1
        best = max(best, here)
    return best


def _change(score: Score, table: NDArray[np.int64], shape: tuple[int, int], neighbors: Neighbors) -> int:
    """The largest change from one table; a person's rows all lie in one cell."""
    value, largest = score(table.reshape(shape)), 0
    for give in range(table.size):
        takers = range(table.size) if neighbors.relation == "replace" else [None]
        for take in takers:
            if take is not None and (take == give or not table[take]):
                continue
            other = table.copy()
            other[give] += 1 if take is not None else neighbors.unit_rows
            if take is not None:
                other[take] -= 1
            largest = max(largest, abs(score(other.reshape(shape)) - value))
    return largest
