"""Made tables of any size: Parquet in parts, written block by block in bounded memory, with their schema beside them.

    python bench/rows.py FOLDER --rows 100000000 --columns 16 [--sizes 2:20] [--texts 4] [--seed 7]

writes FOLDER/table/part-00000.parquet ... and FOLDER/schema.json. Each column hangs on a random earlier one: its value
is drawn from shares that belong to the parent's value. Every `--texts`-th column holds texts, the others whole numbers.
The rows depend on seed, columns and sizes alone, not on how they are cut into parts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

BLOCK_ROWS = 2**18
"""Rows made at a time, and those of a row group."""

LEVELS = 2**12
"""Shares are multiples of 1/4096: a value is drawn by looking up twelve random bits."""


@dataclass(frozen=True)
class MadeColumn:
    """A column's place, its parent's, and for each value of the parent the value of each twelve bits."""

    name: str
    size: int
    parent: int
    drawn: NDArray[np.uint16]
    texts: tuple[str, ...] | None

    def of(self, codes: NDArray[np.uint16]) -> pa.Array:
        if self.texts is None:
            return pa.array(codes.astype(np.int32))
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(self.texts))

    def to_json(self) -> dict[str, Any]:
        values: list[Any] = list(self.texts) if self.texts is not None else list(range(self.size))
        kind = "integer" if self.texts is None else "string"
        return {"name": self.name, "type": kind, "categories": values, "constraints": {"required": True}}


def made_columns(columns: int, low: int, high: int, every_text: int, seed: int) -> list[MadeColumn]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(low, high + 1, columns)
    made = []
    for place, size in enumerate(sizes.tolist()):
        parent = int(rng.integers(0, place)) if place else 0
        own, strength = rng.dirichlet(np.full(size, 1.0)), rng.uniform(0.2, 0.7)
        count = made[parent].size if place else 1
        shares = (1 - strength) * own + strength * rng.dirichlet(np.full(size, 0.6), count)
        ladder = np.cumsum(shares, axis=1)[:, :-1] * LEVELS
        drawn = (np.arange(LEVELS)[None, :, None] >= ladder[:, None, :]).sum(axis=2).astype(np.uint16)
        words = tuple(f"value {value}" for value in range(size)) if every_text and place % every_text == 0 else None
        made.append(MadeColumn(f"c{place:04d}", size, parent, drawn.ravel(), words))
    return made


def block_of(columns: list[MadeColumn], seed: int, number: int, rows: int) -> pa.RecordBatch:
    rng = np.random.Generator(np.random.SFC64([seed, number]))
    codes: list[NDArray[np.uint16]] = []
    for place, column in enumerate(columns):
        bits = rng.integers(0, LEVELS, rows, dtype=np.uint16)
        above = np.zeros(rows, np.int32) if place == 0 else codes[column.parent].astype(np.int32)
        codes.append(column.drawn[above * LEVELS + bits])
    arrays = [column.of(own) for column, own in zip(columns, codes, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def write_rows(
    folder: Path, rows: int, columns: int, sizes: tuple[int, int] = (2, 20), every_text: int = 4, seed: int = 7
) -> None:
    """Write the table and its schema; nothing where they are there already."""
    if (folder / "schema.json").exists():
        return
    made = made_columns(columns, *sizes, every_text, seed)
    (folder / "table").mkdir(parents=True, exist_ok=True)
    blocks = -(-rows // BLOCK_ROWS)
    a_part = max(1, min(20, 2**28 // (BLOCK_ROWS * columns)))

    def write_part(part: int) -> None:
        path = folder / "table" / f"part-{part:05d}.parquet"
        with pq.ParquetWriter(path, block_of(made, seed, 0, 1).schema) as writer:
            for number in range(part * a_part, min((part + 1) * a_part, blocks)):
                writer.write_batch(block_of(made, seed, number, min(BLOCK_ROWS, rows - number * BLOCK_ROWS)))

    with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
        for _ in workers.map(write_part, range(max(1, -(-blocks // a_part)))):
            pass
    fields = [column.to_json() for column in made]
    (folder / "schema.json").write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--sizes", default="2:20", help="fewest and most codes of a column")
    parser.add_argument("--texts", type=int, default=4, help="every so many columns one of texts; 0: none")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    low, high = map(int, options.sizes.split(":"))
    wall, cpu = time.perf_counter(), time.process_time()
    write_rows(options.folder, options.rows, options.columns, (low, high), options.texts, options.seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cells = options.rows * options.columns
    size = sum(path.stat().st_size for path in (options.folder / "table").iterdir())
    print(
        f"{options.rows:,} rows x {options.columns} columns: {size / 2**20:,.0f} MiB, {wall:.1f} s, {cpu:.1f} s CPU, "
        f"{cells / max(cpu, 1e-9) / 1e6:.1f} million cells a CPU second"
    )


if __name__ == "__main__":
    main()
