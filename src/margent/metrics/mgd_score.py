"""The Marginal Difference as one metric among the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.mgd import MgdResult, attributes_from_schema, mgd
from margent.metrics.study import Study
from margent.schema.codec import Codec
from margent.schema.domain import Clique, clique

MOST_PAIRS = 60
MOST_CELLS = 20_000


@dataclass(frozen=True)
class MarginalDifference:
    """MGD: the mean over one-way and two-way tables of the least cost of turning synthetic counts into real ones.

    Source: Li, Dang, Wang, Li 2021.
    """

    key: str = "mgd"
    title: str = "Marginal Difference (MGD)"
    better: Better = "lower"
    paragraph: str = (
        "How much work is it to turn the synthetic counts into the real ones? Moving a record a little along an "
        "ordered column costs little, making or removing one costs 1, and small differences (--tolerance, 2 records "
        "a cell) are free. So a value that lands in the neighboring bin is not as wrong as one that lands anywhere. "
        "The score is the cost a real record, averaged over single columns and seeded pairs of columns that have at "
        "most one ordered column: 0 is a copy within the tolerance. Read it beside the resample."
    )

    def measure(self, study: Study) -> list[Score]:
        """One mean a table, with the value of each marginal and of each attribute."""
        if study.schema is None or study.real.rows == 0:
            raise NotComputableError("it needs a schema and real rows")
        attributes = attributes_from_schema(Codec(study.schema))
        cliques = _chosen(study)
        real: dict[Clique, Any] = {}
        others: list[dict[Clique, Any]] = [{} for _ in study.tables]
        for each, counts, found in study.counted(cliques):
            real[each] = counts
            for place, other in enumerate(found):
                others[place][each] = other
        scores = []
        for held in others:
            result = mgd(real, held, attributes, tolerance=study.choices.tolerance)
            scores.append(Score(result.value, _details(result)))
        return scores


def _chosen(study: Study) -> list[Clique]:
    """All single columns, and seeded pairs with at most one ordered column (the cases with a fast exact answer)."""
    singles = [each for each in study.cliques(1) if study.domain.cells(each) <= MOST_CELLS]
    pairs = [
        clique(pair)
        for pair in (study.cliques(2) if len(study.columns) > 1 else ())
        if study.domain.cells(pair) <= MOST_CELLS and sum(study.by_name[name].ordinal for name in pair) <= 1
    ]
    if len(pairs) > MOST_PAIRS:
        chosen = study.random("mgd pairs").choice(len(pairs), MOST_PAIRS, replace=False)
        pairs = [pairs[place] for place in sorted(chosen.tolist())]
    return [*singles, *pairs]


def _details(result: MgdResult) -> dict[str, Any]:
    order = sorted(result.marginals, key=lambda one: (-one.value, one.clique))
    return {
        "exact": bool(result.exact),
        "attributes": {name: float(value) for name, value in result.attributes.items()},
        "left": float(result.left),
        "marginals": [
            {"columns": list(one.clique), "value": float(one.value), "exact": bool(one.exact)} for one in order
        ],
    }
