"""A typed container's declared column types against the schema: what could never be read.

Only types are looked at, which the container declares; never values, null counts or dictionaries.
"""

from __future__ import annotations

from typing import Any

from margent.errors import Fault
from margent.schema.fields import Schema
from margent.schema.parts import Field


def container_faults(schema: Schema, arrow_schema: Any) -> list[Fault]:
    """Columns to be read whose declared type can never hold a value of their field.

    Columns that the container lacks or has twice are none of its business: the header is checked beside it.

    Privacy: none: declared types only.

    >>> import pyarrow as pa
    >>> from margent.schema.fields import Integer
    >>> nested = pa.schema([("tags", pa.list_(pa.int64()))])
    >>> [str(fault)[:53] for fault in container_faults(Schema([Integer("tags", 0, 5)], unit="row"), nested)]
    ['tags: the column holds nested values (list<item: int6']
    """
    kinds = dict(zip(arrow_schema.names, arrow_schema.types, strict=True))
    wanted = set(schema.columns_read)
    faults = []
    for field in schema.fields:
        if field.name in wanted and field.name in kinds and (message := _misfit(field, kinds[field.name])):
            faults.append(Fault(field.name, message))
    return faults


def stored_type(kind: Any) -> Any:
    """The type of the values themselves, below extension types, dictionaries and run-end encoding.

    >>> import pyarrow as pa
    >>> stored_type(pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    """
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return stored_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return stored_type(kind.value_type)
    return kind


def _misfit(field: Field, declared: Any) -> str | None:
    import pyarrow as pa

    kind = stored_type(declared)
    if pa.types.is_nested(kind):
        return (
            f"the column holds nested values ({declared}), which have no code: flatten it, or set "
            'margent.role to "drop"'
        )
    if pa.types.is_interval(kind) or (pa.types.is_duration(kind) and field.type != "integer"):
        return (
            f"the column holds {kind}: only an integer field reads a duration, as a whole number of its unit; "
            'declare one, convert the column to a number, or set margent.role to "drop"'
        )
    clock, day = pa.types.is_time(kind), pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if (clock or day) and not _readable(field, clock=clock):
        return f"the column holds {kind} and the field is a {field.type}: no cell could be read; change one of the two"
    if pa.types.is_timestamp(kind) and kind.tz is not None and field.type in ("date", "datetime", "year", "yearmonth"):
        zoned = field.type == "datetime" and field.time_zone not in (None, "naive")
        if not zoned:
            return (
                f"the column holds instants ({kind}) and the field is a {field.type} without a zone: declare "
                'a datetime with margent.timeZone "UTC" or an IANA name'
            )
    return None


def _readable(field: Field, *, clock: bool) -> bool:
    """Whether a field can be read from clock times, or else from days and timestamps; text fields can from both."""
    if field.type == "string":
        return True
    return field.type == "time" if clock else field.type in ("date", "datetime", "year", "yearmonth")
