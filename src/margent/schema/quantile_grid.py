"""The public grid on which quantiles are bought: which edges a field's bins may have, before any row is read.

A cell of the grid holds at least one value that can be written, so bins made of whole cells always do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count

from margent.schema.bins import cut, decimals_of, drawable
from margent.schema.differences import difference_field
from margent.schema.labels import position_text
from margent.schema.layout import own_positions, spike_positions
from margent.schema.parts import EdgeBins, EqualBins, Field, MissingToken, QuantileBins, Scalar
from margent.schema.positions import Position, plain_decimal, scalar_position
from margent.schema.zones import DAY

_CLOCK = (1, 2, 5, 10, 15, 30)
_SECONDS = (*_CLOCK, *(60 * step for step in _CLOCK), *(3600 * step for step in (1, 2, 3, 6, 12)))


def gridded(field: Field, tokens: Sequence[MissingToken]) -> Field:
    """The field with the cells of its grid for bins: at most ``grid`` of one round width, the last one wider.

    Widths are 1, 2 or 5 times a power of ten; of datetimes and times, round numbers of seconds, minutes, hours or
    days. Neighboring cells without a value of their own (special codes and missing tokens aside) are one. A number's
    decimals are settled here, so that they do not depend on the bins that are bought.

    Of a date relative to another, the grid is the difference's.

    Privacy: none: a function of the schema.
    Raises: ValueError saying what is wrong with the bounds.

    >>> from margent.schema.fields import Integer
    >>> gridded(Integer("age", 0, 110, bins={"quantiles": 4, "grid": 25}), ()).bins.edges[:4]
    (0, 5, 10, 15)
    """
    if field.relative_to is not None:
        return replace(field, bins=gridded(difference_field(field), ()).bins)
    bins = field.bins
    assert isinstance(bins, QuantileBins)
    low, high = (scalar_position(field.type, bound, field.time_zone) for bound in (field.minimum, field.maximum))  # type: ignore[arg-type]
    if low == high:
        one = replace(field, bins=EqualBins(1))
        cut(one, _apart(field, tokens))
        return one
    step = _step(field, low, high, bins.grid)
    starts = [low + i * step for i in range(int((high - low) // step) + 1)]
    if starts[-1] == high:
        starts.pop()
    if high - starts[-1] < step and len(starts) > 1 and field.type == "number":
        starts.pop()  # the last cell is the wider one
    if field.type == "number" and field.decimals is None:
        declared = replace(field, bins=_edges(field, starts, high))
        field = replace(field, decimals=decimals_of(declared, starts))
    drawn = replace(field, bins=_edges(field, starts, high))
    if field.decode == "integer" and field.type == "number":
        drawn = replace(drawn, decimals=0)
    starts = _drawable_starts(drawn, starts, _apart(field, tokens))
    made = replace(field, bins=_edges(field, starts, high))
    cut(made, _apart(field, tokens))
    return made


def with_bins(grid: Field, first_cells: Sequence[int]) -> Field:
    """The field whose bins begin at these cells of its grid, the first of them at cell 0.

    Privacy: none: post-processing.
    """
    if not isinstance(grid.bins, EdgeBins):
        return grid
    edges = grid.bins.edges
    return replace(grid, bins=EdgeBins((*(edges[cell] for cell in first_cells), edges[-1])))


def cells_of(grid: Field) -> int:
    """Number of cells of a grid.

    Privacy: none: a function of the schema.
    """
    return len(grid.bins.edges) - 1 if isinstance(grid.bins, EdgeBins) else 1


def _apart(field: Field, tokens: Sequence[MissingToken]) -> list[Position]:
    texts = [special.text for special in field.special] + [token.text for token in tokens if field.nullable]
    return [*own_positions(field, texts).values(), *spike_positions(field)]


def _edges(field: Field, starts: Sequence[Position], high: Position) -> EdgeBins:
    return EdgeBins(tuple(_scalar(field, position) for position in (*starts, high)))


def _scalar(field: Field, position: Position) -> Scalar:
    if field.type == "number":
        return plain_decimal(Fraction(position))
    return int(position) if field.type in ("integer", "year") else position_text(field, position)


def _step(field: Field, low: Position, high: Position, most: int) -> Position:
    """The least round width of which at most ``most`` fit between the bounds."""
    for step in _widths(field, Fraction(high - low)):
        if Fraction(high - low) / step <= most:
            return step
    raise AssertionError


def _widths(field: Field, span: Fraction) -> Iterator[Position]:
    if field.type in ("datetime", "time"):
        yield from _SECONDS
        yield from (DAY * step * 10**power for power in count() for step in (1, 2, 5))
    if field.type != "number":
        yield from (step * 10**power for power in count() for step in (1, 2, 5))
    power = -field.decimals if field.decimals is not None else -15
    while field.decimals is None and Fraction(10) ** (power + 8) < span:
        power += 1  # finer ones cannot be the answer: a grid has at most a million cells
    yield from (step * Fraction(10) ** p for p in count(power) for step in (1, 2, 5))


def _drawable_starts(field: Field, starts: Sequence[Position], apart: Sequence[Position]) -> list[Position]:
    """The starts without those before which, or after which, no value could be written."""
    counts = drawable(field, starts, apart)
    left, kept, held = sum(counts), [starts[0]], counts[0]
    left -= counts[0]
    for start, values in zip(starts[1:], counts[1:], strict=True):
        if held > 0 and left > 0:
            kept.append(start)
            held = values
        else:
            held += values
        left -= values
    return kept
