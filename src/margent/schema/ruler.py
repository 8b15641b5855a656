"""Exact comparison of whole columns with a few exact landmarks, whatever number type the column has.

The region of x among sorted landmarks is #(landmarks < x) + #(landmarks <= x): 2j + 1 on landmark j, 2j
between landmarks j - 1 and j. Floats are compared through their shortest decimal text, so that 0.3 stands on
the landmark 3/10 although no binary float does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margent.schema.positions import Position

INT64 = np.iinfo(np.int64)
_LISTED = 2**16
"""Most whole numbers whose regions are listed."""
Regions = NDArray[np.int64]


class Landmarks(Protocol):
    """What positions are held against: sorted landmarks, or nothing at all (`Places`)."""

    def of_exact(self, position: Position) -> int:
        """The region of one exact position."""
        ...

    def of_integers(self, values: NDArray[np.int64]) -> Regions:
        """The regions of 64-bit whole numbers."""
        ...


PLACE_OF_ZERO = 2**60
_FARTHEST = 2**59


@dataclass(frozen=True)
class Places:
    """Every whole position is a region of its own, `PLACE_OF_ZERO` above it; far ones are cut off.

    >>> (Places().of_integers(np.array([-3, 2**62])) - PLACE_OF_ZERO).tolist() == [-3, 2**59]
    True
    """

    def of_exact(self, position: Position) -> int:
        """Where one exact position stands."""
        return int(min(max(int(position), -_FARTHEST), _FARTHEST)) + PLACE_OF_ZERO

    def of_integers(self, values: NDArray[np.int64]) -> Regions:
        """Where 64-bit whole numbers stand."""
        return np.clip(values, -_FARTHEST, _FARTHEST) + PLACE_OF_ZERO


@dataclass(frozen=True)
class Ruler:
    """Sorted, distinct landmarks on an axis.

    Privacy: none: a function of the schema; what it is applied to is private.

    >>> ruler = Ruler((Fraction(0), Fraction(3, 10), Fraction(1)))
    >>> ruler.of_floats(np.array([0.25, 0.3, 2.0])).tolist(), ruler.of_integers(np.array([0, 1])).tolist()
    ([2, 3, 6], [1, 5])
    """

    marks: tuple[Position, ...]

    def of_exact(self, position: Position) -> int:
        """The region of one exact position."""
        return bisect_left(self.marks, position) + bisect_right(self.marks, position)

    def of_integers(self, values: NDArray[np.int64]) -> Regions:
        """The regions of 64-bit whole numbers."""
        if self._near is not None:
            first, regions = self._near
            return regions[np.clip(values, first, first + regions.size - 1) - first]
        return self._searched(values)

    @cached_property
    def _near(self) -> tuple[int, Regions] | None:
        """The regions of the whole numbers from just below the first landmark to just above the last.

        They are looked up many times faster than searched; None where they are too many to be listed.
        """
        _, floors, ceilings = self._whole
        first = int(floors[0]) if floors.size else 0
        last = int(ceilings[-1]) if floors.size else 0
        if last - first > _LISTED or first == INT64.min or last == INT64.max:
            return None
        return first - 1, self._searched(np.arange(first - 1, last + 2, dtype=np.int64))

    def _searched(self, values: NDArray[np.int64]) -> Regions:
        below, floors, ceilings = self._whole
        under = np.searchsorted(floors, values, side="left")
        upto = np.searchsorted(ceilings, values, side="right")
        return np.asarray(under + upto + 2 * below, dtype=np.int64)

    def of_floats(self, values: NDArray[np.floating[Any]]) -> Regions:
        """The regions of floats by their shortest decimal text; NaN gets a region without meaning."""
        _, edges, regions = self._floats(values.dtype)
        return self._among(values, edges, regions)

    def of_rounded(self, values: NDArray[np.float64]) -> tuple[Regions, NDArray[np.bool_]]:
        """Regions of numbers known only as their nearest floats, and which of them this leaves in doubt."""
        floats, edges, regions = self._floats(np.dtype(np.float64))
        return self._among(values, edges, regions), np.isin(values, floats)

    @cached_property
    def _whole(self) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """How many landmarks lie below all 64-bit numbers, and floor and ceiling of those within."""
        below = sum(mark < INT64.min for mark in self.marks)
        # For whole x: mark < x where floor(mark) < x, and mark <= x where ceiling(mark) <= x.
        within = [mark for mark in self.marks if INT64.min <= mark <= INT64.max]
        floors = np.array([mark // 1 for mark in within], dtype=np.int64)
        ceilings = np.array([-(-mark // 1) for mark in within], dtype=np.int64)
        return below, floors, ceilings

    @cached_property
    def _tables(self) -> dict[str, tuple[NDArray[Any], NDArray[Any], Regions]]:
        return {}

    def _floats(self, kind: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any], Regions]:
        """Distinct floats nearest to the landmarks; where regions begin, on these and next to them; the regions."""
        if kind.name not in self._tables:
            largest = Fraction(float(np.finfo(kind.name).max))
            below = sum(mark < -largest for mark in self.marks)
            within = [mark for mark in self.marks if -largest <= mark <= largest]
            near = np.array([float(mark) for mark in within]).astype(kind)
            floats, places = np.unique(near, return_inverse=True)
            exact = np.array([self.of_exact(shortest(value)) for value in floats], dtype=np.int64)
            counts = np.bincount(places, minlength=floats.size) if floats.size else np.zeros(0, np.int64)
            after = 2 * (below + np.cumsum(counts, dtype=np.int64))
            # No float lies between one and the next: searching among both finds whether it is the landmark's own.
            edges = np.stack([floats, np.nextafter(floats, kind.type(np.inf))], axis=1).ravel()
            regions = np.concatenate([[2 * below], np.stack([exact, after], axis=1).ravel()]).astype(np.int64)
            self._tables[kind.name] = floats, edges, regions
        return self._tables[kind.name]

    def _among(self, values: NDArray[Any], edges: NDArray[Any], regions: Regions) -> Regions:
        found = regions[np.searchsorted(edges, values, side="right")]
        if regions[-1] < 2 * len(self.marks):  # landmarks beyond all floats
            found[values == np.inf] = 2 * len(self.marks)
        if regions[0] > 0:
            found[values == -np.inf] = 0
        return np.asarray(found, dtype=np.int64)


def shortest(value: np.floating[Any]) -> Fraction:
    """The shortest decimal that reads back as this float of its own width.

    >>> shortest(np.float32(0.7)), shortest(np.float64(0.1))
    (Fraction(7, 10), Fraction(1, 10))
    """
    return Fraction(np.format_float_positional(value, unique=True))
