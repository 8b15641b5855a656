"""Rows cut so that their texts fit: where many rows point to one text, spelling it out may take any number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from margent.machine import TEXT_BYTES
from margent.schema.container import stored_type
from margent.schema.encodings import is_text_of_any_length, is_view, run_values, used_only, view_lengths

if TYPE_CHECKING:
    import pyarrow as pa


def fitting(batch: pa.RecordBatch, size: Callable[[Any], int]) -> Iterator[pa.RecordBatch]:
    """The batch, in as many parts as it takes for the ``size`` of every column to be `TEXT_BYTES` at most.

    Shapes: all rows in their order; a part of one row may be larger.
    Privacy: private rows; changes their cut only.
    """
    rows = batch.num_rows
    if rows <= 1 or all(size(column) <= TEXT_BYTES for column in batch.columns):
        yield batch
        return
    yield from fitting(batch.slice(0, rows // 2), size)
    yield from fitting(batch.slice(rows // 2), size)


def plain_bytes(column: Any) -> int:
    """The bytes of text that `margent.tables.plain.plain` makes of views, which may share theirs; of others it is 0.

    Privacy: private.
    """
    import pyarrow as pa

    kind = column.type
    if not is_view(stored_type(kind)):
        return 0
    if isinstance(kind, pa.BaseExtensionType):
        return plain_bytes(column.storage)
    if pa.types.is_run_end_encoded(kind):
        return plain_bytes(run_values(column)[0])
    if pa.types.is_dictionary(kind):
        return plain_bytes(used_only(column).dictionary)
    return int(view_lengths(column).sum())


def spelled_bytes(column: Any) -> int:
    """The bytes of text that a plain column has without its dictionary; without one it is 0.

    Privacy: private.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 0
    kind, places = column.type.value_type, column.indices.drop_null()
    if pa.types.is_fixed_size_binary(kind):
        return int(kind.byte_width) * len(column)
    if not is_text_of_any_length(kind):
        return 0
    lengths = pc.fill_null(pc.binary_length(column.dictionary), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return int(lengths[places.to_numpy()].sum())
