"""privsyn-core, as its documentation shows: fit on codes with the domain, sample."""

from __future__ import annotations

from typing import Any

import pandas as pd
from coded import Task, drive

from privsyn import PrivSynModel


def synthesize(task: Task) -> Any:
    frame = pd.DataFrame(task.codes, columns=list(task.names))
    model = PrivSynModel(epsilon=task.epsilon, delta=task.delta)
    model.fit(frame, task.domain)
    return model.sample(task.rows)[list(task.names)].to_numpy()


if __name__ == "__main__":
    drive(synthesize)
