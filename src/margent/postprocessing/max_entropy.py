"""The table of most entropy among those with given margins: what is known of k columns, and nothing else.

Iterative scaling finds it where the margins come from some table. Noisy margins may not, even if every two of them
agree (three pairs around a cycle). Scaling would then go round in circles; averaged scaling ends where the
margins are met as well as they can be, in Kullback-Leibler divergence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.errors import PlanError

Axes = tuple[int, ...]
Counts = NDArray[np.float64]

MOST_CELLS = 2**21
"""Most cells of a table that is reconstructed."""


@dataclass(frozen=True, eq=False)
class MaxEntropy:
    """A reconstructed table, and how well it meets the margins.

    Shapes: ``values`` has the shape that was asked for, no cell below 0.
    Units: records; ``gap`` is the largest L1 distance of a margin from its target, as a share of the total: above the
    tolerance where no table has these margins.
    """

    values: Counts
    gap: float


@dataclass(frozen=True)
class Scaling:
    """When iterative scaling ends, and what follows where it does not.

    ``rounds`` over all margins at most; done once every margin is within ``tolerance`` of its target (L1, a share of
    the total). ``floor``: share of each target that is spread evenly, so that an empty cell of one margin
    cannot make another impossible; ``soft``: that share where no table has the margins, since their empty cells
    are then in doubt too. ``steps``: of averaged scaling at most.

    Privacy: none: post-processing.
    """

    rounds: int = 200
    tolerance: float = 1e-4
    floor: float = 1e-9
    soft: float = 1e-3
    steps: int = 300


def max_entropy(
    shape: Sequence[int], targets: Mapping[Axes, Counts], total: float, settings: Scaling | None = None
) -> MaxEntropy:
    """The table of most entropy whose sums onto each of the axes are the targets.

    Negative cells of a target count as 0 and every target is scaled to ``total``; a target without mass says nothing.
    Without targets the table is even.

    Shapes: ``targets[axes]`` has one axis for each of ``axes``, which ascend.
    Units: records; a total of 0 or less gives zeros.
    Privacy: none: post-processing.
    Source: iterative proportional fitting (Deming, Stephan 1940; Csiszar 1975) as in PriView (Qardaji, Yang, Li 2014)
    section 4.5; averaged scaling for margins that no table has (Byrne 1993: SMART).
    Raises: PlanError where the table has more than `MOST_CELLS` cells.
    """
    settings = settings or Scaling()
    cells = math.prod(int(size) for size in shape)
    if cells > MOST_CELLS:
        raise PlanError(f"a table of {cells:,} cells cannot be reconstructed; the most is {MOST_CELLS:,}")
    if total <= 0:
        return MaxEntropy(np.zeros(tuple(shape)), 0.0)
    wanted = {}
    for axes, target in sorted(targets.items()):
        positive = np.maximum(target, 0.0)
        mass = float(positive.sum())
        if axes and mass > 0:
            even = settings.floor / positive.size
            wanted[axes] = ((1.0 - settings.floor) * positive / mass + even).reshape(
                [size if axis in axes else 1 for axis, size in enumerate(shape)]
            )
    margins = list(wanted.values())
    if not margins:
        return MaxEntropy(np.full(tuple(shape), total / cells), 0.0)
    sums = [tuple(axis for axis in range(len(shape)) if axis not in axes) for axes in wanted]
    share = np.full(tuple(shape), 1.0 / cells)
    before = np.inf
    for number in range(settings.rounds):
        for margin, summed in zip(margins, sums, strict=True):
            share *= margin / np.maximum(share.sum(axis=summed, keepdims=True), 1e-300)
        gap = _gap(share, margins, sums)
        if gap <= settings.tolerance:
            return MaxEntropy(share * total, gap)
        # Margins of no table make scaling go round in circles: the gap stops falling.
        if number % 20 == 19:
            if gap > 0.9 * before:
                break
            before = gap
    share = _averaged(share, margins, sums, settings)
    return MaxEntropy(share * total, _gap(share, margins, sums))


def _gap(share: Counts, margins: Sequence[Counts], sums: Sequence[Axes]) -> float:
    return max(
        float(np.abs(share.sum(axis=summed, keepdims=True) - margin).sum())
        for margin, summed in zip(margins, sums, strict=True)
    )


def _averaged(share: Counts, margins: Sequence[Counts], sums: Sequence[Axes], settings: Scaling) -> Counts:
    """All margins at once, each with the same small power: x <- x prod_i (t_i / m_i)^(1/k), which does not circle.

    It lowers sum_i KL(m_i, t_i) in every step and ends at its minimum, the one nearest to where it began.
    """
    power = 1.0 / len(margins)
    softened = [(1.0 - settings.soft) * margin + settings.soft / margin.size for margin in margins]
    for _ in range(settings.steps):
        step = np.ones_like(share)
        for margin, summed in zip(softened, sums, strict=True):
            step = step * (margin / np.maximum(share.sum(axis=summed, keepdims=True), 1e-300)) ** power
        share = share * step
        share /= share.sum()
        if float(np.abs(step - 1.0).max()) < settings.tolerance:
            break
    return share
