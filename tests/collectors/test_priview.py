"""PriView's collector: the whole budget, views that hold all pairs or triples, a plan that bounds it, refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from margent import Budget
from margent.collectors.priview import PriView
from margent.errors import PlanError, UsageError
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.transcript import Transcript
from tests.collectors.test_dense import dependent, schema
from tests.collectors.test_pure import SIZES, door, pure

BUDGETS = [Budget(epsilon=1), Budget(epsilon=1, accountant="zcdp"), pure(), Budget(epsilon=1, relation="replace")]


def held(transcript: Transcript, strength: int) -> bool:
    names = [name for name, size in zip(transcript.domain.names, transcript.domain.sizes, strict=True) if size > 1]
    views = [set(answer.clique) for answer in transcript.marginals]
    return all(any(set(subset) <= view for view in views) for subset in combinations(names, strength))


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: f"{budget.accountant} {budget.relation}")
@pytest.mark.parametrize("collector", [PriView(2), PriView(3), PriView(), PriView(2, split="cells")])
def test_the_budget_is_spent_on_views_that_hold_all_subsets(collector: PriView, budget: Budget) -> None:
    made = collector.collect(door(dependent(3_000, SIZES), budget), budget)
    spent = sum((charge.cost for charge in made.charges), Fraction(0))
    assert Fraction(99, 100) * budget.total <= spent <= budget.total
    assert held(made, collector.strength or 2)


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: f"{budget.accountant} {budget.relation}")
@pytest.mark.parametrize("collector", [PriView(2), PriView(3), PriView()])
def test_the_plan_bounds_the_run(collector: PriView, budget: Budget) -> None:
    stages = collector.stages(Codec(schema(*SIZES)).domain, budget)
    assert sum(stage.share for stage in stages) == 1
    made = collector.collect(door(dependent(3_000, SIZES), budget), budget)
    assert len(made.marginals) <= sum(stage.questions for stage in stages)
    assert max(answer.counts.size for answer in made.marginals) <= max(stage.largest for stage in stages)
    assert sum(answer.counts.size for answer in made.marginals) <= sum(stage.cells for stage in stages)
    widest = max(float(stage.law.variance) for stage in stages if stage.law)
    assert max(float(answer.variance) for answer in made.marginals) <= widest
    assert {name for stage in stages for name, _ in stage.columns} == set(made.domain.names)


def test_every_three_columns_share_a_view_where_noise_is_small_and_every_two_where_not() -> None:
    columns = dependent(20_000, SIZES)
    for epsilon, strength in ((8, 3), (0.05, 2)):
        budget = Budget(epsilon=epsilon)
        made = PriView().collect(door(columns, budget), budget)
        assert len(made.marginals[0].clique) == 1
        assert held(Transcript(made.schema, made.domain, "", (), made.answers[1:]), strength)
        views = len(PriView(strength).collect(door(columns, budget), budget).marginals)
        assert len(made.marginals) == views + 1


def test_columns_that_fit_no_design_are_refused_with_their_names() -> None:
    domain = Domain(("zip", "job", "sex"), (40_000, 5_000, 2))
    with pytest.raises(PlanError, match=r"'zip' .40,000 codes."):
        PriView().stages(domain, Budget(epsilon=1))
    fits = PriView(most_cells=3 * 10**8).stages(domain, Budget(epsilon=1))
    assert fits[-1].largest == 200_000_000


@pytest.mark.parametrize("sizes", [(5,), (5, 4), (1, 1), (3, 1, 4)])
def test_few_or_constant_columns(sizes: tuple[int, ...]) -> None:
    budget = Budget(epsilon=1)
    rng = np.random.default_rng(0)
    made = PriView().collect(door([rng.integers(0, size, 500) for size in sizes], budget, sizes), budget)
    assert len(made.marginals) == 1
    assert PriView().stages(made.domain, budget)[0].questions == 1


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(UsageError, match="strength"):
        PriView(4)
    with pytest.raises(UsageError, match="share"):
        PriView(total_share=Fraction(1))
