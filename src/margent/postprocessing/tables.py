"""Noisy answers as tables of real numbers over the working domain, each cell with its variance.

The *working domain* is where records are built: merged codes count as one, and codes that the schema says are
never written are left out, their records spread over the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Clique, Domain, Merge
from margent.transcript import NoisyMarginal, Transcript


@dataclass(frozen=True, eq=False)
class Table:
    """Estimated counts over a clique with the variance of each cell, errors independent between cells.

    ``interaction``: only what the table says beyond its margins was bought. The margins that it shows are those of
    other tables and tell nothing new, and ``variance`` is of the rest alone.

    Shapes: ``values`` and ``variance`` have one axis a name of ``clique``.
    Units: records; ``variance`` in records squared.
    """

    clique: Clique
    values: NDArray[np.float64]
    variance: NDArray[np.float64]
    interaction: bool = False


@dataclass(frozen=True, eq=False)
class WorkingDomain:
    """Where records are built: for each column, which working code every schema code belongs to.

    Shapes: ``groups[name]`` has one entry a code of ``full``: its working code, or -1 if it is never written.
    Privacy: none: from the schema and the transcript's public merges.
    """

    full: Domain
    groups: Mapping[str, NDArray[np.int64]]

    @cached_property
    def domain(self) -> Domain:
        """The working codes as a domain of their own."""
        return Domain(self.full.names, tuple(int(self.groups[name].max()) + 1 for name in self.full.names))

    def written(self, name: str) -> NDArray[np.int64]:
        """The schema codes that are ever written, those of one working code after another."""
        groups = self.groups[name]
        order = np.argsort(groups, kind="stable")
        return order[groups[order] >= 0]

    def firsts(self, name: str) -> NDArray[np.int64]:
        """The lowest schema code of each working code."""
        written = self.written(name)
        return written[np.unique(self.groups[name][written], return_index=True)[1]]

    def mixed(self, name: str) -> dict[int, NDArray[np.int64]]:
        """The schema codes of every working code that has more than one."""
        written = self.written(name)
        groups, starts, counts = np.unique(self.groups[name][written], return_index=True, return_counts=True)
        return {
            int(group): written[start : start + count]
            for group, start, count in zip(groups, starts, counts, strict=True)
            if count > 1
        }


def working_domain(transcript: Transcript, sampleable: Mapping[str, NDArray[np.bool_]] | None = None) -> WorkingDomain:
    """The transcript's merged domain without the codes that are never written.

    Shapes: ``sampleable[name]`` has one entry a code; a column that is absent may use all of its codes.
    Privacy: none: post-processing.
    """
    groups = {}
    for name, size in zip(transcript.domain.names, transcript.domain.sizes, strict=True):
        merge = transcript.merges.get(name)
        merged = np.arange(size) if merge is None else np.asarray(merge.groups, dtype=np.int64)
        written = np.ones(size, dtype=np.bool_) if sampleable is None else sampleable.get(name)
        if written is None or not written.any():
            written = np.ones(size, dtype=np.bool_)
        kept = np.unique(merged[written])
        groups[name] = np.where(written, np.searchsorted(kept, merged), -1)
    return WorkingDomain(transcript.domain, groups)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a transcript says about the working domain: one table a clique, and the number of records.

    Units: ``total`` in records: n^ = max(0, inverse-variance mean of the totals of all answers).
    """

    working: WorkingDomain
    tables: tuple[Table, ...]
    total: float


def evidence(transcript: Transcript, working: WorkingDomain) -> Evidence:
    """Restate every noisy marginal over the working domain; answers to the same question are averaged.

    A table that loses never-written codes is scaled up to the total again: their records are taken to be
    like the others. Tables of merges that stand beside their column are left out: they have an axis of their own.

    Interactions are completed by the noisy one-ways, which then stand in several tables (`Table.interaction`).

    Privacy: none: post-processing.
    """
    columns = set(transcript.domain.names)
    whole = [_merged(answer, transcript) for answer in transcript.marginals if columns.issuperset(answer.clique)]
    total = max(0.0, mean_total(whole))
    lost = _lost_shares(whole, transcript, working, total)
    whole += completed(transcript, total)
    kept = [_written(table, transcript, working, lost) for table in whole]
    by_clique: dict[Clique, list[Table]] = {}
    for table in kept:
        by_clique.setdefault(table.clique, []).append(table)
    return Evidence(working, tuple(average(tables) for tables in by_clique.values()), total)


def mean_total(tables: Sequence[Table]) -> float:
    """Inverse-variance mean of the tables' totals: weights 1/(s^2 c) for c cells of variance s^2.

    Units: records; 0 without tables. Privacy: none: post-processing.
    """
    if not tables:
        return 0.0
    weights = np.array([1.0 / float(table.variance.sum()) for table in tables])
    totals = np.array([float(table.values.sum()) for table in tables])
    return float((weights * totals).sum() / weights.sum())


def noisy_total(answers: Iterable[NoisyMarginal]) -> float:
    """The number of records that noisy marginals tell: `mean_total` of them as they are, which may be below 0.

    Units: records. Privacy: none: post-processing of noisy answers.
    """
    return mean_total([_as_table(answer) for answer in answers])


def average(tables: Sequence[Table]) -> Table:
    """Inverse-variance mean, cell by cell, of tables over one clique. Privacy: none: post-processing."""
    if len(tables) == 1:
        return tables[0]
    precision = np.sum([1.0 / table.variance for table in tables], axis=0)
    values = np.sum([table.values / table.variance for table in tables], axis=0) / precision
    return Table(tables[0].clique, values, 1.0 / precision, all(table.interaction for table in tables))


def completed(transcript: Transcript, total: float) -> list[Table]:
    """A table for every interaction that was bought: that part of it, and margins from the noisy one-ways.

    A column without a one-way is taken to be even. The noise outside of the interaction, which has no margins, is taken
    off: a cell keeps prod (k - 1)/k of its variance.

    Shapes: tables are over the merged domain. Units: records.
    Privacy: none: post-processing.
    """
    singles = noisy_one_ways(transcript)
    grouped = {name: _grouped(table, transcript.merges).values for name, table in singles.items()}
    found = []
    for answer in transcript.interactions:
        cells = answer.counts.size
        values = centered(answer.counts / float(cells))
        kept = math.prod((size - 1) / size for size in answer.counts.shape)
        variance = np.full(values.shape, float(answer.variance) / cells**2 * kept)
        sizes = dict(zip(answer.clique, answer.counts.shape, strict=True))
        own = {name: np.full(size, total / size) for name, size in sizes.items()}
        own |= {name: grouped[name] if answer.merged else singles[name].values for name in sizes if name in singles}
        table = Table(answer.clique, with_margins(answer.clique, values, own, total), variance, interaction=True)
        found.append(table if answer.merged else _grouped(table, transcript.merges))
    return found


def centered(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a table says beyond its margins: along each axis, its mean is taken off.

    Privacy: none: post-processing.

    >>> centered(np.array([[5.0, 1.0], [2.0, 2.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def with_margins(
    names: Clique, values: NDArray[np.float64], singles: Mapping[str, NDArray[np.float64]], total: float
) -> NDArray[np.float64]:
    """The table whose interaction is that of ``values``, whose one-ways are those given, and nothing between.

    Units: records. Privacy: none: post-processing.
    """
    result = centered(values) + total / values.size
    for axis, name in enumerate(names):
        own = singles[name] - singles[name].mean()
        result = result + own.reshape([-1 if a == axis else 1 for a in range(len(names))]) * (own.size / values.size)
    return result


def _as_table(answer: NoisyMarginal) -> Table:
    """A noisy marginal's counts as they are, each with the variance of its noise. Privacy: none: post-processing."""
    return Table(answer.clique, answer.counts.astype(np.float64), np.full(answer.counts.shape, float(answer.variance)))


def noisy_one_ways(transcript: Transcript) -> dict[str, Table]:
    """The mean by precision of the noisy counts of all codes of each column that was asked for alone, in that form.

    Shapes: one entry a code of the transcript's domain. Units: records.
    Privacy: none: post-processing.
    """
    sizes = dict(zip(transcript.domain.names, transcript.domain.sizes, strict=True))
    found: dict[str, list[Table]] = {}
    for answer in transcript.marginals:
        if len(answer.clique) == 1 and answer.counts.size == sizes.get(answer.clique[0]):
            found.setdefault(answer.clique[0], []).append(_as_table(answer))
    return {name: average(tables) for name, tables in found.items()}


def _merged(answer: NoisyMarginal, transcript: Transcript) -> Table:
    """The answer over the merged domain."""
    table = _as_table(answer)
    return table if answer.merged else _grouped(table, transcript.merges)


def _grouped(table: Table, merges: Mapping[str, Merge]) -> Table:
    """The table over groups of codes: counts and variances of a group add up."""
    values, variance = table.values, table.variance
    for axis, name in enumerate(table.clique):
        merge = merges.get(name)
        if merge is not None:
            groups = np.asarray(merge.groups)
            values = summed_by(values, groups, merge.size, axis)
            variance = summed_by(variance, groups, merge.size, axis)
    return replace(table, values=values, variance=variance)


def summed_by(values: NDArray[np.float64], groups: NDArray[np.int64], size: int, axis: int) -> NDArray[np.float64]:
    """Sum the entries of each group along an axis.

    Shapes: ``groups`` has one entry a place of the axis, a number below ``size``. Privacy: none: post-processing.

    >>> summed_by(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 1]), 2, 0).tolist()
    [1.0, 6.0]
    """
    moved = np.moveaxis(values, axis, 0)
    summed = np.zeros((size, *moved.shape[1:]))
    np.add.at(summed, groups, moved)
    return np.moveaxis(summed, 0, axis)


def _lost_shares(
    tables: Sequence[Table], transcript: Transcript, working: WorkingDomain, total: float
) -> dict[str, float]:
    """Share of each column's records in codes that are never written; 0 where noise explains it."""
    lost: dict[str, float] = {}
    for name in working.full.names:
        kept = _kept(name, transcript, working)
        own = [projected(table, (name,)) for table in tables if name in table.clique]
        # Merged or not, whichever is known best; never-written codes are groups of their own in both.
        own = [table for table in own if kept.size < table.values.size]
        if not own or total <= 0:
            continue
        known = min(own, key=lambda table: float(table.variance.sum()))
        known = average([table for table in own if table.values.size == known.values.size])
        gone = np.setdiff1d(np.arange(known.values.size), kept)
        count, deviation = float(known.values[gone].sum()), float(known.variance[gone].sum()) ** 0.5
        # Neither a loss that noise explains nor a remainder that is noise may decide a scale.
        known_well = count > 2 * deviation and total - count > 3 * float(known.variance.sum()) ** 0.5
        lost[name] = count / total if known_well else 0.0
    return lost


def projected(table: Table, names: Clique) -> Table:
    """The table summed onto some of its columns; variances add up.

    Units: records. Privacy: none: post-processing.
    """
    others = tuple(axis for axis, name in enumerate(table.clique) if name not in names)
    own = table.interaction and names == table.clique
    return Table(names, table.values.sum(axis=others), table.variance.sum(axis=others), own)


def _kept(name: str, transcript: Transcript, working: WorkingDomain) -> NDArray[np.int64]:
    """Places on a column's merged axis that are written."""
    merge = transcript.merges.get(name)
    groups = working.groups[name]
    merged = np.arange(groups.size) if merge is None else np.asarray(merge.groups, dtype=np.int64)
    return np.unique(merged[groups >= 0])


def _written(table: Table, transcript: Transcript, working: WorkingDomain, lost: Mapping[str, float]) -> Table:
    """The table without groups that are never written, scaled up by what its columns are known to lose.

    Never by the table's own sum: the noise of all its cells is in that.
    """
    values, variance, ratio = table.values, table.variance, 1.0
    for axis, name in enumerate(table.clique):
        kept = _kept(name, transcript, working)
        if kept.size < values.shape[axis]:
            values, variance = np.take(values, kept, axis), np.take(variance, kept, axis)
            ratio /= 1.0 - lost.get(name, 0.0)
    return Table(table.clique, values * ratio, variance * ratio**2, table.interaction)
