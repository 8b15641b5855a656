"""Bought two-way tables against the synthetic ones: how far apart, and how far the noise alone would put them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margent.postprocessing.tables import centered
from margent.release.counts import SyntheticCounts, bought_pairs
from margent.release.summary import noisy_records, shares
from margent.transcript import Transcript

SHOWN = 20
"""Pairs on the page: those that differ most from what noise alone explains."""


def pair_distances(transcript: Transcript, counts: SyntheticCounts) -> list[dict[str, Any]]:
    """Total variation between each noisy two-way table and the synthetic one, beside that of the noise alone.

    With s the noise deviation of a cell, c cells and N noisy records, noise alone gives c s sqrt(2/pi) / (2 N) on
    average, with deviation s sqrt(c (1 - 2/pi)) / (2 N). The noisy table is taken as it is, negative cells too. Where
    only the interaction was bought, it is compared with that of the synthetic table: there f = prod (k - 1)/k of the
    cells can differ freely, which makes noise s sqrt(f) a cell, and the deviation of the sum larger by 1/sqrt(f).

    Shapes: one entry a bought pair, the largest excess over the noise first.
    Units: shares of the records.
    Privacy: none: post-processing of noisy answers.
    """
    records = noisy_records(transcript)
    entries = []
    for answer, counted in zip(bought_pairs(transcript), counts.pairs, strict=True):
        cells, synthetic = answer.counts.size, shares(counted.astype(np.float64))
        noisy, deviation, free = answer.counts.astype(np.float64) / records, math.sqrt(answer.variance), 1.0
        if answer.interaction:
            free = math.prod((size - 1) / size for size in answer.counts.shape)
            noisy, synthetic = centered(noisy / cells), centered(synthetic)
            deviation *= math.sqrt(free) / cells
        distance = 0.5 * float(np.abs(noisy - synthetic).sum())
        entries.append(
            {
                "columns": answer.clique,
                "merged": answer.merged,
                "distance": distance,
                "noise": 0.5 * cells * deviation * math.sqrt(2 / math.pi) / records,
                "plusminus": deviation * math.sqrt(cells / free * (1 - 2 / math.pi)) / records,
            }
        )
    return sorted(entries, key=lambda entry: (entry["noise"] - entry["distance"], entry["columns"]))
