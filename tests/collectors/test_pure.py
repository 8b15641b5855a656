"""Every method at delta 0 through the real door: Laplace noise and choices, the whole budget, what is picked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Budget
from margent.collectors.allocation import allocate
from margent.collectors.dense import Dense
from margent.collectors.dense_pure import Pure
from margent.counts.source import CodedCounts
from margent.errors import BudgetError, TranscriptError, UsageError
from margent.methods import METHODS, Method
from margent.privacy.accounting import ACCOUNT_NAMES, account_named
from margent.privacy.curator import DataCurator
from margent.privacy.laws import Gaussian, Laplace, law_of
from margent.privacy.ledger import Ledger
from margent.privacy.noise import discrete_laplace
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import ChoiceRequest, MarginalRequest
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.codec import Codec
from margent.transcript import Choice, Scores, Transcript
from tests.collectors.test_dense import dependent, schema
from tests.conftest import quick

Columns = Sequence[NDArray[np.int64]]
SIZES = (4, 5, 6, 3)


def door(columns: Columns, budget: Budget, sizes: Sequence[int] = SIZES) -> DataCurator:
    about = schema(*sizes)
    source = CodedCounts([codes.astype(np.uint16) for codes in columns], Codec(about).domain)
    return DataCurator(about, source, Ledger(budget))


def pure(epsilon: float = 1, relation: str = "add-remove") -> Budget:
    return Budget(epsilon=epsilon, delta=0, accountant="pure", relation=relation)  # type: ignore[arg-type]


def kinds(transcript: Transcript) -> list[str]:
    return [type(answer).__name__ for answer in transcript.answers]


@pytest.mark.parametrize("method", [quick(each) for each in METHODS], ids=lambda method: method.name)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.05, 1, 8])
def test_every_method_spends_a_pure_budget(method: Method, relation: str, epsilon: float) -> None:
    budget = pure(epsilon, relation)
    made = method.collector.collect(door(dependent(3_000, SIZES), budget), budget)
    spent = sum((charge.cost for charge in made.charges), Fraction(0))
    assert Fraction(99, 100) * budget.total <= spent <= budget.total
    assert {charge.mechanism for charge in made.charges} <= {"discrete-laplace", "exponential"}
    for charge in made.charges:
        if charge.mechanism == "discrete-laplace":
            assert charge.cost == Fraction(charge.sensitivity_squared) / charge.cost / charge.scale_squared
        if charge.query == "marginal":
            assert charge.sensitivity_squared == (1 if relation == "add-remove" else 4)


@pytest.mark.parametrize("method", [quick(each) for each in METHODS], ids=lambda method: method.name)
def test_the_plan_bounds_a_pure_run(method: Method) -> None:
    budget = pure()
    stages = method.collector.stages(Codec(schema(*SIZES)).domain, budget)
    assert sum(stage.share for stage in stages) == 1
    assert all(
        stage.law is None if stage.name == "choice of parents" else isinstance(stage.law, Laplace) for stage in stages
    )
    made = method.collector.collect(door(dependent(3_000, SIZES), budget), budget)
    assert sum(charge.query == "marginal" for charge in made.charges) <= sum(stage.questions for stage in stages)


def test_dense_scores_where_they_are_heard_chooses_where_not_and_buys_no_pair_where_noise_rules() -> None:
    budget = pure(4)
    for rows, knobs, expected in (
        (20_000, Pure(), "Scores"),
        (20_000, Pure(score_noise=0.0), "Choice"),
        (20_000, Pure(score_noise=0.0, pair_noise=0.0), None),
    ):
        made = Dense(pure=knobs).collect(door(dependent(rows, SIZES), budget), budget)
        assert {kind for kind in kinds(made) if kind != "NoisyMarginal"} == ({expected} if expected else set())
        assert any(len(answer.clique) == 2 for answer in made.marginals) is (expected is not None)


def test_choices_find_the_dependent_pairs() -> None:
    """Two dependent pairs among 15 with distances of 10,000 records and more: a wrong choice has odds below 1e-9."""
    rng = np.random.default_rng(3)
    free = [rng.integers(0, 4, 20_000) for _ in range(4)]
    columns = [free[0], free[0], free[1], free[1], free[2], free[3]]
    curator = door(columns, pure(2), (4,) * 6)
    pairs = tuple((f"c{i}", f"c{j}") for i in range(6) for j in range(i + 1, 6))
    chosen = curator.choose(ChoiceRequest("indif", pairs, Fraction(1), 2), label="two")
    assert set(chosen.cliques) == {("c0", "c1"), ("c2", "c3")}
    (charge,) = curator.charges
    assert (charge.cost, charge.epsilon, charge.choices) == (Fraction(2), Fraction(1), 2)
    assert charge.sensitivity_squared == 1024**2
    with pytest.raises(BudgetError):
        curator.choose(ChoiceRequest("indif", pairs, Fraction(1, 100), 1), label="one more")


def test_choices_are_without_replacement_and_all_of_all() -> None:
    curator = door(dependent(100, SIZES), pure(1))
    pairs = (("c0", "c1"), ("c0", "c2"), ("c1", "c2"))
    chosen = curator.choose(ChoiceRequest("indif", pairs, Fraction(1, 10), 3), label="all")
    assert sorted(chosen.cliques) == sorted(pairs)
    for choices in (0, 4):
        with pytest.raises(UsageError, match="choices among 3 candidates"):
            ChoiceRequest("indif", pairs, Fraction(1), choices)


@pytest.mark.parametrize("name", ACCOUNT_NAMES)
@pytest.mark.parametrize("share", [Fraction(1, 10**6), Fraction(1, 77), Fraction(3)])
def test_the_epsilon_of_a_share_is_paid_for_and_nearly_the_largest(name: str, share: Fraction) -> None:
    account = account_named(name)
    epsilon = account.exponential_epsilon(share)
    assert account.exponential_cost(epsilon) <= share < account.exponential_cost(epsilon * (1 + Fraction(1, 10**12)))


def test_a_choice_is_written_read_and_replayed(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    budget, collector = pure(4), Dense(pure=Pure(score_noise=0.0))
    made = collector.collect(door(dependent(20_000, SIZES), budget), budget)
    for name, content in measurement_files(made).items():
        (folder / name).write_bytes(content)
    again = read_measurements(folder)
    assert measurement_files(collector.collect(ReplayCurator(again), budget)) == measurement_files(made)
    (choice,) = [answer for answer in again.answers if isinstance(answer, Choice)]
    text = (folder / "transcript.json").read_text()
    (folder / "transcript.json").write_text(text.replace('"choices": 6', '"choices": 5'))
    assert len(choice.cliques) == 6
    with pytest.raises(TranscriptError, match="damaged or altered"):
        read_measurements(folder)


def test_laplace_noise_is_what_the_charge_says() -> None:
    """The variance stated is that of the draws: 200,000 of them, at six deviations (odds below 1e-8)."""
    law = Laplace(Fraction(7, 2))
    draws = discrete_laplace(200_000, law.scale).astype(np.float64)
    squares = np.square(draws)
    assert abs(squares.mean() - float(law.variance)) < 6 * squares.std() / draws.size**0.5
    assert abs(np.abs(draws).mean() - law.mean_absolute) < 6 * np.abs(draws).std() / draws.size**0.5
    assert abs(squares.mean() - 2 * float(law.scale) ** 2) < 2  # which 2 t^2 is not, by 1/6 of a record squared
    curator = door(dependent(50, SIZES), pure(1))
    (answer,) = curator.measure([MarginalRequest(("c0",), law)], label="one")
    (charge,) = curator.charges
    assert law_of(charge) == law
    assert answer.variance == law.variance


def test_a_gdp_budget_may_buy_laplace_noise_and_choices_too() -> None:
    budget = Budget(epsilon=1)
    curator = door(dependent(500, SIZES), budget)
    account = budget.account
    curator.measure([MarginalRequest(("c0",), Laplace(Fraction(100)))], label="laplace")
    curator.choose(ChoiceRequest("indif", (("c0", "c1"), ("c1", "c2")), Fraction(1, 100)), label="choice")
    laplace, choice = curator.charges
    assert laplace.cost == account.laplace_cost(Fraction(1), Fraction(100))
    assert choice.cost == account.exponential_cost(Fraction(1, 100))
    with pytest.raises(BudgetError, match="Gaussian noise"):
        door(dependent(50, SIZES), pure()).measure([MarginalRequest(("c0",), Gaussian(Fraction(100)))], label="no")


def test_square_roots_make_pure_noise_least() -> None:
    """sum c_i/epsilon_i at the allocation is (sum sqrt c_i)^2 / epsilon, and any shift between two tables is worse."""
    cells = [3, 70, 1000, 12]
    parts = [float(part) for part in allocate(Fraction(2), cells, 1)]

    def error(budgets: Sequence[float]) -> float:
        return sum(count / part for count, part in zip(cells, budgets, strict=True))

    assert sum(allocate(Fraction(2), cells, 1)) == 2
    assert error(parts) == pytest.approx(sum(count**0.5 for count in cells) ** 2 / 2, rel=1e-6)
    for one in range(4):
        for other in range(4):
            moved = list(parts)
            moved[one], moved[other] = moved[one] * 0.99, moved[other] + 0.01 * parts[one]
            assert one == other or error(moved) > error(parts)


def test_scores_cost_their_l1_sensitivity() -> None:
    budget = pure(4)
    made = Dense().collect(door(dependent(20_000, SIZES), budget), budget)
    (scores,) = [answer for answer in made.answers if isinstance(answer, Scores)]
    charge = made.charges[scores.charge]
    assert charge.sensitivity_squared == len(scores.cliques) ** 2
    assert charge.cost <= Fraction(5, 100) * 4


@pytest.mark.parametrize("shares", [(Fraction(0), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 2))])
def test_shares_must_leave_something(shares: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(UsageError, match="pure shares"):
        Pure(*shares)
