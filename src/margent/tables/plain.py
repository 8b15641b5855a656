"""Arrow columns in their plain forms, so that whoever codes them meets few types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from margent.schema.encodings import runs_spelled, used_only

if TYPE_CHECKING:
    import pyarrow as pa


def plain(batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
    """The wanted columns, in that order, without extension types, run-end encoding, views or bytes.

    Runs of text become dictionaries. A dictionary longer than the column has the values left that cells point to.

    Privacy: private rows; changes their form only.
    """
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_plain(batch.column(name)) for name in wanted], names=list(wanted))


def _plain(column: Any) -> Any:
    """One array; casts go to the types with 64-bit offsets, which no cells can overflow."""
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(column.storage)
    if pa.types.is_run_end_encoded(kind):
        return runs_spelled(column, _plain)
    if pa.types.is_dictionary(kind):
        column = used_only(column)
        values = _plain(column.dictionary)
        if pa.types.is_dictionary(values.type):  # made of runs of text
            return values.take(column.indices)
        if values is column.dictionary:
            return column
        return pa.DictionaryArray.from_arrays(column.indices, values, ordered=kind.ordered)
    return as_text(column) if _is_binary(kind) or kind == pa.string_view() else column


def as_text(column: Any) -> Any:
    """Text or bytes as ``large_string``, byte for byte and unchecked; any other column as it is.

    Bytes of a typed container become text too: a null of type ``binary`` is a cell that a record lacks; only
    text files have those.

    Privacy: private cells; changes their form only.
    """
    import pyarrow as pa

    if column.type in (pa.string(), pa.string_view()):
        return column.cast(pa.large_string())
    if _is_binary(column.type):
        return column.cast(pa.large_binary()).view(pa.large_string())
    return column


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.binary(), pa.large_binary(), pa.binary_view())
