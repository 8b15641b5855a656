"""Exact counts of a table that Spark holds: the same codec and kernel as everywhere, inside of Spark's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margent.counts.kernel import MAX_CELLS, checked_cells
from margent.counts.spark_tables import (
    CHUNK_CELLS,
    add_packed,
    coded_rows,
    counted_tables,
    request_text,
    schema_as_sent,
    summed_chunks,
)
from margent.schema.codec import Codec
from margent.schema.domain import NO_MERGES, Clique, Domain, Merge
from margent.schema.fields import Schema
from margent.tables.spark_forms import PACKED, Form
from margent.tables.spark_pieces import PIECES
from margent.tables.spark_session import collected, quietly, streamed, well_batched

TASK_CELLS = 2**24
"""Cells that a task counts at a time (128 MiB of 64-bit counts), unless one table has more."""

_SUMMING_TASKS = 64
_STREAMED_CELLS = 2**24


class LooksOfSpark(Protocol):
    """What is needed of a table in Spark: its rows as a frame, and a place for what was computed from them."""

    @property
    def session(self) -> Any:
        """The session."""
        ...

    def looked_at(self) -> tuple[Any, Form]:
        """The frame of the rows, and how tasks find them in it."""
        ...

    def keep(self, frame: Any) -> Any:
        """Compute a frame of pieces now and keep it: one snapshot for all passes."""
        ...


@dataclass(eq=False)
class SparkCounts:
    """Exact counts of the rows of ``rows``, coded by ``schema``; rows and codes stay in the cluster.

    The first request codes the rows, and all requests count the same codes. A task holds the tables of one pass;
    of a request with more than ``task_cells`` cells several are made.

    Privacy: exact counts; see `margent.counts.source.CountSource`.
    """

    rows: LooksOfSpark = field(repr=False)
    schema: Schema
    max_cells: int = MAX_CELLS
    task_cells: int = TASK_CELLS

    @cached_property
    def codec(self) -> Codec:
        """The codec, as the tasks make it from the schema's text."""
        return Codec(self.schema)

    @property
    def domain(self) -> Domain:
        """The codes' domain, a function of the schema."""
        return self.codec.domain

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] = NO_MERGES) -> list[NDArray[np.int64]]:
        """One table a clique, as `margent.counts.source.CountSource.count`.

        Raises: TableError with fixed text where Spark fails.
        """
        merged = self.domain.merged(merges)
        sizes = [checked_cells(merged, clique, self.max_cells) for clique in cliques]
        tables: list[NDArray[np.int64]] = []
        while len(tables) < len(cliques):
            start = stop = len(tables)
            cells = 0
            while stop < len(cliques) and (stop == start or cells + sizes[stop] <= self.task_cells):
                cells += sizes[stop]
                stop += 1
            flat = self._counted(cliques[start:stop], merges, cells)
            ends = np.cumsum(sizes[start:stop])[:-1]
            parts = np.split(flat, ends)
            shapes = [merged.shape(clique) for clique in cliques[start:stop]]
            tables += [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        return tables

    @cached_property
    def _codes(self) -> Any:
        """The kept frame of codes."""
        frame, form = self.rows.looked_at()
        task = partial(coded_rows, schema_as_sent(self.schema), form)
        with well_batched(self.rows.session, form):
            return self.rows.keep(frame.mapInArrow(task, PIECES))

    def _counted(self, cliques: Sequence[Clique], merges: Mapping[str, Merge], cells: int) -> NDArray[np.int64]:
        """The cells of all tables of one pass, one behind the other."""
        codes = self._codes
        request = request_text(self.domain, cliques, merges, self.max_cells)
        chunks = -(-cells // CHUNK_CELLS)
        total = np.zeros(chunks * CHUNK_CELLS, dtype=np.int64)
        with well_batched(self.rows.session, PACKED):
            parts = codes.mapInArrow(partial(counted_tables, request), PIECES)
            gathered = parts.repartition(min(chunks, _SUMMING_TASKS), "place").sortWithinPartitions("place")
            summed = gathered.mapInArrow(summed_chunks, PIECES)
            for piece in streamed(summed) if cells > _STREAMED_CELLS else quietly(partial(collected, summed)):
                start = CHUNK_CELLS * piece.place
                add_packed(piece.data, total[start : start + CHUNK_CELLS])
        return total[:cells]
