"""Noisy counts of a column's codes, each believed as far as all the others make it likely.

Counts of neighboring codes are often alike (ages, amounts, dates), many codes hardly occur, and some stand out. None
of that is declared; all of it can be read off the noisy counts. So the true counts are taken to be a chain over
*levels* (0, then steps of a fixed ratio up to the number of records): from code to code the level stays near, or is
drawn anew from shares that belong to the column, and single codes may stick out without disturbing the chain. Shares
and chances are fitted to the noisy counts (empirical Bayes). Where order means nothing, fresh draws win and what is
left is shrinkage towards the levels that the column has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.levels_steps import beliefs, likelihoods

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class LevelSettings:
    """The chain before it has seen a column.

    ``ratio`` of a level to the one below, ``lowest`` level in standard deviations of the noise, ``width`` of a level in
    its distance to the next, ``reach`` the farthest level that counts as near; ``fresh`` and ``spike`` the chances of
    a new level and of a code that sticks out at first; ``even`` imagined codes, one part on each level, that keep the
    shares from running to extremes; ``rounds`` of the fit. Columns of fewer than ``fewest`` codes have too little to
    tell about a chain, and those of more than ``most`` would need too much memory; both are left as they are.

    Privacy: none: the same for all tables.
    """

    ratio: float = 1.3
    lowest: float = 0.01
    width: float = 0.5
    reach: int = 2
    fresh: float = 0.3
    spike: float = 0.1
    even: float = 8.0
    rounds: int = 12
    fewest: int = 8
    most: int = 100_000


DEFAULT = LevelSettings()


def expected_counts(
    values: Counts, variance: Counts, total: float, settings: LevelSettings = DEFAULT
) -> tuple[Counts, Counts]:
    """E[x | y] and Var[x | y] of a column's counts x under noisy y = x + N(0, s^2) and the fitted chain of levels.

    A level g stands for counts N(g, tau^2), tau a part of the distance to the next level; given the level, a count is
    g + tau^2 / (tau^2 + s^2) (y - g).

    Shapes: one entry a code in the order of the codes. Units: records; ``variance`` s^2 in records squared, one a
    code. Privacy: none: post-processing. Source: hidden Markov chains (Baum, Petrie, Soules and Weiss 1970), fitted
    by empirical Bayes.

    >>> noisy = np.array([9.0, 12.0, 11.0, 8.0, 10.0, 2.0, -3.0, 1.0, -2.0, 2.0])
    >>> counts, variance = expected_counts(noisy, np.full(10, 9.0), 50.0)
    >>> counts.round().tolist()
    [9.0, 10.0, 10.0, 9.0, 9.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    >>> bool((variance < 9.0).all())
    True
    """
    if not settings.fewest <= values.size <= settings.most:
        return values, variance
    deviation = math.sqrt(float(variance.mean()))
    levels = _levels(settings, deviation, max(total, float(values.max())))
    widths = settings.width * (settings.ratio - 1) * levels
    fits = likelihoods(values, variance, levels, widths)
    common = np.full(levels.size, 1 / levels.size)
    imagined = 0.5 ** np.arange(settings.reach + 1.0)
    # A distance other than 0 is two moves, up and down.
    ways = np.where(np.arange(settings.reach + 1) == 0, 1.0, 2.0)
    near = imagined / float((imagined * ways).sum())
    fresh, spike = settings.fresh, settings.spike
    for _ in range(settings.rounds):
        posterior, draws, moves, news, spikes = beliefs(fits, common, near, fresh, spike)
        common = draws + settings.even / levels.size
        common /= float(common.sum())
        near = (moves + imagined) / ways
        near /= float((near * ways).sum())
        fresh = (news + 1) / (news + float(moves.sum()) + 2)
        spike = (spikes + 1) / (values.size + 2)
    trust = np.square(widths) / (np.square(widths) + variance[:, np.newaxis])
    means = levels + trust * (values[:, np.newaxis] - levels)
    mean = (posterior * means).sum(axis=1)
    squares = (posterior * (np.square(means) + trust * variance[:, np.newaxis])).sum(axis=1)
    return mean, np.maximum(squares - np.square(mean), 0.0)


def _levels(settings: LevelSettings, deviation: float, largest: float) -> Counts:
    """0, then lowest, lowest * ratio, ... until the largest count is passed."""
    levels = [0.0, max(settings.lowest * deviation, 1e-6)]
    while levels[-1] < largest:
        levels.append(levels[-1] * settings.ratio)
    return np.array(levels)
