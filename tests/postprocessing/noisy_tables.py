"""Tables with equal noise in every cell, and what is known from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.tables import Evidence, Table, WorkingDomain
from margent.schema.domain import Clique, Domain

Array = NDArray[np.float64]


def known(tables: list[Table], domain: Domain, total: float) -> Evidence:
    groups = {name: np.arange(size) for name, size in zip(domain.names, domain.sizes, strict=True)}
    return Evidence(WorkingDomain(domain, groups), tuple(tables), total)


def table(names: Clique, values: Array, deviation: float) -> Table:
    return Table(names, values, np.full_like(values, deviation**2))
