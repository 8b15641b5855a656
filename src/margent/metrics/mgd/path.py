"""One ordinal axis: the cheapest moves along a path, by a convex recursion, with prices that prove it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Ints = NDArray[np.int64]


@compiled
def _inflows(least: Ints, most: Ints, steps: Ints, unit: int, flow: Ints) -> None:
    """Fill ``flow[v]``, what is carried from v to v + 1 (negative: back), at least total cost.

    V(F) is the least cost of all nodes so far when F leaves them forward; it is convex and piecewise linear, kept
    as breakpoints with the jumps of its slope. A node adds breakpoints, an edge one at 0.
    """
    k = least.size
    place, jump = np.empty(2 * k + 2, np.int64), np.empty(2 * k + 2, np.int64)
    next_place, next_jump = np.empty(2 * k + 2, np.int64), np.empty(2 * k + 2, np.int64)
    low, high = np.empty(k, np.int64), np.empty(k, np.int64)
    zero_from, zero_to = np.empty(k, np.int64), np.empty(k, np.int64)
    place[0], jump[0], place[1], jump[1] = least[0], unit, most[0], unit
    size = 2
    for v in range(k - 1):
        # The edge's cost: slopes go from -unit - c to unit + c, with a jump of 2c at 0.
        at = size
        while at > 0 and place[at - 1] > 0:
            place[at], jump[at] = place[at - 1], jump[at - 1]
            at -= 1
        place[at], jump[at] = 0, 2 * steps[v]
        size += 1
        # Slopes steeper than the unit are never used: a node would rather leave a record unmoved.
        spare, first = steps[v], 0
        while jump[first] <= spare:
            spare -= jump[first]
            first += 1
        jump[first] -= spare
        low[v] = place[first]
        spare = steps[v]
        while jump[size - 1] <= spare:
            spare -= jump[size - 1]
            size -= 1
        jump[size - 1] -= spare
        high[v] = place[size - 1]
        # The next node: what slopes down moves by its least outflow, what slopes up by its most.
        below, kept = unit, 0
        for i in range(first, size):
            part = min(jump[i], below)
            if part > 0 and part == below:
                zero_from[v] = place[i]
                zero_to[v] = place[i] if jump[i] > part else place[i + 1]
            if part > 0:
                next_place[kept], next_jump[kept] = place[i] + least[v + 1], part
                kept += 1
            if jump[i] > part:
                next_place[kept], next_jump[kept] = place[i] + most[v + 1], jump[i] - part
                kept += 1
            below -= part
        place, next_place = next_place, place
        jump, next_jump = next_jump, jump
        size = kept
    out = 0
    for v in range(k - 1, 0, -1):
        if out - least[v] <= zero_from[v - 1]:
            arriving = out - least[v]
        elif out - most[v] >= zero_to[v - 1]:
            arriving = out - most[v]
        else:
            arriving = max(out - most[v], zero_from[v - 1], min(0, out - least[v], zero_to[v - 1]))
        out = max(low[v - 1], min(high[v - 1], arriving))
        flow[v - 1] = out


@compiled
def _prices(least: Ints, most: Ints, steps: Ints, unit: int, flow: Ints, net: Ints, price: Ints) -> None:
    """Prices under which no cheaper plan exists, by narrowing what each node allows along the path."""
    k = least.size
    low, high = np.empty(k, np.int64), np.empty(k, np.int64)
    for v in range(k):
        low[v] = unit if net[v] < least[v] else -unit if net[v] >= most[v] else 0
        high[v] = -unit if net[v] > most[v] else unit if net[v] <= least[v] else 0
        if v > 0:
            c, f = steps[v - 1], flow[v - 1]
            low[v] = max(low[v], low[v - 1] + (c if f < 0 else -c))
            high[v] = min(high[v], high[v - 1] + (-c if f > 0 else c))
    price[k - 1] = max(low[k - 1], min(high[k - 1], 0))
    for v in range(k - 2, -1, -1):
        c, f = steps[v], flow[v]
        down, up = price[v + 1] + (c if f > 0 else -c), price[v + 1] + (-c if f < 0 else c)
        price[v] = max(down, low[v], min(up, high[v], 0))


@compiled
def carry(least: Ints, most: Ints, steps: Ints, unit: int, flow: Ints, net: Ints, price: Ints) -> None:
    """Solve each row: nodes may send ``least`` to ``most`` forward for nothing, ``unit`` a record beyond that.

    Shapes: rows of k nodes (``least``, ``most``, and filled: ``net`` outflow, ``price``) and of k - 1 edges
    (``flow``); ``steps`` has the k - 1 costs of an edge.
    """
    for row in range(least.shape[0]):
        _inflows(least[row], most[row], steps, unit, flow[row])
        for v in range(least.shape[1]):
            before = flow[row, v - 1] if v > 0 else 0
            net[row, v] = (flow[row, v] if v < steps.size else 0) - before
        _prices(least[row], most[row], steps, unit, flow[row], net[row], price[row])
