"""Where exact counts come from: a table streamed batch by batch through a codec, or codes in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from margent.counts.kernel import MAX_CELLS, Codes, Tally, checked_cells
from margent.counts.spreading import spread
from margent.errors import sealed
from margent.machine import block_rows
from margent.machine import threads as machine_threads
from margent.schema.domain import NO_MERGES, Clique, Domain, Merge

if TYPE_CHECKING:
    import pyarrow as pa


_Asked = tuple[Clique, tuple[int | None, ...]]
"""A clique, and by which of the merges seen so far each of its columns is merged."""


class CountSource(Protocol):
    """Answers with exact contingency tables; the only thing a curator needs to know of a table.

    Privacy: exact counts. Called by the curator (after the charge) and by the operator's own comparisons.
    """

    @property
    def domain(self) -> Domain:
        """The codes' domain, a function of the schema."""
        ...

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] = NO_MERGES) -> list[NDArray[np.int64]]:
        """One table a clique, int64, one axis a name in the clique's order; the empty clique is the total.

        Raises: PlanError when a table has too many cells.
        """
        ...


class TextSource(Protocol):
    """Answers with exact counts of texts, some at a time; nothing else knows which texts a table holds.

    Privacy: exact and private; asked by the merchant, after the charge.
    """

    def texts(self, column: str) -> Iterator[tuple[Sequence[str], NDArray[np.int64]]]:
        """Every text of the column that could be kept, once, with its number of records."""
        ...


class PersonSource(Protocol):
    """Answers with the exact numbers of persons by their kept rows.

    Privacy: exact and private; asked by the merchant, after the charge.
    """

    def sizes(self) -> NDArray[np.int64]:
        """How many persons have 1, 2, ... kept rows."""
        ...


class Batches(Protocol):
    """What is needed of a table: the same rows in every pass, some tens of thousands at a time."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over the rows."""
        ...


class Encoder(Protocol):
    """What is needed of a codec: cells to codes."""

    @property
    def domain(self) -> Domain:
        """The codes' domain, a function of the schema."""
        ...

    def encode(self, batch: pa.RecordBatch) -> Sequence[Codes]:
        """One array of unsigned codes a column of the domain; never raises on a cell."""
        ...


@dataclass(frozen=True)
class StreamedCounts:
    """Exact counts of a table that is read again for every request; rows are never all in memory.

    A request whose tables together have more than ``cells_at_once`` cells is split into several passes. Tables are
    kept, in memory and nowhere else, as long as they have at most ``kept_cells`` cells together: who asks for one
    again gets it without another pass. Blocks of rows are coded and counted by ``threads`` (None:
    `margent.machine.threads`); the tables are the same for any number.

    Privacy: exact counts; see `CountSource`.
    """

    source: Batches = field(repr=False)
    codec: Encoder = field(repr=False)
    max_cells: int = MAX_CELLS
    cells_at_once: int = MAX_CELLS
    kept_cells: int = field(default=0, repr=False)
    threads: int | None = field(default=None, repr=False)
    _kept: dict[_Asked, NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _levels: dict[Merge, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def domain(self) -> Domain:
        """The codes' domain, a function of the schema."""
        return self.codec.domain

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] = NO_MERGES) -> list[NDArray[np.int64]]:
        """One table a clique, as `CountSource.count`; a kept table cannot be written to."""
        levels = {name: self._levels.setdefault(merge, len(self._levels)) for name, merge in merges.items()}
        asked = [(clique, tuple(levels.get(name) for name in clique)) for clique in cliques]
        new = list(dict.fromkeys(each for each in asked if each not in self._kept))
        found = dict(zip(new, self._counted([clique for clique, _ in new], merges), strict=True))
        tables = [found[each] if each in found else self._kept[each] for each in asked]
        self._keep(found)
        return tables

    def _counted(self, cliques: Sequence[Clique], merges: Mapping[str, Merge]) -> list[NDArray[np.int64]]:
        tables: list[NDArray[np.int64]] = []
        for group in self._passes(cliques, merges):
            threads = self.threads or machine_threads()
            tally = Tally(self.domain, group, merges, max_cells=self.max_cells, threads=threads)
            spread(_blocks(self.source.batches(), self.domain), partial(self._add, tally), threads)
            tables += tally.tables()
        return tables

    def _add(self, tally: Tally, block: Sequence[pa.RecordBatch]) -> None:
        """Code a block and count it; called by several threads."""
        coded = [sealed("a batch could not be coded", partial(self.codec.encode, batch)) for batch in block]
        tally.add(_joined(coded), sum(batch.num_rows for batch in block))

    def _passes(self, cliques: Sequence[Clique], merges: Mapping[str, Merge]) -> list[list[Clique]]:
        """The request in order, cut so that only a single large table has more than the cap's cells."""
        merged = self.domain.merged(merges)
        sizes = [checked_cells(merged, clique, self.max_cells) for clique in cliques]
        groups: list[list[Clique]] = []
        held = self.cells_at_once
        for clique, size in zip(cliques, sizes, strict=True):
            if held + size > self.cells_at_once:
                groups.append([])
                held = 0
            groups[-1].append(clique)
            held += size
        return groups

    def _keep(self, tables: Mapping[_Asked, NDArray[np.int64]]) -> None:
        """Keep a request's new tables, all or none: they lie in one piece of memory."""
        if (
            self.kept_cells
            and sum(table.size for table in chain(self._kept.values(), tables.values())) <= self.kept_cells
        ):
            for table in tables.values():
                table.setflags(write=False)
            self._kept.update(tables)


@dataclass(frozen=True)
class CodedCounts:
    """Exact counts of codes held in memory.

    Shapes: ``columns`` has one unsigned array of n codes a column of ``domain``.
    Privacy: exact counts; see `CountSource`.

    >>> codes = CodedCounts([np.array([0, 1, 1], np.uint8), np.array([2, 0, 0], np.uint8)],
    ...                     Domain(("a", "b"), (2, 3)))
    >>> [table.tolist() for table in codes.count([(), ("a",), ("a", "b")])]
    [3, [1, 2], [[0, 0, 1], [2, 0, 0]]]
    """

    columns: Sequence[Codes] = field(repr=False)
    domain: Domain
    max_cells: int = MAX_CELLS

    def __post_init__(self) -> None:
        """Refuse columns that are no table over the domain."""
        if len(self.columns) != len(self.domain.names) or len({len(column) for column in self.columns}) > 1:
            raise ValueError("codes need one array a column of the domain, all of one length")

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] = NO_MERGES) -> list[NDArray[np.int64]]:
        """One table a clique, as `CountSource.count`."""
        tally = Tally(self.domain, cliques, merges, max_cells=self.max_cells)
        tally.add(self.columns, len(self.columns[0]) if self.columns else 0)
        return tally.tables()


def _blocks(batches: Iterator[pa.RecordBatch], domain: Domain) -> Iterator[list[pa.RecordBatch]]:
    """Batches together until a block is full: what a block costs beside its rows is spread over many."""
    waiting: list[pa.RecordBatch] = []
    rows, enough = 0, block_rows(len(domain.names))
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= enough:
            yield waiting
            waiting, rows = [], 0
    if rows:
        yield waiting


def _joined(parts: Sequence[Sequence[Codes]]) -> Sequence[Codes]:
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
