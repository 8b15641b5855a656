"""dpmm's three pipelines on codes with a public domain; its binning of raw columns is off and gets no epsilon."""

from __future__ import annotations

from typing import Any

import pandas as pd
from coded import Task, drive
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PIPELINES = {"aim": AIMPipeline, "mst": MSTPipeline, "privbayes": PrivBayesPipeline}


def synthesize(task: Task) -> Any:
    frame = pd.DataFrame(task.codes, columns=list(task.names))
    # One process, so that its processor seconds and its memory are seen whole.
    pipeline = PIPELINES[task.method](epsilon=task.epsilon, delta=task.delta, disable_processing=True, n_jobs=1)
    pipeline.fit(frame, domain=task.domain)
    return pipeline.generate(n_records=task.rows)[list(task.names)].to_numpy()


if __name__ == "__main__":
    drive(synthesize)
