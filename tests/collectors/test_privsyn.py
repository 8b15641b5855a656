"""The collector through the real door, with pinned noise: what it asks, what it pays, what it does with little."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Budget, Category, Schema
from margent.collectors.collector import Collector
from margent.collectors.independent import Independent
from margent.collectors.privsyn import PrivSyn
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import score_sensitivity_squared
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.parts import Field
from margent.transcript import Scores, Transcript


def column(name: str, codes: int) -> Field:
    """A column of exactly so many codes, all of which may be written."""
    options = {"required": True, "unlisted": {"to": "v0"}}
    return Category(name, [f"v{code}" for code in range(codes)], **options)


def schema(*sizes: int) -> Schema:
    return Schema([column(f"c{place}", size) for place, size in enumerate(sizes)], unit="row")


class Noise:
    """Rounded Gaussian noise times ``strength``, the same in every run."""

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength
        self.rng = np.random.default_rng(5)

    def __call__(self, count: int, scale_squared: Fraction) -> NDArray[np.int64]:
        draws = self.rng.normal(0, self.strength * float(scale_squared) ** 0.5, count)
        return np.rint(draws).astype(np.int64)


def collected(
    about: Schema,
    columns: Sequence[NDArray[np.int64]],
    budget: Budget | None = None,
    collector: Collector | None = None,
    strength: float = 1.0,
) -> Transcript:
    budget = budget or Budget(epsilon=1)
    source = CodedCounts([codes.astype(np.uint16) for codes in columns], Codec(about).domain)
    curator = DataCurator(about, source, Ledger(budget), noise=Noise(strength))
    return (collector or PrivSyn()).collect(curator, budget)


def spent_share(transcript: Transcript, budget: Budget) -> float:
    return float(sum(charge.cost for charge in transcript.charges) / budget.total)


def dependent(rows: int, sizes: Sequence[int], seed: int = 0) -> list[NDArray[np.int64]]:
    """Columns that all follow the first one, with a fifth of the rows at random."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, sizes[0], rows)
    free = [rng.integers(0, size, rows) for size in sizes]
    return [np.where(rng.random(rows) < 0.2, own, first % size) for own, size in zip(free, sizes, strict=True)]


def test_three_stages_in_the_published_shares() -> None:
    budget = Budget(epsilon=1)
    made = collected(schema(4, 5, 6, 3), dependent(20_000, (4, 5, 6, 3)), budget)
    by_label: dict[str, Fraction] = {}
    for charge in made.charges:
        by_label[charge.label] = by_label.get(charge.label, Fraction(0)) + charge.cost
    shares = {label: float(cost / budget.total) for label, cost in by_label.items()}
    assert list(shares) == ["one-way marginals", "dependence of pairs", "chosen marginals"]
    assert shares["one-way marginals"] == pytest.approx(0.1, rel=2e-3)
    assert shares["dependence of pairs"] == pytest.approx(0.1, rel=2e-3)
    assert shares["chosen marginals"] == pytest.approx(0.8, rel=2e-3)
    assert 0.99 <= sum(shares.values()) <= 1


def test_combined_and_allocated_by_cells() -> None:
    """Six dependent columns combine; the price of each chosen table follows c^(2/3)."""
    sizes = (4, 5, 6, 3, 7, 9)
    made = collected(schema(*sizes), dependent(50_000, sizes), Budget(epsilon=5))
    chosen = [answer for answer in made.marginals if len(answer.clique) > 1]
    assert max(len(answer.clique) for answer in chosen) >= 3
    assert all(answer.counts.size <= 5000 for answer in chosen if len(answer.clique) > 2)
    constant = [float(made.charges[each.charge].cost) / each.counts.size ** (2 / 3) for each in chosen]
    np.testing.assert_allclose(constant, constant[0], rtol=2e-3)


def test_columns_of_one_code_are_never_asked_for() -> None:
    made = collected(schema(4, 1, 5), dependent(5_000, (4, 1, 5)))
    assert all("c1" not in clique for charge in made.charges for clique in charge.cliques)
    assert {answer.clique for answer in made.marginals if len(answer.clique) == 1} >= {("c0",), ("c2",)}


@pytest.mark.parametrize("collector", [PrivSyn(), Independent()], ids=lambda collector: collector.name)
@pytest.mark.parametrize("sizes", [(1,), (7,), (1, 1), (1, 9, 1)])
def test_tables_without_pairs_spend_everything_on_one_ways(collector: Collector, sizes: tuple[int, ...]) -> None:
    budget = Budget(epsilon=1)
    made = collected(schema(*sizes), dependent(300, sizes), budget, collector)
    assert len(made.answers) == 1
    assert 0.99 <= spent_share(made, budget) <= 1


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_with_few_rows_the_rest_buys_one_ways_again(rows: int) -> None:
    budget = Budget(epsilon=Fraction(1, 10))
    sizes = (12, 15, 20)
    made = collected(schema(*sizes), dependent(rows, sizes), budget)
    assert 0.99 <= spent_share(made, budget) <= 1
    asked = [answer.clique for answer in made.marginals]
    assert asked.count(("c0",)) + sum("c0" in names for names in asked if len(names) > 1) >= 2


@pytest.mark.parametrize("accountant", ["gdp", "zcdp"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("collector", [PrivSyn(), Independent()], ids=lambda collector: collector.name)
def test_the_budget_is_used_under_every_account_and_relation(
    accountant: str, relation: str, collector: Collector
) -> None:
    budget = Budget(epsilon=2, accountant=accountant, relation=relation)
    sizes = (4, 5, 6)
    made = collected(schema(*sizes), dependent(3_000, sizes), budget, collector)
    assert 0.99 <= spent_share(made, budget) <= 1
    assert {charge.relation for charge in made.charges} == {relation}


def test_rare_codes_are_merged_from_the_noisy_one_ways_and_pairs_are_asked_over_groups() -> None:
    rng = np.random.default_rng(1)
    rows = 20_000
    wide = np.where(rng.random(rows) < 0.95, rng.integers(0, 3, rows), rng.integers(0, 60, rows))
    made = collected(schema(60, 3), [wide, wide % 3], Budget(epsilon=1))
    merge = made.merges["c0"]
    one_way = made.marginals[0]
    low = one_way.counts < 3 * float(one_way.variance) ** 0.5
    assert [merge.groups[code] == merge.size - 1 for code in range(60)] == low.tolist()
    assert "c1" not in made.merges
    pair = made.marginals[-1]
    assert pair.merged
    assert pair.counts.shape == (merge.size, 3)
    (scores,) = [answer for answer in made.answers if isinstance(answer, Scores)]
    assert scores.merged


def test_scores_are_priced_for_the_whole_vector() -> None:
    budget = Budget(epsilon=1)
    made = collected(schema(3, 4, 5, 6), dependent(1_000, (3, 4, 5, 6)), budget)
    (scores,) = [answer for answer in made.answers if isinstance(answer, Scores)]
    charge = made.charges[scores.charge]
    assert len(scores.cliques) == 6
    assert charge.sensitivity_squared == score_sensitivity_squared("indif", 6, Neighbors())
    # Theorem 5: N(0, 8 m / rho) for a share rho, here in records (the floor to 1/256 adds 0.1 %).
    share = float(charge.cost)
    assert float(scores.variance) == pytest.approx(8 * 6 / share, rel=5e-3)


def test_independence_of_two_columns_is_measured_as_in_the_published_example() -> None:
    """Figure 1 of PrivSyn: cells off their products by .02, .02, 0, .02, .02 and 0 give InDif = 0.08 n."""
    table = 1000 * np.array([[14, 16, 30], [6, 14, 20]])
    rows, columns = (np.repeat(axis.ravel(), table.ravel()) for axis in np.indices(table.shape))
    made = collected(schema(2, 3), [rows, columns], strength=0.0)
    (scores,) = [answer for answer in made.answers if isinstance(answer, Scores)]
    assert scores.records().tolist() == [8000.0]


def test_only_dependent_pairs_are_bought() -> None:
    rng = np.random.default_rng(2)
    rows = 2_000
    first = rng.integers(0, 4, rows)
    columns = [first, (first + 1) % 4, rng.integers(0, 4, rows), rng.integers(0, 4, rows)]
    made = collected(schema(4, 4, 4, 4), columns, strength=0.0)
    assert [answer.clique for answer in made.marginals if len(answer.clique) > 1] == [("c0", "c1")]
    # The others' one-ways are measured again with what is left.
    again = [answer.clique for answer in made.marginals[4:] if len(answer.clique) == 1]
    assert again == [("c2",), ("c3",)]
    tied = collected(schema(4, 4, 4, 4), columns, collector=PrivSyn(uncovered="connect"), strength=0.0)
    covered = {name for answer in tied.marginals if len(answer.clique) > 1 for name in answer.clique}
    assert covered == {"c0", "c1", "c2", "c3"}


def test_pairs_over_the_cap_are_no_candidates() -> None:
    made = collected(schema(30, 40, 3), dependent(50_000, (30, 40, 3)), collector=PrivSyn(max_pair_cells=200))
    (scores,) = [answer for answer in made.answers if isinstance(answer, Scores)]
    assert ("c0", "c1") not in scores.cliques
    assert len(scores.cliques) == 2


@pytest.mark.parametrize("collector", [PrivSyn(), PrivSyn(gamma=1), Independent()])
@pytest.mark.parametrize("sizes", [(4, 5, 6, 3), (60, 70, 2), (1,), (1, 8), (2, 2, 2, 2, 2, 2)])
def test_stages_bound_what_is_asked(collector: Collector, sizes: tuple[int, ...]) -> None:
    budget = Budget(epsilon=2)
    made = collected(schema(*sizes), dependent(5_000, sizes), budget, collector)
    stages = collector.stages(Domain(tuple(f"c{place}" for place in range(len(sizes))), sizes), budget)
    assert sum(stage.share for stage in stages) == 1
    for stage in stages:
        bought = [charge for charge in made.charges if charge.label == stage.name]
        assert sum(len(charge.cliques) for charge in bought) <= stage.questions
        tables = [made.domain.cells(clique) for charge in bought for clique in charge.cliques]
        assert sum(tables) <= stage.cells
        assert max(tables, default=0) <= stage.largest
    first, label = made.answers[0], made.charges[0].label
    assert label == stages[0].name
    assert first.variance <= stages[0].law.variance  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "shares", [(Fraction(0), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 2)), (Fraction(-1, 10), Fraction(1, 10))]
)
def test_impossible_shares_are_refused(shares: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(UsageError, match="shares"):
        PrivSyn(one_way_share=shares[0], score_share=shares[1])


def test_no_run_buys_more_than_its_plan_says_at_most() -> None:
    """60 random schemas and caps: tables, their cells and the largest of them stay within the plan's last stage."""
    rng = np.random.default_rng(11)
    loose = 0
    for _ in range(60):
        sizes = [int(size) for size in rng.integers(2, 7, rng.integers(2, 9))]
        common = rng.integers(0, 6, 2_000)
        columns = [(common + (rng.random(2_000) < 0.1)) % size for size in sizes]
        collector = PrivSyn(
            gamma=int(rng.choice([1, 8, 60, 5000])),
            max_pair_cells=int(rng.choice([6, 12, 1_000_000])),
            max_chosen_cells=int(rng.choice([4, 20, 60, 10_000_000])),
            uncovered="connect" if rng.random() < 0.5 else "isolate",
            merge_below=float(rng.choice([0.0, 3.0, 200.0])),
        )
        about, budget = schema(*sizes), Budget(epsilon=float(rng.choice([2, 60])))
        made = collected(about, columns, budget, collector)
        last = collector.stages(made.domain, budget)[-1]
        bought = [answer for answer in made.marginals if made.charges[answer.charge].label == last.name]
        cells = [answer.counts.size for answer in bought]
        assert len(bought) <= last.questions
        assert max(cells) <= last.largest
        assert sum(cells) <= last.cells
        loose += sum(cells) > min(sum(a * b for a, b in combinations(sizes, 2)), collector.max_chosen_cells)
    assert loose > 5, "cases in which combining, connecting and lonely columns pass the cap on chosen pairs"
