"""A marginal cut into independent problems: nothing moves along an infinite weight, nor to a code that is apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from margent.metrics.mgd.costs import Axis
from margent.metrics.mgd.flow import network, solve
from margent.metrics.mgd.path import Ints, carry


@dataclass(frozen=True)
class Plan:
    """How records are moved, and the prices that bound what any plan costs.

    Shapes: ``outflow`` (net, of each cell) and ``price`` (in units) have the table's shape; ``steps`` has one
    entry an axis.
    """

    outflow: Ints
    price: Ints
    steps: tuple[int, ...]


Block = tuple[tuple[slice, ...], tuple[int, ...]]


def blocks(axes: Sequence[Axis]) -> Iterator[Block]:
    """Parts of the table between which nothing moves, each with the axes along which something does."""
    options: list[list[tuple[slice, bool]]] = []
    for axis in axes:
        one = axis.attribute
        whole = slice(0, one.size)
        if axis.step is None or one.size < 2:
            options.append([(whole, False)])
        elif one.kind == "tree":
            options.append([(whole, True)])
        elif one.values < 2:
            options.append([(whole, False)])
        else:
            apart = [(slice(one.values, one.size), False)] if one.size > one.values else []
            options.append([(slice(0, one.values), True), *apart])
    for choice in itertools.product(*options):
        yield tuple(part for part, _ in choice), tuple(place for place, (_, live) in enumerate(choice) if live)


def planned(least: Ints, most: Ints, axes: Sequence[Axis], unit: int, steps: Sequence[int], largest: int) -> Plan:
    """The cheapest plan of every part: closed form, path or flow by the number and kind of its live axes.

    A problem of more than ``largest`` cells that needs a flow is not solved: nothing is moved in it.

    Shapes: ``least`` and ``most``: what each cell may send for nothing.
    """
    outflow = np.zeros(least.shape, dtype=np.int64)
    # Where nothing moves, a price of one unit is what each record over or short is charged.
    price = unit * ((least > 0).astype(np.int64) - (most < 0))
    made = [0] * len(axes)
    for part, live in blocks(axes):
        if not live:
            continue
        fixed = [place for place in range(len(axes)) if place not in live]
        turn = [*fixed, *live]
        shape = [part[place].stop - part[place].start for place in live]
        low, high = (np.transpose(table[part], turn).reshape(-1, math.prod(shape)) for table in (least, most))
        # A problem without a record over or short costs nothing as it is.
        open_rows = np.flatnonzero(((low > 0) | (high < 0)).any(axis=1))
        low, high = np.ascontiguousarray(low[open_rows]), np.ascontiguousarray(high[open_rows])
        moved, prices = np.zeros_like(low), np.zeros_like(low)
        if len(live) == 1 and axes[live[0]].attribute.kind == "order":
            edges = np.full(shape[0] - 1, steps[live[0]], dtype=np.int64)
            flow = np.zeros((low.shape[0], shape[0] - 1), dtype=np.int64)
            carry(low, high, edges, unit, flow, moved, prices)
            made[live[0]] += int(np.abs(flow).sum())
        elif low.shape[1] > largest:
            prices = _constant(low, high, unit)
        elif low.size:
            chosen = [replace(axes[place].attribute, size=size) for place, size in zip(live, shape, strict=True)]
            net = network(chosen, shape, [steps[place] for place in live])
            for row in range(low.shape[0]):
                moved[row], prices[row], done = solve(net, low[row], high[row], unit)
                for place, count in zip(live, done, strict=True):
                    made[place] += count
        _put(outflow, part, turn, open_rows, moved)
        _put(price, part, turn, open_rows, prices)
    return Plan(outflow, price, tuple(made))


def _constant(low: Ints, high: Ints, unit: int) -> Ints:
    """One price for all cells of a problem, the best of -unit, 0 and unit: it sees sums alone."""
    over, short = low.sum(axis=1), -high.sum(axis=1)
    best = np.where(over > np.maximum(short, 0), unit, np.where(short > 0, -unit, 0))
    return np.broadcast_to(best[:, None], low.shape).copy()


def _put(table: Ints, part: tuple[slice, ...], turn: Sequence[int], rows: NDArray[np.intp], values: Ints) -> None:
    """Write rows of a block back to where they came from; rows without entry get 0."""
    turned = np.transpose(table[part], turn)
    full = np.zeros(turned.shape, dtype=np.int64).reshape(-1, values.shape[1])
    full[rows] = values
    turned[...] = full.reshape(turned.shape)
