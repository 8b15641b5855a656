"""Bounded and listed values on an axis: regions -> codes, and codes -> grid values drawn inside their bin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.bins import Grid, decimals_of
from margent.schema.cells import canonical_texts, is_text
from margent.schema.codec_categories import NO_CODE, TextLookup
from margent.schema.codec_numbers import NumberAxis
from margent.schema.codec_times import TimeAxis
from margent.schema.drawing import Draws, draws_of
from margent.schema.formats import BLANKS
from margent.schema.layout import Layout
from margent.schema.parts import NUMERIC, Field
from margent.schema.positions import scalar_position
from margent.schema.ruler import Regions, Ruler


class Axis(Protocol):
    """How cells of one family of types stand on an axis, and are written from it."""

    @property
    def arrow_type(self) -> Any:
        """The Arrow type that values are written in."""
        ...

    def regions_of_texts(self, texts: Any, ruler: Ruler) -> Regions:
        """Regions of raw cell texts without nulls."""
        ...

    def regions_of_typed(self, column: Any, ruler: Ruler) -> Regions | None:
        """Regions of typed cells, or None where the column is to be read as text."""
        ...

    def arrow(self, indices: NDArray[np.int64]) -> Any:
        """Grid values as an Arrow column."""
        ...

    def texts(self, indices: NDArray[np.int64]) -> Any:
        """Grid values as text."""
        ...


@dataclass(frozen=True)
class BinnedValues:
    """The values of a number, date or time field: bins or a closed list on its axis.

    Shapes: n cells -> n codes, `NO_CODE` where a cell is no value of the field. Special codes and missing
    tokens that stand for a position are found here too, however they are spelled.
    Privacy: cells are private; nothing here raises, warns or speaks of one.
    """

    layout: Layout

    @cached_property
    def axis(self) -> Axis:
        """The axis of the field's type."""
        field, grid = self.layout.field, self._grid
        return NumberAxis(field, grid) if field.type in NUMERIC else TimeAxis(field, grid)

    @cached_property
    def _grid(self) -> Grid:
        return self.layout.cuts.grid if self.layout.cuts is not None else listed_grid(self.layout.field)

    @cached_property
    def _ruler(self) -> Ruler:
        starts = self.layout.cuts.starts if self.layout.cuts is not None else ()
        return Ruler(tuple(sorted({*starts, *self.layout.points})))

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        """The code of each region, and `NO_CODE` at the end for what has no region."""
        cuts, points = self.layout.cuts, self.layout.points
        starts = set(cuts.starts) if cuts is not None else set()
        place = NO_CODE
        codes = [NO_CODE if cuts is None else 0]
        for mark in self._ruler.marks:
            place += mark in starts
            in_bin = NO_CODE if cuts is None else max(place, 0)
            codes += [points.get(mark, in_bin), in_bin]
        return np.array([*codes, NO_CODE], dtype=np.int64)

    @cached_property
    def _lookup(self) -> TextLookup:
        return TextLookup(self.layout.texts)

    def codes_of_texts(self, texts: Any) -> NDArray[np.int64]:
        """Codes of raw cell texts; nulls get `NO_CODE`."""
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary
        codes = self._lookup.codes(distinct)
        if not codes.size:
            return np.full(len(texts), NO_CODE, dtype=np.int64)
        open_places = np.flatnonzero(codes == NO_CODE)
        if open_places.size:
            rest = distinct.take(pa.array(open_places))
            regions = self.axis.regions_of_texts(rest, self._ruler)
            found = self._codes[regions]
            unread = np.flatnonzero(regions < 0)
            if unread.size and self.layout.texts:
                trimmed = [text.strip(BLANKS.encode()) for text in rest.take(pa.array(unread)).to_pylist()]
                found[unread] = self._lookup.codes(pa.array(trimmed, pa.binary()))
            codes[open_places] = found
        places = pc.fill_null(encoded.indices, codes.size).to_numpy(zero_copy_only=False)
        found_codes: NDArray[np.int64] = np.append(codes, NO_CODE)[places]
        return found_codes

    def codes_of_typed(self, column: Any) -> NDArray[np.int64]:
        """Codes of typed cells; nulls get any code."""
        regions = self.axis.regions_of_typed(column, self._ruler)
        if regions is None:
            texts = canonical_texts(column)
            assert is_text(texts.type)
            return self.codes_of_texts(texts)
        return self._codes[regions]

    def draw(self, codes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Grid indices drawn inside each value code's bin, never a special code, spike or missing token.

        Shapes: one word a code.
        """
        return self._draws.of(codes, words)

    @cached_property
    def _draws(self) -> Draws:
        cuts, field = self.layout.cuts, self.layout.field
        if cuts is not None:
            return draws_of(field, cuts, list(self.layout.points))
        positions = [scalar_position(field.type, item.value, field.time_zone) for item in field.listed or ()]
        first = np.array([self._grid.floor(position) for position in positions], dtype=np.int64)
        return Draws(first, np.ones(first.size, dtype=np.uint64))


def listed_grid(field: Field) -> Grid:
    """A grid on which every value of a closed list stands.

    >>> from margent.schema.fields import Number
    >>> listed_grid(Number("dose", enum=[0.5, 1, 1.5])).unit
    Fraction(1, 10)
    """
    return Grid(Fraction(1, 10 ** decimals_of(field)) if field.type == "number" else Fraction(1))
