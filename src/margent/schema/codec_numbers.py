"""Integers, numbers and years: whole columns of cells -> regions on a ruler, and grid values -> cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.bins import Grid
from margent.schema.cells import days, integers, numbers, seconds
from margent.schema.parts import Field
from margent.schema.positions import cell_position
from margent.schema.ruler import INT64, Landmarks, Regions, Ruler
from margent.schema.zones import DAY

UNREAD = -1
"""The region of a cell that is no value of the field's type."""

_BLANKS = r"[ \t\r\n\v\f]*"
_LONGEST_PLAIN = 80
"""Bytes, blanks too, of the longest text that is converted with others; longer ones are read exactly."""


@dataclass(frozen=True)
class NumberAxis:
    """How the cells of an integer, number or year field are read and written.

    Shapes: n cells -> n regions (`margent.schema.ruler`), `UNREAD` where a cell is no number.
    Privacy: cells are private; nothing here raises, warns or speaks of one.
    """

    field: Field
    grid: Grid

    @property
    def arrow_type(self) -> Any:
        """The Arrow type that values are written in."""
        return pa.float64() if self.field.type == "number" else pa.int64()

    def regions_of_texts(self, texts: Any, ruler: Ruler) -> Regions:
        """Regions of raw cell texts without nulls."""
        regions = np.full(len(texts), UNREAD, dtype=np.int64)
        plain = self._plain(texts)
        if plain.any():
            regions[plain] = self._quick(texts.filter(pa.array(plain)), ruler)
        for place in np.flatnonzero(regions == UNREAD).tolist():
            regions[place] = slow_region(self.field, texts[place].as_py(), ruler)
        return regions

    def _plain(self, texts: Any) -> NDArray[np.bool_]:
        """Which texts are spelled so plainly that they can be converted all at once."""
        spelling = self.field.spelling
        if spelling.group_char or not spelling.bare_number or not spelling.decimal_char.isascii():
            return np.zeros(len(texts), dtype=np.bool_)
        point = re.escape(spelling.decimal_char)
        # Numbers of repetitions in it would take longer to compile than a block's texts to compare.
        body = rf"([0-9]+({point}[0-9]*)?|{point}[0-9]+)([eE][-+]?[0-9][0-9]?)?"
        if self.field.type != "number":
            body = "[0-9]{1,18}"
        matches = pc.match_substring_regex(texts, f"^{_BLANKS}-?{body}{_BLANKS}$")
        plain = pc.and_(matches, pc.less_equal(pc.binary_length(texts), _LONGEST_PLAIN))
        return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def _quick(self, texts: Any, ruler: Ruler) -> Regions:
        """Regions of texts that are spelled plainly; `UNREAD` where one must be read exactly."""
        trimmed = pc.ascii_trim_whitespace(texts.cast(pa.string()))
        if self.field.type != "number":
            return ruler.of_integers(integers(trimmed.cast(pa.int64())))
        if self.field.spelling.decimal_char != ".":
            trimmed = pc.replace_substring(trimmed, self.field.spelling.decimal_char, ".")
        regions, doubtful = ruler.of_rounded(numbers(trimmed.cast(pa.float64())))
        # A text whose nearest float is a landmark's is compared digit by digit.
        return np.where(doubtful, UNREAD, regions)

    def regions_of_typed(self, column: Any, ruler: Ruler) -> Regions | None:
        """Regions of typed cells (nulls: any), or None where the column is to be read as text."""
        kind, whole = column.type, self.field.type != "number"
        if pa.types.is_boolean(kind):
            return ruler.of_integers(integers(column.cast(pa.int8())))
        if pa.types.is_duration(kind):
            return ruler.of_integers(integers(column.cast(pa.int64())))
        if pa.types.is_integer(kind):
            return ruler.of_integers(integers(column))
        if pa.types.is_floating(kind):
            values = numbers(column)
            return self._whole_floats(values, ruler) if whole else ruler.of_floats(_wide(values))
        if self.field.type == "year" and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
            if pa.types.is_timestamp(kind) and kind.tz is not None:
                return np.full(len(column), UNREAD, dtype=np.int64)
            day = days(column) if pa.types.is_date(kind) else seconds(column) // DAY
            years = day.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
            return ruler.of_integers(years)
        return None

    @staticmethod
    def _whole_floats(values: NDArray[Any], ruler: Ruler) -> Regions:
        wide = values.astype(np.float64)
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(wide) & (np.floor(wide) == wide)
        inside = whole & (wide >= -(2.0**63)) & (wide < 2.0**63)
        exact = np.where(inside, wide, 0).astype(np.int64)
        exact[whole & ~inside & (wide > 0)] = INT64.max
        exact[whole & ~inside & (wide < 0)] = INT64.min
        return np.where(whole, ruler.of_integers(exact), UNREAD)

    def arrow(self, indices: NDArray[np.int64]) -> Any:
        """Grid values as an Arrow column."""
        if self.field.type != "number":
            return pa.array(indices, pa.int64())
        # Both operands are exact floats (15 digits at most), so that the quotient is the nearest one.
        return pa.array(indices / float(self._scale), pa.float64())

    def texts(self, indices: NDArray[np.int64]) -> Any:
        """Grid values as text: plain digits, a number with all its decimals after the decimal sign."""
        column = pa.array(indices, pa.int64())
        digits = len(str(self._scale)) - 1
        if digits == 0:
            return column.cast(pa.string())
        padded = pc.utf8_lpad(pa.array(np.abs(indices)).cast(pa.string()), digits + 1, "0")
        sign = pa.array(["", "-"]).take(pa.array((indices < 0).astype(np.int8)))
        whole = pc.utf8_slice_codeunits(padded, 0, -digits)
        part = pc.utf8_slice_codeunits(padded, -digits)
        return pc.binary_join_element_wise(sign, whole, self.field.spelling.decimal_char, part, "")

    def scalar(self, text: str) -> Any:
        """A special code's text as a value of the column's type, or None where it is no number."""
        position = cell_position(self.field.type, text, self.field.spelling, None)
        if position is None:
            return None
        return int(position) if self.field.type != "number" else float(position)

    @property
    def _scale(self) -> int:
        return int(1 / self.grid.unit)


def slow_region(field: Field, raw: bytes, ruler: Landmarks) -> int:
    """The region of one raw text, read exactly, or `UNREAD`.

    >>> slow_region(Field("age", "integer"), b" +7 ", Ruler((7,)))
    1
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return UNREAD
    position = cell_position(field.type, text, field.spelling, field.time_zone)
    return UNREAD if position is None else ruler.of_exact(position)


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """16-bit floats as the 64-bit floats with the same shortest text; wider ones as they are."""
    if values.dtype != np.float16:
        return values
    distinct, places = np.unique(values, return_inverse=True)
    return np.array([float(str(value)) for value in distinct], dtype=np.float64)[places]
