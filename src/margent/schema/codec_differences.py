"""Dates relative to other dates: pairs of cells -> codes of differences, and codes with base dates -> cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.cells import absent, canonical_texts, is_text, plain
from margent.schema.codec_bins import BinnedValues, listed_grid
from margent.schema.codec_categories import NO_CODE, TextLookup
from margent.schema.codec_times import TimeAxis
from margent.schema.codec_writing import ColumnWriter, row_words
from margent.schema.differences import Positions, dated_field, differences, shifted
from margent.schema.layout import Layout
from margent.schema.parts import Field
from margent.schema.positions import field_format
from margent.schema.ruler import PLACE_OF_ZERO, Places
from margent.stream import scaled

Present = NDArray[np.bool_]


@dataclass(frozen=True)
class DateCells:
    """The cells of a date or datetime field as positions: which hold one, and which are missing tokens.

    Shapes: n cells -> n positions (0 where there is none), n flags, n codes (`NO_CODE` but for missing tokens).
    Privacy: cells are private; nothing here raises, warns or speaks of one.
    """

    layout: Layout
    axis: TimeAxis

    def read(self, column: Any) -> tuple[Positions, Present, NDArray[np.int64]]:
        """One column of cells."""
        column = plain(column)
        count = len(column)
        if pa.types.is_null(column.type):
            return np.zeros(count, np.int64), np.zeros(count, np.bool_), np.full(count, NO_CODE)
        if pa.types.is_dictionary(column.type):
            return self._taken(self.read(column.dictionary), column.indices)
        if is_text(column.type):
            encoded = column.dictionary_encode()
            return self._taken(self._texts(encoded.dictionary), encoded.indices)
        places = self.axis.regions_of_typed(column, Places())
        if places is None:
            return self.read(canonical_texts(column))
        found = self._placed(places, np.full(count, NO_CODE))
        there = ~absent(column)
        return found[0], found[1] & there, np.where(there, found[2], NO_CODE)

    def _taken(
        self, distinct: tuple[Positions, Present, NDArray[np.int64]], indices: Any
    ) -> tuple[Positions, Present, NDArray[np.int64]]:
        """The cells that point into a list of distinct ones; nulls are no date."""
        positions, present, codes = distinct
        places = pc.fill_null(indices.cast(pa.int64()), positions.size).to_numpy(zero_copy_only=False)
        return np.append(positions, 0)[places], np.append(present, False)[places], np.append(codes, NO_CODE)[places]

    def _texts(self, texts: Any) -> tuple[Positions, Present, NDArray[np.int64]]:
        codes = self._lookup.codes(texts)
        if not len(texts):
            return np.zeros(0, np.int64), np.zeros(0, np.bool_), codes
        valid = pc.fill_null(texts, b"")
        return self._placed(self.axis.regions_of_texts(valid, Places()), codes)

    def _placed(
        self, places: NDArray[np.int64], codes: NDArray[np.int64]
    ) -> tuple[Positions, Present, NDArray[np.int64]]:
        positions = places - PLACE_OF_ZERO
        for position, code in self._tokens.items():
            codes = np.where((codes == NO_CODE) & (places >= 0) & (positions == position), code, codes)
        present = (places >= 0) & (codes == NO_CODE)
        return np.where(present, positions, 0), present, codes

    @cached_property
    def _tokens(self) -> Mapping[int, int]:
        """Positions that are missing tokens (closed lists and spikes aside), and their codes."""
        first = self.layout.first_missing
        return {int(position): code for position, code in self.layout.points.items() if code >= first}

    @cached_property
    def _lookup(self) -> TextLookup:
        first = self.layout.first_missing
        return TextLookup({text: code for text, code in self.layout.texts.items() if code >= first})


def date_cells(layout: Layout, fields: Mapping[str, Field]) -> DateCells:
    """How the cells of a date are read, be it relative or a base. Privacy: none: a function of the schema."""
    field = dated_field(layout.field, fields)
    if layout.field.relative_to is None:
        axis = BinnedValues(layout).axis
        assert isinstance(axis, TimeAxis)
        return DateCells(layout, axis)
    return DateCells(layout, TimeAxis(field, listed_grid(field)))


@dataclass(frozen=True)
class DifferenceReader:
    """Cells of a relative date and of its base -> codes of the difference.

    Where either is no date there is no difference: the cell's own missing token, or the code of unlisted cells.

    Shapes: n and n cells -> n codes.
    Privacy: as `DateCells`.
    """

    layout: Layout
    own: DateCells
    base: DateCells

    def codes(self, column: Any, base: Any) -> NDArray[np.uint16] | NDArray[np.uint32]:
        """One code a pair of cells."""
        layout, field = self.layout, self.layout.field
        assert field.relative_to is not None
        raw = is_text(column.type)
        positions, present, codes = self.own.read(column)
        bases, based, _ = self.base.read(base)
        both = present & based
        apart = differences(np.where(both, positions, 0), np.where(both, bases, 0), field.type, field.relative_to.unit)
        found = np.where(both, self._values.codes_of_typed(pa.array(apart)), codes)
        found = np.where(found == NO_CODE, layout.fallback, found)
        found = np.where(absent(plain(column)), layout.fallback if raw else layout.null, found)
        return found.astype(np.uint16) if layout.size <= 2**16 else found.astype(np.uint32)

    @cached_property
    def _values(self) -> BinnedValues:
        assert self.layout.differences is not None
        return BinnedValues(self.layout.differences)


@dataclass(frozen=True)
class DifferenceWriter:
    """Codes of a difference and the dates of the base -> cells; where the base is missing, so is the date.

    Privacy: none: post-processing of a public seed and sampled codes.
    """

    layout: Layout
    axis: TimeAxis

    @property
    def arrow_type(self) -> Any:
        """The column's Arrow type."""
        return self.axis.arrow_type

    def dates(
        self, codes: NDArray[np.int64], seed: int, first_row: int, bases: tuple[Positions, Present]
    ) -> tuple[Positions, Present]:
        """Where the dates stand, and which rows have one."""
        layout, field = self.layout, self.layout.field
        assert layout.differences is not None
        assert field.relative_to is not None
        own = codes < layout.first_missing
        units = self._units(np.where(own, codes, 0), row_words(seed, field.name, first_row, codes.size))
        present = own & bases[1]
        base, units, unit = np.where(present, bases[0], 0), np.where(present, units, 0), field.relative_to.unit
        start, stop = shifted(base, units, field.type, unit), shifted(base, units + 1, field.type, unit)
        finest = self._finest
        first = -(-start // finest)  # the first value that can be written from there on, so that order is kept
        room = np.maximum(-(-stop // finest) - first, 1)
        within = row_words(seed, field.name, first_row, codes.size, "within the unit")
        return (first + scaled(within, room.astype(np.uint64))) * finest, present

    @property
    def _finest(self) -> int:
        field = self.layout.field
        own = field_format(field.type, field.spelling)
        return own.finest if own is not None and field.type == "datetime" else 1

    def _units(self, codes: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Whole numbers of units: drawn inside bins, or the spikes themselves."""
        inner = self.layout.differences
        assert inner is not None
        spikes = np.array([int(special.text) for special in inner.special], dtype=np.int64)
        binned = codes < inner.values
        drawn = np.zeros(codes.size, dtype=np.int64)
        if inner.values:
            drawn = self._values.draw(np.where(binned, codes, 0), words)
        if spikes.size:
            drawn = np.where(binned, drawn, spikes[np.where(binned, 0, codes - inner.values)])
        return drawn

    @cached_property
    def _values(self) -> BinnedValues:
        assert self.layout.differences is not None
        return BinnedValues(self.layout.differences)

    def column(self, codes: NDArray[np.int64], dates: tuple[Positions, Present], *, text: bool) -> Any:
        """The cells of dates as an Arrow column; missing cells with their tokens where it is text."""
        positions, present = dates
        if not text:
            return pc.if_else(pa.array(present), self.axis.arrow(positions), pa.scalar(None, self.arrow_type))
        tokens = [cell[0].text for cell in self.layout.missing] or [""]
        places = np.clip(codes - self.layout.first_missing, 0, len(tokens) - 1)
        others = pa.array(tokens, pa.string()).take(pa.array(places))
        return pc.if_else(pa.array(present), self.axis.texts(positions), others)


def base_dates(
    writer: ColumnWriter,
    codes: NDArray[np.int64],
    seed: int,
    first_row: int,
    linked: NDArray[np.int64] | None = None,
) -> tuple[Positions, Present]:
    """Where the dates of a column that stands alone are, and which rows have one: the same that it writes."""
    assert isinstance(writer.values, BinnedValues)
    assert isinstance(writer.values.axis, TimeAxis)
    own = codes < writer.layout.values
    indices = writer.indices(codes, seed, first_row, linked)
    return writer.values.axis.positions(indices), own
