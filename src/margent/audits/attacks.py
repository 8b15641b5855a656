"""An adversary, who chooses the tables, sees only what the door gave out, and guesses.

A `Door` is whatever answers for a table: the real curator in the self test, a planted fault in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.audits.bounds import gaussian_bound
from margent.privacy.budget import Budget

Door = Callable[[NDArray[np.int64], Budget], NDArray[np.int64]]
"""Exact counts of one table in, what is published for the whole of a budget out, of the same shape."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What an audit showed: a lower bound on the loss, what was promised, and from how much evidence.

    Units: ``found`` and ``promised`` are both epsilon, or both mu.
    """

    found: float
    promised: float
    trials: int

    @property
    def broken(self) -> bool:
        """Whether the promise is shown to be false."""
        return self.found > self.promised


def cell_by_cell(door: Door, budget: Budget, coins: NDArray[np.bool_], alpha: float) -> Bound:
    """Guess from one run which of many empty cells hold a canary: each does with probability 1/2.

    Cells are judged as so many independent tables, which is sharp, and blind to noise shared by cells. A cell is taken
    to hold its canary where the answer is above 1/2, the best threshold for symmetric noise. On a correct door, whose
    cells are independent, the bound passes the promise with probability ``alpha`` at most.

    Shapes: ``coins`` (canaries,).
    Units: mu.
    Privacy: none: the table is made up.
    """
    above = door(coins.astype(np.int64), budget) > 0
    trials = int(min(np.count_nonzero(coins), np.count_nonzero(~coins)))
    false_alarms = int(np.count_nonzero(above[~coins][:trials]))
    misses = int(np.count_nonzero(~above[coins][:trials]))
    return Bound(gaussian_bound(false_alarms, misses, trials, alpha), mu_of(budget), coins.size)


def mu_of(budget: Budget) -> float:
    """The mu that a budget in the Gaussian account stands for: cost = mu^2 / 2.

    Privacy: none: public arithmetic.

    >>> round(mu_of(Budget(1, 1e-6)), 4)
    0.2367
    """
    return math.sqrt(2 * budget.total)
