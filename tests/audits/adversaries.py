"""Adversaries and bounds that the audits use beside those of the self test: one run without assumptions, many runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from margent.audits.attacks import Bound, Door
from margent.audits.bounds import chance_at_most, gaussian_bound
from margent.privacy.budget import Budget

HALVINGS = 40


def one_run(door: Door, budget: Budget, canaries: int, coins: NDArray[np.bool_], alpha: float) -> Bound:
    """Guess from one run which of many empty cells hold a canary: each does with probability 1/2.

    The adversary guesses only where the answer is surest: the lowest and the highest hundredth.

    Shapes: ``coins`` (canaries,).
    Source: Steinke, Nasr, Jagielski 2023.
    """
    answers = door(coins.astype(np.int64), budget)
    guesses = max(canaries // 100, 20)
    order = np.argsort(answers, kind="stable")
    half = guesses // 2
    right = int(np.count_nonzero(~coins[order[:half]]) + np.count_nonzero(coins[order[-half:]]))
    found = one_run_bound(right, 2 * half, canaries, float(budget.delta), alpha)
    return Bound(found, float(budget.epsilon), canaries)


def many_runs(
    without: Callable[[], float], within: Callable[[], float], *, trials: int, mu: float, alpha: float
) -> Bound:
    """Guess by a threshold, fixed on a first half of the runs, whether one record was there.

    ``without`` and ``within`` each make one run and give the statistic that the adversary looks at.

    Units: mu.
    """
    half = trials // 2
    left, right = (np.array([run() for _ in range(trials)], dtype=np.float64) for run in (without, within))
    threshold = best_threshold(left[:half], right[:half])
    left, right = left[half:], right[half:]
    return Bound(gaussian_bound(_above(left, threshold), _below(right, threshold), left.size, alpha), mu, trials)


def best_threshold(without: NDArray[np.float64], within: NDArray[np.float64]) -> float:
    """The threshold that tells the two samples apart best under a Gaussian trade-off, among their midpoints."""
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


def epsilon_bound(false_alarms: int, misses: int, trials: int, delta: float, alpha: float) -> float:
    """A lower bound on epsilon that assumes no shape: (1 - b - delta) / a and the same with a and b changed over.

    Units: epsilon; at least 0.
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
    Source: Steinke, Nasr, Jagielski 2023, Theorem 1.1.
    """
    if guesses == 0 or _one_run_chance(right, guesses, canaries, delta, 0.0) > alpha:
        return 0.0
    low, high = 0.0, 50.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _one_run_chance(right, guesses, canaries, delta, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def _one_run_chance(right: int, guesses: int, canaries: int, delta: float, epsilon: float) -> float:
    """The greatest chance of so many right guesses that (epsilon, delta) allows."""
    masses = stats.binom.pmf(np.arange(guesses + 1), guesses, 1 / (1 + math.exp(-epsilon)))
    tails = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])  # tails[k] = Pr[X >= k]
    base = float(tails[right]) if right <= guesses else 0.0
    # Delta may turn up to i wrong guesses right, at a chance of 2 m delta / i.
    steps = np.arange(1, right + 1)
    extra = float(((tails[right - steps] - base) / steps).max()) if right else 0.0
    return base + 2 * canaries * delta * extra
