"""Seconds and memory of `margent evaluate`, and of all two-way tables of 100 columns x 1,000,000 rows.

    python bench/evaluate.py FOLDER [FOLDER ...] [--learning]      each FOLDER holds a table and schema.json
    python bench/evaluate.py --pairs [--rows 1000000] [--columns 100]

Without a synthetic table at hand the real one is held against itself: the work is the same. A table given here is
treated as public: its scores are printed.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from pathlib import Path

import numpy as np

from margent.counts.source import CodedCounts
from margent.internal.evaluation import evaluate
from margent.report.evaluation import evaluation_page
from margent.schema.domain import Domain
from margent.schema.read import read_schema


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def pairs(rows: int, columns: int) -> None:
    rng = np.random.default_rng(1)
    sizes = tuple(int(size) for size in rng.integers(2, 21, columns))
    names = tuple(f"c{place:03}" for place in range(columns))
    codes = [rng.integers(0, size, rows, dtype=np.uint8) for size in sizes]
    cliques = list(itertools.combinations(names, 2))
    cpu, clock = time.process_time(), time.perf_counter()
    tables = CodedCounts(codes, Domain(names, sizes)).count(cliques)
    print(
        f"{len(tables)} two-way tables of {columns} columns x {rows:,} rows: {time.process_time() - cpu:.1f} CPU s, "
        f"{time.perf_counter() - clock:.1f} s, peak {memory():.2f} GiB"
    )


def table(folder: Path, *, learning: bool) -> None:
    (path,) = [each for each in folder.iterdir() if each.suffix in {".gz", ".parquet", ".csv"}]
    schema = read_schema(folder / "schema.json")
    cpu, clock = time.process_time(), time.perf_counter()
    made = evaluate(path, [path], schema, learning=learning)
    page = evaluation_page(made.document)
    print(
        f"{folder.name}: {made.document['realRows']:,} rows x {len(made.document['columns'])} columns: "
        f"{time.process_time() - cpu:.1f} CPU s, {time.perf_counter() - clock:.1f} s, peak {memory():.2f} GiB, "
        f"page {len(page.encode()) / 1000:.0f} kB"
    )
    for key in ("tvd-1", "tvd-2", "tvd-3", "range-contiguous-absolute"):
        print(
            f"  {key}: "
            + ", ".join(f"{name} {value:.5f}" for name, value in made.scores[key].items() if value is not None)
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--learning", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    options = parser.parse_args()
    if options.pairs:
        pairs(options.rows, options.columns)
    for folder in options.folders:
        table(folder, learning=options.learning)


if __name__ == "__main__":
    main()
