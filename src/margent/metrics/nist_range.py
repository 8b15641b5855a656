"""The range score of the NIST challenge 2018: differences of log frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.queries import Query, answers, interval
from margent.metrics.study import Study

RULES = 300
FLOOR = 1e-6


@dataclass(frozen=True)
class NistRange:
    """sqrt(mean (ln max(f, 1e-6) - ln max(f', 1e-6))^2) over 300 random range rules that real rows satisfy.

    Each rule takes a random number of columns (at least one, at most a third of them), an interval of each
    ordinal one and a random half of the codes of each other.
    Source: NIST Differential Privacy Synthetic Data Challenge 2018, match 3, as described by Li et al. 2021; how
    the challenge turned the root mean square into points is not public any more, so it is shown as it is.
    """

    key: str = "nist-range-2018"
    title: str = "NIST 2018 range rules, log error"
    better: Better = "lower"
    paragraph: str = (
        "How well are the frequencies of 300 random rules (conditions on one to a third of the columns) kept, counted "
        "in factors? The score is the root mean square difference of natural logarithms of frequencies: 0 is a copy, "
        "0.1 about ten percent, 0.7 a factor of two. Rare rules that the synthetic table has no row for weigh heavily "
        "(frequencies count as at least one in a million), for the resample too, which is the yardstick."
    )

    def measure(self, study: Study) -> list[Score]:
        """One root mean square a table."""
        if not study.columns or study.real.rows == 0:
            raise NotComputableError("it needs real rows and columns that all tables share")
        rng, queries = study.random(self.key), []
        most = max(1, len(study.columns) // 3)
        for _ in range(RULES):
            places = rng.choice(len(study.columns), int(rng.integers(1, most + 1)), replace=False).tolist()
            queries.append(Query({place: interval(study.columns[place], rng) for place in places}))
        real = answers(study.real, queries)
        used = real > 0
        if not used.any():
            raise NotComputableError("no real row satisfies any of the random rules")
        logs = np.log(np.maximum(real[used] / study.real.rows, FLOOR))
        scores = []
        for table in study.tables:
            found = answers(table, queries)[used] / max(table.rows, 1)
            gap = np.log(np.maximum(found, FLOOR)) - logs
            details = {"rules": int(used.sum()), "withoutSyntheticRow": int((found == 0).sum())}
            scores.append(Score(float(np.sqrt(np.mean(gap**2))), details))
        return scores
