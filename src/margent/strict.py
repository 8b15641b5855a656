"""Refusing a table some of whose cells no schema value stands for, before anything is charged (``--strict``).

Whether a run goes on then depends on the rows, which no budget pays for. It is for the operator's own check of a new
table, never the default, and everything it says is marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from margent.errors import Fault, SchemaError, sealed
from margent.schema.codec import Codec
from margent.schema.layout import Layout
from margent.tables.options import TEXT_KINDS

if TYPE_CHECKING:
    import pyarrow as pa

SUBJECT = "DATA-DEPENDENT, for the holder of the table only (do not publish this message): the table, read strictly,"
"""How the refusal begins."""

_ARTICLES = {"integer": "an"}

PASSED = (
    "--strict read the rows before anything was charged, and refused none. That the run went on tells something of the "
    "rows that no budget pays for: do not say that --strict was used"
)
"""What the end of a strict run says to the operator; nothing of it is in the release."""


class Rows(Protocol):
    """What is needed of a table: its kind of container, and the rows."""

    @property
    def kind(self) -> str:
        """The kind of file or frame."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over the rows."""
        ...


def require_listed(rows: Rows, codec: Codec) -> None:
    """Refuse a table with a record that cannot be split, or a cell that no value, bin, special code or token reads.

    One pass over the rows, the same that the counts make. Numbers outside of the bounds are no fault: they are
    counted in the nearest bin by rule. Cells that the schema sends to a category of its own (``unlisted``) are.

    Privacy: the answer depends on the rows and is not differentially private. It names columns, no cell, row or count.
    Raises: SchemaError listing every column with such a cell.
    """
    seen = Seen.by(codec, text=rows.kind in TEXT_KINDS)
    if rows.kind == "spark":
        from margent.strict_in_spark import unlisted_columns

        seen.columns |= unlisted_columns(rows, codec.schema)
    else:
        for batch in rows.batches():
            sealed("a batch could not be checked", partial(seen.add, batch))
    if faults := seen.faults():
        raise SchemaError(faults, SUBJECT)


def unlisted_apart(layout: Layout) -> Layout:
    """Reads cells as the schema does, but gives those that are no value of it a code of their own, the last one.

    Privacy: none: a function of the schema.
    """
    plain = replace(layout, unlisted=None)
    return replace(plain, unlisted=plain.size, fallback=plain.size)


@dataclass(eq=False)
class Seen:
    """What has been met so far: columns with a cell that is not listed, and whether a record was none.

    Privacy: depends on the rows and is not differentially private.
    """

    layouts: list[Layout]
    codec: Codec
    text: bool
    columns: set[str] = field(default_factory=set)
    records: bool = False

    @staticmethod
    def by(codec: Codec, *, text: bool = False) -> Seen:
        """Nothing yet, of the columns that a codec reads."""
        return Seen([unlisted_apart(layout) for layout in codec.layouts], codec, text)

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at one batch."""
        whole = batch.filter(_split(batch)) if self.text else batch
        self.records = self.records or whole.num_rows < batch.num_rows
        for layout in self.layouts:
            name = layout.field.name
            if name not in self.columns and (self.codec.codes_of(layout, whole) == layout.fallback).any():
                self.columns.add(name)

    def faults(self) -> list[Fault]:
        """One fault a column, in the schema's order, and one for records that are none."""
        found = []
        if self.records:
            found.append(
                Fault(
                    "the file",
                    "records have another number of cells than the header, or are longer than the limit: check "
                    "delimiter and quotes",
                )
            )
        for layout in self.layouts:
            if layout.field.name in self.columns:
                found.append(Fault(layout.field.name, _advice(layout)))
        return found


def _advice(layout: Layout) -> str:
    kind = (
        f"values of the list ({layout.values:,})"
        if layout.cuts is None
        else f"{_ARTICLES.get(layout.field.type, 'a')} {layout.field.type}"
    )
    required = ", and none may be missing (required)" if layout.field.required else ""
    return (
        f"cells are not {kind}, special codes or missing tokens{required}: check spelling, type, format and "
        "missingValues (`margent inspect` shows how many), or run without --strict, where they count as unlisted"
    )


def _split(batch: pa.RecordBatch) -> Any:
    """Which records of a text file were split into cells: the others have none at all.

    Columns of the folders' names, which are no raw bytes, say nothing of that.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    raw = next((column for column in batch.columns if column.type == pa.binary()), None)
    return pa.array(np.ones(batch.num_rows, dtype=np.bool_)) if raw is None else pc.is_valid(raw)
