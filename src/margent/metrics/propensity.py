"""Can a model tell synthetic rows from real ones? The propensity score's mean squared error."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.metrics.coded import CodedTable
from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study

MOST_ROWS = 20_000
"""Rows of each table that the model sees, half to learn from and half to be judged on."""
GROUPS = 64
PAIR_GROUPS = 12
MOST_PAIRS = 100
EPOCHS = 4
RATE = 0.03
RIDGE = 1e-2


@dataclass(frozen=True)
class Propensity:
    """Mean (p - 1/2)^2 over held-out rows, half of them real, p the model's chance that a row is synthetic.

    The model is logistic regression on every column and on (at most 100 seeded) pairs of columns, codes grouped.
    Source: Snoke, Raab, Nowok, Dibben, Slavkovic 2018 (there without holding rows out).
    """

    key: str = "propensity"
    title: str = "Propensity score (pMSE)"
    better: Better = "lower"
    paragraph: str = (
        "Can a model tell synthetic rows from real ones? It learns from half of the rows and guesses the others: a "
        "score of 0 means that it cannot (every guess is one half), 0.25 that it always knows. The model looks at "
        "single columns and pairs of columns, so it sees wrong dependence too. The resample scores near 0 and the "
        "independent table as high as dependence alone betrays it."
    )

    def measure(self, study: Study) -> list[Score]:
        """One pMSE a table, with the share of held-out rows that the model classifies rightly."""
        if not study.columns or study.real.rows < 4:
            raise NotComputableError("it needs a shared column and at least 4 real rows")
        pairs = list(itertools.combinations(range(len(study.columns)), 2))
        if len(pairs) > MOST_PAIRS:
            chosen = study.random("propensity pairs").choice(len(pairs), MOST_PAIRS, replace=False)
            pairs = [pairs[place] for place in sorted(chosen.tolist())]
        scores = []
        for table in study.tables:
            if table.rows < 4:
                scores.append(Score(None, {"reason": "the table has fewer than 4 rows"}))
                continue
            rng = study.random("propensity rows")
            most = min(study.real.rows, table.rows, MOST_ROWS)
            parts = [features(each, study.domain.sizes, pairs, rng, most) for each in (study.real, table)]
            labels = np.repeat(np.array([0.0, 1.0]), most)
            rows = np.concatenate(parts)
            order = rng.permutation(labels.size)
            half = order.size // 2
            learn, judge = order[:half], order[half:]
            size = int(rows.max()) + 1
            weights = fit(rows[learn], labels[learn], size, EPOCHS, RATE, RIDGE)
            guess = 1 / (1 + np.exp(-np.clip(weights[rows[judge]].sum(axis=1), -30, 30)))
            details = {"rows": int(most), "accuracy": float(((guess > 0.5) == (labels[judge] > 0.5)).mean())}
            scores.append(Score(float(np.mean((guess - 0.5) ** 2)), details))
        return scores


def features(
    table: CodedTable, sizes: tuple[int, ...], pairs: list[tuple[int, int]], rng: np.random.Generator, most: int
) -> NDArray[np.int32]:
    """The numbers of the active features of ``most`` rows: one a column and one a pair, and one that is always on.

    Shapes: (most, 1 + columns + pairs).
    """
    chosen = rng.choice(table.rows, most, replace=False)
    codes = [table.codes[place][chosen].astype(np.int64) for place in range(len(sizes))]
    made, start = [np.zeros(most, dtype=np.int64)], 1
    for size, column in zip(sizes, codes, strict=True):
        groups = min(size, GROUPS)
        made.append(start + column * groups // size)
        start += groups
    for one, other in pairs:
        wide, high = min(sizes[one], PAIR_GROUPS), min(sizes[other], PAIR_GROUPS)
        made.append(start + (codes[one] * wide // sizes[one]) * high + codes[other] * high // sizes[other])
        start += wide * high
    return np.stack(made, axis=1).astype(np.int32)


def fit(
    rows: NDArray[np.int32], labels: NDArray[np.float64], size: int, epochs: int, rate: float, ridge: float
) -> NDArray[np.float64]:
    """Weights of a logistic regression on sparse binary features, by averaged AdaGrad steps row after row.

    Shapes: rows (n, f) numbers below ``size`` -> weights (size,).
    """
    if not _COMPILED:
        _COMPILED.append(compiled(_descend))
    weights: NDArray[np.float64] = _COMPILED[0](rows, labels, size, epochs, rate, ridge)
    return weights


_COMPILED: list[Any] = []
"""The loop, compiled on first use."""


def _descend(rows, labels, size, epochs, rate, ridge):  # type: ignore[no-untyped-def]
    weights, past, mean = np.zeros(size), np.full(size, 1e-8), np.zeros(size)
    n, f = rows.shape
    for epoch in range(epochs):
        for i in range(n):
            total = 0.0
            for j in range(f):
                total += weights[rows[i, j]]
            gap = 1.0 / (1.0 + np.exp(-min(max(total, -30.0), 30.0))) - labels[i]
            for j in range(f):
                place = rows[i, j]
                slope = gap + ridge * weights[place]
                past[place] += slope * slope
                weights[place] -= rate * slope / np.sqrt(past[place])
        if epoch >= epochs // 2:
            mean += weights / (epochs - epochs // 2)
    return mean
