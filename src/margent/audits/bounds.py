"""A lower bound on mu from how well an adversary guessed, with a stated chance of being wrong."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_NORMAL = NormalDist()
_STEPS = 40  # halvings of an interval: far below the width of any bound reported


def _log_masses(trials: int, chance: float) -> NDArray[np.float64]:
    """log Pr[X = k] for k = 0 .. trials."""
    counts = np.arange(trials + 1)
    return np.asarray(_log_ways(trials) + counts * math.log(chance) + (trials - counts) * math.log1p(-chance))


@lru_cache(maxsize=8)
def _log_ways(trials: int) -> NDArray[np.float64]:
    """log of the number of ways to choose k of ``trials``, k = 0 .. trials."""
    factorials = np.array([math.lgamma(count + 1) for count in range(trials + 1)])
    return np.asarray(factorials[-1] - factorials - factorials[::-1])


def chance_at_most(successes: int, trials: int, alpha: float) -> float:
    """The Clopper-Pearson bound: with confidence 1 - alpha the true chance of a success is at most this.

    Privacy: none: arithmetic on an audit's outcomes.

    >>> round(chance_at_most(0, 100, 0.05), 6)
    0.029513
    """
    if successes >= trials:
        return 1.0
    low, high = successes / trials, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle >= 1:
            break
        # Too large a chance would make so few successes rare; the lower tail is summed itself, since one minus
        # the upper one would lose all digits of a small alpha.
        if float(np.exp(_log_masses(trials, middle)[: successes + 1]).sum()) <= alpha:
            high = middle
        else:
            low = middle
    return high


def gaussian_bound(false_alarms: int, misses: int, trials: int, alpha: float) -> float:
    """A lower bound on mu if the trade-off curve is Gaussian: mu >= Phi^-1(1 - a) - Phi^-1(b).

    ``false_alarms`` of ``trials`` tables without the record were taken to hold it (share a), ``misses`` of as
    many tables with it were not (share b). Both shares are replaced by upper confidence bounds of alpha/2.

    Units: mu of Gaussian differential privacy; at least 0.
    Privacy: none: arithmetic on an audit's outcomes.
    Source: Nasr et al. 2023 (auditing under f-DP); Dong, Roth, Su 2022.
    """
    alarm = chance_at_most(false_alarms, trials, alpha / 2)
    miss = chance_at_most(misses, trials, alpha / 2)
    if alarm + miss >= 1:
        return 0.0
    return _NORMAL.inv_cdf(1 - alarm) - _NORMAL.inv_cdf(miss)
