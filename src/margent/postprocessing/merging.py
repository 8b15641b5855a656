"""Codes whose noisy count drowns in its noise are counted as one group, and told apart again on sampling."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.simplex import norm_sub
from margent.postprocessing.tables import WorkingDomain
from margent.schema.domain import Merge
from margent.transcript import NoisyMarginal

Spread = Literal["projected", "uniform"]
"""How a group's records are told apart: by the members' own noisy counts (`norm_sub`), or evenly."""

TELL_THEIR_SPREAD = 50
"""Members from which a group's counts tell their own spread well enough (to a fifth)."""


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


def low_count_merges(one_ways: Iterable[NoisyMarginal], deviations: float) -> dict[str, Merge]:
    """`merge_low_counts` of every column that has codes to merge. Privacy: none: post-processing of noisy counts."""
    found = (merge_low_counts(answer, deviations) for answer in one_ways)
    return {merge.column: merge for merge in found if merge is not None}


def member_shares(
    working: WorkingDomain,
    column: str,
    counts: NDArray[np.float64],
    totals: NDArray[np.float64],
    spread: Spread,
    variance: float = 0.0,
) -> dict[int, NDArray[np.float64]]:
    """For each working code of several schema codes, their shares of its records, adding up to one.

    Noisy counts of a group differ more than true ones. Where there are many they are pulled to their mean by the share
    of their spread that noise of ``variance`` explains, or thousands of rare codes would be written in the proportions
    of their noise. Few counts do not tell their spread, and cutting them at 0 is as good.

    Shapes: ``counts`` has the column's k noisy counts, ``totals`` one consistent count a working code.
    Units: records; ``variance`` in records squared.
    Privacy: none: post-processing.
    Source: the pull is that of Efron and Morris 1973.
    """
    shares = {}
    for group, members in working.mixed(column).items():
        share = np.zeros(members.size)
        if spread == "projected":
            pulled = counts[members]
            if members.size >= TELL_THEIR_SPREAD:
                pulled = pulled_together(pulled, variance)
            share = np.maximum(pulled, 0.0)
            # A group may have more records than its members' counts: those of codes that are never written.
            if share.sum() > totals[group]:
                share = norm_sub(pulled, float(totals[group]))
        mass = float(share.sum())
        shares[group] = share / mass if mass > 0 else np.full(members.size, 1.0 / members.size)
    return shares


def pulled_together(counts: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Mean + V / (V + s^2) (count - mean), with V what the counts' own variance exceeds the noise's s^2 by.

    Shapes: at least two noisy counts.
    Units: records; ``variance`` in records squared.
    Privacy: none: post-processing.

    >>> pulled_together(np.array([5.0, -5.0, 3.0, -3.0]), 50.0).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    mean = float(counts.mean())
    seen = float(((counts - mean) ** 2).sum()) / max(counts.size - 1, 1)
    kept = 0.0 if seen <= variance else 1.0 - variance / seen if seen > 0 else 1.0
    return mean + kept * (counts - mean)
