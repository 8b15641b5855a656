"""From noisy scores to how far each pair departs from independence, without the bias of noisy one-ways."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]
MEAN_ABSOLUTE = 0.8
"""sqrt(2/pi): mean absolute value of a normal number of variance one."""


def product_noise(first: Counts, second: Counts, deviations: tuple[float, float], total: float) -> float:
    """Expected L1 change of the product q_a q_b / n^ when both one-ways get their noise once more.

    A score measured from noisy one-ways is this much too large even for independent columns. Cells that the
    simplex set to 0 stay near 0 under new noise and are left out.

    Units: records; ``deviations`` are the noise parameters s of the two one-ways.
    Privacy: none: post-processing.
    """
    rows, columns = first[first > 0], second[second > 0]
    spread = np.sqrt(
        np.square(columns)[np.newaxis, :] * deviations[0] ** 2 + np.square(rows)[:, np.newaxis] * deviations[1] ** 2
    )
    return MEAN_ABSOLUTE * float(spread.sum()) / total


def distances_from_independence(scores: Counts, biases: Counts, variance: float, total: float) -> Counts:
    """phi = sqrt(max(S^2 - B^2 - s^2, 0)) of every pair, its square pulled to the mean of all, at most 2 n^.

    Picking the largest of thousands of noisy scores picks noise. The squares are shrunk as normal means are:
    by the variance between pairs over that variance plus the noise of S^2, which is 4 S^2 s^2 + 2 s^4.

    Shapes: one entry a pair. Units: records; ``variance`` is that of a score.
    Privacy: none: post-processing. Source: James and Stein 1961, as empirical Bayes (Efron and Morris 1973).
    """
    if scores.size == 0:
        return np.zeros(0)
    positive = np.maximum(scores, 0.0)
    squares = np.square(positive) - np.square(biases) - variance
    noise = 4 * np.square(positive) * variance + 2 * variance**2
    middle = float(squares.mean())
    between = max(float(np.square(squares - middle).mean()) - float(noise.mean()), 0.0)
    pulled = middle + between / np.maximum(between + noise, 1e-300) * (squares - middle)
    return np.asarray(np.minimum(np.sqrt(np.maximum(pulled, 0.0)), 2 * total))
