"""How a table's rows reach Spark's tasks: as Spark's columns, packed in blocks, or inside of files (`spark_files`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from margent.tables.gathering import gathered
from margent.tables.opened import BATCH_ROWS
from margent.tables.spark_pieces import ROWS, Piece, packed_block, pieces, read_plainly, received, unpacked

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_PIECES_AT_ONCE = 4


class Form(Protocol):
    """What a task needs to know of a frame to find a table's rows in it; sent to the tasks, so public facts only."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The session's settings under which such a frame is to be read."""
        ...

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blocks of the table's rows, under the columns' names, from the batches that Spark hands to a task.

        Shapes: at most 65,536 rows a block, and more than one batch of Spark's where those are small.
        Privacy: private rows.
        """
        ...


@dataclass(frozen=True)
class Columns:
    """The columns as Spark hands them over, by place; ``names`` are the schema's."""

    names: tuple[str, ...]

    @property
    def settings(self) -> Mapping[str, str]:
        """As many rows at a time as a block has."""
        return {BATCH_SETTING: str(BATCH_ROWS)}

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `Form`."""
        return gathered(read_plainly(batch, self.names) for batch in batches)


@dataclass(frozen=True)
class Packed:
    """Pieces, each of which holds a block."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Few at a time: each is a row to Spark."""
        return {BATCH_SETTING: str(_PIECES_AT_ONCE)}

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `Form`."""
        return (unpacked(piece.data) for piece in received(batches) if piece.kind == ROWS)


PACKED = Packed()


def packed_rows(form: Form, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: rows in, pieces that each hold a block of them out.

    Privacy: private rows.
    """
    return pieces(lambda: (Piece(ROWS, 0, packed_block(block)) for block in form.blocks(batches)))
