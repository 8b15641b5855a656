"""CPU seconds to settle which rows of each person are counted, a million rows at a time.

    python bench/persons.py [--rows 1000000] [--people 400000] [--most 2]

Ids as text, as whole numbers, and as text with a table planned for a hundredth of the persons there are.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from margent.counts.contribution import KeptRows
from margent.counts.identity import Identity


@dataclass
class Held:
    table: pa.Table

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(max_chunksize=65_536)


def seconds(ids: pa.Array, most: int, people: int) -> float:
    """The median of five runs, after one that compiles."""
    held, spent = Held(pa.table({"id": ids})), []
    for _ in range(6):
        start = time.process_time()
        kept = KeptRows(held, Identity("id", ("",), "string"), most, people)
        count = sum(batch.num_rows for batch in kept.batches())
        spent.append(time.process_time() - start)
        assert count > 0
    return statistics.median(spent[1:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=400_000)
    parser.add_argument("--most", type=int, default=2)
    options = parser.parse_args()
    numbers = pa.array(np.random.default_rng(1).integers(0, options.people, options.rows))
    millions = options.rows / 1e6
    for name, ids, people in (
        ("text", numbers.cast(pa.string()), options.people),
        ("whole numbers", numbers, options.people),
        ("text, planned for a hundredth", numbers.cast(pa.string()), options.people // 100),
    ):
        print(f"{name}: {seconds(ids, options.most, people) / millions:.3f} CPU s a million rows", flush=True)


if __name__ == "__main__":
    main()
