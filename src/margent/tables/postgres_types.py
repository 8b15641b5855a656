"""PostgreSQL's types: what a column declares, and how it is read so that no cell fails or is bent on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from margent.errors import UsageError
from margent.tables.address import quoted
from margent.tables.database import Column

if TYPE_CHECKING:
    import pyarrow as pa

_AS_THEY_ARE = ("bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bytea", "time")
_DAYS = ("date", "timestamp", "timestamptz")
_FIRST, _LAST = "0001-01-01", "9999-12-31"
_MOST_DIGITS = 38
_TYPE, _MODIFIER = b"POSTGRESQL:type", b"POSTGRESQL:typmod"


def postgres_column(field: pa.Field, *, nullable: bool) -> Column:
    """A column as its result's description has it: its declared type in Arrow's words, and the SQL that reads it.

    Numbers with decimals come as the server's own text of them, digit for digit; so do all types that Arrow has no
    like of (enums, uuid, json, addresses, bits). Days beyond the calendar (infinity) come as its first and last one,
    which are out of any bounds as they were: as such they would leave the driver as other days. Arrays, records and
    intervals keep their type, by which the header's check refuses them.

    Privacy: none: declarations only.
    Raises: UsageError where the driver does not tell the type.

    >>> import pyarrow as pa
    >>> told = {"POSTGRESQL:type": "numeric", "POSTGRESQL:typmod": "589830"}
    >>> made = postgres_column(pa.field("pay", pa.string(), metadata=told), nullable=False)
    >>> made.sql, made.declared
    ('CAST("pay" AS pg_catalog.text)', Decimal128Type(decimal128(9, 2)))
    """
    import pyarrow as pa

    told = field.metadata or {}
    if _TYPE not in told:
        raise UsageError(
            "postgresql: addresses need the package adbc-driver-postgresql in version 1.13 or later, which tells the "
            "types of columns: pip install --upgrade 'margent[postgres]'"
        )
    kind = told[_TYPE].decode("ascii", "replace")
    name, text = quoted(field.name), f"CAST({quoted(field.name)} AS pg_catalog.text)"
    if kind in _AS_THEY_ARE or pa.types.is_nested(field.type) or pa.types.is_interval(field.type):
        return Column(field.name, name, field.type, nullable)
    if kind in _DAYS:
        first, last = (f"CAST('{day}' AS pg_catalog.{kind})" for day in (_FIRST, _LAST))
        within = f"CASE WHEN {name} < {first} THEN {first} WHEN {name} > {last} THEN {last} ELSE {name} END"
        return Column(field.name, within, field.type, nullable)
    if kind == "numeric":
        return Column(field.name, text, _decimal(told.get(_MODIFIER, b"-1")), nullable)
    if kind == "money":
        plain = f"CAST(CAST({name} AS pg_catalog.numeric) AS pg_catalog.text)"
        return Column(field.name, plain, pa.string(), nullable)
    return Column(field.name, text, pa.int64() if kind == "oid" else pa.string(), nullable)


def _decimal(modifier: bytes) -> pa.DataType:
    """numeric(p, s) as a decimal; one that declares no digits, or more than Arrow has, as a float."""
    import pyarrow as pa

    packed = int(modifier) - 4
    digits, scale = packed >> 16, packed & 0x7FF
    fits = packed >= 0 and 1 <= digits <= _MOST_DIGITS and scale <= digits
    return pa.decimal128(digits, scale) if fits else pa.float64()
