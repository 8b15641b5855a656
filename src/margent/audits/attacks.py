"""Adversaries: each chooses the tables, sees only what the door gave out, and guesses.

A `Door` is whatever answers for a table: the real curator in the self test, a planted fault in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.audits.bounds import gaussian_bound, one_run_bound
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


def one_run(door: Door, budget: Budget, canaries: int, coins: NDArray[np.bool_], alpha: float) -> Bound:
    """Guess from one run which of many empty cells hold a canary: each does with probability 1/2.

    The adversary guesses only where the answer is surest: the lowest and the highest hundredth.

    Shapes: ``coins`` (canaries,).
    Privacy: none: the table is made up.
    Source: Steinke, Nasr, Jagielski 2023.
    """
    answers = door(coins.astype(np.int64), budget)
    guesses = max(canaries // 100, 20)
    order = np.argsort(answers, kind="stable")
    half = guesses // 2
    right = int(np.count_nonzero(~coins[order[:half]]) + np.count_nonzero(coins[order[-half:]]))
    found = one_run_bound(right, 2 * half, canaries, float(budget.delta), alpha)
    return Bound(found, float(budget.epsilon), canaries)


def cell_by_cell(door: Door, budget: Budget, coins: NDArray[np.bool_], alpha: float) -> Bound:
    """As `one_run`, judged cell by cell as independent tables: sharper, and blind to noise shared by cells.

    A cell is taken to hold its canary where the answer is above 1/2, the best threshold for symmetric noise. On
    a correct door, whose cells are independent, the bound passes the promise with probability ``alpha`` at most.

    Shapes: ``coins`` (canaries,).
    Units: mu.
    Privacy: none: the table is made up.
    """
    above = door(coins.astype(np.int64), budget) > 0
    trials = int(min(np.count_nonzero(coins), np.count_nonzero(~coins)))
    false_alarms = int(np.count_nonzero(above[~coins][:trials]))
    misses = int(np.count_nonzero(~above[coins][:trials]))
    return Bound(gaussian_bound(false_alarms, misses, trials, alpha), mu_of(budget), coins.size)


def many_runs(
    without: Callable[[], float], within: Callable[[], float], *, trials: int, mu: float, alpha: float
) -> Bound:
    """Guess by a threshold, fixed on a first half of the runs, whether one record was there.

    ``without`` and ``within`` each make one run and give the statistic that the adversary looks at.

    Units: mu.
    Privacy: none: the tables are made up.
    """
    half = trials // 2
    left, right = (np.array([run() for _ in range(trials)], dtype=np.float64) for run in (without, within))
    threshold = best_threshold(left[:half], right[:half])
    left, right = left[half:], right[half:]
    return Bound(gaussian_bound(_above(left, threshold), _below(right, threshold), left.size, alpha), mu, trials)


def best_threshold(without: NDArray[np.float64], within: NDArray[np.float64]) -> float:
    """The threshold that tells the two samples apart best under a Gaussian trade-off, among their midpoints.

    Privacy: none: arithmetic on an audit's outcomes.
    """
    together = np.unique(np.concatenate([without, within]))
    if together.size == 1:
        return float(together[0])
    candidates = (together[1:] + together[:-1]) / 2
    candidates = candidates[:: max(1, candidates.size // 64)]
    scores = [
        gaussian_bound(_above(without, cut), _below(within, cut), without.size, 0.05) for cut in candidates.tolist()
    ]
    best = int(np.argmax(scores))
    return float(candidates[best]) if scores[best] > 0 else float(np.median(together))


def _above(sample: NDArray[np.float64], threshold: float) -> int:
    return int(np.count_nonzero(sample > threshold))


def _below(sample: NDArray[np.float64], threshold: float) -> int:
    return int(np.count_nonzero(sample <= threshold))


def mu_of(budget: Budget) -> float:
    """The mu that a budget in the Gaussian account stands for: cost = mu^2 / 2.

    Privacy: none: public arithmetic.

    >>> round(mu_of(Budget(1, 1e-6)), 4)
    0.2367
    """
    return math.sqrt(2 * budget.total)
