"""The small table that gates ask about, a ledger with room, and the rate of false alarms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.privacy.budget import Budget
from margent.schema.domain import Domain
from margent.schema.fields import Category, Schema

ALPHA = 1e-8
"""A statistical gate fails on a correct door with this probability at most."""

CELLS = 1_000_000
ROOMY = Budget(10_000, "0.001", accountant="zcdp")
"""Room for any noise scale that a gate wants to look at."""

PAIR = Schema([Category("a", ["0", "1", "2", "3"]), Category("b", ["0", "1", "2", "3"])], unit="row")
DOMAIN = Domain(("a", "b"), (4, 4))


def counted(table: NDArray[np.int64] | list[list[int]], domain: Domain = DOMAIN) -> CodedCounts:
    """A count source of a made-up table with these exact counts."""
    exact = np.asarray(table)
    places = np.repeat(np.arange(exact.size), exact.ravel())
    codes = np.unravel_index(places, exact.shape)
    return CodedCounts([np.asarray(code, dtype=np.uint32) for code in codes], domain)
