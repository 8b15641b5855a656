"""The pie-chart score of NIST's temporal map challenge: is the mix of kinds right in every place?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study

PRESENCE = 0.05
MISLEADING = 0.2
BIAS = 0.25
BIAS_LIMIT = 500
TINY = 1e-9
MOST_PIES = 200
MOST_CELLS = 2**20


@dataclass(frozen=True)
class PieChart:
    """Mean over rows of clip(1 - JSD - misleading - bias, 0, 1), a row being one value of a column and a pie another.

    Synthetic counts are scaled to the real number of rows. Rows without records on either side are left out.
    Source: NIST DeID2 challenge, sprint 1 (per neighborhood, year and month, incident types).
    """

    key: str = "nist-pie-chart"
    title: str = "NIST pie-chart score"
    better: Better = "higher"
    bias_rule: Literal["each", "total"] = "each"
    paragraph: str = (
        "Draw a pie chart of one column for each value of another (or of the column named by --group): are the pies "
        "right? From 1 for a pie that is right, the score takes the Jensen-Shannon distance of the two mixes (after "
        "leaving out slices below 5 %), 0.2 for each slice that is shown and should not be, and 0.25 where the counts "
        "of all slices together are off by more than 500; the mean over pies is shown. 1 is a copy. Pies of few rows "
        "are unstable, and the resample shows by how much."
    )

    def measure(self, study: Study) -> list[Score]:
        """One mean a table, with the pairs of columns whose pies are worst."""
        pies = self._pies(study)
        if not pies:
            raise NotComputableError("no column has an unordered list of 3 to 100 values to draw pies of")
        totals = np.zeros((len(study.tables), len(pies)))
        rows = np.zeros((len(study.tables), len(pies)))
        for number, (_, real, others) in enumerate(study.counted(pies)):
            for place, other in enumerate(others):
                scale = study.real.rows / max(study.tables[place].rows, 1)
                scored = pie_rows(real.astype(np.float64), other.astype(np.float64) * scale, bias_rule=self.bias_rule)
                totals[place, number], rows[place, number] = scored.sum(), scored.size
        scores = []
        for place in range(len(study.tables)):
            known = rows[place] > 0
            if not known.any():
                scores.append(Score(None, {"reason": "there are no rows"}))
                continue
            means = np.where(known, totals[place] / np.maximum(rows[place], 1), 2.0)
            worst = [
                {"of": pies[number][1], "by": pies[number][0], "value": float(means[number])}
                for number in np.argsort(means, kind="stable")[:12]
                if known[number]
            ]
            value = float(totals[place].sum() / rows[place].sum())
            scores.append(Score(value, {"pies": int(rows[place].sum()), "pairs": int(known.sum()), "worst": worst}))
        return scores

    def _pies(self, study: Study) -> list[tuple[str, str]]:
        """(by, of) pairs: the group or any column of at most 300 codes, and an unordered column of 3 to 100 values."""
        group = study.choices.group
        if group is not None and group not in study.by_name:
            raise NotComputableError(f"the grouping column {group!r} is not among the columns that all tables share")
        of = [one.name for one in study.columns if not one.ordinal and 3 <= one.inner <= 100]
        by = [group] if group is not None else [one.name for one in study.columns if one.size <= 300]
        pies = [(one, other) for one in by for other in of if one != other]
        pies = [pie for pie in pies if study.domain.cells(pie) <= MOST_CELLS]
        if len(pies) <= MOST_PIES:
            return pies
        chosen = study.random(self.key).choice(len(pies), MOST_PIES, replace=False)
        return [pies[place] for place in sorted(chosen.tolist())]


def pie_rows(
    truth: NDArray[np.float64], other: NDArray[np.float64], *, bias_rule: Literal["each", "total"] = "each"
) -> NDArray[np.float64]:
    """The score of each row of two tables of counts; rows empty on both sides are left out.

    Shapes: (rows, slices) twice -> at most (rows,).
    Units: counts in, scores in [0, 1] out. ``bias_rule``: what may be off by 500: "each", the sum of the differences of
    the slices (the challenge's runtime), or "total", the difference of the sums (the copy used for MGD).

    >>> pie_rows(np.array([[5.0, 5.0], [1.0, 0.0]]), np.array([[5.0, 5.0], [0.0, 1.0]])).round(3).tolist()
    [1.0, 0.0]
    """
    used = (truth.sum(axis=1) > 0) | (other.sum(axis=1) > 0)
    truth, other = truth[used], other[used]
    shown, drawn = _presented(truth), _presented(other)
    distance = jensen_shannon(shown + TINY, drawn + TINY)
    misleading = MISLEADING * ((shown == 0) & (drawn > 0)).sum(axis=1)
    gap = truth - other
    off = np.abs(gap).sum(axis=1) if bias_rule == "each" else np.abs(gap.sum(axis=1))
    scores: NDArray[np.float64] = np.clip(1 - distance - misleading - BIAS * (off > BIAS_LIMIT), 0.0, 1.0)
    scores[(gap == 0).all(axis=1)] = 1.0
    return scores


def _presented(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of a row's total, those below 5 % left out."""
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return np.where(shares >= PRESENCE, shares, 0.0)


def jensen_shannon(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Jensen-Shannon distance, base 2, of the rows of two positive tables, each row scaled to sum to 1.

    Units: the square root of bits, in [0, 1].
    """
    first = first / first.sum(axis=1, keepdims=True)
    second = second / second.sum(axis=1, keepdims=True)
    middle = (first + second) / 2
    divergence = (first * np.log2(first / middle) + second * np.log2(second / middle)).sum(axis=1) / 2
    distance: NDArray[np.float64] = np.sqrt(np.clip(divergence, 0.0, 1.0))
    return distance
