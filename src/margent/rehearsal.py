"""Fake rows from the schema alone, to test schema, bins and analysis code before any budget is spent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from margent.release.folder import whole_folder
from margent.release.measurements import canonical_json
from margent.release.release import checked_format
from margent.release.synthetic import BLOCK_ROWS
from margent.schema.codec import Codec
from margent.schema.fields import Schema
from margent.schema.settled import planned
from margent.schema.write import schema_to_json
from margent.stream import Stream
from margent.tables.options import FILE_SUFFIXES, TEXT_KINDS
from margent.tables.write import write_table

if TYPE_CHECKING:
    from margent.synthesizers.rules import RecordRules


def rehearse(schema: Schema, *, rows: int, seed: int, text: bool = False) -> Iterator[pa.Table]:
    """Yield blocks of rows with every code of every column equally likely and all columns independent,
    but for rules between them, which every row obeys.

    Bins and values that a run would buy are made up.

    Shapes: ``rows`` records in all, every output column of the schema.
    Privacy: none: a function of schema and options.
    """
    codec = Codec(planned(schema))
    rules = _rules(codec)
    decode = codec.decode_text if text else codec.decode
    for first in range(0, max(rows, 1), BLOCK_ROWS):
        count = min(BLOCK_ROWS, rows - first)
        columns = []
        for name in codec.domain.names:
            allowed = np.flatnonzero(codec.sampleable[name]).astype(np.int32)
            draws = Stream(seed, "rehearse", name, str(first)).below(allowed.size, count)
            columns.append(allowed[draws])
        codes = np.stack(columns, axis=1) if columns else np.zeros((count, 0), dtype=np.int32)
        if rules is not None:
            codes = rules.enforced(codes, Stream(seed, "rehearse", "rules", str(first)))
        yield decode(codes, seed, first_row=first)


def _rules(codec: Codec) -> RecordRules | None:
    """The schema's rules between columns, with no code of a column more likely than another."""
    if codec.schema.rulebook is None:
        return None
    from margent.synthesizers.rules import RecordRules

    everything = {name: np.arange(size) for name, size in zip(codec.domain.names, codec.domain.sizes, strict=True)}
    return RecordRules.of(codec.schema.rulebook, codec.domain, {}, everything)


def save_rehearsal(schema: Schema, out: Path, *, rows: int, seed: int, file_format: str = "csv") -> Path:
    """Write ``rehearsal.*`` and the schema into a new folder and return the table's path.

    Privacy: none: no data is read.
    Raises: UsageError when the folder exists or the format is unknown.
    """
    kind = checked_format(file_format)
    name = f"rehearsal{FILE_SUFFIXES[kind]}"
    with whole_folder(out) as folder:
        (folder / "schema.json").write_bytes(canonical_json(schema_to_json(schema)))
        write_table(folder / name, kind, rehearse(schema, rows=rows, seed=seed, text=kind in TEXT_KINDS))
    return out / name
