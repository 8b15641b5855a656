"""Margent through its public door: a schema of categories from the domain, a table's path, a release's frame."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from coded import Task, drive

import margent
from margent import Budget, Category, Schema


def synthesize(task: Task) -> Any:
    fields = [
        Category(name, [str(code) for code in range(size)], ordered=ordered, required=True)
        for name, size, ordered in zip(task.names, task.sizes, task.ordered, strict=True)
    ]
    schema = Schema(fields, unit="row")
    budget = Budget(epsilon=repr(task.epsilon), delta=repr(task.delta))
    table = Path(sys.argv[2]) / "coded.csv"
    release = margent.synthesize(table, schema, budget=budget, method=task.method)
    frame = release.to_pandas()
    return np.stack([frame[name].to_numpy().astype(np.int64) for name in task.names], axis=1)


if __name__ == "__main__":
    drive(synthesize)
