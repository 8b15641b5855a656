"""The density scores of the NIST challenges: 2018 (three-way tables) and SDNist's k-marginal with its group variant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study

ALL_PAIRS_BELOW = 30
RANDOM_PAIRS = 200
LARGEST_GROUPS = 200


@dataclass(frozen=True)
class NistDensity:
    """1 - mean L1 / 2 over (at most 300 seeded) three-way tables.

    Source: NIST Differential Privacy Synthetic Data Challenge 2018, match 3, as described by Li et al. 2021.
    """

    key: str = "nist-density-2018"
    title: str = "NIST 2018 density score"
    better: Better = "higher"
    paragraph: str = (
        "One minus half the L1 distance of shares, averaged over up to 300 sets of three columns: 1 is a copy, 0 is "
        "no overlap at all. It is one minus the three-way total variation, and the resample shows how near to 1 "
        "another sample of the same people would come."
    )

    def measure(self, study: Study) -> list[Score]:
        """One score in [0, 1] a table."""
        found = study.summaries(3)
        return [Score(float(1 - each.mean() / 2), {"tables": len(found.cliques)}) for each in found.l1]


@dataclass(frozen=True)
class KMarginal:
    """500 (2 - mean L1) over pairs: all of them below 30 columns, else 200 seeded ones.

    Source: NIST SDNist, k-marginal score.
    """

    key: str = "sdnist-k-marginal"
    title: str = "SDNist k-marginal score"
    better: Better = "higher"
    paragraph: str = (
        "How much of the two-way tables is right, from 0 (no overlap) to 1000 (a copy): 500 times (2 minus the mean "
        "L1 distance of shares over pairs of columns). NIST reads it beside resamples: the value of the resample "
        "here is what one more sample of the real data would get."
    )

    def measure(self, study: Study) -> list[Score]:
        """One score in [0, 1000] a table."""
        found = study.summaries(2)
        chosen = np.arange(len(found.cliques))
        if len(study.columns) >= ALL_PAIRS_BELOW and chosen.size > RANDOM_PAIRS:
            chosen = np.sort(study.random(self.key).choice(chosen.size, RANDOM_PAIRS, replace=False))
        return [Score(float(500 * (2 - each[chosen].mean())), {"pairs": int(chosen.size)}) for each in found.l1]


@dataclass(frozen=True)
class KMarginalByGroup:
    """1000 (1 - mean over pairs of min(D_g, m_g) / m_g): D_g the L1 distance inside group g, m_g its real share.

    Source: NIST SDNist, k-marginal score by PUMA.
    """

    key: str = "sdnist-k-marginal-group"
    title: str = "SDNist k-marginal score by group"
    better: Better = "higher"
    paragraph: str = (
        "The k-marginal score inside each value of a grouping column (--group, in SDNist the area where people "
        "live): the L1 distance of the two-way tables within the group, as a share of the group's real rows and at "
        "most all of them. 1000 is a copy, 0 a group that is wholly wrong; the score is the mean over groups. Small "
        "groups score low even for the resample, which is the yardstick."
    )

    def measure(self, study: Study) -> list[Score]:
        """The mean over groups, with every group's own score (the 200 largest groups)."""
        group = study.choices.group
        if group is None:
            raise NotComputableError("no grouping column was named: give --group COLUMN")
        if group not in study.by_name:
            raise NotComputableError(f"the grouping column {group!r} is not among the columns that all tables share")
        if study.real.rows == 0 or len(study.columns) < 3:
            raise NotComputableError("it needs real rows, the grouping column and two more columns")
        pairs = [pair for pair in study.cliques(2) if group not in pair]
        if len(pairs) > RANDOM_PAIRS:
            places = study.random(self.key).choice(len(pairs), RANDOM_PAIRS, replace=False)
            pairs = [pairs[place] for place in sorted(places.tolist())]
        codes = study.place[group]
        sizes = np.bincount(study.real.codes[codes], minlength=study.by_name[group].size)
        groups = np.sort(np.argsort(-sizes, kind="stable")[:LARGEST_GROUPS])
        groups = groups[sizes[groups] > 0]
        totals = np.zeros((len(study.tables), groups.size))
        small = [pair for pair in pairs if study.domain.cells((group, *pair)) <= 2**24]
        if not small:
            raise NotComputableError("the tables by group have too many cells")
        for pair in small:
            real, others = study.shaped((group, *pair))
            for place, other in enumerate(others):
                totals[place] += capped_differences(real, other)[groups]
        labels = study.by_name[group].labels
        return [
            Score(
                float(np.mean(1000 * (1 - each / len(small)))),
                {
                    "pairs": len(small),
                    "groups": [
                        {"group": labels[code], "score": float(1000 * (1 - value / len(small)))}
                        for code, value in zip(groups.tolist(), each.tolist(), strict=True)
                    ],
                },
            )
            for each in totals
        ]


def capped_differences(real: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """min(D_g, m_g) / m_g for each value g of the first axis; 0 where the group has no real rows.

    Shapes: (g, ...) -> (g,).
    Units: shares of the group's real rows, in [0, 1].

    >>> capped_differences(np.array([[2, 0], [1, 1]]), np.array([[1, 1], [0, 0]])).tolist()
    [1.0, 1.0]
    """
    n, m = max(int(real.sum()), 1), max(int(other.sum()), 1)
    flat = real.reshape(len(real), -1) / n
    apart = np.abs(flat - other.reshape(len(other), -1) / m).sum(axis=1)
    mass = flat.sum(axis=1)
    found: NDArray[np.float64] = np.divide(np.minimum(apart, mass), mass, out=np.zeros_like(mass), where=mass > 0)
    return found
