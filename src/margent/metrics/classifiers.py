"""Coded rows as features, and the two classifiers that learn from them (scikit-learn, an extra)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import CodedTable, Column
from margent.metrics.metric import NotComputableError

Numbers = NDArray[np.float64]
Learner = Literal["svm", "boosting"]
MOST_ONE_HOT = 40
"""Codes of an unordered column that the linear classifier sees one by one; the rest are folded onto them."""


@dataclass(frozen=True)
class Task:
    """Whether a row has code ``positive`` in the column at place ``target``, from all other columns."""

    target: int
    positive: int


def require_learners() -> None:
    """Refuse where the extra is not installed.

    Raises: NotComputableError with the command that installs it.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise NotComputableError("scikit-learn is not installed: pip install 'margent[learn]'") from None


def linear_features(table: CodedTable, columns: Sequence[Column], task: Task, rows: NDArray[np.int64]) -> Numbers:
    """Rows for a linear classifier: ordered columns scaled to [0, 1] (flagged off the axis), others one-hot.

    Shapes: (rows, features); the features are a function of schema and task alone.
    """
    made = []
    for place, one in enumerate(columns):
        if place == task.target:
            continue
        codes = table.codes[place][rows].astype(np.int64)
        if one.ordinal:
            on_axis = codes < one.inner
            made.append(np.where(on_axis, codes / max(one.inner - 1, 1), 0.5)[:, None])
            if one.size > one.inner:
                made.append(~on_axis[:, None])
        elif one.size > 1:
            width = min(one.size, MOST_ONE_HOT)
            made.append((codes % width)[:, None] == np.arange(width))
    if not made:
        return np.zeros((rows.size, 1))
    return np.concatenate([part.astype(np.float64) for part in made], axis=1)


def tree_features(table: CodedTable, columns: Sequence[Column], task: Task, rows: NDArray[np.int64]) -> Numbers:
    """Rows for boosted trees: codes as numbers, NaN where a cell is missing.

    Shapes: (rows, columns - 1), or one constant feature where there is no other column.
    """
    made = []
    for place, one in enumerate(columns):
        if place != task.target:
            codes = table.codes[place][rows].astype(np.float64)
            if one.missing:
                codes[codes >= one.missing[0]] = np.nan
            made.append(codes)
    return np.stack(made, axis=1) if made else np.zeros((rows.size, 1))


def labels_of(table: CodedTable, task: Task, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 where a row has the task's code, else 0."""
    return np.asarray(table.codes[task.target][rows] == task.positive, dtype=np.int64)


def fitted_scores(learner: Learner, features: Numbers, labels: NDArray[np.int64], judged: Numbers) -> Numbers:
    """Learn from labeled rows and score others; above 0 means "has the code".

    Where the labels are all equal nothing can be learned and every score is the same.
    Shapes: (n, f), (n,), (m, f) -> (m,).
    """
    if labels.size == 0 or labels.min() == labels.max():
        return np.full(len(judged), 1.0 if labels.size and labels[0] else -1.0)
    model: Any
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if learner == "svm":
            from sklearn.svm import LinearSVC

            model = LinearSVC(C=1.0, dual=False, max_iter=300, random_state=0)
            return np.asarray(model.fit(features, labels).decision_function(judged), dtype=np.float64)
        from sklearn.ensemble import HistGradientBoostingClassifier

        known = ~np.isnan(features).all(axis=0)
        if not known.any():
            return np.full(len(judged), 1.0 if labels.mean() > 0.5 else -1.0)
        model = HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0)
        model.fit(features[:, known], labels)
        return np.asarray(model.decision_function(judged[:, known]), dtype=np.float64)


def error_of(scores: Numbers, labels: NDArray[np.int64]) -> float:
    """Share of the rows on the wrong side of 0."""
    return float(((scores > 0) != (labels > 0)).mean())


def area_under_curve(scores: Numbers, labels: NDArray[np.int64]) -> float | None:
    """The chance that a positive row scores above a negative one (ties count half); None without both.

    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    0.875
    """
    positive = int(labels.sum())
    negative = labels.size - positive
    if positive == 0 or negative == 0:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[labels > 0].sum() - positive * (positive + 1) / 2) / (positive * negative))
