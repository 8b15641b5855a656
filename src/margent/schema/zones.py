"""Time zones as tables of offsets, so that whole columns are converted at once and no clock change can crash.

A wall-clock time that a clock change skips is read with the offset before the change; one that it repeats is
taken as the first of the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.int64]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86400
FIRST_DAY, LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31 as days since 1970: those that the calendar knows."""
ZONE_YEARS = (1800, 2300)
"""Bounds of a datetime field in a zone with clock changes must lie in these years."""

_NAME = re.compile(r"[A-Za-z0-9_+\-]+(?:/[A-Za-z0-9_+\-]+)*")


@cache
def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name, or UTC.

    Raises: ValueError where there is no such zone on this machine.
    """
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        if not _NAME.fullmatch(name):
            raise ValueError
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise ValueError(
            f'{name!r} is not a time zone this machine knows; give "UTC", "naive" or an IANA name such as '
            '"Europe/Berlin" (if the name is right, install the tzdata package)'
        ) from None


def offset_at(zone: tzinfo, instant: int) -> int:
    """Seconds east of UTC at an instant (seconds since 1970 UTC).

    >>> offset_at(zone_named("Europe/Berlin"), 1_700_000_000)
    3600
    """
    if zone is UTC:
        return 0
    try:
        offset = (EPOCH + timedelta(seconds=instant)).astimezone(zone).utcoffset()
    except (OverflowError, ValueError):
        return 0
    return 0 if offset is None else round(offset.total_seconds())


def instant_of_wall(zone: tzinfo, wall: int) -> int:
    """The instant (seconds since 1970 UTC) of a wall-clock reading (seconds since 1970 on that clock).

    >>> instant_of_wall(zone_named("America/Chicago"), 0)
    21600
    """
    if zone is UTC:
        return wall
    try:
        offset = (EPOCH + timedelta(seconds=wall)).replace(tzinfo=zone).utcoffset()
    except (OverflowError, ValueError):
        return wall
    return wall if offset is None else wall - round(offset.total_seconds())


@dataclass(frozen=True)
class ZoneTable:
    """The offsets of a zone for a while: ``offsets[i]`` holds from ``changes[i-1]`` to ``changes[i]``.

    Before the first and after the last change the nearest offset holds on, however far.
    Units: seconds; ``changes`` are instants (since 1970 UTC), ``walls`` the same as wall-clock readings.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]

    @cached_property
    def walls(self) -> tuple[int, ...]:
        """Wall-clock readings from which on a local time is read with the offset after each change."""
        return tuple(
            change + max(before, after)
            for change, before, after in zip(self.changes, self.offsets, self.offsets[1:], strict=False)
        )

    def instants_of(self, walls: Seconds) -> Seconds:
        """The instants of wall-clock readings.

        >>> berlin = zone_table("Europe/Berlin", 1679000000, 1699000000)
        >>> skipped = 19442 * 86400 + 2 * 3600 + 1800  # 2023-03-26 02:30, which no clock showed
        >>> berlin.instants_of(np.array([skipped])) - skipped
        array([-3600])
        """
        return walls - self._after(self.walls, walls)

    def offsets_at(self, instants: Seconds) -> Seconds:
        """Seconds east of UTC at instants."""
        return self._after(self.changes, instants)

    def _after(self, changes: tuple[int, ...], moments: Seconds) -> Seconds:
        """The offset that holds at each moment, given when each change is."""
        offsets: Seconds = np.array(self.offsets, dtype=np.int64)
        return offsets[np.searchsorted(np.array(changes, dtype=np.int64), moments, side="right")]


@cache
def zone_table(name: str, first: int, last: int) -> ZoneTable:
    """The zone's offsets from a few days before ``first`` to a few days after ``last`` (instants).

    Privacy: none: a function of the schema.
    """
    zone = zone_named(name)
    start = first - 3 * DAY
    changes: list[int] = []
    offsets = [offset_at(zone, start)]
    if zone is UTC:
        return ZoneTable((), tuple(offsets))
    for day in range(start, last + 3 * DAY, DAY):
        low, high = day, day + DAY
        after = offset_at(zone, high)
        if after == offsets[-1]:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if offset_at(zone, middle) == offsets[-1]:
                low = middle
            else:
                high = middle
        changes.append(high)
        offsets.append(after)
    return ZoneTable(tuple(changes), tuple(offsets))
