"""Arrow columns of any type brought to the few shapes that the codec reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.encodings import runs_spelled

UNREADABLE = b"\xff"
"""Stands for a cell of a type that has no text; it is not UTF-8 and so equals no value of a schema."""

_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def plain(column: Any) -> Any:
    """The column without extension types or run-end encoding, its text as bytes; dictionaries stay as they are."""
    kind = column.type
    while isinstance(kind, pa.BaseExtensionType):
        column = column.storage
        kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return runs_spelled(column, plain)
    if pa.types.is_string(kind) or kind == pa.string_view():
        return column.cast(pa.binary())
    # Wide cells of one length pass 2 GiB at a number of rows: only 64-bit offsets serve however many there are.
    if pa.types.is_large_string(kind) or pa.types.is_fixed_size_binary(kind) or kind == pa.binary_view():
        return column.cast(pa.large_binary())
    return column


def is_text(kind: Any) -> bool:
    """Whether cells are raw text."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def numbers(column: Any) -> NDArray[Any]:
    """The column's numbers; nulls become 0."""
    filled = pc.fill_null(column, pa.scalar(0, column.type)) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def integers(column: Any) -> NDArray[np.int64]:
    """Whole numbers as 64-bit integers, unsigned ones cut at the largest; nulls become 0."""
    values = numbers(column)
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(2**63 - 1))
    return values.astype(np.int64, copy=False)


def days(column: Any) -> NDArray[np.int64]:
    """Days since 1970 of a date column; nulls become 0."""
    if pa.types.is_date32(column.type):
        return numbers(column.cast(pa.int32())).astype(np.int64)
    return np.asarray(numbers(column.cast(pa.int64())) // 86_400_000, dtype=np.int64)


def seconds(column: Any) -> NDArray[np.int64]:
    """Whole seconds of a timestamp (since 1970) or time (since midnight), rounded down; nulls become 0."""
    small = pa.types.is_time32(column.type)
    raw = numbers(column.cast(pa.int32() if small else pa.int64())).astype(np.int64)
    return np.asarray(raw // _SECONDS[column.type.unit], dtype=np.int64)


def absent(column: Any) -> NDArray[np.bool_]:
    """Which cells hold no value: nulls and NaN, in a dictionary too."""
    if pa.types.is_dictionary(column.type):
        none = np.append(absent(column.dictionary), True)
        places = pc.fill_null(column.indices.cast(pa.int64()), none.size - 1)
        return np.asarray(none[places.to_numpy(zero_copy_only=False)])
    return np.asarray(pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)


def canonical_texts(column: Any) -> Any:
    """The text that a typed cell is compared as: 12 for 12.0, ISO 8601 for dates and times.

    >>> canonical_texts(pa.array([12.0, 0.5, None])).to_pylist()
    [b'12', b'0.5', None]
    """
    if is_text(column.type):
        return column
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        # Arrow has few functions for narrow decimals.
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    try:
        encoded = column.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pc.if_else(column.is_valid(), pa.scalar(UNREADABLE), pa.scalar(None, pa.binary()))
    texts = pa.array(_texts(encoded.dictionary), pa.binary())
    return texts.take(encoded.indices)


def _texts(values: Any) -> Sequence[bytes | None]:
    """The texts of distinct values, none of which is null; NaN has none."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return [b"true" if value else b"false" for value in values.to_pylist()]
    if pa.types.is_integer(kind):
        return [b"%d" % value for value in values.to_pylist()]
    if pa.types.is_floating(kind):
        return [_float_text(value) for value in numbers(values)]
    if pa.types.is_decimal(kind):
        return [decimal_text(value).encode() for value in values.to_pylist()]
    found = _moments(values)
    if found is None:
        return [UNREADABLE] * len(values)
    return [text.encode() for text in found]


def _float_text(value: np.floating[Any]) -> bytes | None:
    if np.isnan(value):
        return None
    if value == 0:
        return b"0"
    return np.format_float_positional(value, unique=True, trim="-").encode()


def decimal_text(value: Any) -> str:
    """A decimal without exponent or trailing zeros.

    >>> from decimal import Decimal
    >>> decimal_text(Decimal("12.00")), decimal_text(Decimal("0.50"))
    ('12', '0.5')
    """
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _moments(values: Any) -> list[str] | None:
    """ISO 8601 texts of dates, times and timestamps, or None for another type."""
    kind = values.type
    if pa.types.is_date(kind):
        return [str(day) for day in days(values).astype("datetime64[D]")]
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        return [f"{moment}{zone}" for moment in seconds(values).astype("datetime64[s]")]
    if pa.types.is_time(kind):
        return [f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" for s in seconds(values).tolist()]
    return None
