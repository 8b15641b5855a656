"""What every synthesizer does about rules: records that obey from the start, and moves that keep to the rules.

This is the one place that knows how records come to obey. A synthesizer brings its records here when they are made
(`RecordRules.enforced`), and its loops take `RecordRules.factors` to keep to what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.progress import silent
from margent.schema.allowed import StructuralZeros
from margent.schema.domain import Clique, Domain
from margent.schema.rule_search import MOST_WORK, UndecidedError, Work, solution
from margent.schema.rulebook import Rulebook
from margent.stream import Stream
from margent.synthesizers.descending import DescentSettings, descend, targets_of
from margent.synthesizers.rule_steps import Factors, adapt, mend_all
from margent.synthesizers.shares import WHOLE, Share

Records = NDArray[np.int32]
Codes = NDArray[np.int64]
Shares = NDArray[np.float64]
WEIGHT = 2**24
"""Weights of a column's codes add up to about so much; every code has at least 1."""
ROW_WORK = MOST_WORK // 10
"""Work of the search for one row; where it does not suffice, the row becomes the witness."""


@dataclass(frozen=True, eq=False)
class RecordRules:
    """The rules between the columns of records, which have ``sizes`` codes; ``shares`` of codes guide what is changed.

    ``witness`` is a row that obeys, by column.
    """

    zeros: StructuralZeros
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    shares: Mapping[str, Shares]
    witness: Mapping[str, int]

    @staticmethod
    def of(
        rulebook: Rulebook, domain: Domain, shares: Mapping[str, Shares], groups: Mapping[str, Codes]
    ) -> RecordRules:
        """The rules between records over groups of codes. Shapes: ``groups[name]`` one group a code, -1 for none."""
        witness = {name: int(groups[name][code]) for name, code in rulebook.witness.items()}
        return RecordRules(rulebook.zeros.merged(groups), domain.names, domain.sizes, shares, witness)

    @cached_property
    def factors(self) -> Factors:
        """The zeros as flat arrays for compiled loops."""
        position = {name: place for place, name in enumerate(self.names)}
        axis_start, columns, shift_start, shifts, cell_start, cells = [0], list[int](), [0], [], [0], []
        holding: list[list[int]] = [[] for _ in self.names]
        for number, factor in enumerate(self.zeros.factors):
            stride = factor.allowed.size
            for axis, name in enumerate(factor.columns):
                stride //= factor.allowed.shape[axis]
                columns.append(position[name])
                holding[position[name]].append(number)
                shifts.append(factor.classes[axis] * stride)
                shift_start.append(shift_start[-1] + factor.classes[axis].size)
            axis_start.append(len(columns))
            cells.append(factor.allowed.ravel())
            cell_start.append(cell_start[-1] + factor.allowed.size)
        weights = [self._weights(name, size) for name, size in zip(self.names, self.sizes, strict=True)]
        return Factors(
            np.array(axis_start, dtype=np.int64),
            np.array(columns, dtype=np.int64),
            np.array(shift_start, dtype=np.int64),
            np.concatenate(shifts or [np.zeros(0)]).astype(np.int64),
            np.array(cell_start, dtype=np.int64),
            np.concatenate(cells or [np.zeros(0, dtype=np.bool_)]),
            np.array([number for own in holding for number in own], dtype=np.int64),
            np.cumsum([0, *(len(own) for own in holding)]).astype(np.int64),
            np.array(self.sizes, dtype=np.int64),
            np.concatenate(weights),
            np.cumsum([0, *self.sizes]).astype(np.int64),
        )

    def _weights(self, name: str, size: int) -> NDArray[np.int64]:
        """Whole weights of a column's codes, 0 for those that no row can have."""
        shares = np.maximum(self.shares.get(name, np.ones(size)), 0.0)
        weights = np.rint(shares * (WEIGHT / max(float(shares.sum()), 1e-300))).astype(np.int64)
        weights = np.maximum(weights, 1)
        possible = self.zeros.possible.get(name)
        return weights if possible is None else np.where(possible, weights, 0)

    def enforced(self, records: Records, stream: Stream, groups: Mapping[str, Codes] | None = None) -> Records:
        """The records, changed where they break a rule, as little as was found possible, so that every row obeys.

        With ``groups`` (one a code), codes are first changed for others of their group, and only where that is not
        enough for any others.

        Shapes: (n, d). Privacy: none: post-processing.
        """
        records = np.ascontiguousarray(records, dtype=np.int32).copy()
        broken = np.zeros(records.shape[0], dtype=np.bool_)
        state = stream.words(1)
        everything = np.zeros(sum(self.sizes), dtype=np.int64)
        if groups is not None:
            own = np.concatenate([groups[name] for name in self.names]).astype(np.int64)
            mend_all(records, self.factors, own, state, broken)
            broken[:] = False
        mend_all(records, self.factors, everything, state, broken)
        if broken.any():
            linked = [name in self.zeros.columns for name in self.names]
            places: Codes = np.flatnonzero(linked)
            rows = np.flatnonzero(broken)
            distinct, members = np.unique(records[np.ix_(rows, places)], return_inverse=True, axis=0)
            found = np.stack([self._searched(own, places) for own in distinct])
            records[np.ix_(rows, places)] = found[members.reshape(-1)]
        return records

    def balanced(self, records: Records, stream: Stream, share: Share = WHOLE) -> Records:
        """The records brought to the rules, then moved within them until each column has its shares again.

        Shapes: (n, d). Privacy: none: post-processing.
        """
        shares: dict[Clique, Shares] = {(name,): self.shares[name] for name in self.names if name in self.zeros.columns}
        shares = targets_of(share, shares, records.shape[0])
        settings = DescentSettings().within(share, records.shape[0])
        return descend(records, shares, self.names, self.sizes, stream, silent, settings, self)

    def among(self, names: Sequence[str]) -> RecordRules:
        """The rules that speak of no other columns than these, for records of these columns alone."""
        factors = tuple(factor for factor in self.zeros.factors if set(factor.columns) <= set(names))
        sizes = tuple(self.sizes[self.names.index(name)] for name in names)
        return RecordRules(
            StructuralZeros(factors, self.zeros.possible), tuple(names), sizes, self.shares, self.witness
        )

    def _searched(self, codes: Records, places: Codes) -> Records:
        """A row that obeys and has as many of the codes as a search from them finds; the witness at worst."""
        names = [self.names[place] for place in places.tolist()]
        domains = {name: self.zeros.possible[name] for name in names}
        preferred = dict(zip(names, codes.tolist(), strict=True))
        try:
            found = solution(self.zeros.factors, domains, preferred, Work(ROW_WORK))
        except UndecidedError:
            found = None
        own = found or self.witness
        return np.array([own[name] for name in names], dtype=np.int32)

    def adapted(
        self, records: Records, before: Records, codes: Records, cells: int, locked: Codes, stream: Stream
    ) -> None:
        """Bring records that a step moved to cells of a table back to the rules, in place (`rule_steps.adapt`)."""
        fixed = np.zeros(len(self.names), dtype=np.bool_)
        fixed[locked] = True
        adapt(records, before, codes, cells, fixed, self.factors, stream.words(1))
