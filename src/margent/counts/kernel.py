"""Exact contingency tables by one kernel: pack the codes of a clique into one integer, then count integers.

Counts of disjoint blocks of rows add, so memory grows with cells and not with rows. Packing into 16 bits
where the table allows it, and counting 65,536 rows at a time, keeps a block of every column in the
processor's cache; that, and not compiled code, is what makes this fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import MargentError, PlanError
from margent.schema.domain import Clique, Domain, Merge

MAX_CELLS = 2**27
"""Most cells of one table (1 GiB of 64-bit counts), unless the plan states another cap."""

BLOCK_ROWS = 65_536
"""Rows packed and counted at a time."""

NO_MERGES: Mapping[str, Merge] = MappingProxyType({})

Codes = NDArray[np.unsignedinteger[Any]]
"""The codes of one column, of an unsigned type: a negative code cannot be written down."""

_NARROW_CELLS = 2**16


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


@dataclass(frozen=True, slots=True)
class _Packing:
    """How one table is counted: the places and sizes of its columns that have more than one code."""

    places: tuple[int, ...]
    sizes: tuple[int, ...]
    cells: int


class Tally:
    """The contingency tables of ``cliques``, summed over the blocks of rows that are added.

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
    ) -> None:
        self._domain = domain
        self._cliques = tuple(cliques)
        self._merged = domain.merged(merges)
        position = self._merged.position
        self._lookups = {position[name]: _lookup(domain, name, merge) for name, merge in merges.items()}
        beside = self._merged.names[len(domain.names) :]
        self._origins = [*range(len(domain.names)), *(domain.position[merges[name].column] for name in beside)]
        self._packings = [_packing(self._merged, clique, max_cells) for clique in self._cliques]
        self._needed = sorted({position[name] for clique in self._cliques for name in clique})
        self._totals = [np.zeros(packing.cells, dtype=np.int64) for packing in self._packings]
        self._narrow = np.empty(BLOCK_ROWS, dtype=np.uint16)
        self._wide = np.empty(BLOCK_ROWS, dtype=np.int64)

    def add(self, columns: Sequence[Codes], rows: int) -> None:
        """Add ``rows`` rows of codes, one array a column of the domain, to every table.

        Raises: MargentError (a fault of this program, not of the table) when the codes do not fit the domain.
        """
        if len(columns) != len(self._domain.names):
            raise MargentError("internal fault: the codes have another number of columns than the domain")
        for place in {self._origins[place] for place in self._needed}:
            column = columns[place]
            if column.dtype.kind != "u" or column.shape != (rows,):
                raise MargentError(f"internal fault: misshapen codes in column {self._domain.names[place]!r}")
        for start in range(0, rows, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, rows)
            block = {place: self._prepared(columns[self._origins[place]][start:stop], place) for place in self._needed}
            for packing, total in zip(self._packings, self._totals, strict=True):
                self._count(packing, total, block, stop - start)

    def tables(self) -> list[NDArray[np.int64]]:
        """The tables so far, in the order and shape of the cliques."""
        return [
            total.reshape(self._merged.shape(clique)) for total, clique in zip(self._totals, self._cliques, strict=True)
        ]

    def _prepared(self, codes: Codes, place: int) -> Codes:
        """One block of one column, checked against the domain, merged, in the smallest type that packs it."""
        origin = self._origins[place]
        if int(codes.max()) >= self._domain.sizes[origin]:
            # Counted regardless, a code past the end would lengthen the table: its shape would tell of a row.
            raise MargentError(f"internal fault: a code past the end in column {self._domain.names[origin]!r}")
        lookup = self._lookups.get(place)
        if lookup is not None:
            return lookup[codes]
        narrow = self._domain.sizes[origin] <= _NARROW_CELLS
        return codes.astype(np.uint16 if narrow else np.uint32, copy=False)

    def _count(self, packing: _Packing, total: NDArray[np.int64], block: Mapping[int, Codes], rows: int) -> None:
        if not packing.places:
            total[0] += rows
            return
        narrow = packing.cells <= _NARROW_CELLS
        first, *others = (block[place] for place in packing.places)
        packed: NDArray[Any] = first
        if others:
            # Horner's rule in a reused buffer; no partial result passes cells - 1.
            buffer: NDArray[Any] = self._narrow[:rows] if narrow else self._wide[:rows]
            for codes, size in zip(others, packing.sizes[1:], strict=True):
                np.multiply(packed, buffer.dtype.type(size), out=buffer, dtype=buffer.dtype)
                np.add(buffer, codes, out=buffer)
                packed = buffer
        if narrow:
            total += np.bincount(packed, minlength=packing.cells)
        else:
            # A table far larger than the block: touch the cells that occur and no others.
            np.add.at(total, packed, 1)


def _packing(domain: Domain, clique: Clique, max_cells: int) -> _Packing:
    if len(set(clique)) != len(clique):
        raise ValueError("a clique names each of its columns once")
    cells = checked_cells(domain, clique, max_cells)
    # Columns of one code add nothing to the packed integer, and their stride may not fit its type.
    several = [name for name in clique if domain.size(name) > 1]
    places = tuple(domain.position[name] for name in several)
    return _Packing(places, domain.shape(several), cells)


def _lookup(domain: Domain, name: str, merge: Merge) -> Codes:
    if (name in domain.position and merge.column != name) or len(merge.groups) != domain.size(merge.column):
        raise ValueError(f"the merge of {name!r} does not fit its column")
    return np.asarray(merge.groups, dtype=np.uint16 if merge.size <= _NARROW_CELLS else np.uint32)
