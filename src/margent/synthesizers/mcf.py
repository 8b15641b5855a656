"""MCF, the baseline that GUM was measured against: table by table, the fewest changed values that make it exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.consistency import Consistency
from margent.postprocessing.merging import Spread
from margent.postprocessing.tables import Table
from margent.progress import Progress
from margent.schema.domain import Clique, Domain, outermost
from margent.settings import MOST_CELLS, require_between
from margent.stream import Stream
from margent.synthesizers.blocks import sampled_counts
from margent.synthesizers.columns import Columns, consistent
from margent.synthesizers.shares import WHOLE, Share
from margent.synthesizers.transport import transport
from margent.transcript import Transcript

if TYPE_CHECKING:
    from margent.synthesizers.rules import RecordRules


@dataclass(frozen=True)
class MinCostFlow:
    """Records moved until one table after the other is met exactly, each time with the fewest changed values.

    Records start from independent columns. In each of at most ``passes`` passes the tables come in random order; the
    records are brought to exactly the table's counts by a flow of least cost, a record that changes j of its values
    costing j. A table that is met undoes a part of those before it, so the last ones of a pass win; a pass that changes
    fewer than ``still`` of the cells ends it. Fewer than ``enough`` rows are drawn at random from a larger table (of at
    most ``total`` rows): few records cannot follow thin cells.

    Privacy: none: post-processing.
    Source: PrivSyn 2021 section 5.1, the method from which GUM was developed.
    """

    passes: int = 20
    still: float = 0.0005
    enough: int = 20_000
    consistency: Consistency = field(default_factory=Consistency)
    spread: Spread = "projected"
    name: str = "mcf"

    def __post_init__(self) -> None:
        """Check the settings. Raises: UsageError."""
        require_between(self, passes=(0, 100_000), still=(0, 1), enough=(0, MOST_CELLS))

    def build(self, transcript: Transcript, progress: Progress) -> MinCostFlowModel:
        """Make the noisy tables consistent and non-negative. Takes any transcript.

        Privacy: none: post-processing.
        """
        tables, columns, total = consistent(transcript, self.consistency, self.spread, progress)
        return MinCostFlowModel(settings=self, tables=tables, columns=columns, total=total)


@dataclass(frozen=True, eq=False)
class MinCostFlowModel:
    """Consistent tables and single columns over the working domain, with the settings to draw records."""

    settings: MinCostFlow
    tables: Mapping[Clique, Table]
    columns: Columns
    total: int

    @property
    def domain(self) -> Domain:
        """The codes' domain, unmerged."""
        return self.columns.working.full

    def sample(self, rows: int, seed: int, progress: Progress, share: Share = WHOLE) -> NDArray[np.int32]:
        """Draw ``rows`` records: shape (rows, d); the same bytes for the same seed.

        Privacy: none: post-processing.
        """
        built = share.built(rows, self.total, self.settings.enough)
        names = self.domain.names
        rules = self.columns.rules
        start = [self.columns.alone(name, built, Stream(seed, "mcf", "column", name), share) for name in names]
        records = np.stack(start) if start else np.zeros((0, built), dtype=np.int32)
        if rules is not None and built > 0:
            records = np.ascontiguousarray(rules.balanced(records.T, Stream(seed, "mcf", "rules"), share).T)
        self._play(records, seed, progress, rules, share)
        progress("records", 1.0)
        # Columns start in random order and every move treats all rows alike, so any rows are a random subset.
        drawn = {name: records[place, :rows] for place, name in enumerate(names)}
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Counts of ``total`` sampled records over each clique: there is no closed form.

        Privacy: none: post-processing.
        """
        return sampled_counts(self, cliques, seed)

    def _play(
        self, records: NDArray[np.int32], seed: int, progress: Progress, rules: RecordRules | None, share: Share
    ) -> None:
        """All passes, in place. Records that a table's moves take out of the rules have their other columns adapted."""
        rows = records.shape[1]
        # A table inside another is met with it, since they agree.
        cliques = outermost(sorted(self.tables))
        if rows == 0 or not cliques:
            return
        stream = Stream(seed, "mcf", "passes")
        targets = {names: self._target(names, rows, stream, share) for names in cliques}
        for number in range(self.settings.passes):
            changed = 0
            for done, place in enumerate(stream.permutation(len(cliques)).tolist()):
                names = cliques[place]
                axes = np.array([self.domain.position[name] for name in names])
                before = None if rules is None else records.copy()
                changed += meet(records, axes, targets[names], stream)
                if rules is not None and before is not None:
                    codes = cells_of(records, axes, targets[names].shape)
                    rules.adapted(records.T, before.T, codes, targets[names].size, axes, stream)
                progress("records", (number + (done + 1) / len(cliques)) / (self.settings.passes + 1))
            if changed <= self.settings.still * records.size:
                return

    def _target(self, names: Clique, rows: int, stream: Stream, share: Share) -> NDArray[np.int64]:
        """Whole counts that add up to ``rows``, each the floor or ceiling of its share."""
        values = self.tables[names].values
        return share.counts(values, rows, float(stream.unit(1)[0]))


def cells_of(records: NDArray[np.int32], axes: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The cell of a table, numbered in C order, that each record lies in."""
    codes = np.zeros(records.shape[1], dtype=np.int32)
    for axis, size in zip(axes.tolist(), shape, strict=True):
        codes = codes * np.int32(size) + records[axis]
    return codes


def meet(records: NDArray[np.int32], axes: NDArray[np.int64], target: NDArray[np.int64], stream: Stream) -> int:
    """Give the records exactly the target's counts over some columns, in place; returns how many values changed.

    Which records of a cell move is random; so is the order of codes that the flow sees, lest it prefer low codes.

    Shapes: ``records`` (d, n); ``target`` one axis a column of ``axes``, its sum n.
    Privacy: none: post-processing.
    """
    # Not at the top: the compiler is slow to import, and naming the synthesizer must not need it.
    from margent.synthesizers.gum_rounds import pick, tabulate

    shape = target.shape
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    codes, counts = np.empty(records.shape[1], dtype=np.int32), np.empty(target.size, dtype=np.int64)
    tabulate(records, axes, strides, codes, counts)
    shuffled = np.ix_(*[stream.permutation(size) for size in shape])
    number = np.arange(target.size).reshape(shape)[shuffled].ravel()
    origin, goal, moved = transport(counts.reshape(shape)[shuffled], target[shuffled])
    origin, goal = number[origin], number[goal]
    order = np.argsort(origin, kind="stable")
    origin, goal, moved = origin[order], goal[order], moved[order]

    losses = np.zeros(target.size, dtype=np.int64)
    np.add.at(losses, origin, moved)
    freed = np.empty(int(moved.sum()), dtype=np.int64)
    nothing = np.zeros(target.size, dtype=np.int64)
    pick(codes, counts, losses, nothing, stream.words(1), freed, np.empty(0, dtype=np.int64))
    # Freed records come in random order; cell by cell they take the moves out of their cell in turn.
    freed = freed[np.argsort(codes[freed], kind="stable")]
    goals = np.repeat(goal, moved)
    changed = 0
    for place, axis in enumerate(axes):
        values = (goals // strides[place]) % shape[place]
        changed += int((records[axis, freed] != values).sum())
        records[axis, freed] = values
    return changed
