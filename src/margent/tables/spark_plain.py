"""Whether tasks may read a table as whole Parquet files: settled before the charge, from public facts alone.

Asked are the plan of a DataFrame, the session's settings, names, declared types, files and their lengths, and one
footer. Wherever something is not as it usually is, the table goes Spark's own way, which is slower and always right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from margent.errors import MargentError, UsageError
from margent.tables.columnar import listed_columns
from margent.tables.spark_calendar import same_in_both_calendars
from margent.tables.spark_files import SEPARATOR, WholeFiles, examined
from margent.tables.spark_forms import BATCH_SETTING
from margent.tables.spark_pieces import PIECES
from margent.tables.spark_session import collected, quietly, well_batched
from margent.tables.spark_types import is_plain

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

SIZE_SETTING = "spark.margent.wholeFileBytes"
WHOLE_FILE_BYTES = 2**28
"""The longest file that a task holds in memory, unless the session says otherwise (0: none)."""

_TASK_BYTES = 2**27
"""Files that are shorter share a task up to so many bytes, as in Spark."""

_LINES_AT_ONCE, _BYTES_AT_ONCE = 2**16, 2**22

_USUAL = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "parquet.crypto.factory.class": "",
    "spark.hadoop.parquet.crypto.factory.class": "",
}
"""Settings under which a Parquet file means to Spark what it means to everybody."""

_OPTIONS = {"path", "paths", "mergeschema", "recursivefilelookup", "serialization.format", "compression"}
"""Options of a reader that change nothing about the rows of a file."""

_SOURCES = "org.apache.spark.sql.execution.datasources"
_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_ATTRIBUTE = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
_NAMES = re.compile(r"[^.]+|.*\.(parquet|parq|pq)", re.IGNORECASE)
"""File names that Spark takes for no compressed text."""


def as_whole_files(frame: Any, schema: Schema, declared: pa.Schema, place: str | None) -> tuple[Any, WholeFiles] | None:
    """A frame of a table's files and how tasks read them, or None where they go Spark's own way.

    ``place`` is where the table lies, if it was named so; a DataFrame says it by itself, except through Spark Connect.

    Privacy: none spent: see this module; of the smallest file the footer is looked at.
    Raises: UsageError where the setting is no number.
    """
    wanted = schema.columns_read
    kinds = declared.empty_table().select(list(wanted)).schema
    asked = str(frame.sparkSession.conf.get(SIZE_SETTING, str(WHOLE_FILE_BYTES)))
    if not asked.isdecimal():
        raise UsageError(f"{SIZE_SETTING} must be a number of bytes, 0 or more")
    plain = all(map(is_plain, kinds.types)) and same_in_both_calendars(schema, kinds)
    filled = any("EXISTS_DEFAULT" in field.metadata for field in frame.schema.fields if field.name in wanted)
    if not wanted or int(asked) == 0 or not plain or filled:
        return None
    form = WholeFiles(kinds, listed_columns(schema), exact=False)
    try:
        return quietly(partial(_as_whole_files, frame, form, place, int(asked)))
    except MargentError:
        return None


def _as_whole_files(frame: Any, form: WholeFiles, place: str | None, most: int) -> tuple[Any, WholeFiles] | None:
    session = frame.sparkSession
    if any(str(session.conf.get(name, usual)).lower() != usual for name, usual in _USUAL.items()):
        return None
    table = _table_through_connect(frame, place) if ".connect." in type(frame).__module__ else _table_of_plan(frame)
    # Of a few columns among many, Spark reads those alone; a whole file has all.
    if table is None or 2 * len(form.declared) < table.columns:
        return None
    lines, files = table.lines(session), frame.inputFiles()
    if sorted(lines.inputFiles()) != sorted(files) or not all(
        _NAMES.fullmatch(uri.rpartition("/")[2]) for uri in files
    ):
        return None
    lengths = {row.path: row.length for row in table.read(session, "binaryFile").select("path", "length").collect()}
    slots = _slots(session)
    if not files or len(lengths) < len(files) or max(lengths.values()) > most or 2 * len(files) < slots:
        return None
    exact = str(session.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    smallest = min(lengths, key=lambda path: (lengths[path], path))
    probe = replace(form, exact=exact, settings=_settings([lengths[smallest]], slots))
    with well_batched(session, probe):
        sound = _Table([smallest], table.columns).lines(session).mapInArrow(partial(examined, probe), PIECES)
        if len(collected(sound)) != 1:
            return None
    return lines, replace(probe, settings=_settings(list(lengths.values()), slots))


@dataclass(frozen=True)
class _Table:
    """The folders and files that hold a table and nothing else, and how many columns it has."""

    roots: list[str]
    columns: int
    pattern: bool = False

    def read(self, session: Any, source: str, **options: str) -> Any:
        """The files by one of Spark's sources."""
        options["__globPaths__"] = str(self.pattern).lower()
        return session.read.format(source).options(**options).load(self.roots)

    def lines(self, session: Any) -> Any:
        """The files as lines, as `margent.tables.spark_files.whole_files` has them."""
        lines = self.read(session, "text", lineSep=SEPARATOR)
        return lines.selectExpr(f"concat(value, '{SEPARATOR}') AS line", "_metadata.file_size AS length")


def _table_through_connect(frame: Any, place: str | None) -> _Table | None:
    """The table that was named; the plan of a DataFrame is not to be seen from here."""
    # Where a folder's name gives a column, the files lack it.
    keyed = any("=" in uri.rpartition("/")[0] for uri in frame.inputFiles())
    return None if place is None or keyed else _Table([place], len(frame.columns), pattern=True)


def _table_of_plan(frame: Any) -> _Table | None:
    """The table that a frame reads all rows of, as they are; None where it does anything else."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    if _class(plan) == _PROJECT:
        columns = plan.projectList()
        if any(_class(columns.apply(number)) != _ATTRIBUTE for number in range(columns.length())):
            return None
        plan = plan.child()
    if _class(plan) != f"{_SOURCES}.LogicalRelation":
        return None
    relation = plan.relation()
    if _class(relation) != f"{_SOURCES}.HadoopFsRelation" or not relation.partitionSchema().isEmpty():
        return None
    if _class(relation.fileFormat()) != f"{_SOURCES}.parquet.ParquetFileFormat":
        return None
    options = {name.lower() for name in relation.options().keySet().mkString("\n").splitlines()}
    if _class(relation.location()) != f"{_SOURCES}.InMemoryFileIndex" or options - _OPTIONS:
        return None
    paths = relation.location().rootPaths()
    roots = [str(paths.apply(number).toString()) for number in range(paths.length())]
    return _Table(roots, int(relation.dataSchema().length()))


def _settings(lengths: Sequence[int], slots: int) -> dict[str, str]:
    """What makes Spark give whole files to tasks, and each about as much as the others."""
    total = sum(lengths)
    share = max(*lengths, min(_TASK_BYTES, total // slots), 1)
    return {
        BATCH_SETTING: str(_LINES_AT_ONCE),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_BYTES_AT_ONCE),
        "spark.sql.files.maxPartitionBytes": str(share),
        "spark.sql.files.minPartitionNum": str(max(1, total // share)),
    }


def _slots(session: Any) -> int:
    """Tasks that run at a time."""
    context = getattr(session, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    return int(session.range(2**16).selectExpr("spark_partition_id() AS part").distinct().count())


def _class(found: Any) -> str:
    return str(found.getClass().getName())
