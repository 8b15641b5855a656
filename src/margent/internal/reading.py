"""Real and synthetic tables read into codes, by the columns that all of them have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from margent.conditions import read_conditions
from margent.counts.source import CodedCounts
from margent.errors import SchemaError, TranscriptError, UsageError, sealed
from margent.internal.label import is_release
from margent.metrics.coded import CodedTable, Codes, Kind, columns_of, resampled, shuffled
from margent.metrics.study import Choices, Study
from margent.release.files import table_beside
from margent.release.promise import promise_words
from margent.release.reading import dialect_of, read_release
from margent.release.values import texts
from margent.schema.check import unsettled
from margent.schema.codec import Codec
from margent.schema.differences import base_order
from margent.schema.domain import Clique, Domain
from margent.schema.fields import Dropped, Schema
from margent.tables.address import is_address, read_address
from margent.tables.declared import declared_columns
from margent.tables.options import ReadOptions
from margent.tables.source import open_table
from margent.tables.spark_session import spark_name


@dataclass(frozen=True)
class Given:
    """A table to be read: where it is, what to call it, how it is spelled, and its release's summary if it has one."""

    name: str
    table: Any
    read: ReadOptions
    summary: dict[str, Any] | None = None


def given(table: Any, read: ReadOptions, name: str | None = None) -> Given:
    """What a person named: a file, a folder of files, an address, a table of Spark, a frame, or a release folder.

    Of a release folder its table is meant.

    Raises: TranscriptError where a release folder is damaged, UsageError where an address cannot be read.
    """
    if not isinstance(table, str | Path):
        return Given(name or "table", table, read)
    if is_address(table):
        return Given(name or read_address(str(table)).name, table, read)
    if (rest := spark_name(table)) is not None:
        return Given(name or re.split("[:/]", rest)[-1], table, read)
    path = Path(table)
    if path.is_dir() and is_release(path):
        summary = _release_summary(path)
        if (beside := table_beside(path, summary.get("file"))) is None:
            raise TranscriptError(
                f"{path / 'summary.json'}: does not name the synthetic table beside it (a file, or a folder of files, "
                "without links); to compare a table that lies elsewhere, give the table's own path"
            )
        return Given(name or path.name, beside, replace(dialect_of(summary), kind=summary.get("format")), summary)
    if is_release(path.parent):
        return Given(name or path.name, path, read, _release_summary(path.parent))
    return Given(name or path.name, path, read)


def _release_summary(folder: Path) -> dict[str, Any]:
    """A release's summary with the promise that follows from its checked charges, whatever words the file has for it.

    Raises: TranscriptError where the release is damaged, or says conditions that its schema does not know.
    """
    transcript, budget, summary = read_release(folder)
    try:
        conditions = read_conditions(texts(summary.get("where", [])), Codec(transcript.schema))
    except (TypeError, ValueError, UsageError):
        raise TranscriptError(f"{folder / 'summary.json'}: its conditions ('where') are damaged or altered") from None
    where = () if conditions is None else conditions.words
    return summary | {"promise": promise_words(transcript, budget, where)}


def told_apart(tables: Sequence[Given]) -> list[Given]:
    """The same tables with names that differ: the folder is added, then a number, where they do not."""
    names = [one.name for one in tables]
    if len(set(names)) < len(names):
        names = [f"{Path(one.table).parent.name}/{one.name}" if _is_file(one.table) else one.name for one in tables]
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[place] = f"{name} ({seen[name]})"
    return [replace(one, name=name) for one, name in zip(tables, names, strict=True)]


def _is_file(table: object) -> bool:
    return isinstance(table, str | Path) and not is_address(table) and spark_name(table) is None


def absent_columns(tables: Sequence[Given], schema: Schema) -> list[tuple[str, ...]]:
    """For each table the modeled columns that its header lacks.

    Privacy: none: headers only.
    """
    found: list[tuple[str, ...]] = []
    for one in tables:
        if not isinstance(one.table, str | Path) or (_is_file(one.table) and not one.read.header):
            found.append(())
            continue
        names, _ = declared_columns(one.table, one.read, [field.name for field in schema.fields])
        found.append(tuple(field.name for field in schema.modelled if field.name not in names))
    return found


def settled_by(schema: Schema, tables: Sequence[Given]) -> Schema:
    """The schema with the bins and values that the first release among the tables bought for it; else as it is.

    Privacy: none: released files.
    Raises: TranscriptError where a release's measurements are damaged.
    """
    if not unsettled(schema):
        return schema
    for one in tables:
        if one.summary is not None and isinstance(one.table, str | Path):
            transcript, _, _ = read_release(Path(one.table).parent)
            if transcript.declared == schema:
                return transcript.schema
    return schema


def shared_schema(schema: Schema, absent: Sequence[Sequence[str]]) -> Schema:
    """The schema cut down to the modeled columns that every table has; all others are dropped.

    Raises: SchemaError where bins or values are yet to be bought; UsageError where no column is left.
    """
    if faults := unsettled(schema):
        raise SchemaError(faults, "not everything the schema asks for can be compared: it")
    gone = {name for names in absent for name in names}
    for field in base_order(schema.modelled):
        if field.relative_to is not None and field.relative_to.field in gone:
            gone.add(field.name)  # without its base a date is no difference
    fields = [
        field if field.role == "model" and field.name not in gone else Dropped(field.name) for field in schema.fields
    ]
    if all(field.role == "drop" for field in fields):
        raise UsageError("the tables share no column that the schema models: there is nothing to compare")
    return Schema(fields, unit="row", name=schema.name, missing=schema.missing)


def coded(one: Given, codec: Codec, kind: Literal["real"] | Kind) -> CodedTable:
    """All rows of a table as codes in memory, one or two bytes a cell for columns of up to 65,536 codes.

    Privacy: exact and private where the table is real.
    Raises: TableError or SchemaError as `open_table` does.
    """
    parts: list[list[Codes]] = [[] for _ in codec.domain.names]
    rows = 0
    narrow = [np.uint8 if size <= 256 else np.uint16 if size <= 2**16 else np.uint32 for size in codec.domain.sizes]
    with open_table(one.table, codec.schema, one.read) as source:
        for batch in source.batches():
            rows += batch.num_rows
            for place, codes in enumerate(sealed("a batch could not be coded", partial(codec.encode, batch))):
                parts[place].append(codes.astype(narrow[place]))
    columns: list[Codes] = [
        np.concatenate(part) if part else np.zeros(0, dtype=dtype) for part, dtype in zip(parts, narrow, strict=True)
    ]
    return CodedTable(one.name, kind, columns, rows)


def compared(real: CodedTable, others: Sequence[CodedTable], codec: Codec, choices: Choices) -> Study:
    """The real table beside its yardsticks, a resample and the independent table, and then the others.

    Privacy: holds the real table: INTERNAL.
    """
    alone = Study(columns_of(codec), real, (), counted, choices, codec.schema)
    yardsticks = resampled(real, alone.random("resample")), shuffled(real, alone.random("independent"))
    return replace(alone, tables=(*yardsticks, *others))


def counted(table: CodedTable, domain: Domain, cliques: Sequence[Clique]) -> list[np.ndarray]:
    """Exact contingency tables of codes, by the one counting kernel.

    Privacy: exact and private where the table is real.
    """
    return CodedCounts(table.codes, domain).count(cliques)
