"""Tables of Spark: a DataFrame, or a name like ``spark:parquet:/data/people``, read by Spark's own tasks.

What is counted is one snapshot of the table. Spark computes a DataFrame anew whenever it is asked, and a computation
may give other rows the second time (random numbers, files that changed, executors that failed halfway). So the rows
are looked at once, and what later looks need is kept on the executors' disks, cut off from how it was computed: where
a part of it is lost, the run ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from margent.errors import Fault, MargentError, SchemaError, TableError, UsageError
from margent.schema.check import unsettled
from margent.schema.fields import PersonUnit, Schema
from margent.tables.header import check_columns
from margent.tables.snapshot import CLOSED
from margent.tables.spark_forms import PACKED, Columns, Form, packed_rows
from margent.tables.spark_pieces import PIECES, ROWS, unpacked
from margent.tables.spark_plain import as_whole_files
from margent.tables.spark_session import (
    frame_named,
    parquet_place,
    quietly,
    require_workers,
    spark_name,
    streamed,
    well_batched,
)

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "spark"
SNAPSHOT_SETTING = "spark.margent.snapshot"
SNAPSHOTS = ("executors", "checkpoint")


@dataclass(eq=False)
class SparkRows:
    """The rows of a DataFrame whose columns agree with a schema; computed once.

    ``frame`` has the rows in the ``form`` that tasks find them in. ``several``: whether more than one thing will look
    at them, so that the rows themselves are kept; where there is one, only what it makes of them (their codes) is. They
    are kept as ``packed`` blocks, or as columns where Spark is to sort by them.

    Shapes: ``columns`` are the table's, in its order; rows have those of ``wanted``.
    Privacy: private rows, as blocks on the executors' disks until `close`; its own text shows names only.
    """

    columns: tuple[str, ...]
    wanted: tuple[str, ...]
    declared: pa.Schema | None = field(repr=False)
    frame: Any = field(repr=False)
    form: Form
    several: bool = False
    packed: bool = True
    started: Any = field(default=None, repr=False)
    kind: str = KIND
    from_query: bool = False
    filtered: bool = False
    closed: bool = field(default=False, init=False)
    _stored: Any = field(default=None, init=False, repr=False)
    _looked: bool = field(default=False, init=False, repr=False)
    _kept: list[Any] = field(default_factory=list, init=False, repr=False)

    @property
    def session(self) -> Any:
        """The session that the frame belongs to."""
        return self.frame.sparkSession

    def looked_at(self) -> tuple[Any, Form]:
        """The frame to look at, and how tasks find the rows in it; the first look at rows may happen here.

        Raises: TableError with fixed text where Spark fails.
        """
        if self.closed:
            raise TableError(CLOSED)
        if self._stored is None:
            if self._looked:
                raise MargentError("internal fault: the rows of a Spark table were to be looked at once")
            if not self.several:
                self._looked = True
                return self.frame, self.form
            with well_batched(self.session, self.form):
                self._stored = self.keep(self._in_pieces(self.frame) if self.packed else self.frame)
        return self._stored, PACKED if self.packed else self.form

    def keep(self, frame: Any) -> Any:
        """Compute a frame of pieces now, and keep it until `close`: later looks see the same, or fail.

        Raises: TableError with fixed text where Spark fails.
        """
        kept = quietly(partial(_snapshot, frame))
        self._kept.append(kept)
        return kept

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over all rows, on this machine.

        Raises: TableError with fixed text where Spark fails.
        """
        self.several = True
        stored, form = self.looked_at()
        parts = streamed(stored if form is PACKED else self._in_pieces(stored))
        yield from (unpacked(piece.data) for piece in parts if piece.kind == ROWS)

    def close(self) -> None:
        """Free what was kept, and stop the session if it was started for this table; a second call does nothing."""
        if self.closed:
            return
        self.closed, self._stored = True, None
        while self._kept:
            _free(self._kept.pop())
        if self.started is not None:
            with suppress(Exception):
                self.started.stop()

    def _in_pieces(self, frame: Any) -> Any:
        return frame.mapInArrow(partial(packed_rows, self.form), PIECES)

    def __enter__(self) -> SparkRows:
        """Return the table itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the table."""
        self.close()


def open_spark(table: Any, schema: Schema) -> SparkRows:
    """A DataFrame, or the table that a name means, whose columns agree with the schema.

    Privacy: none spent: columns and their declared types are looked at, and tasks without data are run.
    Raises: UsageError for streams, SchemaError when columns differ, TableError when the table or workers are not there.
    """
    rest = spark_name(table)
    frame, started = (table, None) if rest is None else frame_named(rest)
    try:
        return _opened(frame, schema, started, None if rest is None else parquet_place(rest))
    except BaseException:
        if started is not None:
            started.stop()
        raise


def declared_by_spark(table: Any) -> tuple[tuple[str, ...], pa.Schema]:
    """Column names and types of a DataFrame or of the table that a name means.

    Privacy: none spent: the declaration only.
    Raises: as `open_spark`.
    """
    rest = spark_name(table)
    frame, started = (table, None) if rest is None else frame_named(rest)
    try:
        declared = _declared(_checked_frame(frame), None)
        return tuple(declared.names), declared
    finally:
        if started is not None:
            started.stop()


def _opened(frame: Any, schema: Schema, started: Any, place: str | None) -> SparkRows:
    frame = _checked_frame(frame)
    names = tuple(frame.columns)
    wanted = tuple(schema.columns_read)
    check_columns(names, schema, declared=None)
    declared = _declared(frame, set(wanted))
    check_columns(names, schema, declared=declared)
    snapshot = _snapshot_kind(frame.sparkSession)
    if snapshot not in SNAPSHOTS:
        raise UsageError(f"{SNAPSHOT_SETTING} must be one of: {', '.join(SNAPSHOTS)}")
    require_workers(frame.sparkSession)
    # Of persons' rows those that are kept are kept once; all rows are looked at once, to find them.
    persons = isinstance(schema.unit, PersonUnit)
    several = bool(unsettled(schema)) and not persons
    if not persons and (files := as_whole_files(frame, schema, declared, place)) is not None:
        return SparkRows(names, wanted, declared, *files, several=several, started=started)
    # By place: Spark compares names without case, takes dots for members, and joins may leave a name twice.
    places = [f"c{names.index(name)}" for name in wanted]
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    picked = numbered.select(*places) if places else numbered.selectExpr("0 AS nothing")
    return SparkRows(
        names, wanted, declared, picked, Columns(wanted), several=several, packed=not persons, started=started
    )


def _checked_frame(frame: Any) -> Any:
    if type(frame).__module__.startswith("pyspark.pandas"):
        raise UsageError("a pandas-on-Spark frame is passed as frame.to_spark()")
    if frame.isStreaming:
        raise UsageError("a streaming DataFrame has no end: pass a table, or the DataFrame of one batch of it")
    return frame


def _declared(frame: Any, wanted: set[str] | None) -> pa.Schema:
    """The Arrow types that the wanted columns come in; of the others, null."""
    import pyarrow as pa

    fields, faults = [], []
    for column in frame.schema.fields:
        kind: Any = pa.null()
        if wanted is None or column.name in wanted:
            kind = _arrow_type(column.dataType)
        if kind is None:
            kind = pa.null()
            words = column.dataType.simpleString()
            faults.append(Fault(column.name, f"the column is of Spark's type {words}: convert it, or leave it out"))
        fields.append(pa.field(column.name, kind, nullable=column.nullable or kind == pa.null()))
    if faults and wanted is not None:
        raise SchemaError(faults, "the DataFrame")
    return pa.schema(fields)


def _arrow_type(kind: Any) -> Any:
    """The type in which values of a type of Spark's reach a task, or None where they are no single values."""
    import pyarrow as pa

    name = type(kind).__name__.removesuffix("Type")
    if name == "Decimal":
        return pa.decimal128(kind.precision, kind.scale)
    return {
        "Null": pa.null(),
        **dict.fromkeys(("String", "Char", "Varchar"), pa.string()),
        "Binary": pa.binary(),
        "Boolean": pa.bool_(),
        "Byte": pa.int8(),
        "Short": pa.int16(),
        "Integer": pa.int32(),
        "Long": pa.int64(),
        "Float": pa.float32(),
        "Double": pa.float64(),
        "Date": pa.date32(),
        "Time": pa.time64("ns"),
        "Timestamp": pa.timestamp("us", "UTC"),
        "TimestampNTZ": pa.timestamp("us"),
        "DayTimeInterval": pa.duration("us"),
    }.get(name)


def _snapshot_kind(session: Any) -> str:
    return str(session.conf.get(SNAPSHOT_SETTING, SNAPSHOTS[0]))


def _snapshot(frame: Any) -> Any:
    from pyspark import StorageLevel

    if _snapshot_kind(frame.sparkSession) == "checkpoint":
        return frame.checkpoint(eager=True)
    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)


def _free(frame: Any) -> None:
    """Delete what was kept of a frame now, where the session lets us; else Spark does when it collects its garbage."""
    with suppress(Exception):
        plan = frame._jdf.queryExecution().analyzed()
        found = plan.rdd()
        files = found.getCheckpointFile()
        found.unpersist(True)
        if files.isDefined() and re.search(r"/rdd-\d+$", files.get()):
            path = frame.sparkSession._jvm.org.apache.hadoop.fs.Path(files.get())
            path.getFileSystem(frame.sparkSession._jsc.hadoopConfiguration()).delete(path, True)
