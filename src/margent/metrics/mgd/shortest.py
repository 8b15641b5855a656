"""Min-cost flow by levels of path length: Dijkstra with buckets, then a maximum flow over the shortest paths.

Arcs have costs and no capacities; only supplies and demands are limited. All numbers are integers.

Source: successive shortest paths with blocking flows (Ford and Fulkerson 1958; Dinic 1970).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Ints = NDArray[np.int64]
Small = NDArray[np.int32]


@compiled
def _push(bucket: Small, following: Small, preceding: Small, place: int, v: int) -> None:
    """Put a node in front of a bucket's list."""
    after = bucket[place]
    following[v] = after
    preceding[v] = -1
    if after >= 0:
        preceding[after] = v
    bucket[place] = v


@compiled
def _drop(bucket: Small, following: Small, preceding: Small, place: int, v: int) -> None:
    """Take a node out of a bucket's list."""
    after, before = following[v], preceding[v]
    if after >= 0:
        preceding[after] = before
    if before >= 0:
        following[before] = after
    else:
        bucket[place] = after


@compiled
def _lengthen(
    start: Ints, head: Small, back: Small, cost: Small, flow: Ints, price: Small, sources: tuple[Ints, Ints],
    sinks: tuple[Ints, Ints], unit: int, level: int, work: tuple[Small, Small, Small, Small, Small],
) -> int:  # fmt: skip
    """Raise prices to the distances from what can still be shipped, and return the distance of the nearest sink.

    Stops at ``2 * unit``: longer paths gain nothing.
    """
    key, bucket, following, preceding, settled = work
    n = price.size
    reach = 2 * unit - level
    for v in range(n):
        settled[v] = 0
        key[v] = 2 * unit + 1
    bucket[: reach + 1] = -1
    for v in range(n):
        first = 2 * unit + 1
        if sources[0][v] > 0:
            first = -price[v]
        elif sources[1][v] > 0:
            first = unit - price[v]
        # A node has a key exactly while it is in a bucket.
        if first < reach:
            key[v] = first
            _push(bucket, following, preceding, key[v], v)
    at = 0
    while at < reach:
        v = bucket[at]
        if v < 0:
            at += 1
            continue
        _drop(bucket, following, preceding, at, v)
        settled[v] = 1
        base = at + price[v]
        if sinks[0][v] > 0:
            reach = min(reach, base - level)
        elif sinks[1][v] > 0:
            reach = min(reach, base + unit - level)
        for h in range(start[v], start[v + 1]):
            w = head[h]
            if settled[w]:
                continue
            new = base - price[w] + (-cost[back[h]] if flow[h] < 0 else cost[h])
            if new < key[w] and new < reach:
                if key[w] <= 2 * unit:
                    _drop(bucket, following, preceding, key[w], w)
                key[w] = new
                _push(bucket, following, preceding, new, w)
    for v in range(n):
        price[v] += min(key[v], reach) if settled[v] else reach
    return level + reach


@compiled
def _layers(
    start: Ints, head: Small, back: Small, cost: Small, flow: Ints, price: Small, sources: tuple[Ints, Ints],
    sinks: tuple[Ints, Ints], unit: int, level: int, depth: Small, queue: Small, current: Ints,
) -> int:  # fmt: skip
    """Breadth-first depths over arcs on shortest paths; the number of roots in the queue, 0 if no sink is reached."""
    depth[:] = -1
    size = 0
    for v in range(price.size):
        if (sources[0][v] > 0 and price[v] == 0) or (sources[1][v] > 0 and price[v] == unit):
            depth[v] = 0
            queue[size] = v
            size += 1
    roots = size
    place = 0
    found = False
    while place < size:
        v = queue[place]
        place += 1
        current[v] = start[v]
        if (sinks[0][v] > 0 and price[v] == level) or (sinks[1][v] > 0 and price[v] + unit == level):
            found = True
        for h in range(start[v], start[v + 1]):
            w = head[h]
            if depth[w] < 0 and (
                price[w] == price[v] + cost[h] or (flow[h] < 0 and price[w] == price[v] - cost[back[h]])
            ):
                depth[w] = depth[v] + 1
                queue[size] = w
                size += 1
    return roots if found else 0


@compiled
def _descend(
    start: Ints, head: Small, back: Small, cost: Small, flow: Ints, price: Small, sinks: tuple[Ints, Ints],
    unit: int, level: int, depth: Small, current: Ints, root: int, path: Ints,
) -> int:  # fmt: skip
    """The number of half-edges of a path from the root through deeper and deeper layers to a sink, or -1."""
    v = root
    length = 0
    while not ((sinks[0][v] > 0 and price[v] == level) or (sinks[1][v] > 0 and price[v] + unit == level)):
        h = current[v]
        stop = start[v + 1]
        while h < stop:
            w = head[h]
            if depth[w] == depth[v] + 1 and (
                price[w] == price[v] + cost[h] or (flow[h] < 0 and price[w] == price[v] - cost[back[h]])
            ):
                break
            h += 1
        current[v] = h
        if h < stop:
            path[length] = h
            length += 1
            v = head[h]
        elif length == 0:
            return -1
        else:
            length -= 1
            v = head[back[path[length]]]
            current[v] += 1
    return length


@compiled
def ship(
    start: Ints, head: Small, back: Small, cost: Small, sources: tuple[Ints, Ints], sinks: tuple[Ints, Ints],
    unit: int, flow: Ints, price: Small,
) -> None:  # fmt: skip
    """Ship from sources to sinks along paths shorter than ``2 * unit``, at least total length.

    Units of the second source or sink array lengthen their path by ``unit``. Fills ``flow`` and ``price`` (the
    distance from the sources, at most 2 * unit) and uses up the units that it ships.

    Shapes: n nodes; ``start`` n + 1; ``head``, ``back`` (the same edge seen from its other end), ``cost`` and
    ``flow`` (antisymmetric) one entry a half-edge.
    """
    n = price.size
    following, preceding, settled = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    key, bucket = np.empty(n, np.int32), np.empty(2 * unit + 1, np.int32)
    work = (key, bucket, following, preceding, settled)
    depth, queue = np.empty(n, np.int32), np.empty(n, np.int32)
    current, path = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    level = 0
    while True:
        level = _lengthen(start, head, back, cost, flow, price, sources, sinks, unit, level, work)
        if level >= 2 * unit:
            return
        while True:
            roots = _layers(start, head, back, cost, flow, price, sources, sinks, unit, level, depth, queue, current)
            if roots == 0:
                break
            for place in range(roots):
                root = queue[place]
                source = sources[0] if sources[0][root] > 0 else sources[1]
                # A unit of the first kind starts at price 0, one of the second kind at price ``unit``.
                while source[root] > 0:
                    length = _descend(
                        start, head, back, cost, flow, price, sinks, unit, level, depth, current, root, path
                    )
                    if length < 0:
                        break
                    end = root if length == 0 else head[path[length - 1]]
                    sink = sinks[0] if sinks[0][end] > 0 and price[end] == level else sinks[1]
                    amount = min(source[root], sink[end])
                    for step in range(length):
                        h = path[step]
                        if price[head[h]] != price[head[back[h]]] + cost[h]:
                            amount = min(amount, -flow[h])
                    source[root] -= amount
                    sink[end] -= amount
                    for step in range(length):
                        flow[path[step]] += amount
                        flow[back[path[step]]] -= amount
