"""Whether Arrow data stays inside of its own buffers. Arrow trusts a file with that; a damaged or hostile one lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margent.schema.encodings import is_view

if TYPE_CHECKING:
    import pyarrow as pa


def sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch if no offset, view, index or run in it points outside of its buffers.

    Only the container is checked: letters that are no UTF-8 or a number that is too long are cells, and no cell
    may stop a run. Nested columns are never read, and not looked into.

    Privacy: private rows; what it raises holds none.
    Raises: ValueError (pyarrow's own, or with fixed text) where something does.
    """
    batch.validate()
    for column in batch.columns:
        _require_sound(column)
    return batch


def _require_sound(column: Any) -> None:
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        _require_sound(column.storage)
    elif pa.types.is_dictionary(kind):
        _require_places(column)
        _require_sound(column.dictionary)
    elif pa.types.is_run_end_encoded(kind):
        _require_runs(column)
        _require_sound(column.values)
    elif (letters := _letters(kind)) is not None:
        column.view(letters).validate(full=True)


def _letters(kind: Any) -> Any:
    """The type of bytes that lie as this type of text or bytes does, without its promise of UTF-8; else None."""
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.binary()
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return pa.large_binary()
    return pa.binary_view() if is_view(kind) else None


def _require_places(column: Any) -> None:
    import pyarrow.compute as pc

    column.indices.validate(full=True)  # a wrong number of nulls would hide indices from the next line
    places = column.indices.drop_null()
    if len(places) and not 0 <= pc.min(places).as_py() <= pc.max(places).as_py() < len(column.dictionary):
        raise ValueError("an index points outside its dictionary")


def _require_runs(column: Any) -> None:
    ends = column.run_ends.to_numpy(zero_copy_only=True)
    last = column.offset + len(column)
    rising = bool(ends.size) and ends[0] > 0 and bool(np.all(ends[1:] > ends[:-1])) and ends[-1] >= last
    if (last and not rising) or len(column.values) < ends.size:
        raise ValueError("runs do not end one behind the other, or end before the column")
