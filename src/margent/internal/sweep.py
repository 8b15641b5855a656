"""Error against epsilon on a table that is public: the only kind on which budgets may be tried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from margent.errors import UsageError
from margent.internal.label import LABEL, save_internal
from margent.internal.reading import coded, compared, given, shared_schema
from margent.methods import method_named
from margent.metrics.coded import CodedTable
from margent.metrics.marginals import MarginalDistance
from margent.metrics.metric import Metric, NotComputableError
from margent.metrics.ranges import RangeQueries
from margent.metrics.study import Choices, Study
from margent.pipeline import synthesize
from margent.privacy.budget import Budget
from margent.progress import Progress, silent
from margent.release.beliefs import number
from margent.release.measurements import canonical_json
from margent.release.promise import IF_NOT_GOOD_ENOUGH
from margent.report.sweep import sweep_page
from margent.schema.codec import Codec
from margent.schema.fields import Schema
from margent.tables.options import ReadOptions
from margent.version import VERSION

JSON_FILE = "INTERNAL-sweep.json"
PAGE_FILE = "INTERNAL-sweep.html"
METRICS: tuple[Metric, ...] = (
    MarginalDistance(1, "tvd"),
    MarginalDistance(2, "tvd"),
    MarginalDistance(3, "tvd"),
    RangeQueries("contiguous", "absolute"),
)
MEANING = (
    "Whoever ran this said that the table is public (--on-public-data). On a private table each of these runs would "
    "spend its whole epsilon again, and these exact scores are not covered by any promise."
)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Scores of several methods at several epsilons on one public table, beside the two yardsticks."""

    document: dict[str, Any] = field(repr=False)

    def save(self, out: str | Path) -> Path:
        """Write INTERNAL-sweep.json and INTERNAL-sweep.html into a new folder outside of any release.

        Raises: UsageError when the folder exists or lies inside a release.
        """
        page = sweep_page(self.document).encode()
        return save_internal(Path(out), {JSON_FILE: canonical_json(self.document), PAGE_FILE: page})


def sweep(
    table: Any,
    schema: Schema,
    *,
    epsilons: Sequence[str],
    methods: Sequence[str],
    on_public_data: bool,
    delta: str | None = None,
    draws: int = 1,
    read: ReadOptions | None = None,
    choices: Choices | None = None,
    progress: Progress = silent,
) -> Sweep:
    """Synthesize a public table at each epsilon by each method and score the results.

    Privacy: none is promised: for public tables only; every run is a full run of its epsilon.
    Raises: UsageError without ``on_public_data``, and for an epsilon or method that is off, before any run.
    """
    if not on_public_data:
        raise UsageError(
            "a sweep runs the whole job once an epsilon and scores the results on the real rows: on private data "
            "that would spend every one of these budgets and publish more. Use a public table that is like yours "
            "and say --on-public-data; for a private table `margent plan` shows what each epsilon buys, free"
        )
    budgets = [Budget(epsilon=epsilon, delta=delta) for epsilon in epsilons]
    methods = [method_named(method).name for method in methods]
    codec = Codec(shared_schema(schema, [()]))
    real = coded(given(table, read or ReadOptions(), "real"), codec, "real")
    runs = [(method, budget, draw) for method in methods for budget in budgets for draw in range(draws)]
    made = []
    for place, (method, budget, draw) in enumerate(runs):
        progress("runs", place / len(runs))
        release = synthesize(table, schema, budget=budget, method=method, seed=draw, read=read)
        names = list(release.transcript.domain.names)
        codes = [release.codes[:, names.index(name)].astype(np.uint32) for name in codec.domain.names]
        made.append(CodedTable(f"{method} {float(budget.epsilon):g} {draw}", "synthetic", codes, release.rows))
    progress("runs", 1.0)
    study = compared(real, made, codec, choices or Choices())
    return Sweep(
        {
            "label": LABEL,
            "meaning": MEANING,
            "margent": VERSION,
            "title": schema.name or "A public table",
            "delta": number(budgets[0].delta),
            "draws": draws,
            "epsilons": [float(budget.epsilon) for budget in budgets],
            "methods": methods,
            "metrics": [_entry(metric, study, len(methods), len(budgets), draws) for metric in METRICS],
            "nextSteps": IF_NOT_GOOD_ENOUGH,
        }
    )


def _entry(metric: Metric, study: Study, methods: int, epsilons: int, draws: int) -> dict[str, Any]:
    entry = {"key": metric.key, "title": metric.title, "paragraph": metric.paragraph}
    try:
        values = [score.value for score in metric.measure(study)]
    except NotComputableError as sentence:
        return entry | {"reason": str(sentence)}
    scores = np.array(values[2:], dtype=np.float64).reshape(methods, epsilons, draws)
    return entry | {
        "resample": values[0],
        "independent": values[1],
        "means": scores.mean(axis=2).tolist(),
        "lowest": scores.min(axis=2).tolist(),
        "highest": scores.max(axis=2).tolist(),
    }
