"""The wide table: 100 columns x 100,000 rows, domains 2..20, dependent along a random tree; seeded.

    python bench/wide.py FOLDER      writes wide.parquet and schema.json, for bench/quality.py

Each column hangs on a random earlier one: a value is drawn from the column's own shares or, with a strength that
differs from edge to edge, from shares that belong to the parent's value.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def wide_table(rows: int = 100_000, columns: int = 100, seed: int = 7) -> tuple[list[NDArray[np.int64]], list[int]]:
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(2, 21, columns)]
    table: list[NDArray[np.int64]] = []
    for column, size in enumerate(sizes):
        own = rng.dirichlet(np.full(size, 1.0))
        if column == 0:
            table.append(rng.choice(size, rows, p=own))
            continue
        parent = int(rng.integers(0, column))
        strength = rng.uniform(0.2, 0.7)
        given = np.stack(
            [(1 - strength) * own + strength * rng.dirichlet(np.full(size, 0.6)) for _ in range(sizes[parent])]
        )
        ladder = np.cumsum(given, axis=1)
        table.append((rng.random(rows)[:, None] > ladder[table[parent], :-1]).sum(axis=1))
    return table, sizes


def main() -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    table, sizes = wide_table()
    names = [f"c{column:03d}" for column in range(len(sizes))]
    pq.write_table(pa.table(dict(zip(names, table, strict=True))), folder / "wide.parquet")
    fields = [
        {"name": name, "type": "integer", "categories": list(range(size)), "constraints": {"required": True}}
        for name, size in zip(names, sizes, strict=True)
    ]
    (folder / "schema.json").write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))


if __name__ == "__main__":
    main()
