"""The texts of a column of a table in Spark with their numbers of records: counted by the tasks, added up by Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margent.counts.spark import LooksOfSpark
from margent.counts.texts import batch_texts
from margent.schema.open_values import admissible
from margent.tables.gathering import gathered
from margent.tables.spark_forms import Form
from margent.tables.spark_pieces import (
    PIECES,
    Piece,
    many_pieces,
    packed_block,
    pieces,
    require_sound,
    unpacked,
)
from margent.tables.spark_session import streamed, well_batched

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = "text"


@dataclass(frozen=True)
class SparkTexts:
    """Counts of texts over the rows of ``rows``; ``own`` are each column's missing tokens, which are no values.

    The driver meets all texts once, a block of them at a time.

    Privacy: exact and private; asked by the door only, after the charge. No message depends on a row.
    """

    rows: LooksOfSpark = field(repr=False)
    own: Mapping[str, Sequence[str]]

    def texts(self, column: str) -> Iterator[tuple[Sequence[str], NDArray[np.int64]]]:
        """Every text of the column that could be kept, once, with its number of records.

        Raises: TableError with fixed text where Spark fails.
        """
        for piece in streamed(self._counted(column).mapInArrow(gathered_texts, PIECES)):
            block = unpacked(piece.data)
            yield [text.decode() for text in block.column(0).to_pylist()], block.column(1).to_numpy()

    def _counted(self, column: str) -> Any:
        """A kept frame of pieces: one a text, with its number of records as the place."""
        from pyspark.sql import functions

        frame, form = self.rows.looked_at()
        task = partial(counted_texts, column, tuple(self.own[column]), form)
        texts = frame.mapInArrow(task, PIECES).groupBy("kind", "data").agg(functions.sum("place").alias("place"))
        with well_batched(self.rows.session, form):
            return self.rows.keep(texts)


def counted_texts(
    column: str, own: Sequence[str], form: Form, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A task: rows in, pieces with a text of a block and its number of records there out.

    Privacy: exact and private.
    """
    return many_pieces(TEXT, lambda: _of_blocks(column, frozenset(own), form.blocks(batches)))


def gathered_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: texts and their numbers of records in, pieces that each hold a block of them out.

    Privacy: exact and private.
    """

    def work() -> Iterator[Piece]:
        for block in gathered(batches):
            require_sound(block)
            yield Piece(TEXT, 0, packed_block(block.select(["data", "place"])))

    return pieces(work)


def _of_blocks(
    column: str, own: Collection[str], blocks: Iterable[pa.RecordBatch]
) -> Iterator[tuple[list[bytes], list[int]]]:
    for block in blocks:
        found: dict[bytes, int] = {}
        for raw, count in zip(*batch_texts(block, column), strict=True):
            text = admissible(raw, own)
            if text is not None:
                key = text.encode()
                found[key] = found.get(key, 0) + count
        yield list(found), list(found.values())
