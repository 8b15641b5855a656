"""Lower bounds on epsilon and mu from how well an adversary guessed, each with a stated chance of being wrong."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_NORMAL = NormalDist()
_STEPS = 40  # halvings of an interval: far below the width of any bound reported


def binomial_tail(successes: int, trials: int, chance: float) -> float:
    """Pr[X >= successes] for X ~ Binomial(trials, chance).

    Privacy: none: arithmetic.

    >>> round(binomial_tail(2, 3, 0.5), 12)
    0.5
    """
    if successes <= 0:
        return 1.0
    if successes > trials or chance <= 0:
        return 0.0
    if chance >= 1:
        return 1.0
    return float(np.exp(_log_masses(trials, chance)[successes:]).sum())


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


def epsilon_bound(false_alarms: int, misses: int, trials: int, delta: float, alpha: float) -> float:
    """A lower bound on epsilon that assumes no shape: (1 - b - delta) / a and the same with a and b changed over.

    Units: epsilon; at least 0.
    Privacy: none: arithmetic on an audit's outcomes.
    Source: Kairouz, Oh, Viswanath 2015; with Clopper-Pearson bounds, Jagielski, Ullman, Oprea 2020.
    """
    alarm = chance_at_most(false_alarms, trials, alpha / 2)
    miss = chance_at_most(misses, trials, alpha / 2)
    ratios = [(1 - miss - delta) / alarm, (1 - alarm - delta) / miss]
    best = max(ratios)
    return math.log(best) if best > 1 else 0.0


def one_run_bound(right: int, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """A lower bound on epsilon from one run: ``right`` of ``guesses`` about ``canaries`` independent coins.

    Under (epsilon, delta) the number of right guesses is at most a Binomial(guesses, e^eps / (1 + e^eps)) plus
    what delta adds; the bound is the largest epsilon that this makes rarer than ``alpha``.

    Units: epsilon; at least 0.
    Privacy: none: arithmetic on an audit's outcomes.
    Source: Steinke, Nasr, Jagielski 2023, Theorem 1.1.
    """
    if guesses == 0 or _one_run_chance(right, guesses, canaries, delta, 0.0) > alpha:
        return 0.0
    low, high = 0.0, 50.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _one_run_chance(right, guesses, canaries, delta, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def _one_run_chance(right: int, guesses: int, canaries: int, delta: float, epsilon: float) -> float:
    """The greatest chance of so many right guesses that (epsilon, delta) allows."""
    masses = np.exp(_log_masses(guesses, 1 / (1 + math.exp(-epsilon))))
    tails = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])  # tails[k] = Pr[X >= k]
    base = float(tails[right]) if right <= guesses else 0.0
    # Delta may turn up to i wrong guesses right, at a chance of 2 m delta / i.
    steps = np.arange(1, right + 1)
    extra = float(((tails[right - steps] - base) / steps).max()) if right else 0.0
    return base + 2 * canaries * delta * extra
