"""DenseMarg, PrivSyn's Algorithm 1: which pairs are worth their noise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from margent.collectors.allocation import SCALE, weight
from margent.schema.domain import Clique


def shrunk(scores: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """max(0, 1 - (m - 2) s^2 / |y|^2) y: m noisy scores pulled towards 0 as far as noise alone explains them.

    Where scores are mostly noise, half of them look like strong dependence, and tables would be bought for
    nothing; where dependence dominates, nothing changes.

    Shapes: one score a pair (m of them); fewer than 3 are left as they are.
    Units: records; ``deviation`` s is the noise of each score.
    Privacy: none: post-processing.
    Source: James and Stein 1961; not part of PrivSyn.

    >>> shrunk(np.array([3.0, -3.0, 3.0, -3.0]), 30.0).tolist()
    [0.0, -0.0, 0.0, -0.0]
    """
    power = float((scores**2).sum())
    if scores.size < 3 or power <= 0:
        return scores
    return scores * max(0.0, 1.0 - (scores.size - 2) * deviation**2 / power)


def select_pairs(
    dependence: NDArray[np.float64],
    cells: Sequence[int],
    error: float,
    most_cells: int = 10_000_000,
    scale_power: int = 2,
    allowed: Callable[[Sequence[int], int], bool] | None = None,
) -> tuple[int, ...]:
    """Greedily add the pair that lowers E(X) most, until none does; return the pairs in the order chosen.

    E(X) = e (sum over X of c^(2/3))^(3/2) + sum of phi over the pairs left out: the first term is the expected
    L1 noise of the chosen tables when their common share is split as c^(2/3) (as c^(1/2), with the square of the
    sum, where costs fall with the scale itself: ``scale_power`` 1), the second what is lost by taking the others
    as independent. One running sum makes each candidate O(1).

    Noisy scores can be negative; they count as 0, or leaving such a pair out would seem to be a gain. A pair
    that would bring the chosen cells over ``most_cells`` is passed over, and so is one that is not ``allowed`` beside
    those chosen before it.

    Shapes: ``dependence`` (noisy phi) and ``cells`` (c) have one entry a candidate pair.
    Units: phi in records; ``error`` e in records: the mean absolute noise of a cell, had one table the whole share.
    Privacy: none: post-processing of noisy scores.
    Source: PrivSyn 2021, Algorithm 1, stopping as soon as E no longer falls.

    >>> select_pairs(np.array([900.0, -5.0, 40.0]), [6, 6, 6], 10.0)
    (0,)
    """
    phi = np.maximum(dependence, 0.0)
    powers = np.array([weight(count, scale_power) / SCALE for count in cells])
    sizes = np.array(cells, dtype=np.float64)
    growth = (scale_power + 1) / scale_power
    taken = np.zeros(phi.size, dtype=np.bool_)
    chosen: list[int] = []
    room = float(most_cells)
    bought = noise = 0.0
    while not taken.all():
        sums = bought + powers
        # Change of E by adding each candidate.
        change = error * sums**growth - noise - phi
        change[taken | (sizes > room)] = np.inf
        best = int(np.argmin(change))
        if change[best] >= 0.0:
            break
        taken[best] = True
        if allowed is not None and not allowed(chosen, best):
            continue
        chosen.append(best)
        room -= sizes[best]
        bought += float(powers[best])
        noise = error * bought**growth
    return tuple(chosen)


def connect(
    lonely: Sequence[str], pairs: Sequence[Clique], dependence: NDArray[np.float64], covered: Collection[str]
) -> list[int]:
    """For each lonely column, the candidate pair of highest score that ties it to a covered column, if any.

    Shapes: ``pairs`` and ``dependence`` have one entry a candidate; the result holds positions in them.
    Privacy: none: post-processing of noisy scores.
    Source: PrivSyn's published code ("connect").

    >>> connect(["c"], [("a", "c"), ("b", "c")], np.array([1.0, 2.0]), {"a", "b"})
    [1]
    """
    added = []
    reached = set(covered)
    for name in lonely:
        ties = [place for place, pair in enumerate(pairs) if name in pair and set(pair) - {name} <= reached]
        if ties:
            added.append(max(ties, key=lambda place: (dependence[place], -place)))
            reached.add(name)
    return added
