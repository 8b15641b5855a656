"""Dates, datetimes, times and months: whole columns of cells -> regions, and grid values -> cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.bins import Grid
from margent.schema.cells import days, seconds
from margent.schema.codec_numbers import UNREAD, slow_region
from margent.schema.formats import ISO_WRITTEN, MONTHS, TimeFormat, time_format
from margent.schema.parts import Field
from margent.schema.positions import field_format, offset_text, scalar_position
from margent.schema.ruler import Landmarks, Regions
from margent.schema.zones import DAY, FIRST_DAY, LAST_DAY, ZoneTable, zone_table

Clock = Literal["wall", "utc", "offset"]

_OFFSET_LENGTH = len("+00:00")
_FAR = 2**61


@dataclass(frozen=True)
class TimeAxis:
    """How the cells of a date, datetime, time or yearmonth field are read and written.

    Positions are those of `margent.schema.positions`. Shapes and privacy as `NumberAxis`.
    """

    field: Field
    grid: Grid

    @property
    def arrow_type(self) -> Any:
        """The Arrow type that values are written in; a zoned datetime carries its zone."""
        zone = self.field.time_zone if self._zoned else None
        kinds = {"date": pa.date32(), "time": pa.time32("s"), "yearmonth": pa.string()}
        return kinds.get(self.field.type, pa.timestamp("us", tz=zone))

    @property
    def _zoned(self) -> bool:
        return self.field.type == "datetime" and self.field.time_zone not in (None, "naive")

    @cached_property
    def _zone(self) -> ZoneTable | None:
        if not self._zoned:
            return None
        kind, zone = self.field.type, str(self.field.time_zone)
        declared = [self.field.minimum, self.field.maximum, *(item.value for item in self.field.listed or ())]
        instants = [int(scalar_position(kind, bound, zone)) for bound in declared if bound is not None]
        return zone_table(zone, min(instants), max(instants))

    def regions_of_texts(self, texts: Any, ruler: Landmarks) -> Regions:
        """Regions of raw cell texts without nulls."""
        regions = np.full(len(texts), UNREAD, dtype=np.int64)
        lengths = np.asarray(pc.binary_length(texts).to_numpy(zero_copy_only=False))
        for layout, clock in self._layouts():
            length = (layout.fixed_length or 0) + (_OFFSET_LENGTH if clock == "offset" else 0)
            chosen = np.flatnonzero((lengths == length) & (regions == UNREAD))
            if chosen.size == 0:
                continue
            letters = np.frombuffer(b"".join(texts.take(pa.array(chosen)).to_pylist()), dtype=np.uint8)
            walls, sound = _fixed(letters.reshape(-1, length), layout)
            if clock == "offset":
                offsets, told = _fixed_offsets(letters.reshape(-1, length)[:, -_OFFSET_LENGTH:])
                walls, sound = walls - offsets, sound & told
            positions = self._from_walls(walls, utc=clock != "wall")
            regions[chosen] = np.where(sound, ruler.of_integers(positions), UNREAD)
        for place in np.flatnonzero(regions == UNREAD).tolist():
            regions[place] = slow_region(self.field, texts[place].as_py(), ruler)
        return regions

    def _layouts(self) -> Iterator[tuple[TimeFormat, Clock]]:
        """Formats of one fixed length that whole columns are usually in, and which clock they speak of."""
        own = field_format(self.field.type, self.field.spelling)
        if own is not None:
            if own.fixed_length is not None:
                yield own, "wall"
            return
        plain = ISO_WRITTEN[self.field.type]
        yield time_format(plain), "wall"
        if self.field.type == "datetime":
            yield time_format("%Y-%m-%d %H:%M:%S"), "wall"
            if self._zoned:
                yield time_format(f"{plain}Z"), "utc"
                yield time_format(plain), "offset"

    def _from_walls(self, walls: NDArray[np.int64], *, utc: bool = False) -> NDArray[np.int64]:
        """Positions of wall-clock readings in seconds since 1970."""
        walls = np.clip(walls, -_FAR, _FAR)  # so that no sum below can overflow
        if self.field.type == "date":
            return walls // DAY
        if self.field.type == "time":
            return walls % DAY
        if self.field.type == "yearmonth":
            return _months(walls // DAY)
        return walls if self._zone is None or utc else self._zone.instants_of(walls)

    def regions_of_typed(self, column: Any, ruler: Landmarks) -> Regions | None:
        """Regions of typed cells (nulls: any), or None where the column is to be read as text."""
        kind, own = column.type, self.field.type
        unread = np.full(len(column), UNREAD, dtype=np.int64)
        if pa.types.is_time(kind):
            return ruler.of_integers(seconds(column)) if own == "time" else unread
        if pa.types.is_date(kind):
            return unread if own == "time" else ruler.of_integers(self._from_walls(days(column) * DAY))
        if pa.types.is_timestamp(kind):
            instants = kind.tz is not None
            if own == "time" or (instants and not self._zoned):
                return unread
            return ruler.of_integers(self._from_walls(seconds(column), utc=instants))
        return None

    def arrow(self, indices: NDArray[np.int64]) -> Any:
        """Grid values as an Arrow column."""
        positions = self.positions(indices)
        if self.field.type == "date":
            return pa.array(positions.astype(np.int32)).cast(pa.date32())
        if self.field.type == "time":
            return pa.array(positions.astype(np.int32)).cast(pa.time32("s"))
        if self.field.type == "yearmonth":
            return self.texts(indices)
        return pa.array(positions * 10**6).cast(self.arrow_type)

    def texts(self, indices: NDArray[np.int64]) -> Any:
        """Grid values as text in the field's format (default ISO 8601, a zoned datetime with its offset)."""
        positions = self.positions(indices)
        own = field_format(self.field.type, self.field.spelling)
        written = own or time_format(ISO_WRITTEN[self.field.type])
        if self.field.type == "yearmonth":
            month = (positions - 1970 * 12).astype("datetime64[M]")
            walls = month.astype("datetime64[D]").astype(np.int64) * DAY
        else:
            walls = positions * DAY if self.field.type == "date" else positions
        offsets = None
        if self._zone is not None:
            offsets = self._zone.offsets_at(positions)
            walls = walls + offsets
        pieces = [*_written(written, walls, offsets)]
        if offsets is not None and own is None:
            pieces.append(_offsets(offsets))
        return pc.binary_join_element_wise(*pieces, pa.scalar("")) if len(indices) else pa.array([], pa.string())

    def positions(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where grid values stand on the axis."""
        return indices * int(self.grid.unit) + self.grid.anchor


def _months(day: NDArray[np.int64]) -> NDArray[np.int64]:
    """Months since year 0."""
    return day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + 1970 * 12


def _fixed(flat: NDArray[np.uint8], layout: TimeFormat) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Wall-clock readings of texts that begin in a layout of fixed length, and which of them do.

    Shapes: one row of bytes a text.
    """
    found = {part: np.zeros(len(flat), dtype=np.int64) for part in "YmdHMS"}
    found["m"] += 1
    found["d"] += 1
    sound = np.ones(len(flat), dtype=np.bool_)
    place = 0
    for part, literal in layout.pieces:
        width = len(literal) if part is None else 4 if part == "Y" else 2
        bytes_here = flat[:, place : place + width]
        if part is None:
            sound &= (bytes_here == np.frombuffer(literal.encode(), dtype=np.uint8)).all(axis=1)
        else:
            digits = bytes_here.astype(np.int64) - ord("0")
            sound &= ((digits >= 0) & (digits <= 9)).all(axis=1)
            found[part] = digits @ (10 ** np.arange(width - 1, -1, -1, dtype=np.int64))
        place += width
    year, month, day = (np.where(sound, found[part], 1) for part in "Ymd")
    clock = found["H"] * 3600 + found["M"] * 60 + found["S"]
    sound &= (found["H"] < 24) & (found["M"] < 60) & (found["S"] < 60)
    if "Y" not in layout.parts:
        return clock, sound
    month_start = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    start = month_start.astype("datetime64[D]").astype(np.int64)
    stop = (month_start + 1).astype("datetime64[D]").astype(np.int64)
    sound &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (start + day - 1 < stop)
    return (start + day - 1) * DAY + clock, sound


def _fixed_offsets(flat: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Seconds east of UTC of offsets such as +02:00, and which of the texts are such offsets."""
    digits = flat[:, [1, 2, 4, 5]].astype(np.int64) - ord("0")
    hours, minutes = digits[:, 0] * 10 + digits[:, 1], digits[:, 2] * 10 + digits[:, 3]
    signed = (flat[:, 0] == ord("+")) | (flat[:, 0] == ord("-"))
    sound = signed & (flat[:, 3] == ord(":")) & ((digits >= 0) & (digits <= 9)).all(axis=1)
    sound &= (hours < 24) & (minutes < 60)
    return np.where(flat[:, 0] == ord("-"), -1, 1) * (hours * 3600 + minutes * 60), sound


_TWO = pa.array([f"{number:02}" for number in range(100)])
_THREE = pa.array([f"{number:03}" for number in range(1000)])


def _written(layout: TimeFormat, walls: NDArray[np.int64], offsets: NDArray[np.int64] | None) -> Iterator[Any]:
    """The pieces of a format as columns of text, for wall-clock readings in seconds since 1970."""
    day, clock = walls // DAY, walls % DAY
    dates = np.clip(day, FIRST_DAY, LAST_DAY).astype("datetime64[D]")
    year = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    month = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    in_month = (dates - dates.astype("datetime64[M]")).astype(np.int64) + 1
    in_year = (dates - dates.astype("datetime64[Y]")).astype(np.int64) + 1
    hour = clock // 3600
    two = {
        "y": year % 100,
        "m": month,
        "d": in_month,
        "H": hour,
        "I": (hour + 11) % 12 + 1,
        "M": clock // 60 % 60,
        "S": clock % 60,
    }
    for part, literal in layout.pieces:
        if part is None:
            yield pa.scalar(literal)
        elif part in two:
            yield _TWO.take(pa.array(two[part]))
        elif part == "Y":
            yield pc.utf8_lpad(pa.array(year).cast(pa.string()), 4, "0")
        elif part in ("b", "B"):
            yield pa.array([name[:3] if part == "b" else name for name in MONTHS]).take(pa.array(month - 1))
        elif part == "j":
            yield _THREE.take(pa.array(in_year))
        elif part == "p":
            yield pa.array(["AM", "PM"]).take(pa.array(hour // 12))
        elif part == "f":
            yield pa.scalar("000000")
        else:
            yield _offsets(np.zeros_like(walls) if offsets is None else offsets)


def _offsets(offsets: NDArray[np.int64]) -> Any:
    distinct, places = np.unique(offsets, return_inverse=True)
    return pa.array([offset_text(int(offset)) for offset in distinct], pa.string()).take(pa.array(places))
