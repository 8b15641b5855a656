"""Delimited text as record batches of raw bytes. No record can stop it or change how another one is read.

Built on our own scanner and not on a CSV library, because none promises that: they raise on a record with too
many cells, on one that straddles blocks, on bytes that are not UTF-8, or they skip what they cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.machine import BLOCK_ROWS
from margent.tables.scanner import (
    Found,
    byte_kinds,
    cell_bytes,
    next_newline,
    room,
    scan_records,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Layout:
    """The public shape of a file's records: its columns, those to be kept, and the dialect.

    Shapes: ``columns`` as they stand in the file; ``wanted`` is a part of them, in the order of the output.
    """

    columns: tuple[str, ...]
    wanted: tuple[str, ...]
    delimiter: str
    quote: str | None
    max_record_bytes: int

    @property
    def slots(self) -> NDArray[np.int32]:
        """For each column of the file its place among ``wanted``, or -1."""
        place = {name: slot for slot, name in enumerate(self.wanted)}
        return np.array([place.get(name, -1) for name in self.columns], dtype=np.int32)


def parsed(blocks: Iterator[bytes], layout: Layout, batch_rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
    """The records of the text in ``blocks``: one row a record, one column of raw bytes a wanted column.

    A record with another number of cells than the file has columns is a row of absent cells (nulls). Of a record
    longer than the limit the first line is such a row, and reading goes on at the next line: a quote that is
    never closed costs no more than the limit. An empty line is a record in a file of one column and nothing in
    any other. Where the text is cut into blocks does not matter.

    Shapes: at most ``batch_rows`` rows a batch; memory is a few blocks plus the longest record allowed.
    Privacy: private rows, one at a time: the reading of a record is a function of its own bytes.
    """
    kinds, slots, limit = byte_kinds(layout.delimiter, layout.quote), layout.slots, layout.max_record_bytes
    found = room(len(layout.wanted), 0)
    rest = np.empty(0, dtype=np.uint8)
    after_cr = given_up = False  # after a record's CR; inside a line whose bytes are not kept
    for block in chain(blocks, [None]):
        final = block is None
        data = rest if block is None else np.concatenate([rest, np.frombuffer(block, dtype=np.uint8)])
        start = 0
        if after_cr and data.size:
            start, after_cr = int(data[0] == ord("\n")), False
        if given_up:
            start = next_newline(data, start, kinds)
            given_up = start == data.size and not final
            if not given_up:
                yield _absent(layout)
                start, after_cr = _after_newline(data, start)
        most = min(batch_rows, data.size + 1)  # a record has a byte at least
        if found[-1].size < most:
            found = room(len(layout.wanted), most)
        rows = most = found[-1].size
        while rows == most and not given_up:
            rows, start, dangling, given_up = scan_records(data, start, final, kinds, slots, limit, found)
            after_cr = after_cr or dangling
            if rows:
                yield _batch(data, kinds, found, rows, layout)
        rest = data[data.size if given_up else start :]


def _after_newline(data: NDArray[np.uint8], position: int) -> tuple[int, bool]:
    """Where the record after the newline at ``position`` starts, and whether an LF may still come."""
    if position < data.size and data[position] == ord("\r"):
        if position + 1 == data.size:
            return position + 1, True
        return position + 1 + int(data[position + 1] == ord("\n")), False
    return position + 1, False


def _batch(
    data: NDArray[np.uint8], kinds: NDArray[np.uint8], found: Found, rows: int, layout: Layout
) -> pa.RecordBatch:
    import pyarrow as pa

    begin, end, _, whole = found
    valid = None if whole[:rows].all() else pa.py_buffer(np.packbits(whole[:rows], bitorder="little"))
    # The cells as they stand in the data; unquoting only makes them shorter. All columns share the room for them.
    size = end[:, :rows].sum(dtype=np.int64) - begin[:, :rows].sum(dtype=np.int64)
    content = np.empty(int(size), dtype=np.uint8)
    offsets = np.empty((len(layout.wanted), rows + 1), dtype=np.int32)
    cell_bytes(data, kinds, found, offsets, content)
    text, kind = pa.py_buffer(content), pa.binary()
    columns = [pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(each), text]) for each in offsets]
    return _record_batch(columns, layout.wanted)


def _absent(layout: Layout) -> pa.RecordBatch:
    import pyarrow as pa

    return _record_batch([pa.nulls(1, pa.binary()) for _ in layout.wanted], layout.wanted)


def _record_batch(columns: Sequence[pa.Array], names: Sequence[str]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([(name, pa.binary()) for name in names]))
