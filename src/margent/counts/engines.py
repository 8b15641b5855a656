"""Who counts a table's rows: this process, batch by batch, or the tasks of the Spark session that holds the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from margent.counts.capacity import table_people
from margent.counts.source import Batches, CountSource, PersonSource, StreamedCounts, TextSource
from margent.counts.texts import CountedTexts
from margent.schema.codec import Codec
from margent.schema.fields import PersonUnit, Schema
from margent.schema.settled import open_columns
from margent.tables.spark import SparkRows

if TYPE_CHECKING:
    from margent.counts.spark import LooksOfSpark


class PersonRows(Batches, PersonSource, Protocol):
    """At most k rows of each person, the same in every pass, and how many persons have how many."""


def counts_of(rows: Batches, schema: Schema, kept_cells: int = 0) -> CountSource:
    """Exact counts of rows under a schema whose codes are fixed; tables of so many cells together are kept for later.

    In Spark codes are kept instead: a table that is asked for again is counted again, from them.

    Privacy: exact counts; see `margent.counts.source.CountSource`.
    """
    if in_spark(rows):
        from margent.counts.spark import SparkCounts

        return SparkCounts(rows, schema)
    return StreamedCounts(rows, Codec(schema), kept_cells=kept_cells)


def texts_of(rows: Batches, schema: Schema) -> TextSource:
    """Exact counts of the texts of the columns whose values are asked for.

    Privacy: exact and private.
    """
    own: Mapping[str, Sequence[str]] = {
        field.name: [token.text for token in schema.missing_of(field)] for field in open_columns(schema)
    }
    if in_spark(rows):
        from margent.counts.spark_texts import SparkTexts

        return SparkTexts(rows, own)
    return CountedTexts(rows, own)


def kept_rows(source: Batches, schema: Schema, expect_people: int | None, folder: Path | None) -> PersonRows | None:
    """At most k rows of each person, or None where the unit is a row.

    Privacy: private rows; which are kept is settled in the first look, after the charge.
    Raises: TableError where no temporary file can be made in ``folder``.
    """
    if not isinstance(schema.unit, PersonUnit):
        return None
    from margent.counts.identity import Identity

    identity = Identity.of(schema, schema.unit)
    if in_spark(source):
        from margent.counts.spark_people import KeptSparkRows

        return KeptSparkRows(source, identity, schema.unit.max_rows)
    from margent.counts.contribution import KeptRows
    from margent.tables.scratch import require_scratch

    require_scratch(folder)
    return KeptRows(source, identity, schema.unit.max_rows, table_people(expect_people), folder)


def in_spark(rows: Any) -> TypeGuard[LooksOfSpark]:
    """Whether rows are a table of Spark, or those kept of one."""
    return isinstance(getattr(rows, "source", rows), SparkRows)
