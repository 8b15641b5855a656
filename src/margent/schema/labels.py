"""What each code of a column is called in plans, pages and messages, from the schema alone."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise

from margent.schema.bins import Cuts, decimals_of
from margent.schema.layout import Layout, listed_values
from margent.schema.parts import Field
from margent.schema.positions import Position, offset_text
from margent.schema.zones import DAY, offset_at, zone_named

UNLISTED_LABEL = "(unlisted)"
MISSING_LABEL = "(missing)"


def code_labels(layout: Layout) -> tuple[str, ...]:
    """One label a code: listed labels or texts, bins as ranges, special codes, missing cells, unlisted.

    >>> from margent.schema.layout import layout_of
    >>> from margent.schema.parts import EqualBins, MissingToken, Spelling
    >>> age = Field("age", "integer", minimum=0, maximum=9, bins=EqualBins(2))
    >>> code_labels(layout_of(age, [MissingToken("")]))
    ('0 to 4', '5 to 9', '(missing)')
    >>> code_labels(layout_of(Field("icu", "boolean", spelling=Spelling(true_values=("Y",), false_values=("N",))), ()))
    ('N', 'Y', '(missing)')
    """
    field = layout.field
    listed = listed_values(field)
    if listed is not None:
        names = [str(item.label or _spelled(field, item.value)) for item in listed]
    else:
        assert layout.cuts is not None
        inner = layout.differences
        names = _bin_labels(field if inner is None else inner.field, layout.cuts)
    names += [special.label or special.text for special in layout.special]
    if field.relative_to is not None:
        names = [f"{name} {field.relative_to.unit}s from {field.relative_to.field}" for name in names]
    for cell in layout.missing:
        names.append(cell[0].label or (f"(missing: {cell[0].text})" if cell[0].alone else MISSING_LABEL))
    if layout.unlisted is not None:
        names.append(UNLISTED_LABEL)
    return tuple(names)


def has_bin_labels(layout: Layout) -> bool:
    """Whether the labels of a column's own codes are bins on its axis, such as "0 to 4"."""
    return layout.cuts is not None and layout.field.relative_to is None


def _spelled(field: Field, value: object) -> str:
    """A listed value as the table spells it: yes and no in the column's own words."""
    if field.type != "boolean":
        return scalar_text(value)
    return (field.spelling.true_values if value else field.spelling.false_values)[0]


def scalar_text(value: object) -> str:
    """A declared value as text: a listed one's name where it has no label.

    >>> scalar_text(True), scalar_text("a"), scalar_text(7)
    ('true', 'a', '7')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bin_labels(field: Field, cuts: Cuts) -> list[str]:
    ends = [*cuts.starts[1:], cuts.maximum]
    if field.type == "number":
        # Edges of equal-width bins may be endless decimals: two more digits tell them apart.
        digits = decimals_of(field, cuts.starts)
        texts = [_decimal(Fraction(edge), digits + 2) for edge in (*cuts.starts, cuts.maximum)]
        return [f"{one} to {other}" for one, other in pairwise(texts)]
    last = len(ends) - 1
    labels = []
    for place, (start, end) in enumerate(zip(cuts.starts, ends, strict=True)):
        final = end if place == last else end - 1
        one, other = position_text(field, start), position_text(field, final)
        labels.append(one if one == other or cuts.count[place] == 1 else f"{one} to {other}")
    return labels


def _decimal(value: Fraction, digits: int) -> str:
    scaled = round(value * 10**digits)
    whole, part = divmod(abs(scaled), 10**digits)
    text = f"{whole}.{part:0{digits}}".rstrip("0").rstrip(".") if digits else str(whole)
    return f"-{text}" if scaled < 0 else text


def position_text(field: Field, position: Position) -> str:
    """A whole-number position as ISO text of the field's type; a zoned datetime with its offset.

    >>> position_text(Field("when", "date"), 0), position_text(Field("at", "time"), 3661)
    ('1970-01-01', '01:01:01')
    """
    value = int(position)
    if field.type == "yearmonth":
        return f"{value // 12:04}-{value % 12 + 1:02}"
    if field.type == "date":
        return _day(value)
    if field.type not in ("datetime", "time"):
        return str(value)
    offset = None
    if field.type == "datetime" and field.time_zone not in (None, "naive"):
        offset = offset_at(zone_named(str(field.time_zone)), value)
    wall = value + (offset or 0)
    second = wall % DAY
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return clock if field.type == "time" else f"{_day(wall // DAY)}T{clock}{offset_text(offset)}"


def _day(day: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
    except OverflowError:
        return "0001-01-01" if day < 0 else "9999-12-31"
