"""Synthetic tables held against the real one by every metric, with two yardsticks beside each score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from margent.errors import UsageError
from margent.internal.figures import figures
from margent.internal.label import LABEL, WHAT_IT_MEANS, save_internal
from margent.internal.reading import (
    Given,
    absent_columns,
    coded,
    compared,
    given,
    settled_by,
    shared_schema,
    told_apart,
)
from margent.metrics.metric import Metric, NotComputableError, Score
from margent.metrics.registry import METRICS
from margent.metrics.study import Choices, Study
from margent.progress import Progress, silent
from margent.release.measurements import canonical_json
from margent.release.promise import IF_NOT_GOOD_ENOUGH
from margent.report.evaluation import evaluation_page
from margent.schema.codec import Codec
from margent.schema.fields import Schema
from margent.tables.options import ReadOptions
from margent.version import VERSION

JSON_FILE = "INTERNAL-evaluation.json"
PAGE_FILE = "INTERNAL-evaluation.html"
Status = Literal["scored", "skipped", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What came of one metric for one table: a score, or why there is none (never with a cell's value)."""

    status: Status
    score: Score | None = None
    reason: str = ""


@dataclass(frozen=True)
class Scored:
    """One metric and its outcomes.

    Shapes: one outcome a table: resample, independent, then the synthetic tables.
    """

    metric: Metric
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All scores and figures of a comparison with the real table.

    Privacy: INTERNAL: exact figures of real rows.
    """

    document: Mapping[str, Any] = field(repr=False)

    @property
    def scores(self) -> dict[str, dict[str, float | None]]:
        """Metric key to the score of each table, by the table's name."""
        names = [entry["name"] for entry in self.document["tables"]]
        return {
            entry["key"]: dict(zip(names, (each["value"] for each in entry["scores"]), strict=True))
            for entry in self.document["metrics"]
        }

    def save(self, out: str | Path) -> Path:
        """Write INTERNAL-evaluation.json and INTERNAL-evaluation.html into a new folder outside of any release.

        Raises: UsageError when the folder exists or lies inside a release.
        """
        page = evaluation_page(self.document).encode()
        return save_internal(Path(out), {JSON_FILE: canonical_json(self.document), PAGE_FILE: page})


def evaluate(
    real: Any,
    synthetic: Sequence[Any] | Mapping[str, Any],
    schema: Schema,
    *,
    choices: Choices | None = None,
    read: ReadOptions | None = None,
    metrics: Sequence[Metric] = METRICS,
    learning: bool = True,
    progress: Progress = silent,
) -> Evaluation:
    """Hold synthetic tables against the real one: every metric, beside a resample and the independent table.

    ``synthetic`` are paths, release folders or frames, or a mapping of names to them.

    Privacy: none is spent and none is kept: the result is INTERNAL and not differentially private.
    Raises: UsageError, SchemaError or TableError where a table cannot be read; a metric that fails says so in
        its own place and loses no other.
    """
    read = read or ReadOptions()
    named = synthetic.items() if isinstance(synthetic, Mapping) else [(None, each) for each in synthetic]
    others = told_apart([given(table, read, name) for name, table in named])
    if not others:
        raise UsageError("there is no synthetic table to evaluate; give one or more after the real one")
    first = given(real, read, "real")
    schema = settled_by(schema, others)
    absent = absent_columns([first, *others], schema)
    study, dropped = _study(first, others, absent, schema, choices or Choices(), progress)
    used = [each for each in metrics if learning or not each.key.startswith("learning")]
    scored = []
    for place, metric in enumerate(used):
        progress("metrics", place / len(used))
        scored.append(Scored(metric, measured(metric, study)))
    progress("metrics", 1.0)
    return Evaluation(_document(study, scored, others, absent, dropped))


def _study(
    first: Given,
    others: Sequence[Given],
    absent: Sequence[Sequence[str]],
    schema: Schema,
    choices: Choices,
    progress: Progress,
) -> tuple[Study, list[str]]:
    cut = shared_schema(schema, absent)
    codec = Codec(cut)
    progress("reading", None)
    table = coded(first, codec, "real")
    tables = [coded(one, codec, "synthetic") for one in others]
    kept = {each.name for each in cut.modelled}
    dropped = [each.name for each in schema.modelled if each.name not in kept]
    return compared(table, tables, codec, choices), dropped


def measured(metric: Metric, study: Study) -> tuple[Outcome, ...]:
    """A metric's outcome for each table; where it fails for one, the others are measured on their own."""
    outcome = _attempt(lambda: metric.measure(study))
    if isinstance(outcome, list):
        return tuple(_outcome(score) for score in outcome)
    if outcome.status == "skipped" or len(study.tables) == 1:
        return (outcome,) * len(study.tables)
    found = []
    for table in study.tables:
        alone = study.only(table)
        each = _attempt(lambda alone=alone: metric.measure(alone))  # type: ignore[misc]
        found.append(_outcome(each[0]) if isinstance(each, list) else each)
    return tuple(found)


def _attempt(measure: Callable[[], list[Score]]) -> list[Score] | Outcome:
    try:
        return measure()
    except NotComputableError as sentence:
        return Outcome("skipped", reason=str(sentence))
    except Exception as fault:
        # Its text could hold a cell: only its kind goes on.
        return Outcome("failed", reason=f"this metric failed ({type(fault).__name__}); the others are not affected")


def _outcome(score: Score) -> Outcome:
    if score.value is None:
        return Outcome("skipped", score, str(score.details.get("reason", "it is undefined for these tables")))
    if not math.isfinite(score.value):
        return Outcome("failed", reason="the score is not a finite number")
    return Outcome("scored", score)


def _document(
    study: Study,
    scored: Sequence[Scored],
    others: Sequence[Given],
    absent: Sequence[Sequence[str]],
    dropped: Sequence[str],
) -> dict[str, Any]:
    summaries = [None, None, *(one.summary for one in others)]
    lacking = [(), (), *absent[1:]]
    return {
        "label": LABEL,
        "meaning": WHAT_IT_MEANS,
        "margent": VERSION,
        "title": (study.schema and study.schema.name) or "Synthetic tables",
        "seed": study.choices.seed,
        "realRows": study.real.rows,
        "columns": [{"name": one.name, "codes": one.size, "ordinal": one.ordinal} for one in study.columns],
        "notCompared": list(dropped),
        "absentFromReal": list(absent[0]),
        "tables": [
            {
                "name": table.name,
                "kind": table.kind,
                "rows": table.rows,
                "absent": list(lack),
                "release": _release_facts(summary),
            }
            for table, summary, lack in zip(study.tables, summaries, lacking, strict=True)
        ],
        "metrics": [_entry(one) for one in scored],
        "figures": figures(study),
        "nextSteps": IF_NOT_GOOD_ENOUGH,
    }


def _entry(one: Scored) -> dict[str, Any]:
    return {
        "key": one.metric.key,
        "title": one.metric.title,
        "paragraph": one.metric.paragraph,
        "better": one.metric.better,
        "scores": [
            {
                "status": each.status,
                "value": None if each.score is None else each.score.value,
                "reason": each.reason,
                "details": {} if each.score is None else dict(each.score.details),
            }
            for each in one.outcomes
        ],
    }


def _release_facts(summary: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Method, budget and promise of a release, checked as it was read, if the table came from one."""
    if summary is None:
        return None
    told = ("method", "synthesizer", "epsilon", "delta", "relation", "accountant", "promise")
    return {key: summary.get(key) for key in told}
