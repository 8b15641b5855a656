"""Two tables that are NOT private, to hold the others against: real rows drawn again; exact one-ways, independent."""

from __future__ import annotations

from typing import Any

import numpy as np
from coded import Task, drive


def synthesize(task: Task) -> Any:
    rng = np.random.default_rng()
    if task.method == "resample":
        return task.codes[rng.integers(0, task.rows, task.rows)]
    return np.stack([column[rng.integers(0, task.rows, task.rows)] for column in task.codes.T], axis=1)


if __name__ == "__main__":
    drive(synthesize)
