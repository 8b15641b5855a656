"""What to believe of every table: each noisy one is shrunk to the model that explains it best, and tables that
were not bought are taken from a model.

Three models compete: independence, a mixture of products (`latent_classes`), and a forest of the strongest pairs
(`forest`). A bought pair is shrunk to the one that leaves the least squared residual; pairs that were not bought
are taken from the forest where it agrees best with the scores of all pairs, and else from the mean of all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.departures import expected_given
from margent.postprocessing.dependence import MEAN_ABSOLUTE
from margent.postprocessing.forest import Forest, independence, spanning_forest
from margent.postprocessing.latent_classes import LatentClasses, LatentSettings, fit_latent_classes
from margent.postprocessing.levels import expected_counts
from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import Evidence, Table, average, projected, with_margins
from margent.postprocessing.zeros import cleared, within_zeros
from margent.schema.allowed import StructuralZeros
from margent.schema.domain import Clique
from margent.stream import Stream

Counts = NDArray[np.float64]


SHRINKAGE_BANDS = 8
"""Cells of similar expected count that share a correction of the shrinkage."""
PRECISE = 0.05
"""Summed absolute noise of a table, as a share of the records, below which its word is final."""
STEPS_A_VIEW = 12
"""What looking a table's row up costs in a sweep, in additions."""


@dataclass(frozen=True)
class PosteriorSettings:
    """How many pairs that were not bought are taken from models.

    ``fill_cells``: most cells of these tables; ``fill_steps``: most additions that they cost a sweep.
    """

    latent: LatentSettings = field(default_factory=LatentSettings)
    fill_cells: int = 12_000_000
    fill_steps: float = 2e9


@dataclass(frozen=True, eq=False)
class Posterior:
    """Non-negative target tables (every one-way, every bought clique, pairs from models) and the models.

    ``filled`` are the pairs whose tables come from models; ``precise`` says that the measured tables are known so
    well (noise below `PRECISE` of the records in the middling one) that no model may pull records away from them.
    ``start`` names the model that records are drawn from: "latent" or "forest".

    Units: records; every target adds up to ``total``.
    Privacy: none: post-processing.
    """

    total: float
    targets: Mapping[Clique, Counts]
    filled: frozenset[Clique]
    precise: bool
    singles: Mapping[str, Counts]
    latent: LatentClasses
    forest: Forest
    start: str

    def records(self, rows: int, stream: Stream) -> NDArray[np.int32]:
        """Records drawn from the model that explains the bought tables best."""
        model = self.forest if self.start == "forest" else self.latent
        return model.records(rows, stream)


def posterior(
    evidence: Evidence,
    distances: Mapping[Clique, float],
    most: Mapping[Clique, float],
    settings: PosteriorSettings,
    stream: Stream,
    progress: Callable[[float], None],
    zeros: StructuralZeros | None = None,
) -> Posterior:
    """Targets from noisy tables: improved one-ways, competing models, and shrinkage of each table to its model.

    ``distances``: noisy distance from independence in records of the pairs that have a score (may be empty), and
    ``most``: the largest that the score's noise explains.
    ``zeros``: the cells that rules forbid, which no target fills.

    Privacy: none: post-processing.
    """
    total, domain = max(evidence.total, 1.0), evidence.working.domain
    one_ways = improved_one_ways(evidence, total)
    singles = one_ways.counts
    several = [_upon(table, singles, total) for table in evidence.tables if len(table.clique) > 1]
    pairs = pair_tables(several)
    asked = {table.clique[0]: table for table in evidence.tables if len(table.clique) == 1}
    latent = fit_latent_classes(
        asked or one_ways.noisy, singles, list(pairs.values()), domain, total, settings.latent, stream, progress
    )
    flat = {pair: independence(pair, singles, total) for pair in pairs}
    by_latent = {pair: latent.table(pair, total) for pair in pairs}
    rough = {}
    for pair, table in pairs.items():
        prior = _closest(table, [by_latent[pair], flat[pair]])
        rough[pair] = cleared(pair, raked(pair, shrunk(table, prior, total), singles, total), zeros)
    # The noise of a table makes it look dependent, so edges are chosen by the scores, or by the fitted law.
    weights = {pair: distances.get(pair, _apart(by_latent[pair], flat[pair])) for pair in pairs}
    forest = spanning_forest(weights, rough, singles, domain)
    models = {"latent": latent.table, "forest": forest.table}
    best = _best_model(models, forest, singles, total, distances, pairs)

    targets: dict[Clique, Counts] = {(name,): singles[name] for name in domain.names}
    for table in several:
        priors = [latent.table(table.clique, total)]
        if len(table.clique) == 2:
            priors.append(flat[table.clique])
            # A table is no prior for itself: the forest holds its edges' own noise.
            if best == "forest" and table.clique not in forest.edges:
                priors.append(forest.table(table.clique, total))
        targets[table.clique] = within_zeros(table.clique, shrunk(table, _closest(table, priors), total), zeros, total)
    filled = _unbought(evidence, set(pairs), distances, settings, total)
    for pair in filled:
        # The mixture may see dependence where there is none and the others miss some: their mean is safer than any.
        guess = forest.table(pair, total)
        if best == "latent":
            guess = (guess + latent.table(pair, total) + independence(pair, singles, total)) / 3
        targets[pair] = cleared(pair, _no_further(guess, independence(pair, singles, total), most.get(pair)), zeros)
    noises = sorted(MEAN_ABSOLUTE * float(np.sqrt(table.variance).sum()) / total for table in several)
    precise = bool(noises) and noises[len(noises) // 2] < PRECISE
    return Posterior(total, targets, frozenset(filled), precise, singles, latent, forest, best)


def _upon(table: Table, singles: Mapping[str, Counts], total: float) -> Table:
    """The table with what is believed of its columns where it says nothing of them itself."""
    if not table.interaction:
        return table
    return replace(table, values=with_margins(table.clique, table.values, singles, total))


def _no_further(guess: Counts, flat: Counts, most: float | None) -> Counts:
    """The guess, pulled towards independence where it is further from it than the pair's score allows."""
    if most is None or (apart := _apart(guess, flat)) <= most:
        return guess
    return flat + most / apart * (guess - flat)


def _closest(table: Table, priors: Sequence[Counts]) -> Counts:
    """The prior that leaves the least squared residual."""
    misfits = [float((np.square(table.values - prior) / table.variance).sum()) for prior in priors]
    return priors[int(np.argmin(misfits))]


def _best_model(
    models: Mapping[str, Callable[[Clique, float], Counts]],
    forest: Forest,
    singles: Mapping[str, Counts],
    total: float,
    distances: Mapping[Clique, float],
    pairs: Mapping[Clique, Table],
) -> str:
    """The model whose distances from independence agree best with the scores, whose noise is their own.

    Without scores: the one that leaves least of the tables that are no edges of the forest.
    """
    lost = dict.fromkeys(models, 0.0)
    for pair, distance in distances.items():
        flat = independence(pair, singles, total)
        for name, table_of in models.items():
            lost[name] += (_apart(table_of(pair, total), flat) - distance) ** 2
    if not distances:
        for pair, table in pairs.items():
            if pair not in forest.edges:
                for name, table_of in models.items():
                    lost[name] += float((np.square(table.values - table_of(pair, total)) / table.variance).sum())
    # A forest makes up no dependence between columns that nothing joins, so it wins a tie.
    return min(lost, key=lambda name: (lost[name], name != "forest"))


def _apart(table: Counts, flat: Counts) -> float:
    """L1 distance of a table from independence."""
    return float(np.abs(table - flat).sum())


def shrunk(table: Table, prior: Counts, total: float) -> Counts:
    """y' = m + v / (v + s^2) (y - m): the noise is kept only as far as the table departs from m.

    The variance of the departure is v = kappa m, kappa from the whole table's excess sum (y - m)^2 - s^2 c =
    kappa n, corrected in `SHRINKAGE_BANDS` bands of equal sqrt(m) by each band's own excess as far as that is
    known.

    Units: records. Privacy: none: post-processing.
    """
    residual, expected = table.values - prior, np.maximum(prior, 0.0)
    excess = np.square(residual) - table.variance
    kappa = max(float(excess.sum()), 0.0) / total
    flat = expected.ravel()
    order = np.argsort(flat, kind="stable")
    mass = np.cumsum(np.sqrt(flat[order]))
    bands = np.empty(flat.size, dtype=np.int64)
    bands[order] = np.minimum(mass / max(float(mass[-1]), 1e-300) * SHRINKAGE_BANDS, SHRINKAGE_BANDS - 1).astype(
        np.int64
    )
    cells = np.maximum(np.bincount(bands, minlength=SHRINKAGE_BANDS), 1)
    implied = kappa * np.bincount(bands, weights=flat, minlength=SHRINKAGE_BANDS) / cells
    seen = np.bincount(bands, weights=excess.ravel(), minlength=SHRINKAGE_BANDS) / cells
    uncertain = float(table.variance.mean()) ** 2 * 2 / cells
    trust = np.square(implied) / (np.square(implied) + uncertain)
    factor = np.where(
        implied > 0, np.maximum(implied + trust * (seen - implied), 0.0) / np.maximum(implied, 1e-300), 0.0
    )
    variances = np.broadcast_to(table.variance, expected.shape).ravel()
    found: Counts = expected_given(table.values.ravel(), flat, kappa * factor[bands], variances)
    return found.reshape(expected.shape)


def raked(clique: Clique, values: Counts, singles: Mapping[str, Counts], total: float, rounds: int = 12) -> Counts:
    """The table on the simplex, then scaled along each axis in turn until its margins are the best one-ways.

    Every table of a column then says the same of that column. A slice without mass takes that of independence.

    Units: records. Privacy: none: post-processing. Source: iterative proportional fitting (Deming, Stephan 1940).
    """
    fitted = norm_sub(values, total)
    for number in range(rounds * len(clique)):
        axis = number % len(clique)
        others = tuple(other for other in range(len(clique)) if other != axis)
        margin, aim = fitted.sum(axis=others, keepdims=True), singles[clique[axis]]
        aim = aim.reshape([-1 if other == axis else 1 for other in range(len(clique))])
        # What is so far below its aim is as good as empty, and its quotient would leave the range of numbers.
        least = np.maximum(aim * 1e-200, 1e-300)
        if number < len(clique) and bool((empty := (margin < least) & (aim > 0)).any()):
            spread = fitted.sum(axis=axis, keepdims=True) / max(float(fitted.sum()), 1e-300)
            fitted = np.where(empty, aim * spread, fitted)
            margin = fitted.sum(axis=others, keepdims=True)
        fitted = fitted * np.where(margin < least, 0.0, aim / np.maximum(margin, least))
    return fitted


def pair_tables(tables: list[Table]) -> dict[Clique, Table]:
    """All pairs inside the given tables: their projections, averaged by precision.

    Units: records; a projection adds the variances of the cells it sums.
    Privacy: none: post-processing.
    """
    found: dict[Clique, list[Table]] = {}
    for table in tables:
        for axes in combinations(range(len(table.clique)), 2):
            pair = (table.clique[axes[0]], table.clique[axes[1]])
            found.setdefault(pair, []).append(projected(table, pair))
    return {pair: average(projections) for pair, projections in sorted(found.items())}


@dataclass(frozen=True, eq=False)
class OneWays:
    """What is believed of single columns: ``counts`` on the simplex, the ``deviations`` left in them, one a code, and
    the ``noisy`` means that they were made from (none for a column that no table holds).

    Units: records. Privacy: none: post-processing.
    """

    counts: Mapping[str, Counts]
    deviations: Mapping[str, Counts]
    noisy: Mapping[str, Table]

    def cells(self, name: str) -> float:
        """How many codes of a column hold more than their noise; others count by their share of it. At least 1."""
        noise = np.sqrt(self.noisy[name].variance)
        return max(float(np.minimum(1.0, self.counts[name] / noise).sum()), 1.0)


def improved_one_ways(evidence: Evidence, total: float) -> OneWays:
    """Every column's one-way: the mean of all tables that hold it, by precision, as expected under its chain of levels
    (`levels.expected_counts`), and projected to the simplex. Merged columns are projected only.

    Privacy: none: post-processing.
    """
    domain = evidence.working.domain
    counts, deviations, noisy = {}, {}, {}
    for name in domain.names:
        # The margins of an interaction are those of tables that are here themselves.
        seen = [
            projected(table, (name,))
            for table in evidence.tables
            if name in table.clique and not (table.interaction and len(table.clique) > 1)
        ]
        if seen:
            noisy[name] = average(seen)
            expected, variance = noisy[name].values, noisy[name].variance
            # Codes that were kept apart for their noisy counts all look frequent: no chain can tell which are not.
            if not evidence.working.mixed(name):
                expected, variance = expected_counts(expected, variance, total)
            counts[name], deviations[name] = norm_sub(expected, total), np.sqrt(variance)
        else:
            counts[name] = np.full(domain.size(name), total / domain.size(name))
    return OneWays(counts, deviations, noisy)


def _unbought(
    evidence: Evidence,
    bought: set[Clique],
    distances: Mapping[Clique, float],
    settings: PosteriorSettings,
    total: float,
) -> list[Clique]:
    """Pairs to be filled in from models, the most dependent first, while cells and steps of a sweep allow."""
    domain = evidence.working.domain
    several = [name for name in domain.names if domain.size(name) > 1]
    pairs = [pair for pair in combinations(sorted(several), 2) if pair not in bought]
    chosen: list[Clique] = []
    cells, steps = 0, 0.0
    for pair in sorted(pairs, key=lambda pair: (-distances.get(pair, 0.0), domain.cells(pair), pair)):
        cells += domain.cells(pair)
        steps += total * sum(domain.size(name) + STEPS_A_VIEW for name in pair)
        if cells > settings.fill_cells or steps > settings.fill_steps:
            break
        chosen.append(pair)
    return chosen
