"""Range queries: contiguous and subset forms, absolute and relative error, and error by width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import Column
from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.queries import Query, answers, covering, interval
from margent.metrics.study import Study

QUERIES = 1_000
SUBSET_QUERIES = 300
SUBSET_SHARE = 0.3
LEAST = 10
"""Records below which a relative error is reckoned as if there were so many."""
WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
PER_WIDTH = 100

_FORMS = {"contiguous": "Range queries", "subset": "Subset queries"}


@dataclass(frozen=True)
class RangeQueries:
    """Mean error over seeded random three-column counting queries.

    Absolute: |q - q'| as shares of the rows. Relative: |q - q'| / max(q, 10) with the synthetic answer q' scaled
    to the real number of rows. The subset form takes 30 % of the codes of each column, neighbors or not.
    Source: the subset form is the range query of Li, Dang, Wang, Li 2021, Table 1.
    """

    form: Literal["contiguous", "subset"]
    error: Literal["absolute", "relative"]
    better: Better = "lower"

    @property
    def key(self) -> str:
        """For example ``range-contiguous-absolute``."""
        return f"range-{self.form}-{self.error}"

    @property
    def title(self) -> str:
        """The name on the page."""
        return f"{_FORMS[self.form]}, {self.error} error"

    @property
    def paragraph(self) -> str:
        """What it asks, how to read it, and the yardstick."""
        what = (
            "an interval of each ordered column and a random half of the codes of each other column"
            if self.form == "contiguous"
            else "a random 30 % of the codes of each column, neighbors or not"
        )
        error = (
            "the mean difference as a share of all rows: 0.01 is one row in a hundred"
            if self.error == "absolute"
            else "the mean difference as a share of the true count (or of 10 records where it is smaller): 0.1 is "
            "ten percent off. It is ruled by the queries that few rows answer"
        )
        return (
            f"How many rows satisfy conditions on three columns, {what}? The score is {error}. 0 is a copy; the "
            "resample shows the error that chance alone makes, and the independent table what single columns already "
            "answer."
        )

    def measure(self, study: Study) -> list[Score]:
        """One mean error a table; the contiguous absolute form adds the errors by width."""
        if not study.columns:
            raise NotComputableError("the tables share no column")
        queries = study.once(f"queries {self.form}", lambda: _queries(study, self.form))
        real, others = study.once(f"answers {self.form}", lambda: _answers(study, queries))
        n = study.real.rows
        by_width = _by_width(study) if (self.form, self.error) == ("contiguous", "absolute") else None
        scores = []
        for place, (table, other) in enumerate(zip(study.tables, others, strict=True)):
            shares = np.abs(real / max(n, 1) - other / max(table.rows, 1))
            errors = shares if self.error == "absolute" else shares * n / np.maximum(real, LEAST)
            details: dict[str, object] = {
                "queries": len(queries),
                "median": float(np.median(errors)),
                "95 %": float(np.quantile(errors, 0.95)),
            }
            if by_width is not None:
                details["byWidth"] = by_width[place]
            scores.append(Score(float(errors.mean()), details))
        return scores


def _queries(study: Study, form: str) -> list[Query]:
    rng = study.random(f"queries {form}")
    if form == "contiguous":
        return [_query(study, rng, 3, lambda one: interval(one, rng)) for _ in range(QUERIES)]
    return [
        _query(study, rng, 3, lambda one: covering(one, SUBSET_SHARE, rng, contiguous=False))
        for _ in range(SUBSET_QUERIES)
    ]


def _query(study: Study, rng: np.random.Generator, k: int, mask: Callable[[Column], NDArray[np.bool_]]) -> Query:
    places = rng.choice(len(study.columns), min(k, len(study.columns)), replace=False).tolist()
    return Query({place: mask(study.columns[place]) for place in places})


def _answers(study: Study, queries: list[Query]) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    return answers(study.real, queries), [answers(table, queries) for table in study.tables]


def _by_width(study: Study) -> list[list[dict[str, float]]]:
    """Mean absolute error of queries of two columns, each covering the same share of its codes."""
    rng = study.random("widths")
    queries = [
        _query(study, rng, 2, lambda one, width=width: covering(one, width, rng, contiguous=True))  # type: ignore[misc]
        for width in WIDTHS
        for _ in range(PER_WIDTH)
    ]
    real, others = _answers(study, queries)
    shares = real / max(study.real.rows, 1)
    found = []
    for table, other in zip(study.tables, others, strict=True):
        errors = np.abs(shares - other / max(table.rows, 1)).reshape(len(WIDTHS), PER_WIDTH).mean(axis=1)
        found.append(
            [{"width": width, "error": float(error)} for width, error in zip(WIDTHS, errors.tolist(), strict=True)]
        )
    return found
