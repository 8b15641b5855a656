"""Small coded tables of our own making, and studies of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margent.internal.reading import counted
from margent.metrics.coded import CodedTable, Column, Kind
from margent.metrics.study import Choices, Study


def column(name: str, size: int, *, ordinal: bool = True, missing: bool = False) -> Column:
    inner = size - missing
    labels = tuple(f"{name}{code}" for code in range(inner)) + (("(missing)",) if missing else ())
    return Column(
        name, size, inner, ordinal and inner > 1, labels, (inner,) if missing else (), tuple(map(float, range(inner)))
    )


def table(rows: Sequence[Sequence[int]], width: int, name: str = "t", kind: Kind | str = "synthetic") -> CodedTable:
    codes = np.array(rows, dtype=np.uint8).reshape(len(rows), width)
    return CodedTable(name, kind, [np.ascontiguousarray(codes[:, place]) for place in range(width)], len(rows))  # type: ignore[arg-type]


def study(
    columns: Sequence[Column],
    real: Sequence[Sequence[int]],
    *others: Sequence[Sequence[int]],
    choices: Choices | None = None,
) -> Study:
    width = len(columns)
    tables = tuple(table(rows, width, f"t{place}") for place, rows in enumerate(others))
    return Study(tuple(columns), table(real, width, "real", "real"), tables, counted, choices or Choices())


def random_rows(sizes: Sequence[int], rows: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 10**6, rows)
    return np.stack([(first + rng.integers(0, size, rows) ** 2) % size for size in sizes], axis=1).tolist()  # type: ignore[no-any-return]
