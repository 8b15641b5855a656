"""From noisy scores to how far each pair departs from independence, without the bias of noisy one-ways."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Clique
from margent.transcript import Scores

Counts = NDArray[np.float64]
MEAN_ABSOLUTE = 0.8
"""About sqrt(2/pi) = .798, the mean absolute value of a normal number of variance one."""


def independent_table(singles: Mapping[str, Counts], names: Clique, total: float) -> Counts:
    """What a table would hold if the columns were independent: n^ times the product of their shares.

    Shapes: one axis a name, in that order. Units: records. Privacy: none: post-processing.

    >>> independent_table({"a": np.array([30.0, 10.0]), "b": np.array([20.0, 20.0])}, ("a", "b"), 40.0).tolist()
    [[15.0, 15.0], [5.0, 5.0]]
    """
    table = np.asarray(total)
    for name in names:
        table = np.multiply.outer(table, singles[name] / total)
    return table


def product_noise(
    first: Counts, second: Counts, deviations: tuple[Counts | float, Counts | float], total: float
) -> float:
    """Expected L1 change of the product q_a q_b / n^ when both one-ways get their noise once more.

    A score measured from noisy one-ways is this much too large even for independent columns. Cells that the
    simplex set to 0 stay near 0 under new noise and are left out.

    Units: records; ``deviations`` are the noise parameters s of the two one-ways, one for all codes or one a code
    (a group of merged codes has the noise of all of them).
    Privacy: none: post-processing.
    """
    rows, columns = first[first > 0], second[second > 0]
    row_noise = np.broadcast_to(np.asarray(deviations[0], dtype=np.float64), first.shape)[first > 0]
    column_noise = np.broadcast_to(np.asarray(deviations[1], dtype=np.float64), second.shape)[second > 0]
    spread = np.sqrt(np.square(np.outer(row_noise, columns)) + np.square(np.outer(rows, column_noise)))
    return MEAN_ABSOLUTE * float(spread.sum()) / total


def score_distances(scores: Scores, singles: Mapping[str, Counts], noise: Mapping[str, Counts], total: float) -> Counts:
    """What noisy scores say of each pair's distance from independence, without the one-ways' noise.

    Shapes: one entry a clique of ``scores``; ``singles`` are the one-ways the scores were measured from and
    ``noise`` their parameters s, one a code (none where a column has none).
    Units: records. Privacy: none: post-processing.
    """
    biases = [
        product_noise(singles[one], singles[two], (noise.get(one, 0.0), noise.get(two, 0.0)), total)
        for one, two in scores.cliques
    ]
    return distances_from_independence(scores.records(), np.array(biases), float(scores.variance), total)


def most_distances(scores: Scores, distances: Counts, deviations: float = 1.0) -> Counts:
    """The largest distances from independence that the noise of the scores still explains: so many deviations up.

    sqrt(phi^2 + z sqrt(4 S^2 s^2 + 2 s^4)), the noise being that of S^2.

    Shapes: one entry a clique of ``scores``; ``distances`` are theirs. Units: records.
    Privacy: none: post-processing.
    """
    positive, variance = np.maximum(scores.records(), 0.0), float(scores.variance)
    noise = np.sqrt(4 * np.square(positive) * variance + 2 * variance**2)
    most: Counts = np.sqrt(np.square(distances) + deviations * noise)
    return most


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
    kept = between / np.maximum(between + noise, 1e-300)
    # What is beyond the largest of so many scores of independent columns is believed the more the farther it is.
    alone = np.sqrt(2 * variance**2 + 4 * np.square(biases) * variance)
    beyond = (squares - middle) / np.maximum(alone, 1e-6 * np.abs(squares - middle) + 1e-300)
    beyond = np.minimum(np.maximum(beyond - math.sqrt(2) * math.log(scores.size + 1), 0.0), 100.0)
    kept = 1 - (1 - kept) * np.exp(-beyond)
    pulled = middle + kept * (squares - middle)
    return np.asarray(np.minimum(np.sqrt(np.maximum(pulled, 0.0)), 2 * total))
