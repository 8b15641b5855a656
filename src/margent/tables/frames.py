"""A table as the kind of frame the caller works with; a library is imported when its kind is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from margent.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

FRAME_KINDS = ("pandas", "polars", "pyarrow", "duckdb")


def to_kind(table: pa.Table, kind: str) -> Any:
    """The same rows, columns, order of categories and missing cells as another library's table.

    pandas: nullable ``Int64`` (of the column's width), ``boolean`` (``bool`` where no cell can be missing),
    ``CategoricalDtype`` with its order, dates as ``datetime64``, numbers as floats with NaN where missing. duckdb: a
    relation on the default connection.

    Privacy: none: synthetic tables only come here.
    Raises: UsageError when there is no such kind.

    >>> import pyarrow as pa
    >>> to_kind(pa.table({"n": [1, None]}), "pandas").dtypes["n"]
    Int64Dtype()
    """
    if kind == "pandas":
        frame = table.to_pandas(types_mapper=_nullable, date_as_object=False)
        whole = [field.name for field in table.schema if not field.nullable and str(field.type) == "bool"]
        return frame.astype(dict.fromkeys(whole, "bool")) if whole else frame
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table)
    if kind == "pyarrow":
        return table
    raise UsageError(f"there is no kind of frame {kind!r}; the kinds are: {', '.join(FRAME_KINDS)}")


def _nullable(kind: pa.DataType) -> Any:
    """The pandas dtype that holds integers or truth values beside missing ones; None leaves it to pandas."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return pd.BooleanDtype()
    if pa.types.is_integer(kind):
        name = str(kind)
        return pd.api.types.pandas_dtype(name.replace("ui", "UI") if name[0] == "u" else name.capitalize())
    return None
