"""Covering designs over columns of different sizes: views such that every t columns lie together in one.

Candidates are made by greedy covers under caps on a view's cells, and by exact small designs whose points are groups
of columns. The one that leaves least noise in the tables of all t columns is taken: a public rule that needs
no number of records, since noise does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.collectors.steiner import Design, known_designs
from margent.schema.domain import Clique, clique

View = tuple[int, ...]
"""Places of the columns of one view, ascending."""

MOST_VIEW_CELLS = 2**16
"""Most cells of a view that holds more than the t columns it is there for."""
CAPS = tuple(2**power for power in range(2, 17))
"""Caps on a view's cells that greedy covers are made with."""
MANY_SUBSETS = 20_000
"""From so many t-subsets on only every fourth cap is tried."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Views that hold every t of the columns, what made them, and the noise they leave.

    Shapes: ``views`` are places among the columns that were covered.
    Units: ``noise`` as `noise_left`.
    """

    strength: int
    views: tuple[View, ...]
    made_by: str
    noise: float

    def cliques(self, columns: Sequence[str]) -> tuple[Clique, ...]:
        """The views as cliques of the columns that were covered."""
        return tuple(clique(columns[place] for place in view) for view in self.views)


def best_cover(sizes: Sequence[int], strength: int, scale_power: int, even: bool, most_cells: int) -> Cover | None:
    """The candidate with the least noise left among those whose views have at most ``most_cells`` cells together.

    None where all have more. ``scale_power`` and ``even`` say what noise costs and
    how the budget is split (`noise_left`).

    Shapes: ``sizes`` has one entry a column, each above 1; 1 <= ``strength`` <= number of columns.
    Privacy: none: public facts only.
    Source: PriView (Qardaji, Yang, Li 2014) chooses its design by noise too; mixed sizes are ours.
    """
    best: Cover | None = None
    for made_by, raw in _candidates(sizes, strength):
        views = pruned(raw, strength)
        if sum(_cells(view, sizes) for view in views) > most_cells:
            continue
        # To nine digits: the last ones differ between machines, and a plan must not.
        noise = float(f"{noise_left(views, sizes, strength, scale_power, even):.8e}")
        if best is None or noise < best.noise:
            best = Cover(strength, views, made_by, noise)
    return best


def _candidates(sizes: Sequence[int], strength: int) -> Iterator[tuple[str, list[View]]]:
    count = len(sizes)
    yield f"every {strength} columns by themselves", list(combinations(range(count), strength))
    caps = CAPS if math.comb(count, strength) < MANY_SUBSETS else CAPS[1::4]
    for cap in caps:
        yield f"greedy cover, cap {cap:,} cells", greedy_cover(sizes, strength, cap)
    if count <= strength:
        return
    largest = max(MOST_VIEW_CELLS, math.prod(sorted(sizes)[-strength:]))
    for design in known_designs(strength):
        if design.points <= count or design.points - count < design.points // 4:
            views = blown_up(design, sizes)
            if all(_cells(view, sizes) <= largest for view in views):
                yield design.name, views


def blown_up(design: Design, sizes: Sequence[int]) -> list[View]:
    """The design with a group of columns for every point: groups as alike in cells as sizes allow.

    Every t columns lie in at most t groups, and those together in a block. With as many columns as points it is the
    design itself; with fewer, some points stand for nothing.

    Privacy: none: public facts only.
    """
    groups: list[list[int]] = [[] for _ in range(design.points)]
    cells = [1] * design.points
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        group = min(range(design.points), key=lambda point: (cells[point], len(groups[point]), point))
        groups[group].append(place)
        cells[group] *= sizes[place]
    views = {tuple(sorted(place for point in block for place in groups[point])) for block in design.blocks}
    return sorted(views)


def greedy_cover(sizes: Sequence[int], strength: int, cap: int) -> list[View]:
    """Views of at most ``cap`` cells, made one at a time from the largest t columns that no view holds yet.

    A view grows by the column that covers most new t-subsets for the factor by which it multiplies the cells (gain by
    log of size), while it stays under the cap. t columns of more cells than the cap are a view by themselves.

    Privacy: none: public facts only.
    """
    count, logs = len(sizes), np.log2(np.asarray(sizes, dtype=np.float64)).tolist()
    open_subsets = np.ones((count,) * strength, dtype=bool)
    for axes in combinations(range(strength), 2):
        index = np.arange(count)
        same = np.expand_dims(
            index[:, None] == index[None, :], tuple(axis for axis in range(strength) if axis not in axes)
        )
        open_subsets &= ~same
    views: list[View] = []
    least = min(sizes, default=1)
    for own, seed in _largest_first(tuple(sizes), strength):
        if not open_subsets[seed]:
            continue
        if own * least > cap:
            # They stay open, which nobody sees: no view under the cap holds them and another column.
            views.append(seed)
            continue
        view, cells = list(seed), own
        gains = _gains(open_subsets, view, strength)
        while cells * least <= cap:
            worth = [
                round(gain / log, 9) if gain and cells * size <= cap and place not in view else 0.0
                for place, (gain, log, size) in enumerate(zip(gains.tolist(), logs, sizes, strict=True))
            ]
            best = max(worth)
            if best <= 0:
                break
            chosen = worth.index(best)
            if strength > 1:  # subsets that the chosen column, in any of its t - 1 places, makes with those of the view
                gains += (strength - 1) * _gains(open_subsets[:, chosen], view, strength - 1)
            view.append(chosen)
            cells *= sizes[chosen]
        open_subsets[_block(view, strength)] = False
        views.append(tuple(sorted(view)))
    return views


@lru_cache(maxsize=1)
def _largest_first(sizes: tuple[int, ...], strength: int) -> list[tuple[int, View]]:
    """All t columns with their cells, those of the most cells first; a plan asks again for each cap."""
    subsets = [(_cells(subset, sizes), subset) for subset in combinations(range(len(sizes)), strength)]
    return sorted(subsets, key=lambda each: (-each[0], each[1]))


def _gains(open_subsets: NDArray[np.bool_], view: Sequence[int], strength: int) -> NDArray[np.int64]:
    """How many t-subsets, not yet held, each column would bring into the view (times (t - 1)!)."""
    if strength == 1:
        return open_subsets.astype(np.int64)
    inside: tuple[Any, ...] = (slice(None), *_block(view, strength - 1))
    gains: NDArray[np.int64] = open_subsets[inside].sum(axis=tuple(range(1, strength)), dtype=np.int64)
    return gains


def _block(view: Sequence[int], strength: int) -> tuple[NDArray[np.int64], ...]:
    """The indices of all t places of a view: what `np.ix_` gives, which takes ten times as long for a short one."""
    places = np.array(view, dtype=np.int64)
    return tuple(places.reshape(-1, *[1] * after) for after in reversed(range(strength)))


def pruned(views: Sequence[View], strength: int) -> tuple[View, ...]:
    """The views without those whose every t columns others hold too, fewest columns first; in order of places.

    Privacy: none: public facts only.

    >>> pruned([(0, 1), (1, 2), (0, 1, 2)], 2)
    ((0, 1, 2),)
    """
    held: dict[View, int] = {}
    distinct = sorted({view for view in views if len(view) >= strength})
    for view in distinct:
        for subset in combinations(view, strength):
            held[subset] = held.get(subset, 0) + 1
    kept = set(distinct)
    for view in sorted(distinct, key=lambda view: (len(view), view)):
        inside = list(combinations(view, strength))
        if all(held[subset] > 1 for subset in inside):
            kept.discard(view)
            for subset in inside:
                held[subset] -= 1
    return tuple(sorted(kept))


def noise_left(views: Sequence[View], sizes: Sequence[int], strength: int, scale_power: int, even: bool) -> float:
    """The summed standard deviation of the cells of all t-way tables, each the best mean of the views that hold it.

    A budget of 1 is split over the views, evenly or as `margent.collectors.allocation.allocate` would: a part p gives
    each cell of a view the variance p^(-2/scale_power). The table over t columns has c cells and a variance of
    (1/c) / sum of 1/(variance x cells) over its views.

    Units: records, times a constant of the budget.
    Privacy: none: public facts only.
    """
    cells = np.array([_cells(view, sizes) for view in views], dtype=np.float64)
    weights = np.ones(len(views)) if even else cells ** (scale_power / (scale_power + 1))
    precision = (weights / weights.sum()) ** (2 / scale_power) / cells
    known = np.zeros((len(sizes),) * strength)
    for view, each in zip(views, precision, strict=True):
        known[_block(view, strength)] += each
    subsets = np.array(list(combinations(range(len(sizes)), strength)))
    own = np.prod(np.asarray(sizes, dtype=np.float64)[subsets], axis=1)
    return float(np.sqrt(own / known[tuple(subsets.T)]).sum())


def _cells(view: Sequence[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[place] for place in view)
