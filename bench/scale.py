"""How counting grows: time, CPU seconds and peak memory of one pass from Parquet, and the cost model fitted to them.

    python bench/scale.py --at 1e6x16,2e6x16,1e6x100 [--folder /tmp/scale] [--threads 2] [--pairs all] [--repeat 1]

Each size is counted in a process of its own, from tables that `rows.py` writes where they are not there yet. The model
is CPU seconds = a rows columns + b rows tables + c cells + d, with no factor below 0, weighed by relative error.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from rows import write_rows

BILLIONS = (10**9, 10**10)


def counted(folder: Path, threads: int | None, pairs: str, repeat: int) -> dict[str, Any]:
    """Count all pairs (or the single columns) of a table, and tell what that took."""
    from margent.counts.source import StreamedCounts
    from margent.machine import threads as machine_threads
    from margent.schema.codec import Codec
    from margent.schema.read import read_schema
    from margent.tables.source import open_table

    schema = read_schema(folder / "schema.json")
    codec = Codec(schema)
    cliques: list[tuple[str, ...]] = [(name,) for name in codec.domain.names]
    if pairs == "all":
        cliques = list(itertools.combinations(codec.domain.names, 2))
    walls, spent = [], []
    with open_table(folder / "table", schema) as source:
        counts = StreamedCounts(source, codec, threads=threads)
        StreamedCounts(Head(source), codec, threads=threads).count(cliques[:1])  # load the compiled loop
        for _ in range(repeat):
            wall, cpu = time.perf_counter(), time.process_time()
            tables = counts.count(cliques)
            walls.append(time.perf_counter() - wall)
            spent.append(time.process_time() - cpu)
    peak = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return {
        "rows": int(tables[0].sum()),
        "columns": len(codec.domain.names),
        "tables": len(cliques),
        "cells": sum(table.size for table in tables),
        "wall": float(np.median(walls)),
        "cpu": float(np.median(spent)),
        "peak": 1024 * int(peak[1]) if peak else 0,
        "threads": threads or machine_threads(),
    }


class Head:
    """The first batch of a table."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def batches(self) -> Any:
        return itertools.islice(self.source.batches(), 1)


def features(point: dict[str, Any]) -> list[float]:
    return [point["rows"] * point["columns"], point["rows"] * point["tables"], point["cells"], 1.0]


def fitted(points: list[dict[str, Any]]) -> Any:
    """Factors of the cost model, of which as many are told apart as there are different points."""
    rows = np.array([features(point) for point in points])
    spent = np.array([point["cpu"] for point in points])
    factors, _ = nnls(rows / spent[:, None], np.ones(len(points)))
    return factors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", default="1e6x16,2e6x16,4e6x16,1e6x50", help="rows x columns, several apart by commas")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "margent-scale")
    parser.add_argument("--sizes", default="2:20", help="fewest and most codes of a column")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--pairs", choices=["all", "none"], default="all")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(counted(options.one, options.threads, options.pairs, options.repeat)))
        return
    points = []
    print(f"{'rows':>14}{'columns':>9}{'tables':>9}{'wall s':>9}{'CPU s':>9}{'peak MiB':>10}{'M tables*rows/s':>17}")
    for text in options.at.split(","):
        rows, columns = (int(float(part)) for part in text.split("x"))
        folder = options.folder / f"{rows}x{columns}-{options.sizes.replace(':', '-')}"
        low, high = map(int, options.sizes.split(":"))
        write_rows(folder, rows, columns, (low, high))
        arguments = ["--one", str(folder), "--pairs", options.pairs, "--repeat", str(options.repeat)]
        arguments += ["--threads", str(options.threads)] if options.threads else []
        ran = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
        point = json.loads(ran.stdout)
        points.append(point)
        print(
            f"{point['rows']:>14,}{point['columns']:>9}{point['tables']:>9,}{point['wall']:>9.2f}{point['cpu']:>9.2f}"
            f"{point['peak'] / 2**20:>10.0f}{point['rows'] * point['tables'] / point['wall'] / 1e6:>17,.0f}",
            flush=True,
        )
    if len(points) < 2:
        return
    factors = fitted(points)
    words = ("ns a cell read", "ns a row and table", "ns a cell of a table", "ns a pass")
    shown = (f"{1e9 * factor:,.2f} {word}" for factor, word in zip(factors, words, strict=True))
    print("model, CPU: " + ", ".join(shown))
    for place, point in enumerate(points):
        others = [each for each in points if each is not point]
        alone = float(np.dot(fitted(others), features(point))) if len(others) > 1 else float("nan")
        own = float(np.dot(factors, features(point)))
        print(f"point {place + 1}: {point['cpu']:.2f} s measured, {own:.2f} fitted, {alone:.2f} from the other points")
    threads = points[0]["threads"]
    for rows in BILLIONS:
        for point in {point["columns"]: point for point in points}.values():
            spent = float(np.dot(factors, features(point | {"rows": rows}))) / 3600
            print(
                f"{rows:,} rows x {point['columns']} columns, {point['tables']:,} tables: {spent:.2f} CPU hours "
                f"a pass, {spent / threads:.2f} hours where {threads} cores have nothing else to do"
            )


if __name__ == "__main__":
    main()
