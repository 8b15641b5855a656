"""What to believe of every table: each noisy one is shrunk to the model that explains it best, and tables that
were not bought are taken from a model.

Three models compete, pair by pair: independence, a mixture of products (`latent_classes`), and a forest of the
strongest pairs (`forest`). A bought pair goes to the one that leaves the least squared residual; one that was not
bought goes to the one whose distance from independence is nearest to the pair's noisy score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.forest import Forest, independence, spanning_forest
from margent.postprocessing.latent_classes import LatentClasses, LatentSettings, fit_latent_classes
from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import Evidence, Table, average
from margent.schema.domain import Clique
from margent.stream import Stream

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class PosteriorSettings:
    """``fill_cells``: most cells of all the tables taken from models for pairs that were not bought."""

    latent: LatentSettings = LatentSettings()
    fill_cells: int = 12_000_000


@dataclass(frozen=True, eq=False)
class Posterior:
    """Non-negative target tables (every one-way, every bought clique, pairs from models) and the models.

    Units: records; every target adds up to ``total``.
    Privacy: none: post-processing.
    """

    total: float
    targets: Mapping[Clique, Counts]
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
    scores: Mapping[Clique, float],
    settings: PosteriorSettings,
    stream: Stream,
    progress: Callable[[float], None],
) -> Posterior:
    """Targets from noisy tables: improved one-ways, competing models, and shrinkage of each table to its model.

    ``scores``: noisy distance from independence in records of the pairs that have one (may be empty).

    Privacy: none: post-processing.
    """
    total, domain = max(evidence.total, 1.0), evidence.working.domain
    several = [table for table in evidence.tables if len(table.clique) > 1]
    pairs = pair_tables(several)
    singles, noisy_singles = improved_one_ways(evidence, total)
    asked = {table.clique[0]: table for table in evidence.tables if len(table.clique) == 1}
    latent = fit_latent_classes(
        asked or noisy_singles, singles, list(pairs.values()), domain, total, settings.latent, stream, progress
    )
    flat = {pair: independence(pair, singles, total) for pair in pairs}
    by_latent = {pair: latent.table(pair, total) for pair in pairs}
    rough = {pair: norm_sub(shrunk(table, by_latent[pair], total), total) for pair, table in pairs.items()}
    dependence = {pair: float(np.abs(rough[pair] - flat[pair]).sum()) for pair in pairs}
    forest = spanning_forest(dependence, rough, singles, domain)
    targets: dict[Clique, Counts] = {(name,): singles[name] for name in domain.names}
    misfit = {"latent": 0.0, "forest": 0.0}
    for table in several:
        models = {"latent": latent.table(table.clique, total)}
        if len(table.clique) == 2:
            models |= {"independence": flat[table.clique], "forest": forest.table(table.clique, total)}
        left = {name: float((np.square(table.values - model) / table.variance).sum()) for name, model in models.items()}
        for name in misfit:
            misfit[name] += left.get(name, left["latent"])
        prior = models[min(left, key=lambda name: (left[name], name))]
        targets[table.clique] = norm_sub(shrunk(table, prior, total), total)
    for pair in _unbought(evidence, set(pairs), scores, settings.fill_cells):
        targets[pair] = _from_models(pair, latent, forest, singles, total, scores.get(pair))
    start = "forest" if misfit["forest"] < misfit["latent"] else "latent"
    return Posterior(total, targets, singles, latent, forest, start)


def shrunk(table: Table, prior: Counts, total: float) -> Counts:
    """y' = m + v / (v + s^2) (y - m), v = kappa m: the noise is kept only as far as the table departs from m.

    kappa is the excess of the squared residual over the noise, a record: sum (y - m)^2 - s^2 c = kappa n.

    Units: records. Privacy: none: post-processing.
    """
    residual = table.values - prior
    excess = float((np.square(residual) - table.variance).sum())
    spread = max(excess, 0.0) / total * np.maximum(prior, 0.0)
    result: Counts = prior + spread / (spread + table.variance) * residual
    return result


def pair_tables(tables: list[Table]) -> dict[Clique, Table]:
    """All pairs inside the given tables: their projections, averaged by precision.

    Units: records; a projection adds the variances of the cells it sums.
    Privacy: none: post-processing.
    """
    found: dict[Clique, list[Table]] = {}
    for table in tables:
        for axes in combinations(range(len(table.clique)), 2):
            pair = (table.clique[axes[0]], table.clique[axes[1]])
            others = tuple(axis for axis in range(len(table.clique)) if axis not in axes)
            found.setdefault(pair, []).append(
                Table(pair, table.values.sum(axis=others), table.variance.sum(axis=others))
            )
    return {pair: average(projections) for pair, projections in sorted(found.items())}


def improved_one_ways(evidence: Evidence, total: float) -> tuple[dict[str, Counts], dict[str, Table]]:
    """Every column's one-way from all tables that hold it, by precision, and projected to the simplex.

    Returns the projected counts and the unprojected means. Units: records.
    Privacy: none: post-processing.
    """
    domain = evidence.working.domain
    singles, means = {}, {}
    for name in domain.names:
        seen = []
        for table in evidence.tables:
            if name in table.clique:
                others = tuple(axis for axis, other in enumerate(table.clique) if other != name)
                seen.append(Table((name,), table.values.sum(axis=others), table.variance.sum(axis=others)))
        if seen:
            means[name] = average(seen)
            singles[name] = norm_sub(means[name].values, total)
        else:
            singles[name] = np.full(domain.size(name), total / domain.size(name))
    return singles, means


def _unbought(
    evidence: Evidence, bought: set[Clique], scores: Mapping[Clique, float], most: int
) -> list[Clique]:
    """Pairs to be filled in from models, those with the largest scores first, while their cells fit."""
    domain = evidence.working.domain
    several = [name for name in domain.names if domain.size(name) > 1]
    pairs = [pair for pair in combinations(sorted(several), 2) if pair not in bought]
    chosen, cells = [], 0
    for pair in sorted(pairs, key=lambda pair: (-scores.get(pair, 0.0), domain.cells(pair), pair)):
        cells += domain.cells(pair)
        if cells > most:
            break
        chosen.append(pair)
    return chosen


def _from_models(
    pair: Clique,
    latent: LatentClasses,
    forest: Forest,
    singles: Mapping[str, Counts],
    total: float,
    score: float | None,
) -> Counts:
    """The table of a pair that was not bought, from the model that agrees best with its noisy score."""
    flat = independence(pair, singles, total)
    models = [flat, latent.table(pair, total)]
    if forest.tied(pair):
        models.append(forest.table(pair, total))
    if score is None or math.isnan(score):
        return models[-1] if len(models) == 3 else models[1]
    distances = [abs(float(np.abs(model - flat).sum()) - score) for model in models]
    return models[int(np.argmin(distances))]
