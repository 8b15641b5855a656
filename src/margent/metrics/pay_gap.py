"""Income inequality per place and the rank of places by pay gap, as in the NIST challenge 2018."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study


@dataclass(frozen=True)
class PayGap:
    """Gini: mean over places of |G - G'|, G the Gini coefficient of income. Rank: mean change of rank / (places - 1).

    Incomes are the values of codes (middles of bins); a place counts where both tables have income there; the
    rank is by the mean income of the first value of the third column minus that of the second.
    Source: NIST Differential Privacy Synthetic Data Challenge 2018, as described by Li et al. 2021.
    """

    what: Literal["gini", "rank"]
    better: Better = "lower"

    @property
    def key(self) -> str:
        """``nist-gini-2018`` or ``nist-rank-2018``."""
        return f"nist-{self.what}-2018"

    @property
    def title(self) -> str:
        """The name on the page."""
        return "NIST 2018 Gini by place" if self.what == "gini" else "NIST 2018 rank of places by pay gap"

    @property
    def paragraph(self) -> str:
        """What it asks, how to read it, and the yardstick."""
        if self.what == "gini":
            return (
                "Is the inequality of incomes right in every place? The Gini coefficient (0 all equal, 1 one has "
                "all) is computed in each place, and the score is the mean absolute difference. 0 is a copy; the "
                "resample shows the chance error of small places. Name the columns: --pay-gap PLACE,INCOME,SEX."
            )
        return (
            "Are the places in the right order of the pay gap between the first two values of a column? The score is "
            "the mean change of rank as a share of the number of places: 0 is the same order, about a third is a "
            "random one. The resample shows how much of the order is chance. Name the columns: --pay-gap "
            "PLACE,INCOME,SEX."
        )

    def measure(self, study: Study) -> list[Score]:
        """One score a table."""
        place, income, sex = _chosen(study)
        real, others = study.shaped((place, income, sex))
        values = np.asarray(study.by_name[income].values)
        scores = []
        for other in others:
            if self.what == "gini":
                first, second = (gini(each.sum(axis=2)[:, : values.size], values) for each in (real, other))
            else:
                first, second = (gaps(each[:, : values.size], values) for each in (real, other))
            both = ~np.isnan(first) & ~np.isnan(second)
            places = int(both.sum())
            if places < (1 if self.what == "gini" else 2):
                scores.append(Score(None, {"reason": "too few places have the needed rows in both tables"}))
                continue
            if self.what == "gini":
                value = float(np.abs(first - second)[both].mean())
            else:
                value = float(np.abs(_ranks(first[both]) - _ranks(second[both])).mean() / (places - 1))
            scores.append(Score(value, {"places": places}))
        return scores


def _chosen(study: Study) -> tuple[str, str, str]:
    chosen = study.choices.pay_gap
    if chosen is None:
        raise NotComputableError("its columns were not named: give --pay-gap PLACE,INCOME,SEX")
    if absent := [name for name in chosen if name not in study.by_name]:
        raise NotComputableError(f"{', '.join(map(repr, absent))}: not among the columns that all tables share")
    if len(set(chosen)) < 3 or not study.by_name[chosen[1]].values or study.by_name[chosen[2]].inner < 2:
        raise NotComputableError("--pay-gap needs three columns: any, a numeric one, and one of at least two values")
    if study.domain.cells(chosen) > 2**24:
        raise NotComputableError("the table over the three columns has too many cells")
    return chosen


def gini(counts: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Gini coefficient of each row: sum_ij n_i n_j |v_i - v_j| / (2 n^2 mean); NaN without rows or mean <= 0.

    Shapes: (places, values), (values,) -> (places,).

    >>> gini(np.array([[1, 1]]), np.array([0.0, 10.0])).tolist()
    [0.5]
    """
    order = np.argsort(values, kind="stable")
    weights, sorted_values = counts[:, order].astype(np.float64), values[order]
    total, amount = weights.sum(axis=1), weights @ sorted_values
    # sum_ij n_i n_j |v_i - v_j| = 2 sum_i n_i v_i (rows below - rows above)
    below = np.cumsum(weights, axis=1) - weights
    above = total[:, None] - below - weights
    apart = ((below - above) * weights) @ sorted_values
    good = (total > 0) & (amount > 0)
    found: NDArray[np.float64] = np.divide(apart, total * amount, out=np.full(total.shape, np.nan), where=good)
    return found


def gaps(counts: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean value of the first group minus that of the second in each place; NaN where either has no rows.

    Shapes: (places, values, groups), (values,) -> (places,).
    """
    weights = counts[:, :, :2].astype(np.float64)
    totals = weights.sum(axis=1)
    means = np.divide(
        np.einsum("pvg,v->pg", weights, values), totals, out=np.full(totals.shape, np.nan), where=totals > 0
    )
    difference: NDArray[np.float64] = means[:, 0] - means[:, 1]
    return difference


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts + 1) / 2
    ranks: NDArray[np.float64] = middles[inverse]
    return ranks
