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

    >>> import pyarrow as pa
    >>> from margent.schema.fields import Integer
    >>> nested = pa.schema([("tags", pa.list_(pa.int64()))])
    >>> [str(fault) for fault in container_faults(Schema([Integer("tags", 0, 5)], unit="row"), nested)]
    ['tags: the column holds nested values (list<item: int64>), which have no code; set margent.role "drop"']
    """
    kinds = dict(zip(arrow_schema.names, arrow_schema.types, strict=True))
    faults = []
    for field in schema.modelled:
        if field.name in kinds and (message := _misfit(field, kinds[field.name])):
            faults.append(Fault(field.name, message))
    return faults


def _misfit(field: Field, kind: Any) -> str | None:
    import pyarrow as pa

    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if pa.types.is_nested(kind):
        return f'the column holds nested values ({kind}), which have no code; set margent.role "drop"'
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return (
            f"the column holds {kind}, which no field type describes; convert it to a number of seconds "
            'or set margent.role to "drop"'
        )
    moments = field.type in ("date", "datetime", "time", "year", "yearmonth")
    if moments and pa.types.is_timestamp(kind) and kind.tz is not None:
        zoned = field.type == "datetime" and field.time_zone not in (None, "naive")
        if not zoned:
            return (
                f"the column holds instants ({kind}) and the field is a {field.type} without a zone; declare "
                'a datetime with margent.timeZone "UTC" or an IANA name'
            )
    return None
