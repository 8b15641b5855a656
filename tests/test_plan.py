"""What a plan says about noise, held against the noise itself."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from margent import Budget, BudgetFile, Category, Identifier, Integer, PersonUnit, Schema
from margent.cli.plan import plan_text
from margent.collectors.stage import widest_law
from margent.counts.source import CodedCounts
from margent.errors import PlanError
from margent.methods import METHODS, Method, method_named
from margent.pipeline import measure
from margent.plan import make_plan
from margent.privacy.accounting import ACCOUNT_NAMES
from margent.privacy.curator import DataCurator
from margent.privacy.laws import Gaussian, Laplace
from margent.privacy.ledger import Ledger
from margent.privacy.noise import SCALE_LIMIT, require_drawable
from margent.privacy.requests import MarginalRequest, ScoreRequest
from margent.schema.codec import Codec
from tests.conftest import quick

SCHEMA = Schema([Category("sex", ["F", "M"], required=True), Integer("age", 0, 40, required=True)], unit="row")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_noise_of_the_total_is_that_of_the_first_answers(method: Method) -> None:
    """Each table of k cells sums to n plus noise of variance k s^2; several are weighed by their precision."""
    budget = Budget(1)
    plan = make_plan(SCHEMA, budget, method)
    empty = pa.table({"sex": pa.array([], pa.string()), "age": pa.array([], pa.int64())})
    made = measure(empty, SCHEMA, budget=budget, method=plan.method).transcript
    answers = [answer for answer in made.marginals if made.charges[answer.charge].label == made.charges[0].label]
    assert sorted(answer.clique for answer in answers) in ([("age",), ("sex",)], [("age", "sex")])
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
    # One table of 126 cells: a code's count is the sum of 42 (sex) or 3 (age) cells of it.
    table = make_plan(SCHEMA, Budget(1), method_named("laplace")).verdict(10_000)
    alone = make_plan(SCHEMA, Budget(1), method_named("independent")).verdict(10_000)
    assert alone.worst < table.worst < 5 * alone.worst
    constant = make_plan(Schema([Category("site", ["A"], required=True)], unit="row"), Budget(1), method)
    assert "nothing to measure" in constant.verdict(10).words


class WildNoise:
    """Draws up to a million times as strong as they were paid for: answers that no table would give."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, count: int, scale: Fraction) -> NDArray[np.int64]:
        width = 10.0 ** self.rng.uniform(0, 6, count)
        return np.rint(np.clip(self.rng.normal(0, 30, count) * width, -1e15, 1e15)).astype(np.int64)


@pytest.mark.parametrize("method", [quick(each) for each in METHODS], ids=lambda method: method.name)
@pytest.mark.parametrize("accountant", ACCOUNT_NAMES)
def test_no_answers_make_a_run_ask_for_wider_noise_than_its_plan_allows_for(method: Method, accountant: str) -> None:
    """Nor for more, nor for larger tables; whatever earlier answers were."""
    fields = [Integer(f"c{place}", 0, size - 1, required=True) for place, size in enumerate((2, 2, 3, 40))]
    schema = Schema([*fields, Integer("zip", 0, 699, bins=700, required=True)], unit="row")
    domain = Codec(schema).domain
    source = CodedCounts([np.arange(9, dtype=np.uint16) % min(size, 9) for size in domain.sizes], domain)
    for seed in range(12):
        budget = Budget([1, "1e-4"][seed % 2], accountant=accountant)
        stages = method.collector.stages(domain, budget)
        wild = WildNoise(seed)
        curator = DataCurator(schema, source, Ledger(budget), noise=wild, laplace_noise=wild)
        method.collector.collect(curator, budget)
        for scores in (False, True):
            allowed = [widest_law(stage, budget) for stage in stages if stage.scores is scores]
            widest = max((law.scale_squared for law in allowed if law is not None), default=Fraction(0))
            asked = [charge for charge in curator.charges if (charge.query != "marginal") is scores]
            assert all(charge.scale_squared <= widest for charge in asked if charge.scale_squared is not None)


MANY = Schema([Category(f"c{place}", ["A", "B"], required=True) for place in range(60)], unit="row")


@pytest.mark.parametrize("run", ["synthesize", "measure"])
def test_noise_too_wide_for_64_bits_is_refused_before_a_budget_is_charged(tmp_path: Path, run: str) -> None:
    import margent

    file = BudgetFile(tmp_path / "b", "people")
    file.init(Budget(1, accountant="pure"))
    table = pa.table({field.name: pa.array(["A", "B"]) for field in MANY.fields})
    start: Any = getattr(margent, run) if run == "synthesize" else measure
    wanted = {"budget": Budget("1e-9", accountant="pure"), "method": "privsyn", "rows": 1, "budget_file": file}
    with pytest.raises(PlanError, match=r"noise of scale [0-9.]+e\+16 would be needed.*might not fit 64 bits: raise"):
        start(table, MANY, **wanted)
    assert file.balance().spent == 0
    start(table, MANY, **(wanted | {"budget": Budget("1e-7", accountant="pure")}))
    assert file.balance().spent == Fraction(1, 10**7)


def test_rows_kept_of_a_person_widen_the_noise_until_the_plan_refuses() -> None:
    def plan(rows: int) -> Any:
        schema = Schema([Identifier("id"), *SCHEMA.fields], unit=PersonUnit("id", rows))
        return make_plan(schema, Budget("1e-9"), METHODS[0], 1)

    plan(1).require_fits()
    with pytest.raises(PlanError, match="keep fewer rows of each person"):
        plan(2**30).require_fits()


def test_the_curator_charges_nothing_for_noise_it_cannot_draw() -> None:
    source = CodedCounts([np.zeros(3, np.uint16)] * 2, Codec(SCHEMA).domain)
    curator = DataCurator(SCHEMA, source, Ledger(Budget(1)))
    law = Gaussian(SCALE_LIMIT**2 * Fraction(2))
    with pytest.raises(PlanError, match="might not fit 64 bits"):
        curator.measure([MarginalRequest(("sex",), law)], label="x")
    with pytest.raises(PlanError, match="might not fit 64 bits"):
        curator.scores(ScoreRequest("indif", (("age", "sex"),), law), label="x")
    assert curator.charges == ()
    require_drawable(Laplace(Fraction(SCALE_LIMIT)))
    with pytest.raises(PlanError):
        require_drawable(Laplace(SCALE_LIMIT + Fraction(1, 3)))


def test_a_delta_above_one_in_the_rows_is_said_to_allow_whole_records() -> None:
    """Drawing one of n records and showing it is (0, 1/n)-DP; a smaller delta is not remarked upon."""
    schema = Schema([Category("a", ["x", "y"])], unit="row")
    made = [make_plan(schema, Budget(1, delta), method_named("independent")) for delta in ("1e-4", "1e-6")]
    said = [" ".join(plan_text(each, 20_000).split()) for each in made]
    assert "delta 0.0001 is above 1/20,000: a promise with so large a delta is kept even by a release that" in said[0]
    assert "above 1/" not in said[1]
