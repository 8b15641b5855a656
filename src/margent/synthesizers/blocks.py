"""Records in blocks: a large table is drawn piece by piece, each a function of model, rows, seed and its number alone.

So memory follows a block and not the rows, blocks may be drawn anywhere, at the same time or again, and the bytes are
the same whoever draws them. All blocks together are apportioned as one table (`margent.synthesizers.shares`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margent.machine import machine_memory, threads
from margent.progress import Progress, silent
from margent.schema.domain import Clique
from margent.stream import Stream
from margent.synthesizers.columns import counted
from margent.synthesizers.model import Model
from margent.synthesizers.shares import Share
from margent.workers import in_order

MOST_ROWS = 2**20
"""Most records of a block, however few its columns."""
LEAST_ROWS = 2**16
"""So many records a block may have however many its columns: fewer could not follow thin cells."""
BLOCK_CELLS = 2**24
"""Cells (records times columns) of a block between these two."""
CELL_BYTES = 20
"""Most memory that drawing and writing a block takes, a cell: measured, docs/writing-many-rows.md."""
MOST_COUNTED = 2**22
"""Records drawn to count a model's marginals where it has no closed form; counts are scaled up to its total."""


def block_rows(columns: int) -> int:
    """Most records of a block: 2^24 cells, but 2^16 records at least and 2^20 at most; a public rule.

    Privacy: none: a function of the number of columns.

    >>> block_rows(16), block_rows(100), block_rows(1000)
    (1048576, 167772, 65536)
    """
    return min(MOST_ROWS, max(LEAST_ROWS, BLOCK_CELLS // max(columns, 1)))


@dataclass(frozen=True)
class Blocks:
    """``rows`` records in ``count`` blocks of ``size`` records each, of which the last may lack a few.

    Privacy: none: a function of rows, columns and seed.

    >>> Blocks.of(2_500_000, 16, seed=7)
    Blocks(rows=2500000, count=3, size=833334, seed=7)
    """

    rows: int
    count: int
    size: int
    seed: int

    @staticmethod
    def of(rows: int, columns: int, seed: int) -> Blocks:
        """Cut rows into blocks that are all alike, none larger than `block_rows` says."""
        size = -(-rows // max(1, -(-rows // block_rows(columns))))
        return Blocks(rows, max(1, -(-rows // max(size, 1))), size, seed)

    def first(self, index: int) -> int:
        """The number of records before a block."""
        return index * self.size

    def rows_of(self, index: int) -> int:
        """The number of records of a block."""
        return min(self.size, self.rows - index * self.size)


def drawn_block(model: Model, rows: int, seed: int, index: int, progress: Progress = silent) -> NDArray[np.int32]:
    """Records of block ``index`` of a table of ``rows`` records: a pure function, wherever it is called.

    A table of one block is `Model.sample` of the same seed. Each block of several has a seed of its own and a share of
    its own in how counts are rounded; the last is drawn as large as the others and cut.

    Shapes: (records of the block, d), one column a name of ``model.domain.names``.
    Privacy: none: post-processing.
    Raises: ValueError where there is no such block.
    """
    blocks = Blocks.of(rows, len(model.domain.names), seed)
    if not 0 <= index < blocks.count:
        raise ValueError(f"there are {blocks.count} blocks, from number 0")
    if blocks.count == 1:
        return model.sample(rows, seed, progress)
    own = Stream(seed, "block", str(index)).seed64() >> 1
    codes = model.sample(blocks.size, own, progress, Share(index, blocks.count, seed))
    return codes[: blocks.rows_of(index)]


class Records(Protocol):
    """The records of a table, block by block."""

    @property
    def blocks(self) -> Blocks:
        """How the records are cut."""
        ...

    def block(self, index: int, progress: Progress = silent) -> NDArray[np.int32]:
        """The codes of one block: shape (records, d)."""
        ...


@dataclass(frozen=True, eq=False)
class HeldRecords:
    """Records in memory, as one block. Shapes: ``codes`` is (rows, d)."""

    codes: NDArray[np.int32]
    seed: int

    @property
    def blocks(self) -> Blocks:
        """One block."""
        rows = int(self.codes.shape[0])
        return Blocks(rows, 1, rows, self.seed)

    def block(self, index: int, progress: Progress = silent) -> NDArray[np.int32]:
        """All codes."""
        return self.codes


@dataclass(frozen=True, eq=False)
class DrawnRecords:
    """Records that are drawn from a model when they are asked for, and not kept."""

    model: Model
    rows: int
    seed: int

    @cached_property
    def blocks(self) -> Blocks:
        """How the records are cut."""
        return Blocks.of(self.rows, len(self.model.domain.names), self.seed)

    def block(self, index: int, progress: Progress = silent) -> NDArray[np.int32]:
        """The codes of one block, drawn again at every call."""
        return drawn_block(self.model, self.rows, self.seed, index, progress)


def records_of(model: Model, rows: int, seed: int, progress: Progress) -> Records:
    """``rows`` records of a model: held in memory where they are one block, else drawn block by block when needed.

    Privacy: none: post-processing.
    """
    drawn = DrawnRecords(model, rows, seed)
    return HeldRecords(drawn.block(0, progress), seed) if drawn.blocks.count == 1 else drawn


def workers_for(blocks: Blocks, columns: int) -> int:
    """How many blocks are worked on at once: a thread each, while they take no more than half of the memory.

    Privacy: none: public facts; the bytes of the table do not depend on it.
    """
    have, each = machine_memory(), max(block_bytes(blocks.size, columns), 1)
    most = threads() if have is None else max(1, have // 2 // each)
    return min(threads(), most, blocks.count)


def block_bytes(rows: int, columns: int) -> int:
    """Memory that a block takes while it is drawn and written. Units: bytes. Privacy: none."""
    return CELL_BYTES * rows * max(columns, 1)


def memory_of(rows: int, columns: int) -> int:
    """Memory that writing so many rows takes: that of the blocks in work, and one that waits.

    Units: bytes. Privacy: none: public facts.

    >>> memory_of(10**8, 16) < 1.1 * memory_of(10**9, 16) < 1.2 * memory_of(10**8, 16)
    True
    """
    blocks = Blocks.of(rows, columns, 0)
    workers = workers_for(blocks, columns)
    return block_bytes(blocks.size, columns) * (workers + (blocks.count > 1))


def sampled_counts(model: Model, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
    """Contingency tables of ``total`` sampled records, axes in clique order; fewer are drawn, and scaled, of very many.

    Privacy: none: post-processing.
    """
    rows = min(model.total, MOST_COUNTED)
    drawn = DrawnRecords(model, rows, seed)

    def tables(index: int, progress: Progress) -> list[NDArray[np.float64]]:
        return counted(drawn.block(index, progress), model.domain, cliques)

    workers = workers_for(drawn.blocks, len(model.domain.names))
    sums = [np.zeros(model.domain.shape(names)) for names in cliques]
    for block in in_order(tables, drawn.blocks.count, workers):
        sums = [held + more for held, more in zip(sums, block, strict=True)]
    return [each * (model.total / rows) if rows < model.total else each for each in sums]


def expected_or_sampled(
    model: Model, cliques: Sequence[Clique], expected: Callable[[Clique], NDArray[np.float64] | None], seed: int
) -> list[NDArray[np.float64]]:
    """The tables that ``expected`` has a closed form of, and `sampled_counts` of those of which it returns None.

    Privacy: none: post-processing.
    """
    told = {names: expected(names) for names in cliques}
    others = [names for names, table in told.items() if table is None]
    sampled = dict(zip(others, sampled_counts(model, others, seed), strict=True)) if others else {}
    return [sampled[names] if (table := told[names]) is None else table for names in cliques]
