"""The loops of the level chain, compiled: how likely every level is at every code, and one step of Baum and Welch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.postprocessing.steady import exponential, logarithm

Counts = NDArray[np.float64]


@compiled
def likelihoods(values: Counts, variance: Counts, levels: Counts, widths: Counts) -> Counts:
    """Normal density of every noisy count at every level, up to a factor a code: the largest of a code is 1.

    Shapes: k values, G levels -> (k, G). Units: records; ``variance`` in records squared.
    Privacy: none: post-processing.
    """
    fits = np.empty((values.size, levels.size))
    for code in range(values.size):
        top = -1e300
        for level in range(levels.size):
            wide = variance[code] + widths[level] * widths[level]
            apart = values[code] - levels[level]
            fits[code, level] = -0.5 * apart * apart / wide - 0.5 * logarithm(wide)
            top = max(top, fits[code, level])
        for level in range(levels.size):
            fits[code, level] = exponential(fits[code, level] - top)
    return fits


@compiled
def beliefs(
    fits: Counts, common: Counts, near: Counts, fresh: float, spike: float
) -> tuple[Counts, Counts, Counts, float, float]:
    """Forward and backward over the chain: the posterior of every code's level, and the expected events behind it.

    From one code to the next the level moves by d places with chance (1 - fresh) near[|d|] (renormalized at the ends)
    or is drawn anew from ``common`` with chance ``fresh``; a code is a spike with chance ``spike``: its own level is
    then drawn from ``common`` and the chain's goes on beneath it.

    Returns the posterior (k, G), the expected draws of each level (G), the expected moves by each distance, and the
    expected numbers of fresh levels and of spikes.

    Shapes: ``fits`` (k, G), ``common`` (G), ``near`` one entry a distance.
    Privacy: none: post-processing. Source: Baum, Petrie, Soules and Weiss 1970.
    """
    codes, levels, reach = fits.shape[0], fits.shape[1], near.size - 1
    whole = np.zeros(levels)
    for level in range(levels):
        for other in range(max(level - reach, 0), min(level + reach + 1, levels)):
            whole[level] += near[abs(level - other)]
    drawn = np.zeros(codes)
    seen = np.empty((codes, levels))
    for code in range(codes):
        for level in range(levels):
            drawn[code] += common[level] * fits[code, level]
        for level in range(levels):
            seen[code, level] = (1 - spike) * fits[code, level] + spike * drawn[code]
    forward, scale = np.empty((codes, levels)), np.zeros(codes)
    for code in range(codes):
        for level in range(levels):
            reached = common[level]
            if code > 0:
                moved = 0.0
                for other in range(max(level - reach, 0), min(level + reach + 1, levels)):
                    moved += forward[code - 1, other] * near[abs(level - other)] / whole[other]
                reached = (1 - fresh) * moved + fresh * reached
            forward[code, level] = reached * seen[code, level]
            scale[code] += forward[code, level]
        for level in range(levels):
            forward[code, level] /= scale[code]
    draws, moves, news, spikes = np.zeros(levels), np.zeros(near.size), 0.0, 0.0
    posterior, ahead, later = np.empty((codes, levels)), np.empty(levels), np.ones(levels)
    for code in range(codes - 1, -1, -1):
        outside = 0.0
        for level in range(levels):
            belief = forward[code, level] * later[level]
            own = belief * (1 - spike) * fits[code, level] / seen[code, level]
            posterior[code, level] = own
            outside += belief - own
            if code == 0:
                draws[level] += belief
        for level in range(levels):
            share = outside * common[level] * fits[code, level] / drawn[code]
            posterior[code, level] += share
            draws[level] += share
        spikes += outside
        if code == 0:
            break
        anew = 0.0
        for level in range(levels):
            ahead[level] = later[level] * seen[code, level] / scale[code]
            anew += common[level] * ahead[level]
            draws[level] += fresh * common[level] * ahead[level]
        news += fresh * anew
        for level in range(levels):
            moved = 0.0
            for other in range(max(level - reach, 0), min(level + reach + 1, levels)):
                step = near[abs(level - other)] / whole[level] * ahead[other]
                moved += step
                moves[abs(level - other)] += forward[code - 1, level] * (1 - fresh) * step
            later[level] = (1 - fresh) * moved + fresh * anew
    return posterior, draws, moves, news, spikes
