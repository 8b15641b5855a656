"""Exact contingency tables by one kernel: pack the codes of a clique into one integer, then count integers.

Counts of disjoint blocks of rows add, in any order, so memory grows with cells and not with rows, and any number of
threads may add to the same tables. The tables are shared and not copied: each thread takes them shard by shard, from
a place of its own on, and a shard is locked while it is added to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import MargentError, PlanError
from margent.machine import CACHED_ROWS
from margent.schema.domain import NO_MERGES, Clique, Domain, Merge

MAX_CELLS = 2**27
"""Most cells of one table (1 GiB of 64-bit counts), unless the plan states another cap."""

Codes = NDArray[np.unsignedinteger[Any]]
"""The codes of one column, of an unsigned type: a negative code cannot be written down."""

_NARROW_CODES = 2**16
_SHARDS_A_THREAD = 4


def checked_cells(domain: Domain, clique: Clique, max_cells: int = MAX_CELLS) -> int:
    """Cells of the table over ``clique``, as an exact Python integer that no product can wrap.

    Privacy: none: a function of the schema.
    Raises: PlanError naming the clique and the cap.

    >>> checked_cells(Domain(("a", "b"), (3, 4)), ("a", "b"))
    12
    >>> checked_cells(Domain(("a", "b"), (2**32, 2**32)), ("a", "b"))
    Traceback (most recent call last):
        ...
    margent.errors.PlanError: the table over a, b has 18446744073709551616 cells, and the cap is ...
    """
    cells = domain.cells(clique)
    if cells > max_cells:
        raise PlanError(
            f"the table over {', '.join(clique)} has {cells} cells, and the cap is {max_cells}; "
            "give these columns fewer bins or categories"
        )
    return cells


class Tally:
    """The contingency tables of ``cliques``, summed over the blocks of rows that are added.

    `add` may be called by as many threads at once as were announced; more would only wait for each other.

    Shapes: table i is int64 with one axis a name of clique i, in the clique's own order (the empty clique: no
    axis, the number of rows); axes have the size of the domain, or of the merge.
    Privacy: the tables are exact counts: they must not leave the curator, and nothing here prints them.
    Raises: PlanError before anything is allocated when a table has more than ``max_cells`` cells.
    """

    def __init__(
        self,
        domain: Domain,
        cliques: Sequence[Clique],
        merges: Mapping[str, Merge] = NO_MERGES,
        *,
        max_cells: int = MAX_CELLS,
        threads: int = 1,
    ) -> None:
        self._domain = domain
        self._cliques = tuple(cliques)
        self._merged = domain.merged(merges)
        position = self._merged.position
        lookups = {position[name]: _lookup(domain, name, merge) for name, merge in merges.items()}
        beside = self._merged.names[len(domain.names) :]
        origins = [*range(len(domain.names)), *(domain.position[merges[name].column] for name in beside)]
        self._packing = _packing(self._merged, self._cliques, max_cells)
        self._columns = [_Column(origins[place], lookups.get(place)) for place in self._packing.needed]
        self._checked = sorted({origins[position[name]] for clique in self._cliques for name in clique})
        wide = any(self._merged.sizes[place] > _NARROW_CODES for place in self._packing.needed)
        self._kind: np.dtype[Any] = np.dtype(np.uint32 if wide else np.uint16)
        self._totals = np.zeros(int(self._packing.offsets[-1]), dtype=np.int64)
        self._shards = _shards(len(self._cliques), 1 if threads == 1 else _SHARDS_A_THREAD * threads)
        self._turn = 0
        self._spare: list[_Scratch] = []

    def add(self, columns: Sequence[Codes], rows: int) -> None:
        """Add ``rows`` rows of codes, one array a column of the domain, to every table.

        Raises: MargentError (a fault of this program, not of the table) when the codes do not fit the domain.
        """
        if len(columns) != len(self._domain.names):
            raise MargentError("internal fault: the codes have another number of columns than the domain")
        for place in self._checked:
            codes = columns[place]
            if codes.dtype.kind != "u" or codes.shape != (rows,):
                raise MargentError(f"internal fault: misshapen codes in column {self._domain.names[place]!r}")
            if rows and int(codes.max()) >= self._domain.sizes[place]:
                # Counted regardless, a code past the end would land in another table: a row would be seen there.
                raise MargentError(f"internal fault: a code past the end in column {self._domain.names[place]!r}")
        with self._scratch() as scratch:
            for start in range(0, rows, CACHED_ROWS):
                stop = min(start + CACHED_ROWS, rows)
                for place, column in enumerate(self._columns):
                    codes = columns[column.origin][start:stop]
                    scratch.codes[place, : stop - start] = codes if column.lookup is None else column.lookup[codes]
                self._count(scratch, stop - start)

    def tables(self) -> list[NDArray[np.int64]]:
        """The tables so far, in the order and shape of the cliques."""
        offsets, sizes = self._packing.offsets.tolist(), self._merged.sizes
        position = self._merged.position
        return [
            self._totals[begin:end].reshape([sizes[position[name]] for name in clique])
            for clique, (begin, end) in zip(self._cliques, pairwise(offsets), strict=True)
        ]

    def _count(self, scratch: _Scratch, rows: int) -> None:
        from margent.counts.packed import count_tables

        packing = self._packing
        self._turn = turn = (self._turn + _SHARDS_A_THREAD + 1) % len(self._shards)
        for shard in (*self._shards[turn:], *self._shards[:turn]):
            with shard.lock:
                count_tables(
                    scratch.codes,
                    rows,
                    shard.first,
                    shard.last,
                    packing.starts,
                    packing.places,
                    packing.strides,
                    packing.offsets,
                    self._totals,
                    scratch.narrow,
                    scratch.wide,
                    scratch.lanes,
                )

    @contextmanager
    def _scratch(self) -> Iterator[_Scratch]:
        """Working memory that no other thread uses meanwhile."""
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = _Scratch.of(len(self._columns), self._kind, wide=self._packing.wide)
        yield scratch
        self._spare.append(scratch)


@dataclass(frozen=True, slots=True)
class _Column:
    """Where the codes of one counted column come from, and what they are merged by."""

    origin: int
    lookup: Codes | None


@dataclass(frozen=True, slots=True)
class _Shard:
    """A run of tables that one thread at a time adds to."""

    first: int
    last: int
    lock: Any


@dataclass(frozen=True, slots=True)
class _Scratch:
    """One thread's block of codes, packed codes and lanes."""

    codes: Codes
    narrow: NDArray[np.uint16]
    wide: NDArray[np.int64]
    lanes: NDArray[np.uint32]

    @staticmethod
    def of(columns: int, kind: np.dtype[Any], *, wide: bool) -> _Scratch:
        from margent.counts.packed import LANE_CELLS, LANES

        return _Scratch(
            np.empty((columns, CACHED_ROWS), dtype=kind),
            np.empty(CACHED_ROWS, dtype=np.uint16),
            np.empty(CACHED_ROWS if wide else 0, dtype=np.int64),
            np.empty((LANES, LANE_CELLS), dtype=np.uint32),
        )


@dataclass(frozen=True, slots=True)
class _Packing:
    """How all tables are packed, in the arrays that `margent.counts.packed.count_tables` reads.

    ``needed``: the columns that occur, in order; ``places`` are places among these. ``wide``: a table has more cells
    than 16 bits can number.
    """

    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    strides: NDArray[np.int64]
    offsets: NDArray[np.int64]
    needed: tuple[int, ...]
    wide: bool


def _packing(domain: Domain, cliques: Sequence[Clique], max_cells: int) -> _Packing:
    position, sizes = domain.position, domain.sizes
    starts, places, strides, offsets = [0], list[int](), list[int](), [0]
    largest = 0
    for clique in cliques:
        if len(set(clique)) != len(clique):
            raise ValueError("a clique names each of its columns once")
        cells = 1
        begin = len(places)
        for name in reversed(clique):
            place = position[name]
            # Columns of one code add nothing to the packed integer.
            if sizes[place] > 1:
                places.append(place)
                strides.append(cells)
                cells *= sizes[place]
        if cells > max_cells:
            checked_cells(domain, clique, max_cells)
        # The column of the longest stride first.
        places[begin:], strides[begin:] = places[begin:][::-1], strides[begin:][::-1]
        starts.append(len(places))
        offsets.append(offsets[-1] + cells)
        largest = max(largest, cells)
    needed = sorted({*places})
    among = {place: row for row, place in enumerate(needed)}
    return _Packing(
        np.array(starts, dtype=np.int64),
        np.array([among[place] for place in places], dtype=np.int64),
        np.array(strides, dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        tuple(needed),
        largest > _NARROW_CODES,
    )


def _shards(tables: int, most: int) -> tuple[_Shard, ...]:
    """All tables in order, in at most so many runs of about equally many."""
    count = max(1, min(most, tables))
    cuts = [tables * shard // count for shard in range(count + 1)]
    return tuple(_Shard(first, last, Lock()) for first, last in pairwise(cuts))


def _lookup(domain: Domain, name: str, merge: Merge) -> Codes:
    if (name in domain.position and merge.column != name) or len(merge.groups) != domain.size(merge.column):
        raise ValueError(f"the merge of {name!r} does not fit its column")
    return np.asarray(merge.groups, dtype=np.uint16 if merge.size <= _NARROW_CODES else np.uint32)
