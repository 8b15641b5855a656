"""Flow of least cost from many sources to many sinks, compiled: shortest paths, then all that fits on them, repeated.

A network is given by its arcs: ``tails``, ``heads``, ``costs`` and the ``flow`` on each, which has no upper bound and
may be pushed back. ``arcs`` lists, node by node, the arcs that leave it (by number) and those that enter it (by number
plus the number of arcs); node v has the entries from ``starts[v]`` to ``starts[v + 1]``. Sources are the first nodes,
sinks the last. Integers only.

Source: Ahuja, Magnanti and Orlin, Network Flows, 1993, section 9.8 (primal-dual); Dinic 1970 (blocking flows).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled

Int64 = NDArray[np.int64]

FAR = 2**40
"""Longer than any path."""


@compiled
def crossing(arc: int, tails: Int64, heads: Int64, costs: Int64, flow: Int64) -> tuple[int, int, bool]:
    """Where an entry of ``arcs`` leads, what a unit costs there, and whether it is open: back only where flow is."""
    if arc < tails.size:
        return heads[arc], costs[arc], True
    back = arc - tails.size
    return tails[back], -costs[back], flow[back] > 0


@compiled
def measure(
    tails: Int64, heads: Int64, costs: Int64, arcs: Int64, starts: Int64, supply: Int64, flow: Int64, distance: Int64
) -> None:
    """Write to ``distance`` the least cost of reaching every node from a source that has supply left.

    Label correcting from a queue: arcs that are pushed back cost less than nothing.
    """
    nodes = distance.size
    queue, waiting = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_)
    distance[:] = FAR
    first, size = 0, 0
    for node in range(supply.size):
        if supply[node] > 0:
            distance[node] = 0
            queue[size] = node
            waiting[node] = True
            size += 1
    while size > 0:
        node = queue[first]
        first = (first + 1) % nodes
        size -= 1
        waiting[node] = False
        for place in range(starts[node], starts[node + 1]):
            other, cost, is_open = crossing(arcs[place], tails, heads, costs, flow)
            if is_open and distance[node] + cost < distance[other]:
                distance[other] = distance[node] + cost
                if not waiting[other]:
                    waiting[other] = True
                    queue[(first + size) % nodes] = other
                    size += 1


@compiled
def layer(
    tails: Int64,
    heads: Int64,
    costs: Int64,
    arcs: Int64,
    starts: Int64,
    supply: Int64,
    flow: Int64,
    distance: Int64,
    level: Int64,
) -> None:
    """Write to ``level`` how many arcs of shortest paths lead to every node, -1 where none does."""
    queue = np.empty(level.size, np.int64)
    level[:] = -1
    first, last = 0, 0
    for node in range(supply.size):
        if supply[node] > 0:
            level[node] = 0
            queue[last] = node
            last += 1
    while first < last:
        node = queue[first]
        first += 1
        for place in range(starts[node], starts[node + 1]):
            other, cost, is_open = crossing(arcs[place], tails, heads, costs, flow)
            if is_open and level[other] < 0 and distance[node] + cost == distance[other]:
                level[other] = level[node] + 1
                queue[last] = other
                last += 1


@compiled
def find(
    source: int,
    shortest: int,
    tails: Int64,
    heads: Int64,
    costs: Int64,
    arcs: Int64,
    starts: Int64,
    demand: Int64,
    flow: Int64,
    distance: Int64,
    level: Int64,
    turn: Int64,
    path: Int64,
) -> tuple[int, int]:
    """Depth first, one level at a time, from a source to a sink at the shortest distance that has demand left.

    Returns the sink's node and the number of arcs written to ``path``; -1 where there is none. ``turn`` remembers, node
    by node, which arcs have led nowhere.
    """
    first_sink = level.size - demand.size
    node, depth = source, 0
    while True:
        if node >= first_sink and demand[node - first_sink] > 0 and distance[node] == shortest:
            return node, depth
        following = -1
        while turn[node] < starts[node + 1]:
            arc = arcs[turn[node]]
            other, cost, is_open = crossing(arc, tails, heads, costs, flow)
            if is_open and level[other] == level[node] + 1 and distance[node] + cost == distance[other]:
                following = other
                path[depth] = arc
                break
            turn[node] += 1
        if following >= 0:
            depth += 1
            node = following
            continue
        if depth == 0:
            return -1, 0
        depth -= 1
        arc = path[depth]
        node = tails[arc] if arc < tails.size else heads[arc - tails.size]
        turn[node] += 1


@compiled
def push(
    tails: Int64,
    heads: Int64,
    costs: Int64,
    arcs: Int64,
    starts: Int64,
    longest: int,
    supply: Int64,
    demand: Int64,
    flow: Int64,
) -> None:
    """Push all that paths of at most ``longest`` allow, at least cost; supply, demand and flow change in place.

    Shapes: one entry an arc in ``tails``, ``heads``, ``costs`` and ``flow``, two in ``arcs``; ``starts`` one a node and
    one more; ``supply`` and ``demand`` one a source and a sink.
    Units: whole records; costs of at least 0.
    Privacy: none: post-processing.
    """
    nodes = starts.size - 1
    first_sink = nodes - demand.size
    distance, level = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    path = np.empty(nodes, np.int64)
    while True:
        measure(tails, heads, costs, arcs, starts, supply, flow, distance)
        shortest = FAR
        for sink in range(demand.size):
            if demand[sink] > 0:
                shortest = min(shortest, int(distance[first_sink + sink]))
        if shortest > longest:
            return
        blocked = False
        while not blocked:
            blocked = True
            layer(tails, heads, costs, arcs, starts, supply, flow, distance, level)
            turn = starts[:-1].copy()
            for source in range(supply.size):
                while supply[source] > 0:
                    end, depth = find(
                        source, shortest, tails, heads, costs, arcs, starts, demand, flow, distance, level, turn, path
                    )
                    if end < 0:
                        break
                    blocked = False
                    amount = min(supply[source], demand[end - first_sink])
                    for arc in path[:depth]:
                        if arc >= tails.size:
                            amount = min(amount, flow[arc - tails.size])
                    for arc in path[:depth]:
                        if arc < tails.size:
                            flow[arc] += amount
                        else:
                            flow[arc - tails.size] -= amount
                    supply[source] -= amount
                    demand[end - first_sink] -= amount
