"""Record descent: move single cells of synthetic records as long as that brings them closer to the targets.

Any cliques, any number of rows, no consistency step and no clique tree; cost is what is visited, memory the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.machine import threads
from margent.progress import Progress, silent
from margent.schema.domain import Clique
from margent.stream import Stream
from margent.synthesizers.descent_sweeps import fill_views, sweep
from margent.synthesizers.shares import Share

if TYPE_CHECKING:
    from margent.synthesizers.rules import RecordRules

HEADROOM = 2**30
"""Sums of residuals stay below this, so that 32-bit integers never wrap."""


@dataclass(frozen=True)
class DescentSettings:
    """When descent ends and how records are divided.

    A sweep that moves fewer than ``still`` of the cells ends it, or ``most_sweeps``. Records are first fitted in
    shards to their share of the targets, at the same time on several cores, and then together for
    ``joint_sweeps``, where there are more than ``shard_rows`` or a sweep takes more than ``shard_steps``
    additions; a shard has at least ``least_rows``. A block of a larger table is fitted in one piece, since other blocks
    are at the same time, and ends where a sweep moves fewer than ``still_in_blocks``.
    """

    still: float = 0.0005
    most_sweeps: int = 20
    shard_rows: int = 2**17
    shard_steps: int = 10**9
    least_rows: int = 8_000
    joint_sweeps: int = 3
    still_in_blocks: float = 0.005

    def within(self, share: Share, rows: int) -> DescentSettings:
        """The settings for a block of ``rows`` records, which are these where it is the whole table."""
        if share.count == 1:
            return self
        return replace(self, still=max(self.still, self.still_in_blocks), least_rows=rows)


def descend(
    records: NDArray[np.int32],
    targets: Mapping[Clique, NDArray[np.float64]],
    names: Sequence[str],
    sizes: Sequence[int],
    stream: Stream,
    progress: Progress,
    settings: DescentSettings,
    rules: RecordRules | None = None,
) -> NDArray[np.int32]:
    """Return records that agree with the targets as well as single-cell moves can make them: least sum |E_C|^2.

    Where there are rules, the records are first brought to them, and no move leaves them: all that is returned obeys.

    Shapes: ``records`` (n, d), the start; ``targets[C]`` non-negative, axes in clique order.
    Units: the targets are scaled to n records.
    Privacy: none: post-processing.
    """
    rows = records.shape[0]
    if rows == 0 or not targets:
        return records
    records = np.ascontiguousarray(records, dtype=np.int32).copy()
    if rules is not None:
        records = rules.enforced(records, stream)
    views = _Views.of(targets, names, sizes, rows)
    shards = _shards(views, rows, settings)
    if shards == 1:
        _fit(records, views, targets, stream, settings.most_sweeps, settings.still, rules, progress)
        progress("records", 1.0)
        return records
    edges = [rows * shard // shards for shard in range(shards + 1)]
    parts = [records[edges[shard] : edges[shard + 1]] for shard in range(shards)]
    apart = _Views.of(targets, names, sizes, max(part.shape[0] for part in parts))
    # Every shard has words of its own, so its bytes do not depend on who fits it when.
    streams = [Stream(stream.seed64() >> 1, "shard", str(shard)) for shard in range(shards)]
    with ThreadPoolExecutor(max_workers=threads()) as workers:
        futures = [
            workers.submit(_fit, part, apart, targets, own, settings.most_sweeps, settings.still, rules)
            for part, own in zip(parts, streams, strict=True)
        ]
        for done, future in enumerate(futures):
            future.result()
            progress("records", (done + 1) / (shards + 1))
    _fit(records, views, targets, stream, settings.joint_sweeps, settings.still, rules)
    progress("records", 1.0)
    return records


def targets_of(
    share: Share, targets: Mapping[Clique, NDArray[np.float64]], rows: int
) -> dict[Clique, NDArray[np.float64]]:
    """What the records of a block aim at: whole counts, which over all blocks add up to every table's.

    Fractions would do for a table in one piece, but the nearest count to a third of a record is none in every block.

    Units: as given for the whole table, else records of the block.
    Privacy: none: post-processing.
    """
    if share.count == 1:
        return dict(targets)
    return {clique: share.counts(table, rows, 0.0).astype(np.float64) for clique, table in targets.items()}


def _shards(views: _Views, rows: int, settings: DescentSettings) -> int:
    """How many parts are fitted apart: enough that none has too many rows or takes too long; not machine-dependent."""
    steps = rows * int((views.sizes * np.array([len(own) for own in views.column_views])).sum())
    wanted = max(-(-rows // settings.shard_rows), -(-steps // settings.shard_steps))
    return max(1, min(wanted, rows // settings.least_rows))


@dataclass(frozen=True, eq=False)
class _Views:
    """Index arrays that say where each view's cells lie; see `margent.synthesizers.descent_sweeps`."""

    cliques: tuple[Clique, ...]
    sizes: NDArray[np.int64]
    orders: tuple[tuple[int, ...], ...]
    view_axes: NDArray[np.int64]
    axis_column: NDArray[np.int64]
    axis_stride: NDArray[np.int64]
    view_offset: NDArray[np.int64]
    table_views: tuple[tuple[int, ...], ...]
    column_views: tuple[tuple[int, ...], ...]
    column_tables: tuple[tuple[int, ...], ...]
    cells: int
    unit: int

    @staticmethod
    def of(
        targets: Mapping[Clique, NDArray[np.float64]], names: Sequence[str], sizes: Sequence[int], rows: int
    ) -> _Views:
        position = {name: place for place, name in enumerate(names)}
        cliques = tuple(targets)
        orders: list[tuple[int, ...]] = []
        axes, columns, strides, offsets = [0], list[int](), list[int](), list[int]()
        table_views: list[tuple[int, ...]] = []
        column_views: list[list[int]] = [[] for _ in names]
        column_tables: list[list[int]] = [[] for _ in names]
        cells = 0
        for table, clique in enumerate(cliques):
            made = []
            for last in range(len(clique)):
                order = (*(axis for axis in range(len(clique)) if axis != last), last)
                shape = [sizes[position[clique[axis]]] for axis in order]
                columns += [position[clique[axis]] for axis in order]
                strides += [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
                axes.append(len(columns))
                offsets.append(cells)
                cells += math.prod(shape)
                made.append(len(orders))
                column_views[position[clique[last]]].append(len(orders))
                column_tables[position[clique[last]]].append(table)
                orders.append(order)
            table_views.append(tuple(made))
        deepest = max((len(views) for views in column_views), default=1)
        unit = 1 << max(0, min(10, int(math.log2(HEADROOM / (2 * max(rows, 1) * max(deepest, 1))))))
        return _Views(
            cliques=cliques,
            sizes=np.array(sizes, dtype=np.int64),
            orders=tuple(orders),
            view_axes=np.array(axes, dtype=np.int64),
            axis_column=np.array(columns, dtype=np.int64),
            axis_stride=np.array(strides, dtype=np.int64),
            view_offset=np.array(offsets, dtype=np.int64),
            table_views=tuple(table_views),
            column_views=tuple(tuple(views) for views in column_views),
            column_tables=tuple(tuple(tables) for tables in column_tables),
            cells=cells,
            unit=unit,
        )

    def minus_targets(self, targets: Mapping[Clique, NDArray[np.float64]], rows: int) -> NDArray[np.int32]:
        """Residuals of no records: the targets, scaled to ``rows`` and negated, once a view."""
        residual = np.zeros(self.cells, dtype=np.int32)
        for table, clique in enumerate(self.cliques):
            values = np.maximum(targets[clique], 0.0)
            total = float(values.sum())
            if total <= 0:
                values, total = np.ones_like(values), float(values.size)
            scaled = np.rint(values * (rows * self.unit / total)).astype(np.int32)
            for view in self.table_views[table]:
                start = self.view_offset[view]
                residual[start : start + values.size] = -np.transpose(scaled, self.orders[view]).ravel()
        return residual

    def copy_first(self, residual: NDArray[np.int32]) -> None:
        """Bring the other views of every table to what its first one says, in place."""
        for own in self.table_views:
            order = self.orders[own[0]]
            axes = range(self.view_axes[own[0]], self.view_axes[own[0] + 1])
            shape = [int(self.sizes[self.axis_column[axis]]) for axis in axes]
            start, cells = int(self.view_offset[own[0]]), math.prod(shape)
            table = np.transpose(residual[start : start + cells].reshape(shape), np.argsort(order))
            for view in own[1:]:
                start = int(self.view_offset[view])
                residual[start : start + cells] = np.transpose(table, self.orders[view]).ravel()


def _fit(
    records: NDArray[np.int32],
    views: _Views,
    targets: Mapping[Clique, NDArray[np.float64]],
    stream: Stream,
    most: int,
    still: float,
    rules: RecordRules | None = None,
    progress: Progress = silent,
) -> None:
    """Sweep over the records, in place, until hardly anything moves."""
    rows, columns = records.shape
    residual = views.minus_targets(targets, rows)
    layout = (views.view_axes, views.axis_column, views.axis_stride, views.view_offset)
    fill_views(records, np.array([own[0] for own in views.table_views]), *layout, views.unit, residual)
    views.copy_first(residual)
    members = (*_flat(views.column_views), *_flat(views.column_tables), *_flat(views.table_views))
    for number in range(most):
        order, first = stream.permutation(rows), stream.below(columns, rows)
        if rules is None:
            moves = sweep(records, order, first, views.sizes, *members, *layout, views.unit, residual)
        else:
            # Not at the top: what no schema without rules needs is not compiled for it.
            from margent.synthesizers.descent_within import Views, sweep_within

            allowed = rules.factors
            moves = sweep_within(records, order, first, Views(*members, *layout), allowed, views.unit, residual)
        progress("records", (number + 1) / (most + 1))
        if moves < still * rows * columns:
            return


def _flat(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lists one after the other, and where each begins (and the last ends)."""
    starts = np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64)
    return np.array([item for each in lists for item in each], dtype=np.int64), starts
