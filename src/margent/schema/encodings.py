"""Run-end encoded columns and dictionaries as columns that can be coded, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_VIEW = np.dtype("V16")
"""One text among views: its length, and its letters or where they are."""


def runs_spelled(column: Any, plain: Callable[[Any], Any]) -> Any:
    """A run-end encoded column without its runs; ``plain`` brings the values of the runs to a form of few types.

    Text and bytes become a dictionary whose indices say the run, so that a long text is held once however long its run
    is; what is narrow is repeated. (Arrow's own decoding knows no views, dictionaries or extension types.)

    Privacy: private cells; changes their form only.

    >>> import pyarrow as pa
    >>> column = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([5, 7]))
    >>> runs_spelled(column.slice(1), lambda values: values).to_pylist()
    [5, 7]
    """
    import pyarrow as pa

    found, runs = run_values(column)
    values, places = plain(found), pa.array(runs)
    kind = values.type
    if not is_text_of_any_length(kind) and not pa.types.is_fixed_size_binary(kind):
        return values.take(places)
    return pa.DictionaryArray.from_arrays(places, values)


def run_values(column: Any) -> tuple[Any, NDArray[np.int32]]:
    """The values of the runs that a run-end encoded column has a part of, and of which of them each cell is.

    Privacy: private cells.
    """
    ends = column.run_ends.to_numpy(zero_copy_only=True)
    rows = np.arange(column.offset, column.offset + len(column), dtype=np.int64)
    runs = np.searchsorted(ends, rows, side="right")
    first, stop = (int(runs[0]), int(runs[-1]) + 1) if runs.size else (0, 0)
    return column.values.slice(first, stop - first), (runs - first).astype(np.int32)


def used_only(column: Any) -> Any:
    """A dictionary column, with the used values alone where its dictionary is longer than itself.

    Of a long table every block of rows comes with the dictionary of all of them, and what is done with a dictionary
    would be done anew for each block. Values that are equal, or null, stay as they are: apart.

    Shapes: n cells -> n cells with a dictionary of at most n values.
    Privacy: private cells; changes their form only.

    >>> import pyarrow as pa
    >>> column = pa.array(["a", "b", "c"]).dictionary_encode().slice(2)
    >>> used_only(column).dictionary.to_pylist(), used_only(column).to_pylist()
    (['c'], ['c'])
    """
    import pyarrow as pa

    if len(column.dictionary) <= len(column):
        return column
    used = column.indices.dictionary_encode()
    kept = _taken(column.dictionary, used.dictionary.to_numpy())
    return pa.DictionaryArray.from_arrays(used.indices, kept, ordered=column.type.ordered)


def _taken(values: Any, places: Any) -> Any:
    """The values at these places, of types too for which Arrow has no such function."""
    import pyarrow as pa

    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _taken(values.storage, places)
    if pa.types.is_run_end_encoded(kind):
        ends = values.run_ends.to_numpy(zero_copy_only=True)
        return _taken(values.values, np.searchsorted(ends, places.astype(np.int64) + values.offset, side="right"))
    if is_view(kind):
        return views_taken(values, places)
    return values.take(pa.array(places))


def views_taken(column: Any, places: Any) -> Any:
    """The texts at these places of a column of views; the letters stay where they are.

    Privacy: private cells; changes their order only.
    """
    import pyarrow as pa

    _, _, *letters = column.buffers()
    views = _views(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)[places]
    none = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(column.type, len(places), [none, pa.py_buffer(views[places]), *letters])


def view_lengths(column: Any) -> NDArray[np.int64]:
    """The bytes of each text in a column of views; 0 where there is none.

    Privacy: private cells.
    """
    lengths = _views(column).view(np.int32).reshape(-1, _VIEW.itemsize // 4)[:, 0].astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return lengths


def _views(column: Any) -> NDArray[np.void]:
    if not len(column):
        return np.zeros(0, _VIEW)
    return np.frombuffer(column.buffers()[1], _VIEW, offset=column.offset * _VIEW.itemsize, count=len(column))


def is_text_of_any_length(kind: Any) -> bool:
    """Whether cells are text or bytes that lie one after the other, each with a length of its own.

    Privacy: none: a type.
    """
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def is_view(kind: Any) -> bool:
    """Whether cells are views: text or bytes, each with where its letters are, which others may share.

    Privacy: none: a type.
    """
    import pyarrow as pa

    return kind in (pa.string_view(), pa.binary_view())
