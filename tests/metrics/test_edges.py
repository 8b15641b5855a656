"""No table is too poor for a metric: it has a finite score or a sentence, and one broken metric loses no other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from margent.internal.evaluation import measured
from margent.metrics import mgd_score
from margent.metrics.coded import resampled, shuffled
from margent.metrics.learning import Learning
from margent.metrics.marginals import MarginalDistance
from margent.metrics.metric import Metric, Score
from margent.metrics.mgd_score import MarginalDifference
from margent.metrics.propensity import Propensity
from margent.metrics.registry import METRICS
from margent.metrics.study import Choices, Study
from margent.schema.fields import Integer, Schema
from tests.metrics.made import column, random_rows, study

SIZES = (3, 2, 4, 3)
COLUMNS = [column("a", 3), column("b", 2, ordinal=False), column("c", 4, missing=True), column("d", 3, ordinal=False)]
ROWS = random_rows(SIZES, 60, 1)
TABLES = {
    "copy": ROWS,
    "no rows": [],
    "one row": ROWS[:1],
    "longer": random_rows(SIZES, 200, 2),
    "constant": [[0, 0, 0, 0]] * 50,
    "all missing": [[row[0], row[1], 3, row[3]] for row in ROWS],
}


def with_yardsticks(made: Study) -> Study:
    rng = np.random.default_rng(1)
    return dataclasses.replace(made, tables=(resampled(made.real, rng), shuffled(made.real, rng), *made.tables))


def fast(metric: Metric) -> bool:
    return not metric.key.startswith("learning-boosting")


@pytest.mark.parametrize("real", list(TABLES))
@pytest.mark.parametrize("metric", [each for each in METRICS if fast(each)], ids=lambda metric: metric.key)
def test_every_metric_of_every_pair_of_tables_is_finite_or_says_why(metric: Metric, real: str) -> None:
    choices = Choices(group="b", pay_gap=("d", "a", "b"))
    outcomes = measured(metric, with_yardsticks(study(COLUMNS, TABLES[real], *TABLES.values(), choices=choices)))
    assert len(outcomes) == 2 + len(TABLES)
    for outcome in outcomes:
        assert outcome.status in ("scored", "skipped"), outcome.reason
        if outcome.status == "scored":
            assert outcome.score is not None
            assert outcome.score.value is not None
            assert np.isfinite(outcome.score.value)
        else:
            assert len(outcome.reason.split()) > 3


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_a_table_of_one_column_of_one_code(metric: Metric) -> None:
    outcomes = measured(metric, with_yardsticks(study([column("x", 1)], [[0]] * 40, [[0]] * 30)))
    assert all(outcome.status in ("scored", "skipped") for outcome in outcomes)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_paragraphs_say_how_to_read_the_score(metric: Metric) -> None:
    assert len(metric.paragraph.split()) > 40
    assert "resample" in metric.paragraph
    assert metric.title


def test_keys_differ() -> None:
    assert len({metric.key for metric in METRICS}) == len(METRICS)


@dataclasses.dataclass(frozen=True)
class Broken:
    key: str = "broken"
    title: str = "Broken"
    paragraph: str = ""
    better: str = "lower"

    def measure(self, made: Study) -> list[Score]:
        if any(table.rows == 0 for table in made.tables):
            raise ValueError("a private value 12345")
        return [Score(1.0)] * len(made.tables)


def test_a_metric_that_breaks_on_one_table_is_measured_on_the_others_and_tells_no_value() -> None:
    made = study(COLUMNS, ROWS, ROWS, [], ROWS)
    outcomes = measured(Broken(), made)  # type: ignore[arg-type]
    assert [outcome.status for outcome in outcomes] == ["scored", "failed", "scored"]
    assert "12345" not in outcomes[1].reason
    assert "ValueError" in outcomes[1].reason


def test_an_infinite_score_is_a_failure() -> None:
    @dataclasses.dataclass(frozen=True)
    class Endless(Broken):
        def measure(self, made: Study) -> list[Score]:
            return [Score(float("nan"))] * len(made.tables)

    assert measured(Endless(), study(COLUMNS, ROWS, ROWS))[0].status == "failed"  # type: ignore[arg-type]


def test_yardsticks_rank_as_they_should() -> None:
    """Dependent columns: a resample beats the independent table wherever dependence matters."""
    dependent = [[code % 3, code % 2, (code * 7) % 3, (code // 2) % 3] for code in range(6)] * 400
    made = with_yardsticks(study(COLUMNS, dependent))
    for metric in (MarginalDistance(2, "tvd"), MarginalDistance(3, "tvd"), Propensity()):
        resample, independent = (score.value for score in metric.measure(made))
        assert resample is not None
        assert independent is not None
        assert resample < independent / 3, metric.key
    assert MarginalDistance(1, "tvd").measure(made)[1].value == 0.0


def test_propensity_finds_a_planted_dependence_and_no_other() -> None:
    """Seeded, so no false alarm by chance. The planted table's best possible score is 3/4 (1/6)^2 + 1/4 (1/2)^2 = 1/12.

    Two rows in three of those where the columns agree are real, and all where they differ are synthetic.
    """
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, 4000)
    real = np.stack([a, a, rng.integers(0, 4, 4000), rng.integers(0, 3, 4000)], axis=1)
    same = real[rng.permutation(4000)]
    loose = real.copy()
    loose[:, 1] = rng.integers(0, 2, 4000)
    alike, planted = Propensity().measure(study(COLUMNS, real.tolist(), same.tolist(), loose.tolist()))
    assert alike.value is not None
    assert planted.value is not None
    assert alike.value < planted.value / 10
    assert 1 / 24 < planted.value < 1 / 10


@pytest.mark.parametrize("learner", ["svm", "boosting"])
def test_learning_from_a_copy_is_like_learning_from_real_rows(learner: str) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(7)
    a = rng.integers(0, 3, 800)
    b = (a > 0) ^ (rng.random(800) < 0.1)
    real = np.stack([a, b, rng.integers(0, 4, 800), rng.integers(0, 3, 800)], axis=1)
    loose = real.copy()
    loose[:, 0] = rng.integers(0, 3, 800)
    made = with_yardsticks(
        study(COLUMNS, real.tolist(), real.tolist(), loose.tolist(), choices=Choices(targets=("b",)))
    )
    scores = [score.value for score in Learning(learner, "error").measure(made)]  # type: ignore[arg-type]
    resample, _, copy, untied = scores
    assert resample is not None
    assert copy is not None
    assert untied is not None
    assert resample < 0.2
    assert abs(copy - resample) < 0.05
    assert untied > 0.25
    areas = [score.value for score in Learning(learner, "auc").measure(made)]  # type: ignore[arg-type]
    assert areas[2] is not None
    assert areas[2] > 0.8


def test_learning_says_that_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn", None)
    outcomes = measured(Learning("svm", "error"), study(COLUMNS, ROWS, ROWS))
    assert outcomes[0].status == "skipped"
    assert "margent[learn]" in outcomes[0].reason


def test_the_marginal_difference_joins_what_its_module_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the module's names: the adapter gives it counts of all chosen marginals and passes on."""
    from types import SimpleNamespace
    from typing import Any

    asked: list[Any] = []

    def mgd(real: Any, other: Any, attributes: Any, *, tolerance: int) -> Any:
        asked.append((real, other, attributes, tolerance))
        marginals = tuple(SimpleNamespace(clique=clique, value=0.25, exact=True) for clique in real)
        return SimpleNamespace(value=0.25, exact=True, left=0.25, attributes={"a": 0.0}, marginals=marginals)

    monkeypatch.setattr(mgd_score, "mgd", mgd)
    monkeypatch.setattr(mgd_score, "attributes_from_schema", lambda codec: codec.domain.names)
    schema = Schema([Integer(name, 0, 3) for name in "abcd"], unit="row")
    made = dataclasses.replace(study(COLUMNS, ROWS, ROWS), schema=schema)
    (score,) = MarginalDifference().measure(made)
    (real, other, attributes, tolerance) = asked[0]
    assert score.value == 0.25
    assert (attributes, tolerance) == (("a", "b", "c", "d"), 2)
    assert set(real) == set(other)
    assert {("a",), ("b",), ("c",), ("d",), ("b", "d"), ("a", "b")} <= set(real)
    assert ("a", "c") not in real, "two ordered columns have no fast exact answer"
    assert real["a",].sum() == len(ROWS)
    assert {tuple(entry["columns"]) for entry in score.details["marginals"]} == set(real)
