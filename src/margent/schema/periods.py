"""Where hours, days, weeks, months, quarters and years begin, in the field's own time zone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from margent.schema.parts import MAX_CODES, FieldType, Period
from margent.schema.zones import DAY, instant_of_wall, offset_at, zone_named

PERIODS_OF: Mapping[FieldType, tuple[Period, ...]] = {
    "date": ("day", "week", "month", "quarter", "year"),
    "datetime": ("hour", "day", "week", "month", "quarter", "year"),
    "time": ("hour",),
    "yearmonth": ("month", "quarter", "year"),
}
"""Which calendar bins a field of each type can have."""

MONTHS_OF: Mapping[Period, int] = {"month": 1, "quarter": 3, "year": 12}
"""Months of the periods that are counted on the calendar."""

_EPOCH = date(1970, 1, 1)


def boundaries(period: Period, kind: FieldType, low: int, high: int, time_zone: str | None) -> tuple[int, ...] | None:
    """Positions in (low, high] where a new period begins, in order; None where there are more than `MAX_CODES`.

    Units are those of `margent.schema.positions`.

    >>> [str(_EPOCH + timedelta(days=day)) for day in boundaries("quarter", "date", 18262, 18400, None)]
    ['2020-04-01']
    """
    found: list[int] = []
    for position in _beginnings(period, kind, low, high, time_zone):
        if position > high:
            break
        if position > low and (not found or position > found[-1]):
            found.append(position)
        if len(found) > MAX_CODES:
            return None
    return tuple(found)


def _beginnings(period: Period, kind: FieldType, low: int, high: int, time_zone: str | None) -> Iterator[int]:
    if kind == "yearmonth":
        step = MONTHS_OF[period]
        yield from range(low - low % step, high + step, step)
    elif kind == "date":
        yield from _days(period, low)
    elif time_zone in (None, "naive"):
        if period == "hour":
            yield from range(low - low % 3600, high + 3600, 3600)
        else:
            yield from (day * DAY for day in _days(period, low // DAY))
    else:
        zone = zone_named(str(time_zone))
        if period == "hour":
            # Walking from one full hour on the clock to the next follows every clock change.
            instant = low
            while instant <= high:
                instant += 3600 - (instant + offset_at(zone, instant)) % 3600
                yield instant
        else:
            yield from (instant_of_wall(zone, day * DAY) for day in _days(period, low // DAY - 1))


def _days(period: Period, low: int) -> Iterator[int]:
    """Days since 1970 on which a period begins, from the one that holds ``low`` until the calendar ends."""
    day = _EPOCH + timedelta(days=low)
    if period in ("day", "week"):
        step = 7 if period == "week" else 1
        first = low - (day.weekday() if period == "week" else 0)
        last = (date.max - _EPOCH).days
        yield from range(first, last + 1, step)
        return
    months = MONTHS_OF[period]
    month = day.year * 12 + (day.month - 1) // months * months
    while month < 12 * (date.max.year + 1):
        yield (date(month // 12, month % 12 + 1, 1) - _EPOCH).days
        month += months
