"""Small batches of rows put together: what is done a block at a time is done less often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from margent.machine import BLOCK_ROWS, TEXT_BYTES

if TYPE_CHECKING:
    import pyarrow as pa


def gathered(batches: Iterable[pa.RecordBatch], most: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
    """The same rows in blocks as large as they may be: what is done a block at a time is done less often.

    Shapes: at most ``most`` rows and `TEXT_BYTES` bytes a block, but for what was more when it came.
    Privacy: private rows; changes their cut only.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for start in range(0, batch.num_rows, most):
            part = batch.slice(start, most)
            # Within a file a column may be a dictionary in one batch, and none in the next.
            full = rows + part.num_rows > most or size + part.nbytes > TEXT_BYTES
            if rows and (full or part.schema != waiting[0].schema):
                yield _joined(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
            if size >= TEXT_BYTES:
                yield _joined(waiting)
                waiting, rows, size = [], 0, 0
    if rows:
        yield _joined(waiting)


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    (joined,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return joined
