"""The synthetic table of a release, from records to cells: block by block, side by side, never all at once."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from margent.postprocessing.persons import person_ids, persons_in
from margent.progress import Progress, silent
from margent.release.counts import SyntheticCounts
from margent.schema.codec import Codec
from margent.schema.stored import stored_table
from margent.stream import Stream
from margent.synthesizers.blocks import Records, workers_for
from margent.transcript import Transcript
from margent.workers import in_order

BLOCK_ROWS = 65_536
"""Rows decoded and written at a time, and rows of a row group, where the table is one block."""
GROUP_ROWS = 2**18
"""The same where there are several: larger groups are read, and compressed, better."""


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """Cells of the records of a transcript's model. ``pairs``: whether bought pairs are counted as well as columns.

    Privacy: none: post-processing of the transcript.
    """

    transcript: Transcript
    records: Records
    seed: int
    pairs: bool

    @cached_property
    def counts(self) -> SyntheticCounts:
        """Counts of all records; draws them where they are not held and were not drawn to the end by `tables`."""
        count = self.records.blocks.count
        with closing(in_order(self._counted, count, self._workers)) as blocks:
            return reduce(add, blocks)

    def blocks(self) -> Iterator[pa.Table]:
        """All blocks in order, as `block` makes them; a few are made while one is looked at."""
        yield from in_order(self.block, self.records.blocks.count, self._workers)

    def block(self, index: int, progress: Progress = silent) -> pa.Table:
        """The cells of a block, typed by the schema: a function of model, rows, seed and ``index`` alone.

        Privacy: none: post-processing.
        """
        return pa.concat_tables(list(self._decoded(index, self.records.block(index, progress), None)))

    def tables(
        self, typed: pa.Schema | None, *, text: bool = False, progress: Progress = silent
    ) -> Generator[pa.Table, None, None]:
        """All rows in order, a row group at a time, as ``text`` or in the types of ``typed`` (else the schema's).

        Once all were taken, the counts are known without drawing the records again.

        Privacy: none: post-processing.
        """
        count, known = self.records.blocks.count, "counts" in vars(self)
        if count == 1:
            progress("writing", None)
            yield from self._decoded(0, self.records.block(0), typed, text=text)
            return

        def made(index: int, step: Progress) -> tuple[SyntheticCounts | None, list[pa.Table]]:
            codes = self.records.block(index, step)
            counts = None if known else SyntheticCounts.of(self.transcript, codes, pairs=self.pairs)
            return counts, list(self._decoded(index, codes, typed, text=text))

        sums: SyntheticCounts | None = None
        with closing(in_order(made, count, self._workers)) as done:
            for number, (counts, tables) in enumerate(done, start=1):
                sums = counts if sums is None or counts is None else sums + counts
                yield from tables
                progress("records", number / count)
        if sums is not None:
            vars(self)["counts"] = sums  # as the cached property would keep them

    @property
    def _workers(self) -> int:
        return workers_for(self.records.blocks, len(self.transcript.domain.names))

    @cached_property
    def _codec(self) -> Codec:
        return Codec(self.transcript.schema)

    def _counted(self, index: int, progress: Progress) -> SyntheticCounts:
        return SyntheticCounts.of(self.transcript, self.records.block(index, progress), pairs=self.pairs)

    def _decoded(
        self, index: int, codes: NDArray[np.int32], typed: pa.Schema | None, *, text: bool = False
    ) -> Iterator[pa.Table]:
        """The cells of a block, as many rows at a time as a row group has."""
        blocks = self.records.blocks
        decode, start = self._codec.decode_text if text else self._codec.decode, blocks.first(index)
        persons, rows = self._persons(index), BLOCK_ROWS if blocks.count == 1 else GROUP_ROWS
        for first in range(0, max(len(codes), 1), rows):
            ids = None if persons is None else persons[first : first + rows]
            table = decode(codes[first : first + rows], self.seed, first_row=start + first, persons=ids)
            yield table if typed is None else stored_table(table, typed)

    def _persons(self, index: int) -> NDArray[np.int64] | None:
        """The id of each row of a block, where it was bought how many rows persons have; else each row has its own.

        No person has rows in two blocks, and there are as many persons in each block, but perhaps the last.
        """
        sizes, blocks = self.transcript.sizes, self.records.blocks
        if sizes is None:
            return None
        if blocks.count == 1:
            return person_ids(sizes.counts, blocks.rows, self.seed)
        own = Stream(self.seed, "block", str(index), "persons").seed64() >> 1
        return person_ids(sizes.counts, blocks.rows_of(index), own) + index * persons_in(sizes.counts, blocks.size)
