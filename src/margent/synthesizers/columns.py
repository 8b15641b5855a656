"""What every synthesizer knows of single columns: the shares of their codes, merged ones told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.consistency import Consistency, Thresholded
from margent.postprocessing.merging import Spread, member_shares
from margent.postprocessing.tables import Table, WorkingDomain, evidence, noisy_one_ways, working_domain
from margent.postprocessing.zeros import within_zeros
from margent.progress import Progress
from margent.schema.allowed import StructuralZeros
from margent.schema.domain import Clique, Domain
from margent.stream import Stream
from margent.synthesizers.shares import WHOLE, Share, shuffled_codes
from margent.transcript import Transcript

if TYPE_CHECKING:
    from margent.schema.rulebook import Rulebook
    from margent.synthesizers.rules import RecordRules


ZEROING = 3
"""How often tables lose their forbidden cells and are made to agree again."""


def sampleable_codes(transcript: Transcript) -> Mapping[str, NDArray[np.bool_]]:
    """Which codes of each column may be written, from the schema and its rules. Privacy: none: public facts only."""
    from margent.schema.codec import Codec

    sampleable, rulebook = dict(Codec(transcript.schema).sampleable), transcript.schema.rulebook
    if rulebook is not None:
        sampleable |= rulebook.zeros.possible
    return sampleable


@dataclass(frozen=True, eq=False)
class Columns:
    """Single columns of a model: ``shares`` of the working codes and, inside each, ``members`` shares.

    Shapes: ``shares[name]`` one consistent count of at least 0 a working code; ``members[name][g]`` one share
    a schema code of working code g, for those with several.
    Units: records.
    """

    working: WorkingDomain
    shares: Mapping[str, NDArray[np.float64]]
    members: Mapping[str, Mapping[int, NDArray[np.float64]]]
    rulebook: Rulebook | None = None

    @cached_property
    def rules(self) -> RecordRules | None:
        """The rules between columns of working codes, if there are any."""
        if self.rulebook is None:
            return None
        from margent.synthesizers.rules import RecordRules

        return RecordRules.of(self.rulebook, self.working.domain, self.shares, self.working.groups)

    @cached_property
    def _full_rules(self) -> RecordRules | None:
        """The rules between columns of schema codes, if there are any."""
        if self.rulebook is None:
            return None
        from margent.synthesizers.rules import RecordRules

        full = self.working.full
        shares = {name: self.full_shares(name) for name in full.names}
        return RecordRules.of(self.rulebook, full, shares, {name: np.arange(full.size(name)) for name in full.names})

    def alone(self, name: str, rows: int, stream: Stream, share: Share = WHOLE) -> NDArray[np.int32]:
        """A column of working codes drawn by itself: apportioned counts in random order."""
        return shuffled_codes(self.shares[name], rows, stream, share)

    def full_shares(self, name: str) -> NDArray[np.float64]:
        """Shares of a column's schema codes, adding up to one; 0 for codes that are never written."""
        working = self.working
        shares = np.zeros(working.full.size(name))
        shares[working.firsts(name)] = self.shares[name]
        for group, members in working.mixed(name).items():
            shares[members] = self.shares[name][group] * self.members[name][group]
        mass = float(shares.sum())
        if mass <= 0:
            shares[working.written(name)] = 1.0
            mass = float(shares.sum())
        return shares / mass

    def spread(self, names: Clique, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """A table over working codes restated over schema codes: each group's count split among its members.

        Shapes: one axis a name, in that order. Codes that are never written get 0.
        """
        for axis, name in enumerate(names):
            groups = self.working.groups[name]
            share = (groups >= 0).astype(np.float64)
            for group, members in self.working.mixed(name).items():
                share[members] = self.members[name][group]
            shape = [-1 if place == axis else 1 for place in range(table.ndim)]
            table = np.take(table, np.maximum(groups, 0), axis) * share.reshape(shape)
        return table

    def unmerged(
        self, drawn: Mapping[str, NDArray[np.int32]], rows: int, seed: int, share: Share = WHOLE
    ) -> NDArray[np.int32]:
        """Records of schema codes, shape (rows, d), from columns of working codes.

        The records of a group are apportioned to its members, in random order. Where rules tell members of a group
        apart, records that break one are changed: every record that is returned obeys all rules.
        """
        names = self.working.full.names
        records = np.empty((len(names), rows), dtype=np.int32)
        for place, name in enumerate(names):
            codes = drawn[name]
            records[place] = self.working.firsts(name)[codes]
            for group, members in self.working.mixed(name).items():
                where = np.flatnonzero(codes == group)
                stream = Stream(seed, "unmerge", name, str(group))
                records[place, where] = members[shuffled_codes(self.members[name][group], where.size, stream, share)]
        if self._full_rules is not None:
            return self._full_rules.enforced(records.T, Stream(seed, "unmerge", "rules"), self.working.groups)
        return records.T


def columns_of(transcript: Transcript, working: WorkingDomain, tables: Sequence[Table], spread: Spread) -> Columns:
    """Read every column's shares off the consistent tables; columns in none of them are uniform.

    Privacy: none: post-processing.
    """
    shares, members, known = {}, {}, noisy_one_ways(transcript)
    for name, size in zip(working.full.names, working.full.sizes, strict=True):
        over = [table for table in tables if name in table.clique]
        if over:
            smallest = min(over, key=lambda table: (len(table.clique), table.clique))
            axes = tuple(axis for axis, other in enumerate(smallest.clique) if other != name)
            shares[name] = smallest.values.sum(axis=axes)
        else:
            shares[name] = np.ones(working.domain.size(name))
        own = known.get(name, Table((name,), np.zeros(size), np.zeros(size)))  # zeros where it was never asked
        members[name] = member_shares(working, name, own.values, shares[name], spread, float(own.variance[0]))
    return Columns(working, shares, members, transcript.schema.rulebook)


def consistent(
    transcript: Transcript, consistency: Consistency | Thresholded, spread: Spread, progress: Progress
) -> tuple[dict[Clique, Table], Columns, int]:
    """Tables that are at least 0 and agree, the single columns read off them, and the records they tell of.

    Takes any transcript. Tables that are thresholded agree only before that. Privacy: none: post-processing.
    """
    progress("consistency", 0.0)
    working = working_domain(transcript, sampleable_codes(transcript))
    known = evidence(transcript, working)
    # Without records to speak of the tables still tell shapes, and those need a positive total.
    total = max(known.total, 1.0)
    tables = consistency.apply(known.tables, total)
    rulebook = transcript.schema.rulebook
    if rulebook is not None:
        zeros = rulebook.zeros.merged(working.groups)
        for _ in range(ZEROING):
            tables = consistency.apply([_zeroed(table, zeros, total) for table in tables], total)
        tables = [_zeroed(table, zeros, total) for table in tables]
    progress("consistency", 1.0)
    return (
        {table.clique: table for table in tables},
        columns_of(transcript, working, tables, spread),
        round(known.total),
    )


def _zeroed(table: Table, zeros: StructuralZeros, total: float) -> Table:
    """The table with no records in cells that rules forbid, on the simplex of the others.

    Units: records. Privacy: none: post-processing.
    """
    return Table(table.clique, within_zeros(table.clique, table.values, zeros, total), table.variance)


def counted(records: NDArray[np.int32], domain: Domain, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
    """Contingency tables of synthetic records, axes in clique order.

    Shapes: ``records`` (n, d). Privacy: none: post-processing.
    """
    tables = []
    for names in cliques:
        shape = domain.shape(names)
        flat = np.zeros(records.shape[0], dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            flat = flat * size + records[:, domain.position[name]]
        counts = np.bincount(flat, minlength=domain.cells(names))
        tables.append(counts.reshape(shape).astype(np.float64))
    return tables
