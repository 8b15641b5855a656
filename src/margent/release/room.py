"""Whether a disk has room for a table, found out before anything is charged or written."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from margent.errors import PlanError
from margent.schema.fields import Schema
from margent.tables.options import TEXT_KINDS
from margent.tables.write import write_table

_SMALL, _LARGE = 2_000, 10_000
_SURELY_ENOUGH = 64
"""No cell takes more bytes than this on average; where there is room for so many, nothing needs to be estimated."""


def require_room(out: Path, schema: Schema, rows: int, kind: str) -> None:
    """Refuse to write ``rows`` rows where the disk of the folder to write has less free than they would take.

    Privacy: none: a function of schema, options and the machine.
    Raises: PlanError with both sizes and the next step.
    """
    try:
        free = shutil.disk_usage(out.absolute().parent).free
    except OSError:
        return  # not to be known there; a full disk leaves nothing behind either
    if free >= rows * _SURELY_ENOUGH * max(len(schema.output_columns), 1):
        return
    needed = round(rows * row_bytes(schema, kind))
    if needed > free:
        raise PlanError(
            f"{rows:,} rows take about {_size(needed)} as {kind} and {out.absolute().parent} has {_size(free)} free: "
            "ask for fewer rows, for a smaller format (--format parquet), or write to another disk"
        )


def row_bytes(schema: Schema, kind: str) -> float:
    """About how many bytes a row takes in a file of this kind: made-up rows with all codes alike, which compress worst.

    Units: bytes a row. Privacy: none: a function of the schema.
    """
    from margent.rehearsal import rehearse

    sizes = []
    with tempfile.TemporaryDirectory(prefix="margent-") as folder:
        for rows in (_SMALL, _LARGE):
            path = Path(folder) / str(rows)
            write_table(path, kind, rehearse(schema, rows=rows, seed=0, text=kind in TEXT_KINDS))
            sizes.append(path.stat().st_size)
    # What a file has whatever its rows, such as lists of categories, is in both.
    return max(sizes[1] - sizes[0], 1) / (_LARGE - _SMALL)


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**29 else f"{count / 2**20:,.1f} MiB"
