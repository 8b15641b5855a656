"""Arrow columns in their plain forms, so that whoever codes them meets few types; nested ones are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from margent.errors import Fault, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa


def check_types(found: pa.Schema, wanted: Sequence[str]) -> None:
    """No column that is to be read holds lists, structs or other nested values.

    Privacy: none: declared types only.
    Raises: SchemaError naming every such column and its type.
    """
    faults = [
        Fault(
            name,
            f"columns of type {found.field(name).type} cannot be modelled: flatten the column, "
            'or give its field "role": "drop"',
        )
        for name in wanted
        if _nested(found.field(name).type)
    ]
    if faults:
        raise SchemaError(faults, "the table's columns, held against the schema,")


def plain(batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
    """The wanted columns, in that order, without extension types, run-end encoding, views or bytes.

    Privacy: private rows; changes their form only.
    """
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_plain(batch.column(name)) for name in wanted], names=list(wanted))


def _nested(kind: Any) -> bool:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _nested(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _nested(kind.value_type)
    return bool(pa.types.is_nested(kind))


def _plain(column: Any) -> Any:
    """One array; casts go to the types with 64-bit offsets, which no cells can overflow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(column.storage)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    if pa.types.is_dictionary(kind):
        values = _plain(column.dictionary)
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
