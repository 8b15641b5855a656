"""The column types that a typed container declares, kept in what is written where they hold every value.

A Parquet file's column types are part of its header, like names. What libraries take from rows when they choose
them is not kept: whether a column of whole numbers is one of floats (because a cell is missing), which values a
dictionary lists and how wide its indices therefore are. Family, order and missing cells are the schema's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from margent.schema.bins import decimals_of
from margent.schema.codec import Codec
from margent.schema.layout import Layout
from margent.schema.positions import cell_position, scalar_position

_MOST_DIGITS = {pa.float16(): 3, pa.float32(): 6, pa.float64(): 15}
"""Decimal digits that come back unchanged from a float of each width."""

_NANOSECOND_YEARS = (1678, 2261)
_FEW = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_LAST_ID = 2**31 - 1


def stored_schema(codec: Codec, declared: Any, rows: int = 0) -> Any:
    """Names, types and nullability of the columns to write, after those of the container that was read.

    A declared type is kept where it is of the family of the field's own type and holds every value that the field
    can have: other widths and signs of integers, floats with enough digits, decimals, units of time, plain or
    dictionary text, whole units of a duration. Otherwise the schema's own type is written. A column is nullable where
    the schema or the container says so. ``rows`` is how many are written: ids go up to it.

    Privacy: none: schema and declared types only; every dictionary lists what the schema lists.

    >>> from margent.schema.fields import Integer, Schema
    >>> codec = Codec(Schema([Integer("age", 0, 110), Integer("size", 0, 300, bins=3)], unit="row"))
    >>> stored_schema(codec, pa.schema([("age", pa.uint8()), ("size", pa.uint8())])).types
    [DataType(uint8), DataType(int64)]
    """
    if declared is None:
        return codec.arrow_schema
    layouts = {layout.field.name: layout for layout in codec.layouts}
    found = {item.name: item for item in declared}
    return pa.schema(
        [
            _kept(own, found[own.name], layouts.get(own.name), rows) if own.name in found else own
            for own in codec.arrow_schema
        ]
    )


def stored_table(table: Any, target: Any) -> Any:
    """The same cells in the types of ``target``, which `stored_schema` has found to hold them, or Spark's nearest.

    Shapes: n rows -> n rows, the same columns.
    Privacy: none: synthetic tables only come here.
    """
    if table.schema.equals(target):
        return table
    columns = [_stored(column, field.type) for column, field in zip(table.columns, target, strict=True)]
    return pa.Table.from_arrays(columns, schema=target)


def type_texts(schema: Any) -> dict[str, str]:
    """What the columns of a written table are, as text that `schema_of_texts` reads back.

    >>> type_texts(pa.schema([pa.field("a", pa.uint8(), nullable=False), pa.field("b", pa.date32())]))
    {'a': 'uint8 not null', 'b': 'date32[day]'}
    """
    return {field.name: f"{field.type}{'' if field.nullable else ' not null'}" for field in schema}


def schema_of_texts(texts: dict[str, str]) -> Any:
    """Columns from their texts; a type that is not known here is left out, so that the schema's own is written.

    Raises: ValueError for a decimal of more digits than its type has, or of more after the point than in all.

    >>> schema_of_texts({"a": "uint8 not null", "b": "decimal128(9, 2)", "c": "int"})
    a: uint8 not null
    b: decimal128(9, 2)
    """
    fields = []
    for name, text in texts.items():
        plain = text.removesuffix(" not null")
        kind = _type_named(plain)
        if kind is not None:
            fields.append(pa.field(name, kind, nullable=plain == text))
    return pa.schema(fields)


def _type_named(text: str) -> Any:
    for kind in _NAMED:
        if str(kind) == text:
            return kind
    family, _, rest = text.partition("(")
    if family in _DECIMALS and rest.endswith(")"):
        digits, _, scale = rest[:-1].partition(", ")
        if digits.isdecimal() and scale.removeprefix("-").isdecimal():
            return _decimal(family, int(digits), int(scale))
    if text.startswith("timestamp["):
        unit, _, zone = text.removeprefix("timestamp[").removesuffix("]").partition(", tz=")
        return pa.timestamp(unit, tz=zone or None) if unit in _UNITS else None
    return None


def _decimal(family: str, digits: int, scale: int) -> Any:
    # A type takes any scale of 32 bits, and those of a release may be anybody's.
    if digits > _MOST_DECIMAL_DIGITS or not -_MOST_DECIMAL_DIGITS <= scale <= digits:
        raise ValueError
    return _DECIMALS[family](digits, scale)


_UNITS = ("s", "ms", "us", "ns")
_MOST_DECIMAL_DIGITS = 76
"""Of the widest decimal there is."""
_DECIMALS: dict[str, Callable[[int, int], Any]] = {
    "decimal32": pa.decimal32,
    "decimal64": pa.decimal64,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}
_INTEGERS = (*_FEW, pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_NAMED = (
    *_INTEGERS,
    *_MOST_DIGITS,
    *_TEXTS,
    pa.bool_(),
    pa.date32(),
    pa.date64(),
    *(pa.time32(unit) for unit in ("s", "ms")),
    *(pa.time64(unit) for unit in ("us", "ns")),
    *(pa.duration(unit) for unit in _UNITS),
    *(
        pa.dictionary(index, text, ordered=ordered)
        for index in _INTEGERS
        for text in _TEXTS[:2]
        for ordered in (False, True)
    ),
)


def _kept(own: Any, declared: Any, layout: Layout | None, rows: int) -> Any:
    kind = _kept_type(own.type, declared.type, layout, rows)
    return pa.field(own.name, kind, nullable=own.nullable or declared.nullable)


def _kept_type(own: Any, declared: Any, layout: Layout | None, rows: int) -> Any:
    if layout is None and pa.types.is_string(own) and pa.types.is_floating(declared):
        # Ids are whole numbers; that the table's are floats may come from a single missing one.
        return pa.int64()
    if layout is None and pa.types.is_string(own) and pa.types.is_integer(declared):
        return declared if _holds_integers(declared, None, rows) else pa.int64()
    if pa.types.is_dictionary(own) or pa.types.is_string(own):
        return _kept_text(own, declared, 0 if layout is None else layout.values)
    if pa.types.is_integer(own):
        return declared if _holds_integers(declared, layout, rows) else own
    if pa.types.is_floating(own) and layout is not None:
        return declared if _holds_decimals(declared, layout) else own
    if pa.types.is_timestamp(own) and layout is not None:
        fits = pa.types.is_timestamp(declared) and _holds_years(declared, layout)
        return pa.timestamp(declared.unit, tz=own.tz) if fits else own
    if pa.types.is_date(own) and layout is not None:
        instants = pa.types.is_timestamp(declared) and declared.tz is None and _holds_years(declared, layout)
        return declared if pa.types.is_date(declared) or instants else own
    if pa.types.is_time(own):
        return declared if pa.types.is_time(declared) else own
    return own


def _kept_text(own: Any, declared: Any, values: int) -> Any:
    """Text: plain where the container's is plain, a dictionary of the schema's list where it has one."""
    if declared in _TEXTS:
        return declared
    lists = pa.types.is_dictionary(own) and pa.types.is_dictionary(declared)
    if not lists or declared.value_type not in _TEXTS[:2]:
        return own
    index = declared.index_type
    if index in _FEW[:2] or index == pa.uint8() or index == pa.uint16():
        # Libraries that choose narrow indices choose them by the number of values they saw; here it is the list's.
        index = next(kind for kind in _FEW if values < 2 ** (kind.bit_width - 1))
    return pa.dictionary(index, declared.value_type, ordered=own.ordered)


def _holds_integers(declared: Any, layout: Layout | None, rows: int) -> bool:
    reach = (1, max(rows, _LAST_ID)) if layout is None else _reach(layout)
    if reach is None:
        return False
    low, high = reach
    if pa.types.is_integer(declared):
        signed = pa.types.is_signed_integer(declared)
        half = 2 ** (declared.bit_width - 1)
        return (-half <= low and high < half) if signed else (low >= 0 and high < 2 * half)
    if _is_plain_decimal(declared):
        return bool(max(-low, high) < 10 ** (declared.precision - declared.scale))
    return layout is not None and bool(pa.types.is_duration(declared))


def _holds_decimals(declared: Any, layout: Layout) -> bool:
    """Whether all values come back digit for digit."""
    cuts = layout.cuts
    decimals = decimals_of(layout.field) if cuts is None else len(str(int(1 / cuts.grid.unit))) - 1
    reach = _reach(layout, 10**decimals)
    if reach is None:
        return False
    most = max(-reach[0], reach[1])
    if pa.types.is_floating(declared):
        return bool(most < 10 ** _MOST_DIGITS[declared])
    if _is_plain_decimal(declared) and declared.scale >= decimals:
        return bool(most * 10 ** (declared.scale - decimals) < 10**declared.precision)
    return False


def _is_plain_decimal(declared: Any) -> bool:
    """Whether it is a decimal with no more digits after the point than in all: Parquet has no others, SQL neither."""
    return bool(pa.types.is_decimal(declared)) and 0 <= declared.scale <= declared.precision


def _holds_years(declared: Any, layout: Layout) -> bool:
    """Whether the unit reaches from the first year to the last; only nanoseconds do not always."""
    field = layout.field
    if declared.unit != "ns":
        return True
    if field.relative_to is not None:
        return False
    if field.minimum is None or field.maximum is None:
        ends = [str(item.value) for item in field.listed or ()]
    else:
        ends = [str(field.minimum), str(field.maximum)]
    years = [int(end[:4]) for end in ends]
    return bool(years) and _NANOSECOND_YEARS[0] <= min(years) <= max(years) <= _NANOSECOND_YEARS[1]


def _reach(layout: Layout, scale: int = 1) -> tuple[int, int] | None:
    """The least and greatest value of a numeric field, its special codes included, in units of 1 / scale.

    None where a special code is no whole number of these units.
    """
    field = layout.field
    ends = [bound for bound in (field.minimum, field.maximum) if bound is not None]
    ends += [item.value for item in field.listed or ()]
    positions = [scalar_position(field.type, end, field.time_zone) for end in ends]
    for special in field.special:
        position = cell_position(field.type, special.text, field.spelling, None)
        if position is None or (position * scale) % 1 != 0:
            return None
        positions.append(position)
    scaled = [position * scale for position in positions] or [0]
    return math.floor(min(scaled)), math.ceil(max(scaled))


def _stored(column: Any, kind: Any) -> Any:
    if column.type.equals(kind):
        return column
    if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
        # Arrow wants room for any 64-bit number first, and with all digits of the scale none may be left for that.
        return column.cast(pa.decimal256(19, 0)).cast(kind)
    if kind == pa.string_view():
        return column.cast(pa.string()).cast(kind)
    return column.cast(kind)
