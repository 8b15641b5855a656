"""CPU seconds of counting: codes in memory, and end to end from a Parquet and a CSV file.

Run: python bench/counting.py [--rows 1000000] [--columns 30] [--repeat 3]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from margent.counts.kernel import Codes
from margent.counts.source import CodedCounts, StreamedCounts
from margent.schema.domain import Clique, Domain
from margent.tables.source import TableSource, open_table


@dataclass(frozen=True)
class NamedField:
    name: str
    role: str = "model"
    listed: None = None


@dataclass(frozen=True)
class NamesOnly:
    fields: tuple[NamedField, ...]
    columns_read: tuple[str, ...]


@dataclass(frozen=True)
class IntegerCells:
    """The cheapest codec there is, so that the figures are those of reading and counting."""

    domain: Domain

    def encode(self, batch: pa.RecordBatch) -> list[Codes]:
        return [np.asarray(self._numbers(column), dtype=np.uint16) for column in batch.columns]

    @staticmethod
    def _numbers(column: pa.Array) -> pa.Array:
        return pc.cast(pc.cast(column, pa.string()), pa.uint16()) if pa.types.is_binary(column.type) else column


def cpu_seconds(call: Callable[[], Any], repeat: int) -> str:
    call()  # compile and warm up
    spent = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return f"{statistics.mean(spent):6.2f} s (runs {', '.join(f'{each:.2f}' for each in spent)})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=30)
    options.add_argument("--repeat", type=int, default=3)
    chosen = options.parse_args()
    generator = np.random.default_rng(1)

    for low, high in ((2, 20), (2, 100), (100, 256)):
        sizes = tuple(int(size) for size in generator.integers(low, high + 1, chosen.columns))
        names = tuple(f"c{place:02}" for place in range(chosen.columns))
        domain = Domain(names, sizes)
        columns = [generator.integers(0, size, chosen.rows).astype(np.uint16) for size in sizes]
        pairs: list[Clique] = list(itertools.combinations(names, 2))
        cells = sum(domain.cells(pair) for pair in pairs)
        memory = CodedCounts(columns, domain)
        spent = cpu_seconds(lambda: memory.count(pairs), chosen.repeat)  # noqa: B023 (called here only)
        print(f"{len(pairs)} pairs x {chosen.rows} rows, domains {low}..{high}, {cells} cells: {spent}")
        if high == 20:
            from_files(domain, columns, pairs, chosen.repeat)


def from_files(domain: Domain, columns: list[Any], pairs: list[Clique], repeat: int) -> None:
    schema: Any = NamesOnly(tuple(NamedField(name) for name in domain.names), domain.names)
    table = pa.table(dict(zip(domain.names, columns, strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        parquet, text = Path(folder) / "t.parquet", Path(folder) / "t.csv"
        pq.write_table(table, parquet)
        pyarrow.csv.write_csv(table, text)
        for path in (parquet, text):
            with open_table(path, schema) as source:
                from_source(source, path, StreamedCounts(source, IntegerCells(domain)), pairs, repeat)


def from_source(source: TableSource, path: Path, counts: StreamedCounts, pairs: list[Clique], repeat: int) -> None:
    megabytes = path.stat().st_size / 2**20
    reading = cpu_seconds(lambda: sum(batch.num_rows for batch in source.batches()), repeat)
    print(f"  {path.suffix} ({megabytes:.0f} MiB), reading alone: {reading}")
    print(f"  {path.suffix}, read, coded and counted: {cpu_seconds(lambda: counts.count(pairs), repeat)}")


if __name__ == "__main__":
    main()
