"""CPU seconds of the codec: an adult-like table as raw CSV text encoded, and its codes decoded, per million rows.

Run: python bench/codec.py [--rows 1000000] [--repeat 3]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from margent.schema.codec import Codec
from margent.schema.fields import Category, Date, DateTime, Integer, Number, Schema

BATCH_ROWS = 2**16

SCHEMA = Schema(
    [
        Integer("age", 17, 90, required=True),
        Category("work", [f"work {i}" for i in range(8)], missing_values=["", "?"]),
        Integer("weight", 12285, 1490400, bins=32, required=True),
        Category("education", [f"level {i}" for i in range(16)], required=True),
        Integer("years", 1, 16, required=True),
        Category("marital", [f"status {i}" for i in range(7)], required=True),
        Category("occupation", [f"job {i}" for i in range(14)], missing_values=["", "?"]),
        Category("sex", ["Female", "Male"], required=True),
        Integer("gain", 0, 99999, bins=[0, 1, 1000, 5000, 20000, 99999], required=True),
        Integer("hours", 1, 99, required=True),
        Category("country", [f"country {i}" for i in range(41)], missing_values=["", "?"]),
        Category("income", ["<=50K", ">50K"], required=True),
        Number("latitude", 44.89046025, 45.05124, bins=32),
        Date("born", "1920-01-01", "2020-12-31", bins="year"),
        DateTime("seen", "2017-01-01", "2017-12-31T23:59:59", time_zone="America/Chicago", bins="month"),
    ],
    unit="row",
)


def seconds(task: Callable[[], object], repeat: int) -> float:
    """Mean CPU seconds."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return statistics.mean(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    codec = Codec(SCHEMA)
    rng = np.random.default_rng(1)
    allowed = [np.flatnonzero(codec.sampleable[name]) for name in codec.domain.names]
    codes = np.stack([rng.choice(choices, options.rows) for choices in allowed], axis=1).astype(np.int32)
    text = codec.decode_text(codes, seed=1)
    typed = codec.decode(codes, seed=1)
    raw = text.cast(pa.schema([(name, pa.binary()) for name in text.column_names]))
    tasks = {
        "encode text": lambda: [codec.encode(batch) for batch in raw.to_batches(BATCH_ROWS)],
        "encode typed": lambda: [codec.encode(batch) for batch in typed.to_batches(BATCH_ROWS)],
        "decode text": lambda: codec.decode_text(codes, seed=1),
        "decode typed": lambda: codec.decode(codes, seed=1),
    }
    for name, task in tasks.items():
        print(
            f"{name:<14}{seconds(task, options.repeat):6.2f} s CPU for {options.rows:,} rows x {codes.shape[1]} columns"
        )


if __name__ == "__main__":
    main()
