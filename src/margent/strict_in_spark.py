"""``--strict`` for tables of Spark: tasks look for cells that are not listed and send the columns' names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.schema.strict_json import parse_strict
from margent.schema.write import schema_text
from margent.strict import Seen
from margent.tables.spark_forms import Form
from margent.tables.spark_pieces import PIECES, Piece, pieces
from margent.tables.spark_session import collected, quietly, well_batched

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema


def unlisted_columns(rows: Any, schema: Schema) -> set[str]:
    """The columns with a cell that no value of ``schema`` stands for; the rows are kept, and counted as they were seen.

    Privacy: depends on the rows and is not differentially private.
    Raises: TableError with fixed text where Spark fails.
    """
    rows.several = True
    frame, form = rows.looked_at()
    task = partial(checked_rows, schema_text(schema), form)
    with well_batched(rows.session, form):
        found = quietly(lambda: collected(frame.mapInArrow(task, PIECES)))
    return {name for piece in found for name in json.loads(piece.data)}


def checked_rows(text: str, form: Form, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: rows in, the names of columns with a cell that is not listed out.

    Privacy: depends on the rows and is not differentially private.
    """

    def work() -> Iterator[Piece]:
        seen = Seen.by(Codec(schema_from_json(parse_strict(text.encode(), "the schema"))))
        for block in form.blocks(batches):
            seen.add(block)
        yield Piece("columns", 0, json.dumps(sorted(seen.columns)).encode())

    return pieces(work)
