"""What metrics look at: tables of codes, and the public facts of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margent.schema.codec import Codec
from margent.schema.labels import has_bin_labels
from margent.schema.layout import Layout, listed_values
from margent.schema.positions import scalar_position

Codes = NDArray[np.unsignedinteger[Any]]
Kind = Literal["resample", "independent", "synthetic"]


@dataclass(frozen=True)
class Column:
    """One column as metrics see it: codes 0 .. size - 1, of which the first ``inner`` are its own values or bins.

    ``ordinal`` says that the inner codes are in a meaningful order; ``missing`` lists the codes of missing cells
    (unreadable cells among them); ``values`` gives each inner code of a numeric column its number (a bin: its
    middle) and is empty for other columns. ``binned`` says that labels of inner codes are those of bins on an axis.

    Privacy: none: a function of the schema.
    """

    name: str
    size: int
    inner: int
    ordinal: bool
    labels: tuple[str, ...]
    missing: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    binned: bool = False


def columns_of(codec: Codec) -> tuple[Column, ...]:
    """The columns of a codec's domain, in its order.

    Privacy: none: a function of the schema.

    >>> from margent.schema.fields import Category, Integer, Schema
    >>> sex, age = columns_of(Codec(Schema([Category("sex", ["F", "M"]), Integer("age", 0, 9, bins=2)], unit="row")))
    >>> sex.ordinal, sex.labels, age.ordinal, age.values, age.missing
    (False, ('F', 'M', '(missing)'), True, (2.0, 7.0), (2,))
    """
    return tuple(_column(layout, codec.labels[layout.field.name]) for layout in codec.layouts)


def _column(layout: Layout, labels: tuple[str, ...]) -> Column:
    one = layout.field
    ordinal = layout.cuts is not None or (one.listed is not None and one.ordered)
    first = layout.values + len(layout.special)
    return Column(
        one.name,
        layout.size,
        layout.values,
        ordinal and layout.values > 1,
        labels,
        tuple(range(first, layout.size)),
        _numbers(layout),
        has_bin_labels(layout),
    )


def _numbers(layout: Layout) -> tuple[float, ...]:
    """The number that each code of a numeric column stands for; a bin of whole numbers has its last one inside."""
    one = layout.field
    if one.type not in ("integer", "number"):
        return ()
    if layout.cuts is None:
        listed = listed_values(one) or ()
        return tuple(float(scalar_position(one.type, item.value, one.time_zone)) for item in listed)
    ends = [*layout.cuts.starts[1:], layout.cuts.maximum]
    inside = 1 if one.type == "integer" else 0
    last = len(ends) - 1
    return tuple(
        float(start + (end if place == last else end - inside)) / 2
        for place, (start, end) in enumerate(zip(layout.cuts.starts, ends, strict=True))
    )


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table as codes.

    Shapes: ``codes`` has one unsigned array of ``rows`` codes a column.
    Privacy: private where it was read from the real table; its text shows its name and kind only.
    """

    name: str
    kind: Literal["real"] | Kind
    codes: Sequence[Codes] = field(repr=False)
    rows: int = field(repr=False)


def resampled(table: CodedTable, rng: np.random.Generator) -> CodedTable:
    """As many rows as ``table`` has, drawn from it with replacement: what another sample would look like.

    Privacy: private: copies of real rows; never written anywhere.
    """
    drawn = rng.integers(0, table.rows, table.rows) if table.rows else np.zeros(0, dtype=np.int64)
    return CodedTable("real rows resampled", "resample", [column[drawn] for column in table.codes], table.rows)


def shuffled(table: CodedTable, rng: np.random.Generator) -> CodedTable:
    """Every column of ``table`` in an order of its own: exact one-way tables and nothing beyond.

    Privacy: private: real one-way tables without noise; never written anywhere.
    """
    codes = [column[rng.permutation(table.rows)] for column in table.codes]
    return CodedTable("exact columns, independent", "independent", codes, table.rows)
