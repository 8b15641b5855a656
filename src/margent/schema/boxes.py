"""What may be written from each value code of a column: a range of its grid, without a few points."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.schema.bins import Grid
from margent.schema.codec_bins import listed_grid
from margent.schema.layout import Layout
from margent.schema.positions import Position, scalar_position


@dataclass(frozen=True)
class Boxes:
    """The grid values low, low + 1, ..., high of each value code, except ``holes``.

    Shapes: ``low`` and ``high`` have one entry a value code; both ends may be written.
    Units: grid indices (`position` gives places on the axis).
    Privacy: none: a function of the schema.
    """

    grid: Grid
    low: tuple[int, ...]
    high: tuple[int, ...]
    holes: tuple[int, ...]

    def position(self, index: int) -> Position:
        """Where a grid value stands on the axis."""
        return self.grid.anchor + index * self.grid.unit

    @cached_property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``low`` and ``high`` as arrays."""
        return np.array(self.low, dtype=np.int64), np.array(self.high, dtype=np.int64)

    @property
    def wide(self) -> bool:
        """Whether some code stands for more than one value."""
        return self.low != self.high


def kept_boxes(layout: Layout) -> Boxes:
    """`boxes_of` a layout that is asked often, kept with it: a thousand rules speak of the same columns."""
    found: Boxes | None = layout.__dict__.get("boxes")
    if found is None:
        found = layout.__dict__["boxes"] = boxes_of(layout)
    return found


def boxes_of(layout: Layout) -> Boxes:
    """The boxes of a number, date or time column: single points where it has a closed list.

    >>> from margent.schema.fields import Integer
    >>> from margent.schema.layout import layout_of
    >>> boxes_of(layout_of(Integer("age", 0, 9, bins=[0, 5, 9], required=True), [])).high
    (4, 9)
    """
    field, cuts = layout.field, layout.cuts
    if cuts is None:
        grid = listed_grid(field)
        places = [scalar_position(field.type, item.value, field.time_zone) for item in field.listed or ()]
        points = tuple(grid.floor(place) for place in places)
        return Boxes(grid, points, points, ())
    low, high, holes = [], [], []
    stops = [*cuts.first[1:], cuts.grid.floor(cuts.maximum) + 1]
    for first, stop in zip(cuts.first, stops, strict=True):
        inside = set(cuts.apart[bisect_left(cuts.apart, first) : bisect_left(cuts.apart, stop)])
        last = stop - 1
        free = [index for index in range(first, first + len(inside) + 1) if index not in inside]
        bottom = free[0]
        while last in inside:
            last -= 1
        low.append(bottom)
        high.append(last)
        holes += sorted(index for index in inside if bottom < index < last)
    return Boxes(cuts.grid, tuple(low), tuple(high), tuple(holes))
