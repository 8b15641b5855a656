"""Neighboring codes shown as one, where a column has more codes than a chart has bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TO = " to "
"""What stands between the ends of a bin's label."""


def label_runs(labels: Sequence[str], most: int, *, inner: int, binned: bool) -> tuple[NDArray[np.int64], list[str]]:
    """Where at most ``most`` runs of neighboring codes start, and what to call each.

    The first ``inner`` codes are a column's own values, or bins where it is ``binned``: a run of bins has a bin's
    name. Codes beyond (special codes, missing cells) stand alone unless they are so many that little room is left.

    Privacy: none: a function of labels.

    >>> starts, names = label_runs(("a", "b", "c", "d", "e", "(missing)"), 4, inner=5, binned=False)
    >>> starts.tolist(), names
    ([0, 2, 4, 5], ['a – b', 'c – d', 'e', '(missing)'])
    >>> label_runs(("0 to 4", "5 to 9", "10 to 14", "15"), 2, inner=4, binned=True)[1]
    ['0 to 9', '10 to 15']
    """
    size = len(labels)
    if size - inner > most // 2:
        inner = size
    width = max(-(-inner // (most - (size - inner))), 1)
    starts = [*range(0, inner, width), *range(inner, size)]
    ends = [start - 1 for start in [*starts[1:], size]]
    names = [_name(labels[start], labels[end], binned=binned) for start, end in zip(starts, ends, strict=True)]
    return np.array(starts, dtype=np.int64), names


def _name(first: str, last: str, *, binned: bool) -> str:
    if first == last:
        return first
    if binned:
        return f"{first.split(TO, maxsplit=1)[0]}{TO}{last.rsplit(TO, maxsplit=1)[-1]}"
    return f"{first} – {last}"
