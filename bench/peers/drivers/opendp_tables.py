"""OpenDP's contingency table of all columns with public keys; it is asked for a rho, converted from epsilon and delta.

The converted rho is lowered by some millionths, because the library's rounding can otherwise pass it (`rounding.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from coded import Task, drive
from rounding import divisible
from zcdp import rho_of

dp.enable_features("contrib")


def synthesize(task: Task) -> Any:
    rho = rho_of(task.epsilon, task.delta)
    context = dp.Context.compositor(
        data=pl.LazyFrame({name: task.codes[:, place] for place, name in enumerate(task.names)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    algorithm = {"aim": dp.mbi.AIM, "mst": dp.mbi.MST}[task.method]()
    keys = {name: list(range(size)) for name, size in task.domain.items()}
    released = (
        context.query(rho=divisible(rho, max(len(task.names) - 1, 1)))
        .contingency_table(keys=keys, algorithm=algorithm)
        .release()
    )
    frame = released.synthesize(rows=task.rows)
    # No value at all is no code: -1.
    return np.stack([frame[name].cast(pl.Int64, strict=False).fill_null(-1).to_numpy() for name in task.names], axis=1)


if __name__ == "__main__":
    drive(synthesize)
