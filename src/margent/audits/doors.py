"""The real door, as an adversary reaches it: a made-up table in, the noisy answers out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.queries import marginal_law
from margent.privacy.requests import MarginalRequest
from margent.schema.domain import Domain
from margent.schema.fields import Integer, Schema


def one_marginal(table: NDArray[np.int64], budget: Budget) -> NDArray[np.int64]:
    """The noisy one-way marginal of a table with these exact counts, for the whole of ``budget``.

    Shapes: (cells,), (cells,).
    Units: records.
    Privacy: none: the table is made up.
    """
    codes = np.repeat(np.arange(table.size, dtype=np.uint32), table)
    domain = Domain(("cell",), (table.size,))
    schema = Schema([Integer("cell", 0, table.size - 1, bins=table.size)], unit="row")
    curator = DataCurator(schema, CodedCounts([codes], domain), Ledger(budget))
    law = marginal_law(budget.total, budget.neighbors, curator.account)
    (answer,) = curator.measure([MarginalRequest(("cell",), law)], label="audit")
    return answer.counts
