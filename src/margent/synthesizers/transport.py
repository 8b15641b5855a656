"""The cheapest way to turn one table of whole counts into another, where a record costs the values it must change.

Cells with too many records supply, cells with too few demand, and a unit from one to the other costs the number of
columns in which the two cells differ. Cells are not joined to each other but to *hubs*: one hub for every proper
subset A of the columns and every combination of values on A. A unit that goes from cell to cell through a hub of A
keeps the values on A and pays for the k - |A| other columns; the best hub between two cells is the one of all columns
they share, so least costs through hubs are least costs. There are 2^k - 2 arcs a cell (two for a pair of columns) in
place of one for every pair of cells.

Costs are 1 .. k, so flow is pushed along shortest paths of length 1, then 2, ... (the primal-dual method), each length
by blocking flows (Dinic 1970). What is left when no path is shorter than k cannot do better than to change all k
columns, and every way of doing so costs the same.

Source: Ahuja, Magnanti and Orlin, Network Flows, 1993, chapter 9; the cost is that of PrivSyn 2021 section 5.1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


def transport(counts: Int64, target: Int64) -> tuple[Int64, Int64, Int64]:
    """Moves (from cell, to cell, records) that turn ``counts`` into ``target`` and change the fewest values.

    Shapes: ``counts`` and ``target`` have one axis a column and equal sums; cells are numbered in C order; the three
    results have one entry a move, no two moves with the same cells on both ends.
    Units: records.
    Privacy: none: post-processing.
    Raises: ValueError where the sums differ.

    >>> from_cell, to_cell, records = transport(np.array([[2, 0], [0, 0]]), np.array([[0, 1], [0, 1]]))
    >>> sorted(zip(from_cell.tolist(), to_cell.tolist(), records.tolist()))
    [(0, 1, 1), (0, 3, 1)]
    """
    excess = (counts - target).ravel()
    if excess.sum() != 0:
        raise ValueError("a table can only be turned into one of as many records")
    sources, sinks = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    supply, demand = excess[sources], -excess[sinks]
    lines: list[tuple[Int64, Int64, Int64]] = []
    if counts.ndim > 1 and sources.size:
        # Not at the top: the compiler is slow to import, and naming the synthesizer must not need it.
        from margent.synthesizers.shortest_flow import push

        tails, heads, costs, hubs = _arcs(sources, sinks, counts.shape)
        flow = np.zeros(tails.size, dtype=np.int64)
        ends = np.concatenate([tails, heads])
        arcs = np.argsort(ends, kind="stable")
        starts = np.searchsorted(ends[arcs], np.arange(sources.size + hubs + sinks.size + 1))
        push(tails, heads, costs, arcs, starts, counts.ndim - 1, supply, demand, flow)
        lines.append(_through_hubs(flow, tails, heads, sources.size, hubs))
    lines.append(_in_turn(supply, demand, np.zeros_like(supply), np.zeros_like(demand)))
    origin, goal, records = (np.concatenate(part) for part in zip(*lines, strict=True))
    keys, place = np.unique(origin * max(sinks.size, 1) + goal, return_inverse=True)
    merged = np.zeros(keys.size, dtype=np.int64)
    np.add.at(merged, place, records)
    return sources[keys // max(sinks.size, 1)], sinks[keys % max(sinks.size, 1)], merged


def _arcs(sources: Int64, sinks: Int64, shape: tuple[int, ...]) -> tuple[Int64, Int64, Int64, int]:
    """Arcs cell -> hub (cost k - |A|) and hub -> cell (cost 0), and how many hubs there are.

    Nodes: first the sources, then the hubs, then the sinks; only hubs with cells on both sides.
    """
    places = [np.array(np.unravel_index(cells, shape), dtype=np.int64) for cells in (sources, sinks)]
    columns = len(shape)
    tails, heads, costs = [], [], []
    hubs = 0
    for subset in range(1, 2**columns - 1):
        kept = [axis for axis in range(columns) if subset >> axis & 1]
        strides = np.array([math.prod(shape[other] for other in kept[place + 1 :]) for place in range(len(kept))])
        left, right = (strides @ each[kept] for each in places)
        both = np.intersect1d(left, right)
        for keys, offset in ((left, 0), (right, -1)):
            cells = np.flatnonzero(np.isin(keys, both))
            hub = sources.size + hubs + np.searchsorted(both, keys[cells])
            tails.append(cells if offset == 0 else hub)
            # Sinks are numbered once the number of hubs is known: for now below zero.
            heads.append(hub if offset == 0 else -1 - cells)
            costs.append(np.full(cells.size, columns - len(kept) if offset == 0 else 0, dtype=np.int64))
        hubs += both.size
    head = np.concatenate(heads)
    head = np.where(head < 0, sources.size + hubs - 1 - head, head)
    return np.concatenate(tails), head, np.concatenate(costs), hubs


def _through_hubs(flow: Int64, tails: Int64, heads: Int64, sources: int, hubs: int) -> tuple[Int64, Int64, Int64]:
    """What enters and what leaves each hub, joined in turn: any way costs the same."""
    into = np.flatnonzero((flow > 0) & (tails < sources))
    out = np.flatnonzero((flow > 0) & (tails >= sources))
    into, out = into[np.argsort(heads[into], kind="stable")], out[np.argsort(tails[out], kind="stable")]
    first, second, records = _in_turn(flow[into], flow[out], heads[into], tails[out])
    return tails[into[first]], heads[out[second]] - sources - hubs, records


def _in_turn(supply: Int64, demand: Int64, left: Int64, right: Int64) -> tuple[Int64, Int64, Int64]:
    """Join units in order (the northwest corner rule): places in ``supply`` and ``demand``, and how many units.

    ``left`` and ``right`` are labels that increase along both; sums agree for each label, so labels never mix.
    """
    ends, stops = np.cumsum(supply), np.cumsum(demand)
    assert np.array_equal(np.bincount(left, supply), np.bincount(right, demand))
    cuts = np.union1d(ends, stops)
    records = np.diff(cuts, prepend=0)
    kept = records > 0
    cuts, records = cuts[kept], records[kept]
    return np.searchsorted(ends, cuts), np.searchsorted(stops, cuts), records
