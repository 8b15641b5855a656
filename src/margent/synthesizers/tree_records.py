"""Records drawn along a junction tree: every clique's new columns given those it shares with its parent."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.calibrated import CalibratedTree
from margent.stream import Stream
from margent.synthesizers.appending import draw_given
from margent.synthesizers.shares import WHOLE, Share


def draw_records(law: CalibratedTree, rows: int, stream: Stream, share: Share = WHOLE) -> dict[str, NDArray[np.int32]]:
    """``rows`` records of the law, each clique's cells the floor or ceiling of their share of its separator's records.

    Rounding is systematic (`draw_given`), so a table is off its expectation by less than a resample would be; cliques
    without a separator start in random order, which joins the components at random.

    Shapes: one column of working codes a name of the law's domain.
    Privacy: none: post-processing.
    """
    drawn: dict[str, NDArray[np.int32]] = {}
    for place, names in enumerate(law.tree.cliques):
        given = law.separators[place]
        fresh = tuple(name for name in names if name not in given)
        order = [names.index(name) for name in (*given, *fresh)]
        shape = [law.beliefs[place].shape[axis] for axis in order]
        groups = math.prod(shape[: len(given)])
        table = np.transpose(law.beliefs[place], order).reshape(groups, -1)
        number = np.zeros(rows, dtype=np.int64)
        for name, size in zip(given, shape, strict=False):
            number = number * size + drawn[name]
        codes = draw_given(table, table.sum(axis=0), number, stream, share, *fresh)
        for name, column in zip(fresh, np.unravel_index(codes, shape[len(given) :]), strict=True):
            drawn[name] = column.astype(np.int32)
    return drawn
