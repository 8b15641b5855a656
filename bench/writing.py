"""Writing at scale: rows a second, peak memory, where the time goes, and how close the union of blocks is.

    python bench/writing.py [--rows 1000000] [--columns 16] [--format parquet] [--folder FOLDER] [--method dense]
    python bench/writing.py --union RELEASE [--rows 1048576] [--blocks 1,2,8,64] [--repeat 1]

The first makes a table of --columns columns (categories, numbers in bins, dates; dependent through a hidden class),
buys answers about 100,000 rows of it at epsilon 1, and writes --rows synthetic rows into FOLDER (default: a temporary
one). With --union, the mean total variation between each target of the model of an existing release and the union of
so many blocks, with the share of each block (as written), with the whole table's targets scaled (each block alone), and
with what earlier blocks left over added to the next one's targets (one block after the other).
"""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from margent import Budget, Category, Date, Integer, Number, Schema, read_release
from margent.methods import method_named
from margent.pipeline import from_transcript, measure
from margent.progress import silent
from margent.release.counts import SyntheticCounts
from margent.release.synthetic import SyntheticTable
from margent.schema.domain import Clique
from margent.stream import Stream
from margent.synthesizers.blocks import DrawnRecords
from margent.synthesizers.descending import DescentSettings, descend, targets_of
from margent.synthesizers.descent import Descent, DescentModel
from margent.synthesizers.shares import Share
from margent.tables.options import TEXT_KINDS
from margent.tables.write import write_table

Records = NDArray[np.int32]


def schema_of(columns: int) -> Schema:
    """Six kinds of columns by turns."""
    kinds = [
        lambda name: Category(name, [f"{name} value {code}" for code in range(8)], required=True),
        lambda name: Integer(name, 0, 99, bins=20, required=True),
        lambda name: Number(name, 0, 1000, bins=16, decimals=2, required=True),
        lambda name: Category(name, ["no", "yes"], required=True),
        lambda name: Date(name, "2000-01-01", "2019-12-31", bins="year", required=True),
        lambda name: Category(name, [f"{code:03d}" for code in range(40)], required=True),
    ]
    return Schema([kinds[place % 6](f"c{place:03d}") for place in range(columns)], unit="row")


def table_of(columns: int, rows: int = 100_000, seed: int = 5) -> pa.Table:
    """Every column follows a hidden class of twelve with three rows in five, else anything."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 12, rows)
    made = {}
    for place in range(columns):
        share = np.where(rng.random(rows) < 0.6, (hidden * (place + 3) % 12 + rng.random(rows)) / 12, rng.random(rows))
        name = f"c{place:03d}"
        made[name] = [
            lambda s, n=name: pa.array([f"{n} value {code}" for code in range(8)]).take(pa.array((s * 8).astype(int))),
            lambda s, n=name: pa.array((s * 100).astype(int)),
            lambda s, n=name: pa.array(np.round(s * 1000, 2)),
            lambda s, n=name: pa.array(["no", "yes"]).take(pa.array((s * 2).astype(int))),
            lambda s, n=name: pa.array((10957 + s * 7305).astype(np.int32), pa.date32()),
            lambda s, n=name: pa.array([f"{code:03d}" for code in range(40)]).take(pa.array((s * 40).astype(int))),
        ][place % 6](share)
    return pa.table(made)


def peak() -> float:
    """Most memory this process ever took, in GiB."""
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**20  # type: ignore[index]


def writing(options: argparse.Namespace) -> None:
    schema, budget = schema_of(options.columns), Budget(1)
    method = method_named(options.method)
    bought = measure(table_of(options.columns), schema, budget=budget, method=method.name)
    before = peak()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        begin, cpu = time.perf_counter(), time.process_time()
        release = from_transcript(
            bought.transcript, budget=budget, synthesizer=method.synthesizer.name, rows=options.rows, seed=1
        )
        out = release.save(folder / "OUT", file_format=options.format)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        cut = release.records.blocks
        print(
            f"{options.rows:,} rows x {options.columns} columns, {cut.count} blocks of {cut.size:,}, {options.format}: "
            f"{wall:.0f} s, {cpu:.0f} CPU s, {options.rows / wall:,.0f} rows/s, {cpu / options.rows * 1e6:.1f} CPU us "
            f"a row, {size / 2**20:,.0f} MiB, peak {peak():.2f} GiB ({before:.2f} before)"
        )
        parts(release.transcript, method.synthesizer.build(release.transcript, silent), options, folder)


def parts(transcript: Any, model: Any, options: argparse.Namespace, folder: Path) -> None:
    """CPU seconds a million rows of each step, one after the other, for the first block."""
    table = SyntheticTable(transcript, DrawnRecords(model, options.rows, 1), 1, pairs=True)
    rows = table.records.blocks.size
    text = options.format in TEXT_KINDS
    steps: dict[str, float] = {}

    def timed(name: str, call: Any) -> Any:
        begin = time.process_time()
        made = call()
        steps[name] = (time.process_time() - begin) / rows * 1e6
        return made

    codes = timed("draw", lambda: table.records.block(0))
    timed("count", lambda: SyntheticCounts.of(transcript, codes))
    cells = timed("decode", lambda: list(table._decoded(0, codes, None, text=text)))
    timed("write", lambda: write_table(folder / "block", options.format, iter(cells)))
    print("  CPU us a row:", ", ".join(f"{name} {spent:.2f}" for name, spent in steps.items()))


def mean_distance(records: Records, model: DescentModel, targets: dict[Clique, NDArray[np.float64]]) -> float:
    """Mean total variation between the targets of two columns and more and the records."""
    position = model.columns.working.domain.position
    each = []
    for names, table in targets.items():
        if len(names) > 1:
            flat = np.zeros(len(records), dtype=np.int64)
            for name, size in zip(names, table.shape, strict=True):
                flat = flat * size + records[:, position[name]]
            counts = np.bincount(flat, minlength=table.size) / len(records)
            each.append(0.5 * np.abs(counts - table.ravel() / table.sum()).sum())
    return float(np.mean(each))


def union(options: argparse.Namespace) -> None:
    transcript, _, _ = read_release(options.union)
    model = Descent().build(transcript, silent)
    domain = model.columns.working.domain
    targets = {names: table for names, table in model.belief.targets.items() if min(domain.shape(names)) > 1}
    print(f"{len(targets)} targets of {len(domain.names)} columns; {options.rows:,} rows")
    for count in map(int, options.blocks.split(",")):
        for way in ("shares", "alone", "in turn") if count > 1 else ("one",):
            found, cpu = [], time.process_time()
            for seed in range(options.repeat):
                found.append(drawn(model, targets, options.rows // count, count, way, seed))
            spent = (time.process_time() - cpu) / options.rows / options.repeat * 1e6
            apart, together = (float(np.mean(each)) for each in zip(*found, strict=True))
            print(
                f"  {count:>3} blocks, {way:<8} a block is {apart:.5f} from the targets, the union {together:.5f}; "
                f"{spent:.1f} CPU us a row",
                flush=True,
            )


def drawn(
    model: DescentModel, targets: dict[Clique, NDArray[np.float64]], rows: int, count: int, way: str, seed: int
) -> tuple[float, float]:
    """Distance of the first block and of the union."""
    domain = model.columns.working.domain
    made: list[Records] = []
    left = {names: np.zeros(table.shape) for names, table in targets.items()}
    for index in range(count):
        share = Share(index, max(count, 2), seed)
        settings = DescentSettings().within(share, rows)
        own = targets if way in ("one", "alone") else targets_of(share, targets, rows)
        if way == "in turn":
            scaled = {names: table * (rows / table.sum()) + left[names] for names, table in targets.items()}
            own = {names: np.maximum(table, 0.0) for names, table in scaled.items()}
        start = model.belief.records(rows, Stream(seed, "block", str(index)))
        records = descend(start, own, domain.names, domain.sizes, Stream(seed, str(index)), silent, settings)
        made.append(records)
        if way == "in turn":
            for names, table in scaled.items():
                left[names] = table - counted(records, domain.position, names, table.shape)
    return mean_distance(made[0], model, targets), mean_distance(np.concatenate(made), model, targets)


def counted(records: Records, position: Any, names: Clique, shape: tuple[int, ...]) -> NDArray[np.float64]:
    flat = np.zeros(len(records), dtype=np.int64)
    for name, size in zip(names, shape, strict=True):
        flat = flat * size + records[:, position[name]]
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--format", default="parquet")
    parser.add_argument("--method", default="dense")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--union", type=Path)
    parser.add_argument("--blocks", default="1,2,8,64")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    union(options) if options.union else writing(options)


if __name__ == "__main__":
    main()
