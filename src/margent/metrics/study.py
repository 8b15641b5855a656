"""One real table, the tables that are held against it, and their counts side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import CodedTable, Column
from margent.metrics.summaries import Summaries, summarize
from margent.schema.domain import Clique, Domain
from margent.schema.fields import Schema

Counts = NDArray[np.int64]
Found = TypeVar("Found")
Counter = Callable[[CodedTable, Domain, Sequence[Clique]], list[Counts]]
"""How tables are counted; given from outside, because metrics do not reach the counting kernel."""

FLAT_CELLS = 2**21
"""Tables of more cells are counted over the cells that occur only, and come without axes."""
CHUNK_CELLS = 2**22
"""Cells counted in one pass over a table."""
MOST_PAIRS = 6_000
MOST_TRIPLES = 300


@dataclass(frozen=True)
class Choices:
    """Which cliques and columns metrics use, where there are more than they can look at or somebody must say which.

    ``pairs`` and ``triples`` are counted at most, chosen by ``seed``. ``group`` splits the group scores, ``targets``
    are what is learned, ``pay_gap`` names place, income and sex; ``tolerance`` is that of the marginal difference.

    Privacy: none: options.
    """

    seed: int = 20_261_128
    pairs: int = MOST_PAIRS
    triples: int = MOST_TRIPLES
    group: str | None = None
    targets: tuple[str, ...] = ()
    pay_gap: tuple[str, str, str] | None = None
    tolerance: int = 2


@dataclass(frozen=True, eq=False)
class Study:
    """The real table and the tables held against it: a resample, the independent table, then the synthetic ones.

    Shapes: all tables have the columns of ``columns``, in that order; numbers of rows may differ.
    Privacy: holds the real table: INTERNAL.
    """

    columns: tuple[Column, ...]
    real: CodedTable = field(repr=False)
    tables: tuple[CodedTable, ...]
    counter: Counter = field(repr=False)
    choices: Choices = field(default_factory=Choices)
    schema: Schema | None = field(default=None, repr=False)

    @cached_property
    def domain(self) -> Domain:
        """Names and sizes of the columns."""
        return Domain(tuple(one.name for one in self.columns), tuple(one.size for one in self.columns))

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """The columns by name."""
        return {one.name: one for one in self.columns}

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where each column stands."""
        return {one.name: place for place, one in enumerate(self.columns)}

    def random(self, label: str) -> np.random.Generator:
        """Seeded chance for one purpose: the same in every run, whichever metrics run beside it."""
        return np.random.default_rng([self.choices.seed, *label.encode()])

    def only(self, table: CodedTable) -> Study:
        """The study of one table alone."""
        return replace(self, tables=(table,))

    def cliques(self, k: int) -> tuple[Clique, ...]:
        """All sets of k columns in the columns' order, or a seeded choice of as many as the options allow."""
        names, most = self.domain.names, {1: 10**9, 2: self.choices.pairs}.get(k, self.choices.triples)
        total = math.comb(len(names), k)
        if total <= most:
            return tuple(itertools.combinations(names, k))
        rng, chosen = self.random(f"cliques {k}"), set[tuple[int, ...]]()
        while len(chosen) < most:
            chosen.add(tuple(sorted(rng.choice(len(names), k, replace=False).tolist())))
        return tuple(tuple(names[place] for place in places) for places in sorted(chosen))

    def counted(self, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Counts, list[Counts]]]:
        """For each clique the counts of the real table and those of every other one, of equal shape.

        Shapes: one axis a column; tables of more than `FLAT_CELLS` cells are flat, over the cells that occur.
        """
        waiting: list[Clique] = []
        cells = 0
        for clique in cliques:
            size = self.domain.cells(clique)
            if size > FLAT_CELLS:
                yield from self._counted(waiting)
                waiting, cells = [], 0
                yield self._flat(clique)
                continue
            if waiting and cells + size > CHUNK_CELLS:
                yield from self._counted(waiting)
                waiting, cells = [], 0
            waiting.append(clique)
            cells += size
        yield from self._counted(waiting)

    def shaped(self, clique: Clique) -> tuple[Counts, list[Counts]]:
        """One clique's real counts and all others, with axes whatever its size (the caller has seen to it)."""
        ((_, real, others),) = self._counted([clique])
        return real, others

    def _counted(self, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Counts, list[Counts]]]:
        if not cliques:
            return
        found = [self.counter(table, self.domain, cliques) for table in (self.real, *self.tables)]
        for clique, real, *others in zip(cliques, *found, strict=True):
            yield clique, real, others

    def _flat(self, clique: Clique) -> tuple[Clique, Counts, list[Counts]]:
        every = (self.real, *self.tables)
        packed = [self._packed(table, clique) for table in every]
        _, places = np.unique(np.concatenate(packed), return_inverse=True)
        cells = int(places.max()) + 1 if places.size else 1
        ends = np.cumsum([0, *(table.rows for table in every)])
        real, *others = (
            np.bincount(places[start:stop], minlength=cells).astype(np.int64)
            for start, stop in itertools.pairwise(ends.tolist())
        )
        return clique, real, others

    def _packed(self, table: CodedTable, clique: Clique) -> NDArray[np.int64]:
        packed = np.zeros(table.rows, dtype=np.int64)
        reach = 1
        for name in clique:
            size = self.domain.size(name)
            if reach * size >= 2**62:
                raise OverflowError("a table of more than 2^62 cells")
            packed, reach = packed * size + table.codes[self.place[name]], reach * size
        return packed

    @cached_property
    def _found(self) -> dict[str, Any]:
        return {}

    def once(self, label: str, find: Callable[[], Found]) -> Found:
        """What ``find`` returns, computed once for all metrics that share it."""
        if label not in self._found:
            self._found[label] = find()
        found: Found = self._found[label]
        return found

    def summaries(self, k: int) -> Summaries:
        """Distances (and, for k up to 2, dependence) of all chosen k-way tables, counted once for all metrics.

        Raises: NotComputableError when there are fewer than k columns.
        """
        return self.once(f"summaries {k}", lambda: summarize(self, k))
