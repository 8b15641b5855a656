"""A synthetic table as a DataFrame of Spark: one block a task, drawn where it is needed and never in one place.

A block is a function of model, rows, seed and its number alone, so a task that is tried again draws the same records,
and the DataFrame holds the same rows as the release's own table, whoever computes it and however often.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from margent.errors import UsageError
from margent.methods import synthesizer_named
from margent.progress import silent
from margent.release.measurements import measurement_files, read_measurements
from margent.release.synthetic import SyntheticTable
from margent.schema.codec import Codec
from margent.schema.stored import stored_schema, stored_table
from margent.settings import configured
from margent.synthesizers.blocks import DrawnRecords
from margent.tables.spark_session import is_spark_session, require_workers

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.release.release import Release

_SIGNED = {"uint8": "int16", "uint16": "int32", "uint32": "int64"}


class Drawing(NamedTuple):
    """What a task needs to draw blocks: the measurements' files and public options. Privacy: none: all released."""

    files: tuple[tuple[str, bytes], ...]
    synthesizer: str
    settings: tuple[tuple[str, str], ...]
    rows: int
    seed: int


def spark_frame(release: Release, session: Any = None) -> Any:
    """The rows of ``release.table`` as a DataFrame whose partition i is block i; nothing is drawn until it is computed.

    Columns are of a written file's types, or Spark's nearest: unsigned integers a size up, times of day as text.

    Privacy: none: post-processing.
    Raises: UsageError without a session, TableError where workers lack margent.
    """
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

    session = SparkSession.getActiveSession() if session is None else session
    if not is_spark_session(session):
        raise UsageError("there is no Spark session: pass the one that is to draw the table, to_spark(spark)")
    codec = Codec(release.transcript.schema)
    typed = stored_schema(codec, release.declared, release.rows)
    columns = [(field, spark_type(field.type, own.type)) for field, own in zip(typed, codec.arrow_schema, strict=True)]
    target = pa.schema([pa.field(field.name, kind, field.nullable) for field, kind in columns])
    kinds = from_arrow_schema(target, prefer_timestamp_ntz=True)
    if release.where:
        # Records under conditions are held here; they are few.
        return session.createDataFrame(stored_table(release.table, target), kinds)
    require_workers(session)
    files = tuple(sorted(measurement_files(release.transcript).items()))
    settings = tuple(sorted(release.settings.items()))
    drawing = Drawing(files, release.synthesizer, settings, release.rows, release.seed)
    count = release.records.blocks.count
    return session.range(0, count, 1, count).mapInArrow(partial(drawn_blocks, drawing, target), kinds)


def drawn_blocks(drawing: Drawing, target: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: numbers of blocks in, their rows out.

    Privacy: none: post-processing.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from stored_table(_table(drawing).block(number), target).to_batches()


@lru_cache(maxsize=1)
def _table(drawing: Drawing) -> SyntheticTable:
    """The table whose blocks are drawn; a worker builds the model once."""
    with tempfile.TemporaryDirectory(prefix="margent-") as name:
        for path, content in drawing.files:
            (Path(name) / path).write_bytes(content)
        transcript = read_measurements(Path(name))
    model = configured(synthesizer_named(drawing.synthesizer), dict(drawing.settings)).build(transcript, silent)
    return SyntheticTable(transcript, DrawnRecords(model, drawing.rows, drawing.seed), drawing.seed, pairs=False)


def spark_type(kind: Any, own: Any) -> Any:
    """The Arrow type nearest to a written column's that Spark has; the schema's ``own`` where it has none that wide.

    >>> import pyarrow as pa
    >>> kinds = pa.uint8(), pa.dictionary(pa.int8(), pa.string()), pa.timestamp("ns", "UTC")
    >>> [str(spark_type(kind, kind)) for kind in kinds]
    ['int16', 'string', 'timestamp[us, tz=UTC]']
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type, own)
    if pa.types.is_large_string(kind) or pa.types.is_time(kind) or kind == pa.string_view():
        return pa.string()
    if str(kind) in _SIGNED:
        return pa.type_for_alias(_SIGNED[str(kind)])
    if pa.types.is_uint64(kind):
        return pa.decimal128(20, 0)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else own
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return pa.duration("us") if pa.types.is_duration(kind) else kind
