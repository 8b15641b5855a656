"""pandas frames, cell by cell where a column holds Python objects: no cell decides how another is read.

pandas' own way to Arrow looks at a whole column of objects to find its type, and stops at the first cell that
does not fit. Here every cell of such a column becomes text by itself.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from margent.errors import Fault, SchemaError
from margent.tables.header import check_columns
from margent.tables.opened import BATCH_ROWS, OpenTable
from margent.tables.sound import sound

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from margent.schema.fields import Schema

_UNREADABLE_CELL = b"\xff"
"""Stands for an object that is no value of a table: not UTF-8, so it equals nothing in a schema."""


def open_pandas(frame: pd.DataFrame, schema: Schema) -> OpenTable:
    """A pandas frame whose columns agree with the schema; its index is not read.

    Privacy: none spent; names and dtypes only are looked at.
    Raises: SchemaError when columns differ, have names that are not text, or dtypes that cannot be read.
    """
    faults = [
        Fault(f"column {place}", f"the name is of type {type(name).__name__}: rename the columns to text")
        for place, name in enumerate(frame.columns, start=1)
        if not isinstance(name, str)
    ]
    if faults:
        raise SchemaError(faults, "the DataFrame")
    names = tuple(frame.columns)
    wanted = tuple(schema.columns_read)
    declared = _declared(frame, tuple(name for name in wanted if name in names))
    index = [name for name in frame.index.names if isinstance(name, str)]
    check_columns(names, schema, declared=declared, index=index)
    places = [names.index(name) for name in wanted]

    @cache
    def categories(place: int) -> pa.Array:
        # Of the whole column, which may have millions: they are no other from one slice of it to the next.
        return _categories(frame.dtypes.iloc[place])

    def read() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(frame), BATCH_ROWS):
            rows = frame.iloc[start : start + BATCH_ROWS]
            columns = [_column(rows.iloc[:, place], partial(categories, place)) for place in places]
            yield sound(_batch(columns, wanted))

    return OpenTable("pandas", names, wanted, read)


def _declared(frame: pd.DataFrame, wanted: tuple[str, ...]) -> pa.Schema:
    """The Arrow types that the dtypes alone lead to."""
    import pyarrow as pa

    fields, faults = [], []
    for name in wanted:
        column = frame.iloc[:, list(frame.columns).index(name)]
        try:
            fields.append(pa.field(name, _column(column.iloc[:0]).type))
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
            faults.append(Fault(name, f"columns of dtype {_shown(column.dtype)} cannot be read: convert it first"))
    if faults:
        raise SchemaError(faults, "the DataFrame")
    return pa.schema(fields)


def _shown(dtype: Any) -> str:
    """A dtype as a message may name it: the value that a sparse one leaves out is a cell."""
    import pandas as pd

    return f"Sparse[{dtype.subtype}]" if isinstance(dtype, pd.SparseDtype) else str(dtype.name)


def _batch(columns: list[pa.Array], names: tuple[str, ...]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _categories(dtype: pd.CategoricalDtype) -> pa.Array:
    import pandas as pd

    return _column(pd.Series(dtype.categories))


def _column(series: pd.Series[Any], categories: Callable[[], pa.Array] | None = None) -> pa.Array:
    """One column of a few rows as Arrow; the type is a function of the dtype.

    ``categories`` gives those of a categorical column where they have been made into Arrow already.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy()
        values = _categories(dtype) if categories is None else categories()
        indices = pa.array(codes.astype("int32"), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.SparseDtype):
        return _column(series.sparse.to_dense())
    objects = isinstance(dtype, np.dtype | pd.PeriodDtype) and dtype.kind == "O"
    if objects or (isinstance(dtype, pd.StringDtype) and dtype.storage == "python"):
        return pa.array([_cell_text(cell) for cell in series.astype(object)], type=pa.large_binary())
    array = pa.array(series, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array


def _cell_text(cell: Any) -> bytes | None:
    """The text of one Python object as a CSV would hold it, or None where it is missing.

    Privacy: private; never raises, and depends on this cell alone.

    >>> [_cell_text(cell) for cell in ("é", 12, 12.0, 0.5, True, float("nan"), None, ["a", "list"])]
    [b'\\xc3\\xa9', b'12', b'12', b'0.5', b'true', None, None, b'\\xff']
    """
    try:
        if isinstance(cell, str):
            return cell.encode("utf-8", "surrogatepass")
        return _other_text(cell)
    except Exception:
        return _UNREADABLE_CELL


def _other_text(cell: Any) -> bytes | None:
    import numpy as np
    import pandas as pd

    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, bytes):
        return cell
    if isinstance(cell, bool | np.bool_):
        return b"true" if cell else b"false"
    if isinstance(cell, int | np.integer):
        return str(int(cell)).encode()
    if isinstance(cell, float | np.floating):
        return _float_text(float(cell))
    if isinstance(cell, decimal.Decimal | uuid.UUID | pd.Period):
        return str(cell).encode()
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat().encode()
    return _UNREADABLE_CELL


def _float_text(value: float) -> bytes | None:
    if value != value:  # noqa: PLR0124 (NaN is the one value that differs from itself)
        return None
    return str(int(value)).encode() if value.is_integer() else repr(value).encode()
