"""L1, L2 and total variation over k-way tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from margent.metrics.metric import Better, Score
from margent.metrics.study import Study
from margent.metrics.summaries import Summaries

Distance = Literal["tvd", "l1", "l2"]

_NAMES = {"tvd": "Total variation", "l1": "L1 distance", "l2": "L2 distance"}
_MEANING = {
    "tvd": "the share of the rows that would have to move for the tables to agree (half the sum of the absolute "
    "differences of shares): 0 is a perfect copy, 1 is no overlap",
    "l1": "the sum of the absolute differences of shares, twice the total variation: from 0 to 2",
    "l2": "the root of the sum of squared differences of shares: it hardly sees many small errors and sees one "
    "large error well",
}
_WAYS = {1: "single columns", 2: "pairs of columns", 3: "sets of three columns"}

WORST = 12
"""Cliques named in the details, worst first."""


@dataclass(frozen=True)
class MarginalDistance:
    """Mean over the chosen k-way tables of the distance between real and synthetic shares."""

    k: int
    distance: Distance
    better: Better = "lower"

    @property
    def key(self) -> str:
        """For example ``tvd-2``."""
        return f"{self.distance}-{self.k}"

    @property
    def title(self) -> str:
        """The name on the page."""
        return f"{_NAMES[self.distance]}, {_WAYS[self.k]}"

    @property
    def paragraph(self) -> str:
        """What it asks, how to read it, and the yardstick."""
        independent = (
            "The independent table has the exact single columns, so that its score is 0."
            if self.k == 1
            else "A score above the independent table's means that ignoring all dependence would have done better."
        )
        return (
            f"For {_WAYS[self.k]}: how far are the counts of the synthetic table from the real ones? The score is the "
            f"mean over tables of {_MEANING[self.distance]}. No table is perfect: real rows drawn again (the "
            "resample beside it) differ by chance alone, and a score near theirs cannot be told from another sample. "
            f"{independent}"
        )

    def measure(self, study: Study) -> list[Score]:
        """One mean a table, with the worst cliques."""
        found = study.summaries(self.k)
        values = found.l2 if self.distance == "l2" else found.l1 * (0.5 if self.distance == "tvd" else 1.0)
        return [Score(float(np.mean(each)), self._details(each, found)) for each in values]

    def _details(self, values: np.ndarray, found: Summaries) -> dict[str, object]:
        order = np.argsort(-values, kind="stable")[:WORST]
        return {
            "tables": len(found.cliques),
            "possible": found.possible,
            "median": float(np.median(values)),
            "largest": float(values.max()),
            "worst": [{"columns": list(found.cliques[place]), "value": float(values[place])} for place in order],
        }


@dataclass(frozen=True)
class JTreeL2:
    """JTree's averaged L2: the mean of |p - q|_2 over all 2-way and 3-way tables.

    Source: Chen, Xiao, Zhang, Xu 2015, section 6.
    """

    key: str = "jtree-l2"
    title: str = "JTree's averaged L2 distance"
    better: Better = "lower"
    paragraph: str = (
        "The figure by which junction-tree methods are usually compared: the L2 distance of shares, averaged over "
        "two-way tables and over three-way tables, and the mean of both. 0 is a copy. Read it beside the resample; "
        "because of the squares it is ruled by tables that have few, large cells."
    )

    def measure(self, study: Study) -> list[Score]:
        """The mean of the averages over two-way and three-way tables."""
        ways = [k for k in (2, 3) if len(study.columns) >= k] or [2]
        averages = {k: study.summaries(k).l2.mean(axis=1) for k in ways}
        return [
            Score(
                float(np.mean([averages[k][place] for k in ways])),
                {f"{k}-way": float(averages[k][place]) for k in ways},
            )
            for place in range(len(study.tables))
        ]
