"""Codes whose noisy count drowns in its noise are counted as one group, and told apart again on sampling."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import WorkingDomain
from margent.schema.domain import Merge
from margent.transcript import NoisyMarginal

Spread = Literal["projected", "uniform"]
"""How a group's records are told apart: by the members' own noisy counts (`norm_sub`), or evenly."""


def merge_low_counts(marginal: NoisyMarginal, deviations: float = 3.0) -> Merge | None:
    """Put all codes with a noisy count below ``deviations`` standard deviations into one group, the last one.

    None where fewer than two codes are that low: there is nothing to merge.

    Shapes: ``marginal`` is a one-way marginal over k codes.
    Privacy: none: post-processing of noisy counts.
    Source: PrivSyn 2021 section 5, "filter and combine".
    """
    (column,) = marginal.clique
    low = marginal.counts < deviations * math.sqrt(marginal.variance)
    if int(low.sum()) < 2:
        return None
    groups = np.cumsum(~low) - 1
    groups[low] = int((~low).sum())
    return Merge(column, tuple(groups.tolist()))


def member_shares(
    working: WorkingDomain,
    column: str,
    counts: NDArray[np.float64],
    totals: NDArray[np.float64],
    spread: Spread,
) -> dict[int, NDArray[np.float64]]:
    """For each working code of several schema codes, their shares of its records, adding up to one.

    Shapes: ``counts`` has the column's k noisy counts, ``totals`` one consistent count a working code.
    Units: records.
    Privacy: none: post-processing.
    """
    shares = {}
    for group, members in working.mixed(column).items():
        share = np.zeros(members.size)
        if spread == "projected":
            share = np.maximum(counts[members], 0.0)
            # A group may have more records than its members' counts: those of codes that are never written.
            if share.sum() > totals[group]:
                share = norm_sub(counts[members], float(totals[group]))
        mass = float(share.sum())
        shares[group] = share / mass if mass > 0 else np.full(members.size, 1.0 / members.size)
    return shares
