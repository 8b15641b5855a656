"""What the noisy answers of a transcript say about some columns: tables of even noise, at one level of each column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from margent.postprocessing.unbiased import EvenTable
from margent.privacy.laws import Laplace, law_of
from margent.schema.domain import Clique
from margent.transcript import NoisyMarginal, Transcript

NORMAL_WIDTH = 1.9599639845400545
"""Standard deviations to either side of the mean that hold 95 % of a normal law."""


@dataclass(frozen=True, eq=False)
class Told:
    """One noisy answer summed onto the columns asked about, and how far from normal a cell's noise is.

    ``clique``: the columns of the answer it came from. ``merged``: codes that were counted together share an entry.
    ``interaction``: it tells what the columns say together beyond what fewer of them say, and nothing else.
    Units: ``kurtosis`` is the excess kurtosis of one cell's noise: 0 for a normal law.
    """

    clique: Clique
    table: EvenTable
    merged: bool
    kurtosis: float
    interaction: bool = False


def told(transcript: Transcript, names: Clique) -> list[Told]:
    """Every noisy answer summed onto ``names``; those that hold none of them tell the total.

    Shapes: ``names`` are columns of more than one code, sorted.
    Privacy: none: post-processing.
    """
    found = []
    for answer in transcript.marginals:
        kept = tuple(name for name in answer.clique if name in names)
        whole = EvenTable(answer.clique, answer.counts.astype(np.float64), float(answer.variance))
        table = whole.onto(kept)
        summed = answer.counts.size // max(table.values.size, 1)
        merged = answer.merged and any(name in transcript.merges for name in kept)
        found.append(Told(answer.clique, table, merged, _kurtosis(answer, transcript) / summed))
    for answer in transcript.interactions:
        if set(answer.clique) <= set(names):  # its margins are 0: summed, it says nothing
            cells = answer.counts.size
            table = EvenTable(answer.clique, answer.counts / float(cells), float(answer.variance) / cells**2)
            merged = answer.merged and any(name in transcript.merges for name in answer.clique)
            found.append(Told(answer.clique, table, merged, 0.0, interaction=True))
    return found


def at_level(told_tables: list[Told], names: Clique, merges: Clique, merged: bool) -> dict[Clique, list[EvenTable]]:
    """For every subset of the columns, the tables over it that can be had with even noise at this level.

    ``merges``: the columns whose codes are counted together where ``merged``. A table at the other level tells
    the subsets without such columns.

    Privacy: none: post-processing.
    """
    by_kept: dict[tuple[Clique, bool, bool], list[EvenTable]] = {}
    for each in told_tables:
        by_kept.setdefault((each.table.clique, each.merged, each.interaction), []).append(each.table)
    found: dict[Clique, list[EvenTable]] = {}
    for count in range(len(names) + 1):
        for subset in combinations(names, count):
            mixed = any(name in merges for name in subset)
            found[subset] = [
                table.onto(subset)
                for (kept, level, alone), tables in by_kept.items()
                if (subset == kept if alone else set(subset) <= set(kept)) and (not mixed or level == merged)
                for table in tables
            ]
    return found


def heaviness(told_tables: list[Told], names: Clique, merged: bool) -> float:
    """Excess kurtosis of the mean by precision of the answers that hold all the columns: sum of p_i^2 kurtosis_i.

    Privacy: none: post-processing.
    """
    holding = [each for each in told_tables if each.table.clique == names and each.merged == merged]
    precision = [1.0 / each.table.variance for each in holding]
    whole = sum(precision)
    return sum((part / whole) ** 2 * each.kurtosis for part, each in zip(precision, holding, strict=True))


def half_width(deviation: float, kurtosis: float, whole: bool) -> float:
    """The half-width that holds 95 % of a cell's error of this standard deviation and excess kurtosis.

    Noise comes in whole records, so an error lies on whole numbers or, where several answers are weighed together,
    often close to them: half a record is added, so that the width reaches to the middle between the last number inside
    and the first one outside. It is never more than sqrt 20 deviations, which hold 95 % of any law (Chebyshev).
    ``whole``: errors are whole numbers, and so is the width; at least 1, since a count with noise is never said to be
    exact.

    Source: Cornish, Fisher 1937: z + (z^3 - 3z) kurtosis / 24 at z = 1.96.

    >>> round(half_width(10.0, 0.0, False), 3), half_width(10.0, 3.0, True)
    (20.1, 22.0)
    """
    z = NORMAL_WIDTH
    width = min(deviation * (z + (z**3 - 3 * z) * kurtosis / 24) + 0.5, deviation * math.sqrt(20))
    return float(max(math.floor(width), 1)) if whole else width


def _kurtosis(answer: NoisyMarginal, transcript: Transcript) -> float:
    """Excess kurtosis of the noise of one cell: of discrete Laplace noise (1 + 4q + q^2)/(2q), q = exp(-1/t)."""
    if not transcript.charges:
        return 0.0
    law = law_of(transcript.charges[answer.charge])
    if not isinstance(law, Laplace):
        return 0.0
    q = math.exp(-1 / float(law.scale))
    return (1 + 4 * q + q * q) / (2 * q) if q > 1e-3 else 500.0


def level_sizes(transcript: Transcript, names: Clique, merged: bool) -> Mapping[str, int]:
    """Entries of each column at a level. Privacy: none: public facts and post-processing."""
    domain = transcript.merged_domain if merged else transcript.domain
    return {name: domain.size(name) for name in names}
