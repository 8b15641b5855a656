"""Which types of columns in a Parquet file mean to Arrow what they mean to Spark, and what to cast of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from margent.errors import TableError
from margent.schema.encodings import is_text_of_any_length, is_view


def is_plain(kind: Any) -> bool:
    """Whether files may be read without Spark where it declares a column of this type."""
    import pyarrow as pa

    kinds = pa.types
    known = (kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_date, kinds.is_timestamp)
    return kind in (pa.string(), pa.binary()) or any(is_one(kind) for is_one in known)


def cast_to(given: Any, declared: Any, *, old: bool) -> Any:
    """The type in which a file's column has the values that Spark makes of it; None where it has them already.

    ``given`` is the file's type to Arrow, ``declared`` Spark's. ``old``: whether it holds timestamps of 96 bits, which
    are instants, though the file does not say so.

    Raises: TableError where Spark would make something else of it, or fail.
    """
    import pyarrow as pa

    if old and pa.types.is_timestamp(declared) and declared.tz is not None:
        return declared
    if not old and _holds(declared, given):
        return None
    if not old and _becomes(declared, given):
        return declared
    raise TableError("a column is of another type in the file")


def _holds(declared: Any, given: Any) -> bool:
    """Whether the codes of values are the same in either type."""
    import pyarrow as pa

    kinds = pa.types
    if given == declared or (_is_text(given) and _is_text(declared)):
        return True
    if kinds.is_integer(given) and kinds.is_integer(declared):
        wide, narrow = np.iinfo(declared.to_pandas_dtype()), np.iinfo(given.to_pandas_dtype())
        return bool(wide.min <= narrow.min and narrow.max <= wide.max)
    if kinds.is_decimal(given) and kinds.is_decimal(declared):
        more = declared.scale - given.scale
        return bool(0 <= more <= declared.precision - given.precision)
    if kinds.is_timestamp(given) and kinds.is_timestamp(declared):
        return bool(given.unit != "ns" and (given.tz is None) == (declared.tz is None))
    return False


def _becomes(declared: Any, given: Any) -> bool:
    """Whether Spark turns one type into the other without loss."""
    import pyarrow as pa

    kinds = pa.types
    if declared == pa.float64():
        return bool(given == pa.float32() or (kinds.is_integer(given) and given.bit_width <= 32))
    unsigned = given == pa.uint64() and declared == pa.decimal128(20, 0)
    return bool(unsigned or kinds.is_null(given) or (kinds.is_duration(given) and declared == pa.int64()))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return is_text_of_any_length(kind) or is_view(kind) or bool(pa.types.is_fixed_size_binary(kind))
