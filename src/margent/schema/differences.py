"""Dates relative to other dates: differences in whole units, and the dates that a base and a difference stand for.

A difference of n units from a base b is every date in [b + n, b + n + 1): hours, days and weeks are of fixed length;
months, quarters and years are counted on the calendar, where a day that a month lacks is its last (January 31 and one
month is February 28). Datetimes of a zone are counted in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margent.schema.parts import Field, FieldType, Period
from margent.schema.periods import MONTHS_OF, PERIODS_OF
from margent.schema.positions import scalar_position
from margent.schema.zones import DAY, FIRST_DAY, LAST_DAY, ZONE_YEARS

Positions = NDArray[np.int64]

UNITS_OF: Mapping[FieldType, tuple[Period, ...]] = {"date": PERIODS_OF["date"], "datetime": PERIODS_OF["datetime"]}
"""Which units a difference of each type can be counted in."""

_SECONDS: Mapping[Period, int] = {"hour": 3600, "day": DAY, "week": 7 * DAY}
MOST_UNITS = 10**8
"""Bounds of a difference lie within so many units: more than the hours that the calendar has."""


def difference_field(field: Field) -> Field:
    """The whole number of units that is modeled instead of the date, with its own bounds and bins.

    Privacy: none: a function of the schema.
    """
    other = field.relative_to
    assert other is not None
    return Field(
        field.name,
        "integer",
        required=True,
        minimum=other.minimum,
        maximum=other.maximum,
        bins=field.bins,
        spikes=field.spikes,
        decode=field.decode,
    )


def base_order(fields: Sequence[Field]) -> tuple[Field, ...]:
    """The modeled fields in an order in which every base stands before what is relative to it.

    Privacy: none: a function of the schema, in which nothing leads back to itself.
    """
    by_name = {field.name: field for field in fields}

    def depth(field: Field) -> int:
        steps = 0
        while field.relative_to is not None:
            field, steps = by_name[field.relative_to.field], steps + 1
        return steps

    return tuple(sorted(fields, key=depth))


def reach(field: Field, by_name: Mapping[str, Field]) -> tuple[int, int]:
    """The first and last position that a date may be written at: its bounds, or those of its base and the difference.

    Privacy: none: a function of the schema.
    Raises: ValueError where that leaves the calendar, or the years in which zones are known.
    """
    other = field.relative_to
    if other is None:
        bounds = (field.minimum, field.maximum, *(item.value for item in field.listed or ()))
        places = [int(scalar_position(field.type, bound, field.time_zone)) for bound in bounds if bound is not None]
        return min(places), max(places)
    low, high = reach(by_name[other.field], by_name)
    low, high = (
        int(shifted(np.array([place]), np.array([units]), field.type, other.unit)[0])
        for place, units in ((low, other.minimum), (high, other.maximum + 1))
    )
    high -= 1
    zoned = field.type == "datetime" and field.time_zone not in (None, "naive", "UTC")
    first, last = FIRST_DAY, LAST_DAY
    if zoned:
        first, last = (
            int(np.datetime64(f"{year}-{day}").astype(np.int64))
            for year, day in zip(ZONE_YEARS, ("01-01", "12-31"), strict=True)
        )
    days = [place if field.type == "date" else place // DAY for place in (low, high)]
    if days[0] < first or days[1] > last:
        years = f"{ZONE_YEARS[0]} to {ZONE_YEARS[1]}" if zoned else "1 to 9999"
        raise ValueError(
            f"the differences reach beyond the years {years}; give this field, or the one it is relative to, "
            "narrower bounds"
        )
    return low, high


def dated_field(field: Field, by_name: Mapping[str, Field]) -> Field:
    """The date itself as a field with bounds of its own, for reading and writing its cells.

    Privacy: none: a function of the schema.
    """
    from margent.schema.labels import position_text

    if field.relative_to is None:
        return field
    low, high = reach(field, by_name)
    alone = replace(field, relative_to=None, bins=None, spikes=(), decode=None)
    return replace(alone, minimum=position_text(alone, low), maximum=position_text(alone, high))


def shifted(bases: Positions, units: Positions, kind: FieldType, unit: Period) -> Positions:
    """b + n units: the first position that is so far from its base.

    Shapes: n bases, n differences -> n positions.
    Units: positions in days (date) or seconds (datetime).

    >>> shifted(np.array([30]), np.array([1]), "date", "month").tolist()  # January 31, 1970
    [58]
    """
    if unit in _SECONDS:
        return bases + units * (_SECONDS[unit] // (DAY if kind == "date" else 1))
    day, clock = (bases, 0) if kind == "date" else (bases // DAY, bases % DAY)
    dates = np.clip(day, FIRST_DAY, LAST_DAY).astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    in_month = (dates - month).astype(np.int64)
    target = (month.astype(np.int64) + units * MONTHS_OF[unit]).astype("datetime64[M]")
    start = target.astype("datetime64[D]").astype(np.int64)
    length = (target + 1).astype("datetime64[D]").astype(np.int64) - start
    moved: Positions = start + np.minimum(in_month, length - 1)
    return moved if kind == "date" else moved * DAY + clock


def differences(positions: Positions, bases: Positions, kind: FieldType, unit: Period) -> Positions:
    """How many whole units a position is from its base: the n with b + n <= p < b + n + 1.

    Shapes: n positions, n bases -> n whole numbers.

    >>> differences(np.array([57, 58]), np.array([30, 30]), "date", "month").tolist()  # February 27 and 28
    [0, 1]
    """
    if unit in _SECONDS:
        return (positions - bases) // (_SECONDS[unit] // (DAY if kind == "date" else 1))
    months = _months(positions, kind) - _months(bases, kind)
    months -= shifted(bases, months, kind, "month") > positions
    return months // MONTHS_OF[unit]


def _months(positions: Positions, kind: FieldType) -> Positions:
    day = np.clip(positions if kind == "date" else positions // DAY, FIRST_DAY, LAST_DAY)
    return day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
