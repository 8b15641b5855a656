"""Days and instants so old that Spark may count them in another calendar than the rest of the world.

Spark 2, Hive and others wrote days before 15 October 1582 in the Julian calendar, and instants before 1900 by the
clocks of that time; Spark moves them as it reads such files. No other reader does. So where values that old could make
a difference, files are left to Spark, whoever wrote them; where the schema's own values are all younger, every older
cell is below the lowest bin, or not listed, in either calendar.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema
    from margent.schema.parts import Field

_FIRST_DAY, _FIRST_INSTANT = "1583", "1901"
"""The first full years, with some days to spare, as texts: ISO 8601 sorts as time goes by."""


def same_in_both_calendars(schema: Schema, declared: pa.Schema) -> bool:
    """Whether no code depends on the calendar in which days before 1583, and instants before 1901, are counted.

    ``declared`` are the types of the columns that are read.

    Privacy: none: a function of the schema and the declared types.
    """
    import pyarrow as pa

    related = {field.name for field in schema.fields if field.relative_to is not None}
    related |= {field.relative_to.field for field in schema.fields if field.relative_to is not None}
    for field in schema.fields:
        if field.name not in declared.names:
            continue
        kind = declared.field(field.name).type
        if not pa.types.is_date(kind) and not pa.types.is_timestamp(kind):
            continue
        first = _FIRST_DAY if pa.types.is_date(kind) else _FIRST_INSTANT
        if field.name in related or not all(_is_younger(text, first) for text in _values(field, schema)):
            return False
    return True


def _values(field: Field, schema: Schema) -> list[object]:
    """What a column's cells are compared with: the list or the lowest bin's start, and cells that are told apart."""
    main = [field.minimum] if field.listed is None else [item.value for item in field.listed]
    apart = [*(code.text for code in field.special), *(token.text for token in schema.missing_of(field))]
    return [*main, *field.spikes, *apart]


def _is_younger(value: object, first: str) -> bool:
    if not isinstance(value, str):
        return False
    return re.search("[0-9]", value) is None or (re.match("[0-9]{4}-[0-9]{2}", value) is not None and value >= first)
