"""Run-end encoded columns as columns that can be coded, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def runs_spelled(column: Any, plain: Callable[[Any], Any]) -> Any:
    """A run-end encoded column without its runs; ``plain`` brings the values of the runs to a form of few types.

    Text becomes a dictionary whose indices say the run, so that a long text is held once however long its run is; what
    has a fixed width is repeated. (Arrow's own decoding knows no views, dictionaries or extension types.)

    Privacy: private cells; changes their form only.

    >>> import pyarrow as pa
    >>> column = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([5, 7]))
    >>> runs_spelled(column.slice(1), lambda values: values).to_pylist()
    [5, 7]
    """
    import pyarrow as pa

    ends = column.run_ends.to_numpy(zero_copy_only=True)
    rows = np.arange(column.offset, column.offset + len(column), dtype=np.int64)
    runs = np.searchsorted(ends, rows, side="right")
    first, stop = (int(runs[0]), int(runs[-1]) + 1) if runs.size else (0, 0)
    values, places = plain(column.values.slice(first, stop - first)), pa.array((runs - first).astype(np.int32))
    if pa.types.is_dictionary(values.type) or not _is_of_any_length(values.type):
        return values.take(places)
    return pa.DictionaryArray.from_arrays(places, values)


def _is_of_any_length(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
