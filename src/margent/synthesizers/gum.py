"""GUM, PrivSyn's building half: consistent tables, then records moved until they agree with all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.postprocessing.consistency import Consistency
from margent.postprocessing.merging import Spread
from margent.postprocessing.tables import Table
from margent.progress import Progress
from margent.schema.domain import Clique, Domain
from margent.settings import MOST_CELLS, require_between
from margent.stream import Stream
from margent.synthesizers.appending import Append, draw_given, layout, reached
from margent.synthesizers.blocks import sampled_counts
from margent.synthesizers.columns import Columns, consistent
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import Transcript

if TYPE_CHECKING:
    from margent.synthesizers.rules import RecordRules

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Gum:
    """Records that agree with all tables, reached in rounds of copying and overwriting records.

    The step size starts at ``alpha`` and is multiplied by ``decay`` every ``every`` rounds. Of the records
    that a cell gains in round t, the share ``duplicate[t mod len(duplicate)]`` become copies of records in
    that cell; the others only have the marginal's own columns overwritten. Fewer than ``enough`` rows are drawn
    at random from a larger table (of at most ``total`` rows): few records cannot follow thin cells.

    Privacy: none: post-processing.
    Source: PrivSyn 2021 section 5, with the schedules "U4" (steps) and "S3" (copies) of its published code.
    """

    rounds: int = 100
    alpha: float = 1.0
    decay: float = 0.84
    every: int = 20
    duplicate: tuple[float, ...] = (0.5,)
    enough: int = 20_000
    consistency: Consistency = field(default_factory=Consistency)
    spread: Spread = "projected"
    name: str = "gum"

    def __post_init__(self) -> None:
        """Check the settings. Raises: UsageError."""
        require_between(
            self,
            rounds=(0, 100_000),
            alpha=(1e-6, 1e6),
            decay=(1e-6, 1),
            every=(1, 1_000_000),
            enough=(0, MOST_CELLS),
        )
        if not self.duplicate or not all(0 <= share <= 1 for share in self.duplicate):
            raise UsageError("gum: duplicate needs at least one share, each in [0, 1]")

    def build(self, transcript: Transcript, progress: Progress) -> GumModel:
        """Make the noisy tables consistent and non-negative. Takes any transcript.

        Privacy: none: post-processing.
        """
        tables, columns, total = consistent(transcript, self.consistency, self.spread, progress)
        return GumModel(settings=self, tables=tables, columns=columns, total=total)


@dataclass(frozen=True, eq=False)
class GumModel:
    """Consistent tables and single columns over the working domain, with the settings to draw records."""

    settings: Gum
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
        # Columns start in random order and every step treats all rows alike, so any rows are a random subset.
        return self._built(built, seed, progress, share)[:rows]

    def _built(self, rows: int, seed: int, progress: Progress, share: Share) -> NDArray[np.int32]:
        """All records, one connected component of tables at a time, joined row by row."""
        rules = self.columns.rules
        drawn: dict[str, NDArray[np.int32]] = {} if rules is None else self._obeying(rules, rows, seed, share)

        def column(name: str) -> NDArray[np.int32]:
            if name not in drawn:
                drawn[name] = self.columns.alone(name, rows, Stream(seed, "gum", "column", name), share)
            return drawn[name]

        links = [] if rules is None else [factor.columns for factor in rules.zeros.factors]
        plan = layout(tuple(self.tables), links)
        for number, core in enumerate(plan.cores):
            names = sorted(reached({name for members in core for name in members}, links))
            records = np.stack([column(name) for name in names])
            done = number / len(plan.cores)

            def part(step: str, share: float | None, done: float = done) -> None:
                progress(step, done + (share or 0.0) / len(plan.cores))

            stream = Stream(seed, "gum", "rounds", *names)
            self._play(records, names, core, stream, part, None if rules is None else rules.among(names), share)
            drawn.update(zip(names, records, strict=True))
        for append in plan.appends:
            given = [column(name) for name in append.given]
            drawn[append.column] = self._appended(append, given, Stream(seed, "gum", "append", append.column), share)
        for name in self.domain.names:
            column(name)
        progress("records", 1.0)
        return self.columns.unmerged(drawn, rows, seed, share)

    def _obeying(self, rules: RecordRules, rows: int, seed: int, share: Share) -> dict[str, NDArray[np.int32]]:
        """The columns that rules link, independent but for the rules."""
        names = self.domain.names
        start = [self.columns.alone(name, rows, Stream(seed, "gum", "column", name), share) for name in names]
        records = rules.balanced(np.stack(start, axis=1), Stream(seed, "gum", "rules"), share)
        return {
            name: np.ascontiguousarray(records[:, place])
            for place, name in enumerate(names)
            if name in rules.zeros.columns
        }

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Counts of ``total`` sampled records over each clique: GUM has no closed form.

        Privacy: none: post-processing.
        """
        return sampled_counts(self, cliques, seed)

    def _play(
        self,
        records: NDArray[np.int32],
        names: Sequence[str],
        core: Sequence[Clique],
        stream: Stream,
        progress: Progress,
        rules: RecordRules | None,
        share: Share,
    ) -> None:
        """All rounds over one component, in place; records that obey ``rules`` do so again."""
        # Not at the top: the compiler is slow to import, and naming the synthesizer must not need it.
        from margent.synthesizers.gum_rounds import ONE, play_round

        rows = records.shape[1]
        if rows == 0:
            return
        marginals = self._marginals(core, names, rows, share, ONE)
        state = stream.words(1)
        settings = self.settings
        for number in range(settings.rounds):
            alpha = settings.alpha * settings.decay ** (number // settings.every)
            copied = settings.duplicate[number % len(settings.duplicate)]
            if rules is None or not rules.zeros.factors:
                play_round(records, *marginals, round(alpha * ONE), round(copied * ONE), state)
            else:
                # What no schema without rules needs is not compiled for it.
                from margent.synthesizers.gum_within import play_round_within

                play_round_within(records, *marginals, round(alpha * ONE), round(copied * ONE), state, rules.factors)
            progress("records", (number + 1) / settings.rounds)

    def _marginals(
        self, core: Sequence[Clique], names: Sequence[str], rows: int, share: Share, one: int
    ) -> tuple[Codes, Codes, Codes, Codes, Codes, Codes]:
        """The axes and targets of all tables as flat arrays, targets in fixed point (`gum_rounds.play_round`)."""
        place = {name: number for number, name in enumerate(names)}
        columns: list[int] = []
        strides: list[int] = []
        sizes: list[int] = []
        targets: list[Codes] = []
        for clique in core:
            values = self._projected(clique)
            columns += [place[name] for name in clique]
            strides += [math.prod(values.shape[axis + 1 :]) for axis in range(values.ndim)]
            sizes += values.shape
            if share.count == 1:
                targets.append(np.rint(values.ravel() * (rows * one / values.sum())).astype(np.int64))
            else:
                targets.append(share.counts(values.ravel(), rows, 0.0) * one)
        return (
            np.array(columns),
            np.array(strides),
            np.array(sizes),
            np.cumsum([0, *(len(clique) for clique in core)]),
            np.concatenate(targets),
            np.cumsum([0, *(target.size for target in targets)]),
        )

    def _projected(self, clique: Clique) -> NDArray[np.float64]:
        """The consistent table over a clique, or the projection of the smallest table that holds it."""
        holders = [names for names in self.tables if set(clique) <= set(names)]
        names = min(holders, key=lambda names: (self.tables[names].values.size, names))
        summed = tuple(axis for axis, name in enumerate(names) if name not in clique)
        return np.asarray(self.tables[names].values.sum(axis=summed))

    def _appended(
        self, append: Append, given: Sequence[NDArray[np.int32]], stream: Stream, share: Share
    ) -> NDArray[np.int32]:
        """One column drawn given others that are already there."""
        names = (*append.given, append.column)
        values = np.transpose(self._projected(tuple(sorted(names))), [sorted(names).index(name) for name in names])
        shape = values.shape[:-1]
        groups = np.zeros(given[0].size, dtype=np.int64)
        for codes, size in zip(given, shape, strict=True):
            groups = groups * size + codes
        table = values.reshape(math.prod(shape), values.shape[-1])
        return draw_given(table, self.columns.shares[append.column], groups, stream, share, append.column)
