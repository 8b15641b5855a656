"""Record descent as a synthesizer: beliefs about every table, a start drawn from the best model, then descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.dependence import most_distances, score_distances
from margent.postprocessing.posterior import Posterior, PosteriorSettings, improved_one_ways, posterior
from margent.postprocessing.tables import Table, evidence, working_domain
from margent.progress import Progress, halves
from margent.schema.domain import Clique, Domain
from margent.settings import MOST_CELLS, require_between
from margent.stream import Stream
from margent.synthesizers.blocks import sampled_counts
from margent.synthesizers.columns import Columns, columns_of, sampleable_codes
from margent.synthesizers.descending import DescentSettings, descend, targets_of
from margent.synthesizers.shares import WHOLE, Share
from margent.transcript import Scores, Transcript


@dataclass(frozen=True)
class Descent:
    """Records drawn from the model that explains the noisy tables best, then moved until they agree with all.

    Fewer than ``enough`` rows are drawn at random from a larger table (of at most ``total`` rows): counts of a
    few records cannot follow thin cells. Where the measured tables are precise, ``last_sweeps`` fit them alone at the
    end, without the tables that models filled in.

    Privacy: none: post-processing. Source: ours (``docs/how-it-works/dense.md``).
    """

    settings: DescentSettings = field(default_factory=DescentSettings)
    prior: PosteriorSettings = field(default_factory=PosteriorSettings)
    enough: int = 20_000
    last_sweeps: int = 3
    name: str = "descent"

    def __post_init__(self) -> None:
        """Check the settings. Raises: UsageError."""
        require_between(self, enough=(0, MOST_CELLS), last_sweeps=(0, 100_000))

    def build(self, transcript: Transcript, progress: Progress) -> DescentModel:
        """Shrink every noisy table to the best of three models. Takes any transcript.

        Privacy: none: post-processing.
        """
        working = working_domain(transcript, sampleable_codes(transcript))
        known = evidence(transcript, working)
        rulebook = transcript.schema.rulebook
        distances, most = independence_distances(transcript)
        belief = posterior(
            known,
            distances,
            most,
            self.prior,
            Stream(0, "posterior"),
            lambda share: progress("model", share),
            None if rulebook is None else rulebook.zeros.merged(working.groups),
        )
        singles = [Table((name,), counts, np.ones_like(counts)) for name, counts in belief.singles.items()]
        return DescentModel(self, belief, columns_of(transcript, working, singles, "projected"), round(known.total))


@dataclass(frozen=True, eq=False)
class DescentModel:
    """Target tables over the working domain, with the models to start from and the settings to draw records."""

    method: Descent
    belief: Posterior
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
        built = share.built(rows, self.total, self.method.enough)
        working = self.columns.working.domain
        targets = {
            clique: table
            for clique, table in self.belief.targets.items()
            if all(working.size(name) > 1 for name in clique)
        }
        records = self.belief.records(built, Stream(seed, "descent", "start"))
        targets = targets_of(share, targets, built)
        settings, rules = self.method.settings.within(share, built), self.columns.rules
        last = progress
        if self.belief.filled and self.belief.precise:
            sweeps = Stream(seed, "descent", "filled")
            first, last = halves(progress)
            records = descend(records, targets, working.names, working.sizes, sweeps, first, settings, rules)
            # What was measured has the last word over what models fill in.
            targets = {clique: table for clique, table in targets.items() if clique not in self.belief.filled}
            settings = replace(settings, most_sweeps=self.method.last_sweeps)
        sweeps = Stream(seed, "descent", "sweeps")
        records = descend(records, targets, working.names, working.sizes, sweeps, last, settings, rules)[:rows]
        drawn = {name: np.ascontiguousarray(records[:, place]) for place, name in enumerate(working.names)}
        return self.columns.unmerged(drawn, rows, seed, share)

    def marginals(self, cliques: Sequence[Clique], seed: int) -> list[NDArray[np.float64]]:
        """Counts of ``total`` sampled records over each clique.

        Privacy: none: post-processing.
        """
        return sampled_counts(self, cliques, seed)


def independence_distances(transcript: Transcript) -> tuple[Mapping[Clique, float], Mapping[Clique, float]]:
    """What the noisy scores say of each pair's distance from independence, without the one-ways' noise, and the most
    that they allow.

    Units: records. Empty where the method bought no such scores.
    Privacy: none: post-processing.
    """
    distances, most = dict[Clique, float](), dict[Clique, float]()
    for scores in (answer for answer in transcript.answers if isinstance(answer, Scores)):
        if scores.kind != "independence":
            continue
        before = tuple(answer for answer in transcript.marginals if answer.charge < scores.charge)
        so_far = Transcript(
            transcript.schema, transcript.domain, transcript.method, transcript.charges, before, transcript.merges
        )
        known = evidence(so_far, working_domain(so_far))
        total = max(known.total, 1.0)
        one_ways = improved_one_ways(known, total)
        apart = score_distances(scores, one_ways.counts, one_ways.deviations, total)
        distances |= dict(zip(scores.cliques, apart.tolist(), strict=True))
        most |= dict(zip(scores.cliques, most_distances(scores, apart).tolist(), strict=True))
    return distances, most
