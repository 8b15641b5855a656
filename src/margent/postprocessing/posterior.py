"""What to believe of every table: each noisy one is shrunk to the model that explains it best, and tables that
were not bought are taken from a model.

Three models compete: independence, a mixture of products (`latent_classes`), and a forest of the strongest pairs
(`forest`). A bought pair is shrunk to the one that leaves the least squared residual; pairs that were not bought
are taken from the mixture or the forest, whichever agrees better with the scores of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.forest import Forest, independence, spanning_forest
from margent.postprocessing.latent_classes import LatentClasses, LatentSettings, fit_latent_classes
from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import Evidence, Table, average, projected
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
    distances: Mapping[Clique, float],
    settings: PosteriorSettings,
    stream: Stream,
    progress: Callable[[float], None],
) -> Posterior:
    """Targets from noisy tables: improved one-ways, competing models, and shrinkage of each table to its model.

    ``distances``: noisy distance from independence in records of the pairs that have a score (may be empty).

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
        misfits = [float((np.square(table.values - prior) / table.variance).sum()) for prior in priors]
        targets[table.clique] = norm_sub(shrunk(table, priors[int(np.argmin(misfits))], total), total)
    for pair in _unbought(evidence, set(pairs), distances, settings.fill_cells):
        targets[pair] = models[best](pair, total)
    return Posterior(total, targets, singles, latent, forest, best)


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
    for name, table_of in models.items():
        if distances:
            for pair, distance in distances.items():
                apart = _apart(table_of(pair, total), independence(pair, singles, total))
                lost[name] += (apart - distance) ** 2
        else:
            for pair, table in pairs.items():
                if pair not in forest.edges:
                    lost[name] += float((np.square(table.values - table_of(pair, total)) / table.variance).sum())
    return min(lost, key=lambda name: (lost[name], name != "latent"))


def _apart(table: Counts, flat: Counts) -> float:
    """L1 distance of a table from independence."""
    return float(np.abs(table - flat).sum())


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
            found.setdefault(pair, []).append(projected(table, pair))
    return {pair: average(projections) for pair, projections in sorted(found.items())}


def improved_one_ways(evidence: Evidence, total: float) -> tuple[dict[str, Counts], dict[str, Table]]:
    """Every column's one-way from all tables that hold it, by precision, and projected to the simplex.

    Returns the projected counts and the unprojected means. Units: records.
    Privacy: none: post-processing.
    """
    domain = evidence.working.domain
    singles, means = {}, {}
    for name in domain.names:
        seen = [projected(table, (name,)) for table in evidence.tables if name in table.clique]
        if seen:
            means[name] = average(seen)
            singles[name] = norm_sub(means[name].values, total)
        else:
            singles[name] = np.full(domain.size(name), total / domain.size(name))
    return singles, means


def _unbought(
    evidence: Evidence, bought: set[Clique], distances: Mapping[Clique, float], most: int
) -> list[Clique]:
    """Pairs to be filled in from models, the most dependent first, while their cells fit."""
    domain = evidence.working.domain
    several = [name for name in domain.names if domain.size(name) > 1]
    pairs = [pair for pair in combinations(sorted(several), 2) if pair not in bought]
    chosen, cells = [], 0
    for pair in sorted(pairs, key=lambda pair: (-distances.get(pair, 0.0), domain.cells(pair), pair)):
        cells += domain.cells(pair)
        if cells > most:
            break
        chosen.append(pair)
    return chosen
