"""The general case as a min-cost flow: neighbors in an order are joined by edges, leaves of a tree by its inner nodes.

An inner node has no records of its own; each fiber of the table along the tree's axis has its own copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.metrics.mgd.attribute import Attribute
from margent.metrics.mgd.shortest import Ints, Small, ship

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """Half-edges sorted by the node they start from, for one table shape.

    Shapes: n nodes, the first ``cells`` of them the table's cells; ``axis`` and ``upward`` have one entry a
    half-edge: the axis it belongs to, and whether a record on it makes a step that costs.
    """

    cells: int
    start: Ints
    head: Small
    back: Small
    cost: Small
    axis: NDArray[np.int8]
    upward: NDArray[np.bool_]

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.start.size - 1


def tree_levels(attribute: Attribute) -> list[list[int]]:
    """The parent's number of each node, level by level from the leaves to the root; codes apart keep to themselves.

    >>> tree_levels(Attribute("a", 4, 3, "tree", ("l",), ((0, 0, 1),)))
    [[0, 0, 1, 2], [0, 0, 0]]
    """
    apart = attribute.size - attribute.values
    above = list(range(attribute.size))
    result = []
    for level in attribute.groups:
        names = dict.fromkeys(level)
        number = {name: place for place, name in enumerate(names)}
        of_leaf = [number[name] for name in level] + [len(names) + place for place in range(apart)]
        result.append([of_leaf[above.index(node)] for node in range(max(above) + 1)])
        above = of_leaf
    return [*result, [0] * (max(above) + 1)]


def network(attributes: Sequence[Attribute], shape: Sequence[int], steps: Sequence[int]) -> Network:
    """The graph of a table whose axes are all finite: shortest paths in it cost what the definition's moves cost.

    Shapes: an axis with an order has its values alone; c cells -> at most 2 c half-edges an axis with an order or
    without levels.
    """
    cells = math.prod(shape)
    ids = np.arange(cells, dtype=np.int64).reshape(tuple(shape))
    tails: list[Places] = []
    heads: list[Places] = []
    axis_of: list[int] = []
    nodes = cells
    for axis, attribute in enumerate(attributes):
        level = np.moveaxis(ids, axis, 0)
        if attribute.kind == "order":
            tails.append(level[:-1].ravel())
            heads.append(level[1:].ravel())
            axis_of.append(axis)
            continue
        for parents in tree_levels(attribute):
            fibers = level[0].size
            above = nodes + np.arange((max(parents) + 1) * fibers, dtype=np.int64).reshape(-1, *level.shape[1:])
            nodes += above.size
            tails.append(level.ravel())
            heads.append(above[np.array(parents)].ravel())
            axis_of.append(axis)
            level = above
    up = np.concatenate(tails)
    down = np.concatenate(heads)
    axes = np.repeat(np.array(axis_of, dtype=np.int8), [part.size for part in tails])
    both_ways = np.array([one.kind == "order" for one in attributes])[axes]
    tail, head = np.concatenate([up, down]), np.concatenate([down, up])
    upward = np.concatenate([np.ones(up.size, dtype=np.bool_), both_ways])
    order = np.argsort(tail, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    back = rank[np.concatenate([np.arange(up.size, 2 * up.size), np.arange(up.size)])][order]
    axes, upward = np.concatenate([axes, axes])[order], upward[order]
    start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(tail, minlength=nodes), out=start[1:])
    cost = np.where(upward, np.array(steps, dtype=np.int32)[axes], 0).astype(np.int32)
    return Network(cells, start, head[order].astype(np.int32), back.astype(np.int32), cost, axes, upward)


def solve(net: Network, least: Ints, most: Ints, unit: int) -> tuple[Ints, Ints, list[int]]:
    """Net outflow and price of each cell, and the steps made along each axis, at least total cost.

    A cell may send ``least`` to ``most`` records (negative: receive) for nothing, and costs ``unit`` a record
    beyond that.
    """
    flow = np.zeros(net.head.size, dtype=np.int64)
    distance = np.zeros(net.nodes, dtype=np.int32)
    must_send, must_take = np.maximum(least, 0), np.maximum(-most, 0)
    parts = [must_send, np.maximum(most, 0) - must_send, must_take, np.maximum(-least, 0) - must_take]
    hubs = np.zeros(net.nodes - net.cells, dtype=np.int64)
    now, later, take_now, take_later = (np.concatenate([part, hubs]) for part in parts)
    ship(net.start, net.head, net.back, net.cost, (now, later), (take_now, take_later), unit, flow, distance)
    sums = np.concatenate([[0], np.cumsum(flow)])
    outflow = (sums[net.start[1:]] - sums[net.start[:-1]])[: net.cells]
    used = (flow > 0) & net.upward
    steps = [int(flow[used & (net.axis == axis)].sum()) for axis in range(int(net.axis.max(initial=-1)) + 1)]
    return outflow, unit - distance[: net.cells].astype(np.int64), steps
