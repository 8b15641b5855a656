"""What a plan says about noise, held against the noise itself."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from margent import Budget, Category, Integer, Schema
from margent.methods import METHODS, Method
from margent.pipeline import measure
from margent.plan import make_plan

SCHEMA = Schema([Category("sex", ["F", "M"], required=True), Integer("age", 0, 40, required=True)], unit="row")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_noise_of_the_total_is_that_of_the_first_answers(method: Method) -> None:
    """Each table of k cells sums to n plus noise of variance k s^2; two tables are weighed by their precision."""
    budget = Budget(1)
    plan = make_plan(SCHEMA, budget, method)
    empty = pa.table({"sex": pa.array([], pa.string()), "age": pa.array([], pa.int64())})
    answers = measure(empty, SCHEMA, budget=budget, method=plan.method).transcript.marginals[:2]
    assert sorted(answer.clique for answer in answers) == [("age",), ("sex",)]
    precision = sum(1 / (answer.counts.size * float(answer.variance)) for answer in answers)
    assert plan.total_noise == pytest.approx(math.sqrt(1 / precision))


def test_no_verdict_is_better_than_the_noise_and_finer_columns_are_worse() -> None:
    method = METHODS[0]
    before = make_plan(SCHEMA, Budget(1), method).verdict(10_000)
    wide = Schema([*SCHEMA.fields, Integer("zip", 0, 5000, bins=2000)], unit="row")
    after = make_plan(wide, Budget(1), method).verdict(10_000)
    assert 0 < before.best < before.worst < after.worst <= 1
    assert before.too_fine == ()
    assert [name for name, _ in after.too_fine] == ["zip"]
    constant = make_plan(Schema([Category("site", ["A"], required=True)], unit="row"), Budget(1), method)
    assert "nothing to measure" in constant.verdict(10).words
