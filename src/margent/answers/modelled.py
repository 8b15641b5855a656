"""Columns that were never counted together: the table of most entropy with the margins that were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from margent.answers.tables import NORMAL_WIDTH
from margent.postprocessing.dependence import independent_table
from margent.postprocessing.max_entropy import MaxEntropy, max_entropy
from margent.postprocessing.posterior import improved_one_ways, shrunk
from margent.postprocessing.ripple import RippledAgreement
from margent.postprocessing.tables import (
    Evidence,
    Table,
    WorkingDomain,
    average,
    evidence,
    projected,
    working_domain,
)
from margent.schema.domain import Clique, Domain
from margent.stream import Stream
from margent.transcript import Transcript

DRAWS = 25
"""Tables built once more with fresh noise, whose spread is the error bar."""
CELLS_DRAWN = 2**23
"""Cells of all those tables together; large tables are drawn less often, but at least `LEAST_DRAWS` times."""
LEAST_DRAWS = 8


@dataclass(frozen=True, eq=False)
class Modelled:
    """A reconstructed table, what noise does to its cells, and the margins it was made of.

    Shapes: axes in the order of the columns asked (sorted), columns of one code left out.
    Units: records; ``errors`` are half-widths that hold 95 % of the noise, nothing else; ``gap`` as in `MaxEntropy`.
    """

    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    margins: tuple[Clique, ...]
    gap: float


def model_of(transcript: Transcript, names: Clique, merged: bool) -> Modelled:
    """The table of most entropy with the margins that the noisy answers tell, noise shrunk out of them first.

    Each margin is shrunk to the product of its single columns as far as its noise explains the difference, margins are
    made to agree and rippled to be non-negative, and the table of most entropy is scaled to them. (PriView does not
    shrink: on Adult its tables of three columns err by .37 of the records at epsilon .2 and by .18 at 1, with
    shrinkage by .19 and .10.) The bars come from doing all of it again with fresh noise of the same variance, by a
    fixed public stream: the same release gives the same bars.

    Shapes: ``names`` are columns of more than one code, sorted. ``merged``: codes counted together share an entry.
    Privacy: none: post-processing.
    Source: PriView (Qardaji, Yang, Li 2014) sections 4.4 and 4.5; the bars are a parametric bootstrap.
    """
    known = margins_of(transcript, names, merged)
    first = _built(known)
    draws = max(LEAST_DRAWS, min(DRAWS, CELLS_DRAWN // max(first.table.values.size, 1)))
    stream = Stream(0, "query", *names)
    spread = np.zeros(first.table.values.shape)
    for _ in range(draws if known.tables else 0):
        again = tuple(
            Table(table.clique, table.values + _normal(table, stream), table.variance) for table in first.agreed
        )
        spread += np.square(_built(replace(known, tables=again)).table.values - first.table.values)
    widths = np.sqrt(spread / draws) * NORMAL_WIDTH
    return Modelled(first.table.values, widths, first.used, first.table.gap)


@dataclass(frozen=True, eq=False)
class _Built:
    table: MaxEntropy
    agreed: list[Table]
    used: tuple[Clique, ...]


def _built(known: Evidence) -> _Built:
    """Shrink, agree, ripple, scale; margins inside others say nothing more once they agree."""
    domain, total = known.working.domain, known.total
    agreed = list(known.tables)
    if agreed and total > 0:
        singles = improved_one_ways(known, total).counts
        believed = [replace(table, values=_believed(table, singles, total)) for table in agreed]
        agreed = RippledAgreement().apply(believed, total)
    cliques = [set(table.clique) for table in agreed]
    used = [table for table in agreed if not any(set(table.clique) < other for other in cliques)]
    targets = {tuple(domain.position[name] for name in table.clique): table.values for table in used}
    return _Built(max_entropy(domain.sizes, targets, total), agreed, tuple(table.clique for table in used))


def _believed(table: Table, singles: Mapping[str, NDArray[np.float64]], total: float) -> NDArray[np.float64]:
    """A margin shrunk to the product of its columns; a single column as all answers together tell it."""
    if len(table.clique) == 1:
        return singles[table.clique[0]]
    return shrunk(table, independent_table(singles, table.clique, total), total)


def margins_of(transcript: Transcript, names: Clique, merged: bool) -> Evidence:
    """What every answer says about the columns: one table for each set of them, and the number of records.

    Privacy: none: post-processing.
    """
    if not merged:
        # Answers about groups say nothing of single codes; nor do they need to where no column is grouped.
        grouped = [name for name in names if name in transcript.merges]
        answers = tuple(
            answer
            for answer in (*transcript.marginals, *transcript.interactions)
            if not (answer.merged and any(name in answer.clique for name in grouped))
        )
        transcript = replace(transcript, answers=answers)
    known = evidence(transcript, working_domain(transcript))
    found: dict[Clique, list[Table]] = {}
    for table in known.tables:
        kept = tuple(name for name in table.clique if name in names)
        if kept and (kept == table.clique or not table.interaction):
            found.setdefault(kept, []).append(projected(table, kept))
    working = WorkingDomain(
        Domain(names, tuple(transcript.domain.size(name) for name in names)),
        {name: known.working.groups[name] for name in names},
    )
    return Evidence(working, tuple(average(tables) for _, tables in sorted(found.items())), known.total)


def _normal(table: Table, stream: Stream) -> NDArray[np.float64]:
    """Normal noise of the table's variance (Box, Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log1p(-stream.unit(table.values.size)))
    drawn: NDArray[np.float64] = radius * np.cos(2.0 * np.pi * stream.unit(table.values.size))
    return drawn.reshape(table.values.shape) * np.sqrt(table.variance)
