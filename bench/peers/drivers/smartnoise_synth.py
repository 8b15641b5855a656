"""smartnoise-synth on codes; labels are learned from the public domain, never from the rows: no epsilon for that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from coded import Task, drive
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer


def synthesize(task: Task) -> Any:
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in task.names])
    # Rows that hold every code of every column; what a label is for is in them, and nothing of the table.
    transformer.fit([tuple(min(row, size - 1) for size in task.sizes) for row in range(max(task.sizes))])
    model = Synthesizer.create(task.method, epsilon=task.epsilon, delta=task.delta)
    # The documented frames have lost their types when they come back: rows of whole numbers stay what they are.
    model.fit([tuple(int(code) for code in row) for row in task.codes], transformer=transformer, preprocessor_eps=0.0)
    return np.asarray(pd.DataFrame(model.sample(task.rows)), dtype=np.int64)


if __name__ == "__main__":
    drive(synthesize)
