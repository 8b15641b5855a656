"""Orderings, sums and equalities between values inside bins: which boxes hold a solution, and solutions drawn.

A *system* is a set of such rules over a few columns. A row gives each column a box of values (those of its code),
or none where its cell is missing or a special code. Boxes are narrowed until no rule narrows them further. For
orderings and equalities what is left is empty exactly where there is no solution; so it is for sums that share at
most one column with each other rule. Elsewhere (`System.loose`) solutions are searched for one by one, and boxes in
which a short search finds none count as having none.

Source: bounds consistency, e.g. Rossi, van Beek and Walsh, Handbook of Constraint Programming, 2006, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.stream import scaled

Positions = NDArray[np.int64]
Truth = NDArray[np.bool_]

MOST_ROUNDS = 100
"""Rounds of narrowing; boxes that are still shrinking then count as empty. An end may move by one link of a chain a
round, so that orderings and equalities over `allowed.MOST_COLUMNS` columns are narrowed to their end."""
MOST_SEARCHES = 2_000
"""Rows searched one by one, and boxes looked at for each."""
REJECTIONS = 12
"""Independent draws that are tried before values are drawn one after the other."""
RETRIES = 6


@dataclass(frozen=True, eq=False)
class Axis:
    """A column's lattice: offset + stride * index, without ``holes`` (sorted), and the box of each code.

    Shapes: ``low``, ``high`` and ``present`` have one entry a code; ``present`` says whether it stands for values.
    Units: lattice positions, common to the columns of a system.
    """

    stride: int
    offset: int
    holes: Positions
    low: Positions
    high: Positions
    present: Truth

    def up(self, positions: Positions) -> Positions:
        """The least value at or above each position."""
        found = self.offset - (self.offset - positions) // self.stride * self.stride
        while self.holes.size and (taken := np.isin(found, self.holes)).any():
            found = np.where(taken, found + self.stride, found)
        return found

    def down(self, positions: Positions) -> Positions:
        """The greatest value at or below each position."""
        found = self.offset + (positions - self.offset) // self.stride * self.stride
        while self.holes.size and (taken := np.isin(found, self.holes)).any():
            found = np.where(taken, found - self.stride, found)
        return found

    def draw(self, low: Positions, high: Positions, words: NDArray[np.uint64]) -> Positions:
        """Uniform values in low .. high, both of them values."""
        below = np.searchsorted(self.holes, low), np.searchsorted(self.holes, high)
        count = np.maximum((high - low) // self.stride + 1 - (below[1] - below[0]), 1)
        drawn = low + self.stride * scaled(words, count.astype(np.uint64))
        for hole in self.holes.tolist():
            drawn += self.stride * ((low <= hole) & (drawn >= hole))
        return drawn


@dataclass(frozen=True, eq=False)
class System:
    """Rules over the values of ``axes``: orders (a, b, gap): a + gap <= b; sums (parts, total); pairs that are equal.

    Rules hold where all their columns are present. Boxes are arrays with one line a column and one column a row.
    """

    axes: tuple[Axis, ...]
    orders: tuple[tuple[int, int, int], ...]
    sums: tuple[tuple[tuple[int, ...], int], ...]
    equals: tuple[tuple[int, int], ...]

    @property
    def links(self) -> int:
        """How many columns its rules link to another one, each time that they do."""
        return len(self.orders) + len(self.equals) + sum(len(parts) for parts, _ in self.sums)

    @cached_property
    def loose(self) -> bool:
        """Whether narrowed boxes that are not empty may still hold no solution."""
        if not self.sums:
            return False
        for parts, total in self.sums:
            if any(self.axes[place].stride > 1 or self.axes[place].holes.size for place in (*parts, total)):
                return True
        # A rule that joins columns which are joined already closes a circle.
        group = list(range(len(self.axes)))
        links = [*self.equals, *((one, other) for one, other, _ in self.orders)]
        for members in [*links, *((*parts, total) for parts, total in self.sums)]:
            roots = {group[place] for place in members}
            if len(roots) < len(members):
                return True
            group = [min(roots) if root in roots else root for root in group]
        return False

    def boxes(self, codes: Positions) -> tuple[Positions, Positions, Truth]:
        """Low and high ends and presence for rows of codes. Shapes: codes and results (k, n)."""
        parts = [(axis.low[own], axis.high[own], axis.present[own]) for axis, own in zip(self.axes, codes, strict=True)]
        low, high, present = (np.stack(part) for part in zip(*parts, strict=True))
        return low, high, present

    def narrow(self, low: Positions, high: Positions, present: Truth) -> Truth:
        """Shrink boxes in place as far as single rules can; return which rows are left without an empty one."""
        sound = np.ones(low.shape[1], dtype=np.bool_)
        for _ in range(MOST_ROUNDS):
            here = present & sound
            before = low.copy(), high.copy()
            self._round(low, high, here)
            for place, axis in enumerate(self.axes):
                low[place] = np.where(here[place], axis.up(low[place]), low[place])
                high[place] = np.where(here[place], axis.down(high[place]), high[place])
            sound &= ~((low > high) & here).any(axis=0)
            moving: Truth = ((low != before[0]) | (high != before[1])).any(axis=0) & sound
            if not moving.any():
                return sound
        settled: Truth = sound & ~moving
        return settled

    def _round(self, low: Positions, high: Positions, here: Truth) -> None:
        for one, other, gap in self.orders:
            both = here[one] & here[other]
            low[other] = np.where(both, np.maximum(low[other], low[one] + gap), low[other])
            high[one] = np.where(both, np.minimum(high[one], high[other] - gap), high[one])
        for one, other in self.equals:
            both = here[one] & here[other]
            bottom, top = np.maximum(low[one], low[other]), np.minimum(high[one], high[other])
            for place in (one, other):
                low[place], high[place] = np.where(both, bottom, low[place]), np.where(both, top, high[place])
        for parts, total in self.sums:
            members = [*parts, total]
            all_here = here[members].all(axis=0)
            least, most = low[list(parts)].sum(axis=0), high[list(parts)].sum(axis=0)
            low[total] = np.where(all_here, np.maximum(low[total], least), low[total])
            high[total] = np.where(all_here, np.minimum(high[total], most), high[total])
            for part in parts:
                bottom = np.maximum(low[part], low[total] - (most - high[part]))
                top = np.minimum(high[part], high[total] - (least - low[part]))
                least, most = least - low[part], most - high[part]
                low[part] = np.where(all_here, bottom, low[part])
                high[part] = np.where(all_here, top, high[part])
                least, most = least + low[part], most + high[part]

    def holds(self, values: Positions, present: Truth) -> Truth:
        """Which rows obey every rule."""
        good = np.ones(values.shape[1], dtype=np.bool_)
        for one, other, gap in self.orders:
            good &= ~(present[one] & present[other]) | (values[one] + gap <= values[other])
        for one, other in self.equals:
            good &= ~(present[one] & present[other]) | (values[one] == values[other])
        for parts, total in self.sums:
            here = present[[*parts, total]].all(axis=0)
            good &= ~here | (values[list(parts)].sum(axis=0) == values[total])
        return good

    def feasible(self, codes: Positions) -> Truth:
        """Which rows of codes have a solution. Shapes: codes (k, n), the result (n,)."""
        low, high, present = self.boxes(codes)
        sound = self.narrow(low, high, present)
        if self.loose and sound.any():
            rows = np.flatnonzero(sound)
            sound[rows] = self.witness(low[:, rows], high[:, rows], present[:, rows])[1]
        return sound

    def witness(self, low: Positions, high: Positions, present: Truth) -> tuple[Positions, Truth]:
        """One solution a row, the same one always, and which rows have one that could be found."""
        found, values = np.zeros(low.shape[1], dtype=np.bool_), low.copy()
        for share in (0, 2, 1):
            rows = np.flatnonzero(~found)
            if not rows.size:
                return values, found
            bottom, top, here = low[:, rows].copy(), high[:, rows].copy(), present[:, rows]
            sound = self.narrow(bottom, top, here)
            for place, axis in enumerate(self.axes):
                middle = axis.up(bottom[place] + (top[place] - bottom[place]) // 2 * min(share, 1))
                chosen = top[place] if share == 2 else np.minimum(middle, top[place])
                bottom[place] = top[place] = np.where(here[place], chosen, bottom[place])
                sound &= self.narrow(bottom, top, here)
            sound &= self.holds(bottom, here)
            values[:, rows[sound]] = bottom[:, sound]
            found[rows] = sound
        for row in np.flatnonzero(~found)[:MOST_SEARCHES].tolist():
            solution = self._search(low[:, [row]], high[:, [row]], present[:, [row]])
            if solution is not None:
                values[:, [row]], found[row] = solution, True
        return values, found

    def _search(self, low: Positions, high: Positions, present: Truth) -> Positions | None:
        """Halve the widest box and narrow, depth first."""
        todo, looked = [(low.copy(), high.copy())], 0
        while todo and looked < MOST_SEARCHES:
            low, high = todo.pop()
            looked += 1
            if not self.narrow(low, high, present)[0]:
                continue
            width = np.where(present, high - low, 0)[:, 0]
            widest = int(width.argmax())
            if width[widest] == 0:
                if self.holds(low, present)[0]:
                    return low
                continue
            middle = low[widest, 0] + width[widest] // 2
            for keep_low in (False, True):
                left, right = low.copy(), high.copy()
                if keep_low:
                    right[widest] = middle
                else:
                    left[widest] = middle + 1
                todo.append((left, right))
        return None

    def draw(self, codes: Positions, words: Callable[[int, int], NDArray[np.uint64]]) -> tuple[Positions, Truth]:
        """Values that obey every rule, one line a column, for rows of codes that have a solution; and presence.

        Where only orderings hold, values are drawn independently a few times before they are drawn one after the
        other, each uniformly from what the earlier ones leave. ``words(column, attempt)``: one word a row.
        """
        low, high, present = self.boxes(codes)
        values = np.stack([axis.draw(low[p], high[p], words(p, 0)) for p, axis in enumerate(self.axes)])
        good = self.holds(values, present)
        tries = REJECTIONS if not self.sums and not self.equals else 0
        for attempt in range(1, tries + 1):
            rows = np.flatnonzero(~good)
            if not rows.size:
                break
            for place, axis in enumerate(self.axes):
                own = words(place, attempt)[rows]
                values[place, rows] = axis.draw(low[place, rows], high[place, rows], own)
            good[rows] = self.holds(values[:, rows], present[:, rows])
        self.narrow(low, high, present)
        for attempt in range(tries + 1, tries + RETRIES + 1):
            rows = np.flatnonzero(~good)
            if not rows.size:
                return values, present
            bottom, top, here = low[:, rows].copy(), high[:, rows].copy(), present[:, rows]
            for place, axis in enumerate(self.axes):
                drawn = axis.draw(bottom[place], top[place], words(place, attempt)[rows])
                bottom[place] = top[place] = np.where(here[place], drawn, bottom[place])
                self.narrow(bottom, top, here)
            values[:, rows] = bottom
            good[rows] = self.holds(bottom, here) & self._inside(bottom, low[:, rows], high[:, rows], here)
        rows = np.flatnonzero(~good)
        if rows.size:
            values[:, rows], _ = self.witness(low[:, rows], high[:, rows], present[:, rows])
        return values, present

    def _inside(self, values: Positions, low: Positions, high: Positions, here: Truth) -> Truth:
        """Which rows lie in their boxes on values that may be written."""
        on_axis = np.stack([axis.up(own) == own for axis, own in zip(self.axes, values, strict=True)])
        inside: Truth = (((values >= low) & (values <= high) & on_axis) | ~here).all(axis=0)
        return inside
