"""Train on synthetic rows, test on real ones: is a model learned from the synthetic table of any use?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.metrics.classifiers import (
    Learner,
    Task,
    area_under_curve,
    error_of,
    fitted_scores,
    labels_of,
    linear_features,
    require_learners,
    tree_features,
)
from margent.metrics.coded import CodedTable
from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study

MOST_TASKS = 3
MOST_TRAINING = 10_000
MOST_TEST = 10_000
_LEARNERS = {"svm": "linear support vector machine", "boosting": "gradient-boosted trees"}


@dataclass(frozen=True)
class Learning:
    """Mean over tasks of the misclassification rate, or of the area under the ROC curve, on held-out real rows.

    A task is to tell rows with the most frequent value of a column from all others. A quarter of the real rows
    (at most 10,000) are held out; at most 10,000 rows are learned from.
    Source: the linear machine is the task of the published comparisons (PrivBayes 2017, PrivSyn 2021).
    """

    learner: Learner
    what: Literal["error", "auc"]

    @property
    def key(self) -> str:
        """For example ``learning-svm-error``."""
        return f"learning-{self.learner}-{self.what}"

    @property
    def title(self) -> str:
        """The name on the page."""
        what = "misclassification" if self.what == "error" else "AUC"
        return f"Learning: {_LEARNERS[self.learner]}, {what}"

    @property
    def better(self) -> Better:
        """Errors should be low, areas high."""
        return "lower" if self.what == "error" else "higher"

    @property
    def paragraph(self) -> str:
        """What it asks, how to read it, and the yardstick."""
        score = (
            "the share of held-out real rows that are guessed wrongly"
            if self.what == "error"
            else "the area under the ROC curve on held-out real rows (0.5 is guessing, 1 is perfect)"
        )
        return (
            f"Is a model that learned from synthetic rows of use on real ones? It ({_LEARNERS[self.learner]}) learns "
            f"to predict a column from all others; the score is {score}, the mean over the predicted columns. The "
            "value beside it under the resample is the same model trained on real rows: nothing can be expected to "
            "beat it. The independent table has nothing to learn from. The columns are those of --target, else up to "
            "three short lists of values, the last ones of the schema."
        )

    def measure(self, study: Study) -> list[Score]:
        """One mean a table, with every task's figure and that of guessing the more frequent answer."""
        require_learners()
        if study.real.rows < 20:
            raise NotComputableError("it needs at least 20 real rows")
        tasks = _tasks(study)
        results = [
            study.once(f"learning {self.learner} {task.target}", lambda task=task: _results(study, self.learner, task))  # type: ignore[misc]
            for task in tasks
        ]
        scores = []
        for place in range(len(study.tables)):
            entries = []
            for task, found in zip(tasks, results, strict=True):
                error, area = found[place]
                column = study.columns[task.target]
                entries.append(
                    {
                        "column": column.name,
                        "value": column.labels[task.positive],
                        "score": error if self.what == "error" else area,
                        "trainedOnReal": found[-2][0 if self.what == "error" else 1],
                        "guessing": found[-1][0] if self.what == "error" else 0.5,
                    }
                )
            known = [entry["score"] for entry in entries if isinstance(entry["score"], float)]
            scores.append(Score(float(np.mean(known)) if known else None, {"tasks": entries}))
        return scores


def _tasks(study: Study) -> list[Task]:
    asked = study.choices.targets
    if absent := [name for name in asked if name not in study.by_name]:
        raise NotComputableError(f"{', '.join(map(repr, absent))}: not among the columns that all tables share")
    short = [one.name for one in study.columns if not one.ordinal and 2 <= one.inner <= 10]
    names = list(asked) or short[-MOST_TASKS:]
    tasks = []
    for name in names:
        place, one = study.place[name], study.by_name[name]
        counts = np.bincount(study.real.codes[place], minlength=one.size)
        if (counts > 0).sum() > 1:
            tasks.append(Task(place, int(np.argmax(counts[: one.inner]))))
    if not tasks:
        raise NotComputableError("no column to predict: none of the candidates has two values; give --target COLUMN")
    return tasks


Result = tuple[float, float | None]


def _results(study: Study, learner: Learner, task: Task) -> list[Result]:
    """(error, area) a table, then those of the model trained on real rows, then those of guessing."""
    rng = study.random("held out")
    order = rng.permutation(study.real.rows)
    held = order[: min(study.real.rows // 4, MOST_TEST)]
    rest = order[held.size :][:MOST_TRAINING]
    make = linear_features if learner == "svm" else tree_features
    judged, truth = make(study.real, study.columns, task, held), labels_of(study.real, task, held)

    def result(table: CodedTable, rows: NDArray[np.int64]) -> Result:
        scores = fitted_scores(learner, make(table, study.columns, task, rows), labels_of(table, task, rows), judged)
        return error_of(scores, truth), area_under_curve(scores, truth)

    on_real = result(study.real, rest)
    found: list[Result] = []
    for table in study.tables:
        if table.kind == "resample":
            found.append(on_real)  # a resample would hold rows of the test
        elif table.rows == 0:
            found.append((1.0, None))
        else:
            found.append(result(table, rng.permutation(table.rows)[:MOST_TRAINING]))
    share = float(truth.mean())
    return [*found, on_real, (min(share, 1 - share), 0.5)]
