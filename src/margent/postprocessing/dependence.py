"""From noisy scores to how far each pair departs from independence, without the bias of noisy one-ways."""

from __future__ import annotations

import math

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


def distance_from_independence(score: float, bias: float, variance: float, total: float) -> float:
    """phi = sqrt(max(max(S, 0)^2 - B^2 - s^2, 0)), at most 2 n^.

    Units: records. Privacy: none: post-processing.
    """
    squared = max(score, 0.0) ** 2 - bias**2 - variance
    return min(math.sqrt(max(squared, 0.0)), 2 * total)
