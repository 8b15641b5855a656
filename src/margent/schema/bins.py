"""How a bounded axis is cut into bins, and which values may be written from each, in exact arithmetic.

Bins are [e_i, e_(i+1)), the last one closed at the maximum; the first edge is the minimum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from margent.schema.parts import (
    MAX_CODES,
    CalendarBins,
    EdgeBins,
    EqualBins,
    Field,
    QuantileBins,
    WidthBins,
)
from margent.schema.periods import PERIODS_OF, boundaries
from margent.schema.positions import Position, field_format, scalar_position
from margent.schema.zones import offset_at, zone_named

VALUE_CODES = 256
"""Without bins, a whole-number axis of at most so many values gets one code a value."""
FLOAT_DIGITS = 15
"""A decimal number of so many digits comes back exactly from a 64-bit float."""


class CutError(ValueError):
    """Bins that cannot be made, found after ``codes`` of them were tried: what a schema costs to refuse is counted."""

    def __init__(self, message: str, codes: int) -> None:
        """``message`` says what is wrong with the bins and what to do."""
        super().__init__(message)
        self.codes = codes


@dataclass(frozen=True)
class Grid:
    """The values that may be written stand at ``anchor + i * unit`` for whole i."""

    unit: Fraction
    anchor: int = 0

    def ceilings(self, positions: Sequence[Position]) -> list[int]:
        """The first i at or above each position; in whole numbers, since arithmetic on fractions takes far longer.

        >>> Grid(Fraction(1, 10), 2).ceilings([2, Fraction(9, 4), Fraction(-1, 3)])
        [0, 3, -23]
        """
        parts, unit = self.unit.denominator, self.unit.numerator
        return [
            -((self.anchor * position.denominator - position.numerator) * parts // (unit * position.denominator))
            for position in positions
        ]

    def floor(self, position: Position) -> int:
        """The last i at or below a position."""
        return int((position - self.anchor) // self.unit)


@dataclass(frozen=True)
class Cuts:
    """A bounded axis cut into k bins.

    Shapes: ``starts``, ``first`` and ``count`` have one entry a bin: where it starts, the grid index of its
    first value, and how many values may be drawn. ``apart`` are grid indices that are never drawn, because they
    are special codes or missing tokens.
    Privacy: none: a function of the schema.
    """

    starts: tuple[Position, ...]
    maximum: Position
    grid: Grid
    first: tuple[int, ...]
    count: tuple[int, ...]
    apart: tuple[int, ...]


def cut(field: Field, apart: Collection[Position] = ()) -> Cuts:
    """Cut a field's axis as its ``bins`` say; ``apart`` are positions that have codes of their own.

    >>> from margent.schema.parts import Field
    >>> cut(Field("age", "integer", minimum=0, maximum=10, bins=EqualBins(4))).starts
    (0, 2, 5, 8)

    Raises: ValueError saying what is wrong with the bins and what to do.
    """
    low, high = _bounds(field)
    starts = _starts(field, low, high, apart)
    if len(starts) > MAX_CODES:
        message = f"makes {len(starts):,} bins; at most {MAX_CODES:,} are possible, use wider ones"
        raise CutError(message, len(starts))
    grid, first, count, taken = _placed(field, starts, low, high, apart)
    _require_drawable(field, count)
    return Cuts(starts, high, grid, tuple(first), tuple(count), tuple(taken))


def drawable(field: Field, starts: Sequence[Position], apart: Collection[Position] = ()) -> list[int]:
    """How many values could be drawn from each of the bins that begin at ``starts``; perhaps none.

    Privacy: none: a function of the schema.
    """
    low, high = _bounds(field)
    return _placed(field, starts, low, high, apart)[2]


def _placed(
    field: Field, starts: Sequence[Position], low: Position, high: Position, apart: Collection[Position]
) -> tuple[Grid, list[int], list[int], list[int]]:
    """The grid of the values; each bin's first value on it and number of values; values that are never drawn."""
    grid = Grid(Fraction(1, 10 ** decimals_of(field, starts))) if field.type == "number" else _grid(field, low)
    first = grid.ceilings(starts)
    ends = [*first[1:], grid.floor(high) + 1]
    taken = sorted({int((p - grid.anchor) / grid.unit) for p in apart if (p - grid.anchor) % grid.unit == 0})
    count = [end - begin for begin, end in zip(first, ends, strict=True)]
    for one in taken:
        place = bisect_right(first, one) - 1
        # Bins narrower than the grid's unit begin at one value; the last of them has it.
        if place >= 0 and one < ends[place]:
            count[place] -= 1
    return grid, first, count, taken


def _bounds(field: Field) -> tuple[Position, Position]:
    if field.minimum is None or field.maximum is None:
        raise ValueError("needs constraints.minimum and constraints.maximum")
    low = scalar_position(field.type, field.minimum, field.time_zone)
    high = scalar_position(field.type, field.maximum, field.time_zone)
    if low > high:
        raise ValueError("minimum is above maximum")
    return low, high


def _grid(field: Field, low: Position) -> Grid:
    own = field_format(field.type, field.spelling)
    unit = own.finest if own is not None and field.type != "date" else 1
    zoned = field.type == "datetime" and field.time_zone not in (None, "naive")
    if unit > 1 and zoned:
        return Grid(Fraction(unit), -offset_at(zone_named(str(field.time_zone)), int(low)) % unit)
    return Grid(Fraction(unit))


def _require_drawable(field: Field, count: Sequence[int]) -> None:
    if max(count, default=0) > 2**63:
        raise CutError("a bin holds more than 2^63 values; use more bins", len(count))
    if min(count, default=1) > 0:
        return
    empty = next(place for place, size in enumerate(count) if size <= 0)
    more = "raise margent.decimals, or use fewer bins" if field.type == "number" else "use fewer or wider bins"
    raise CutError(
        f"bin {empty + 1} of {len(count)} holds no value that could be written (special codes and missing "
        f"tokens aside); {more}",
        len(count),
    )


def _starts(field: Field, low: Position, high: Position, apart: Collection[Position]) -> tuple[Position, ...]:
    """The lower edges of the bins."""
    bins, whole = field.bins, field.type != "number"
    if bins is None:
        if low == high:
            return (low,)
        if not whole:
            raise ValueError("a number needs margent.bins: a count, a list of edges or a width")
        if high - low >= VALUE_CODES:
            raise ValueError(
                f"has {int(high - low) + 1:,} possible values; above {VALUE_CODES} it needs margent.bins: "
                f"a count, a list of edges or a width{', or a period' if field.type in PERIODS_OF else ''}"
            )
        starts = tuple(value for value in range(int(low), int(high) + 1) if value not in apart)
        if not starts:
            raise ValueError("every value is a special code or missing token; make it a list of categories")
        return starts
    if isinstance(bins, EqualBins):
        return _equal(low, high, bins.count, whole)
    if isinstance(bins, EdgeBins):
        return _edges(field, bins, low, high)
    if isinstance(bins, WidthBins):
        return _wide(low, high, bins.width, whole)
    if isinstance(bins, CalendarBins):
        if bins.period not in PERIODS_OF.get(field.type, ()):
            known = ", ".join(f'"{period}"' for period in PERIODS_OF.get(field.type, ()))
            raise ValueError(
                f'"{bins.period}" does not cut a {field.type} field; '
                + (f"these do: {known}" if known else "give a count, a list of edges or a width")
            )
        inner = boundaries(bins.period, field.type, int(low), int(high), field.time_zone)
        if inner is None:
            raise CutError(f"makes more than {MAX_CODES:,} bins; use a longer period", MAX_CODES + 1)
        return (low, *inner)
    assert isinstance(bins, QuantileBins)
    raise ValueError("quantile bins are bought during a run; there are none yet")


def _equal(low: Position, high: Position, count: int, whole: bool) -> tuple[Position, ...]:
    if count > MAX_CODES:
        raise ValueError(f"at most {MAX_CODES:,} bins are possible")
    if whole:
        values = int(high - low) + 1
        if count > values:
            raise ValueError(f"cuts {values:,} possible values into {count:,} bins; use at most {values:,}")
        return tuple(int(low) + i * values // count for i in range(count))
    if low == high and count > 1:
        raise ValueError("minimum equals maximum, which leaves room for one bin")
    return _spaced(low, Fraction(high - low) / count, count)


def _edges(field: Field, bins: EdgeBins, low: Position, high: Position) -> tuple[Position, ...]:
    edges = [scalar_position(field.type, edge, field.time_zone) for edge in bins.edges]
    if len(edges) < 2:
        raise ValueError("a list of edges needs at least two: the minimum and the maximum")
    for place, (one, other) in enumerate(pairwise(edges)):
        if one >= other:
            raise ValueError(f"edges must grow, and edge {place + 2} is not above edge {place + 1}")
    if edges[0] != low or edges[-1] != high:
        raise ValueError("the first edge must equal constraints.minimum and the last constraints.maximum")
    return tuple(edges[:-1])


def _wide(low: Position, high: Position, width: Decimal, whole: bool) -> tuple[Position, ...]:
    step = Fraction(width)
    if step <= 0 or (whole and step.denominator != 1):
        raise ValueError("width must be a whole number above 0" if whole else "width must be above 0")
    count = max(1, -((low - high) // step))
    if count > MAX_CODES:
        raise ValueError(f"makes {count:,} bins; at most {MAX_CODES:,} are possible, use a larger width")
    if whole:
        return tuple(range(int(low), int(low) + count * int(step), int(step)))
    return _spaced(low, step, count)


def _spaced(low: Position, step: Fraction, count: int) -> tuple[Position, ...]:
    """low + i step for each i, over one denominator: one fraction is made for each, instead of three."""
    whole = low.denominator * step.denominator
    begin, more = low.numerator * step.denominator, step.numerator * low.denominator
    return tuple(Fraction(begin + i * more, whole) for i in range(count))


def decimals_of(field: Field, starts: Sequence[Position] = ()) -> int:
    """Decimals a number is written with: as declared, else enough for the texts and 100 values a bin.

    >>> from margent.schema.parts import Field
    >>> decimals_of(Field("x", "number", minimum=Decimal("0.25"), maximum=Decimal(9)), [0, 4])
    2
    """
    if field.decimals is not None:
        return field.decimals
    declared = [field.minimum, field.maximum, *(listed.value for listed in field.listed or ())]
    if isinstance(field.bins, EdgeBins):
        declared += field.bins.edges
    if isinstance(field.bins, WidthBins):
        declared.append(field.bins.width)
    declared += field.spikes
    numbers = [Decimal(value) for value in declared if isinstance(value, int | Decimal)]
    decimals = max((decimal_places(number) for number in numbers), default=0)
    largest = max((abs(Fraction(number)) for number in numbers), default=Fraction(0))
    # Equal bins and bins of a width have the same one all along, but for the last.
    told_apart = starts[:2] if isinstance(field.bins, EqualBins | WidthBins) else starts
    widths = [other - one for one, other in pairwise(told_apart)]
    if len(starts) and field.maximum is not None:
        widths.append(scalar_position("number", field.maximum, None) - starts[-1])
    narrowest = Fraction(min(widths, default=0))
    while narrowest and narrowest * 10**decimals < 100 and decimals < FLOAT_DIGITS:
        decimals += 1
    while decimals and largest * 10**decimals > 10**FLOAT_DIGITS:
        decimals -= 1
    return decimals


def decimal_places(number: Decimal) -> int:
    """Digits after the point of a finite decimal without trailing zeros.

    >>> decimal_places(Decimal("44.89046025")), decimal_places(Decimal(100))
    (8, 0)
    """
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def bin_of(cuts: Cuts, position: Position) -> int:
    """The bin a position falls into; outside [minimum, maximum] it is clipped to the nearest.

    >>> from margent.schema.parts import Field
    >>> ten = cut(Field("age", "integer", minimum=0, maximum=10, bins=EqualBins(4)))
    >>> [bin_of(ten, age) for age in (-5, 0, 2, 10, 99)]
    [0, 0, 1, 3, 3]
    """
    return max(0, bisect_right(cuts.starts, position) - 1)
