"""Method `dense` through the real door: what it asks and pays, from many columns down to none, and what comes out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Budget, Schema
from margent.collectors.collector import Collector
from margent.collectors.dense import Dense, in_steps
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.privacy.curator import DataCurator, GaussianNoise
from margent.privacy.interactions import interaction_sensitivity_squared
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.noise import discrete_gaussian
from margent.privacy.queries import interaction_law, score_sensitivity_squared
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.synthesizers.descent import Descent
from margent.transcript import Scores, Transcript
from tests.synthesizers.made import counts_of, schema_of, variation

Codes = Sequence[NDArray[np.int64]]


def schema(*sizes: int) -> Schema:
    return schema_of({f"c{place}": size for place, size in enumerate(sizes)})


class Noise:
    """Rounded Gaussian noise times ``strength``, the same in every run."""

    def __init__(self, strength: float = 1.0, seed: int = 5) -> None:
        self.strength = strength
        self.rng = np.random.default_rng(seed)

    def __call__(self, count: int, scale_squared: Fraction) -> NDArray[np.int64]:
        draws = self.rng.normal(0, self.strength * float(scale_squared) ** 0.5, count)
        return np.rint(draws).astype(np.int64)


def collected(
    about: Schema,
    columns: Codes,
    budget: Budget | None = None,
    collector: Collector | None = None,
    noise: GaussianNoise = discrete_gaussian,
) -> Transcript:
    budget = budget or Budget(epsilon=1)
    source = CodedCounts([codes.astype(np.uint16) for codes in columns], Codec(about).domain)
    curator = DataCurator(about, source, Ledger(budget), noise=noise)
    return (collector or Dense()).collect(curator, budget)


def spent_share(transcript: Transcript, budget: Budget) -> float:
    return float(sum(charge.cost for charge in transcript.charges) / budget.total)


def scores_in(transcript: Transcript) -> list[Scores]:
    return [answer for answer in transcript.answers if isinstance(answer, Scores)]


def pairs_in(transcript: Transcript) -> set[tuple[str, ...]]:
    answers = (*transcript.marginals, *transcript.interactions)
    return {answer.clique for answer in answers if len(answer.clique) > 1}


def dependent(rows: int, sizes: Sequence[int], seed: int = 0) -> list[NDArray[np.int64]]:
    """Columns that all follow the first one, with a fifth of the rows at random."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, sizes[0], rows)
    free = [rng.integers(0, size, rows) for size in sizes]
    return [np.where(rng.random(rows) < 0.2, own, first % size) for own, size in zip(free, sizes, strict=True)]


def independent(*sizes: int) -> list[NDArray[np.int64]]:
    """Every combination the same number of times, 20,000 records at least: distance 0 for all pairs."""
    cells = np.indices(sizes).reshape(len(sizes), -1)
    return list(np.tile(cells, -(-20_000 // cells.shape[1])))


# What is asked.


def test_three_stages_in_their_shares() -> None:
    budget = Budget(epsilon=1)
    made = collected(schema(4, 5, 6, 3), dependent(20_000, (4, 5, 6, 3)), budget)
    costs: dict[str, float] = {}
    for charge in made.charges:
        costs[charge.label] = costs.get(charge.label, 0.0) + float(charge.cost / budget.total)
    assert list(costs) == ["one-way marginals", "dependence of pairs", "pairs and more one-ways"]
    assert costs["one-way marginals"] == pytest.approx(0.15, rel=2e-3)
    assert costs["dependence of pairs"] == pytest.approx(0.05, rel=2e-3)
    assert costs["pairs and more one-ways"] == pytest.approx(0.80, rel=2e-3)


def test_scores_are_priced_for_the_whole_vector() -> None:
    made = collected(schema(3, 4, 5, 6), dependent(20_000, (3, 4, 5, 6)))
    (scores,) = scores_in(made)
    charge = made.charges[scores.charge]
    assert scores.kind == charge.query == "independence"
    assert len(scores.cliques) == len(charge.cliques) == 6
    assert charge.sensitivity_squared == score_sensitivity_squared("independence", 6, Neighbors()) == 6
    # Six scores of sensitivity 1 for a share rho: variance 6 / (2 rho), in records.
    assert float(scores.variance) == pytest.approx(6 / (2 * float(charge.cost)), rel=5e-3)


@pytest.mark.parametrize("accountant", ["gdp", "zcdp"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "8"])
def test_the_budget_is_used_under_every_account_and_relation(accountant: str, relation: str, epsilon: str) -> None:
    budget = Budget(epsilon=epsilon, accountant=accountant, relation=relation)
    made = collected(schema(4, 5, 6), dependent(3_000, (4, 5, 6)), budget)
    assert 0.99 <= spent_share(made, budget) <= 1
    assert {charge.relation for charge in made.charges} == {relation}


@pytest.mark.parametrize(
    "shares", [(Fraction(0), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 2)), (Fraction(-1, 10), Fraction(1, 10))]
)
def test_impossible_shares_are_refused(shares: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(UsageError, match="shares"):
        Dense(one_way_share=shares[0], score_share=shares[1])


def test_without_any_dependence_everything_goes_to_one_ways() -> None:
    """All scores are exactly zero; the second slice measures the one-ways again, wide columns better."""
    budget = Budget(epsilon=1)
    made = collected(schema(4, 5, 6), independent(4, 5, 6), budget, noise=Noise(0.0))
    (scores,) = scores_in(made)
    assert not scores.values.any()
    assert pairs_in(made) == set()
    assert sorted(answer.clique for answer in made.marginals) == sorted(2 * [("c0",), ("c1",), ("c2",)])
    assert 0.99 <= spent_share(made, budget) <= 1


def test_dependent_pairs_are_bought_and_others_are_not() -> None:
    first, second, third = independent(4, 5, 6)
    made = collected(schema(4, 4, 5, 6), [first, (first + 1) % 4, second, third], noise=Noise(0.0))
    assert pairs_in(made) == {("c0", "c1")}


def test_the_more_dependent_pair_gets_the_less_noise() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 5, 20_000)
    near = np.where(rng.random(20_000) < 0.6, first, rng.integers(0, 5, 20_000))
    far = np.where(rng.random(20_000) < 0.15, first, rng.integers(0, 5, 20_000))
    made = collected(schema(5, 5, 5), [first, near, far], Budget(epsilon=2))
    noise = {answer.clique: answer.variance for answer in made.interactions}
    assert noise["c0", "c1"] <= noise["c0", "c2"]


def test_columns_of_one_code_are_never_asked_for() -> None:
    made = collected(schema(4, 1, 5), dependent(5_000, (4, 1, 5)))
    assert all("c1" not in clique for charge in made.charges for clique in charge.cliques)


def test_pairs_over_the_cap_lose_their_lightest_codes() -> None:
    """30 x 40 cells under a cap of 200: both columns keep 13 codes and one group of the others."""
    made = collected(schema(30, 40, 3), dependent(50_000, (30, 40, 3)), collector=Dense(max_pair_cells=200))
    (scores,) = scores_in(made)
    assert scores.cliques == (("c0", "c1"), ("c0", "c2"), ("c1", "c2"))
    assert {name: merge.size for name, merge in made.merges.items()} == {"c0": 14, "c1": 14}
    assert max(answer.counts.size for answer in made.marginals) <= 200
    for name, merge in made.merges.items():
        (one_way,) = [answer for answer in made.marginals[:3] if answer.clique == (name,)]
        alone = np.array(merge.groups) < merge.size - 1
        assert one_way.counts[alone].min() >= one_way.counts[~alone].max()
    plan = Dense(max_pair_cells=200).stages(made.domain, Budget(epsilon=1))
    assert "no table is over 200 cells" in plan[1].note
    assert max(stage.largest for stage in plan) <= 200


def test_columns_of_thousands_of_codes_are_merged_in_pairs() -> None:
    """3,000 codes, six of them frequent: groups from the noisy one-way, all pair tables over the groups.

    The rare codes' counts add up to more than six deviations of their noise: they are not lost once in 10^10 runs.
    """
    rng = np.random.default_rng(1)
    wide = np.where(rng.random(20_000) < 0.9, rng.integers(0, 6, 20_000), rng.integers(0, 3_000, 20_000))
    budget = Budget(epsilon=3)
    made = collected(schema(3_000, 3, 301), [wide, wide % 3, wide % 301], budget)
    assert {"c0"} <= set(made.merges) <= {"c0", "c2"}
    merge, one_way = made.merges["c0"], made.marginals[0]
    low = one_way.counts < 3 * float(one_way.variance) ** 0.5
    assert [merge.groups[code] == merge.size - 1 for code in range(3_000)] == low.tolist()
    assert merge.size < 100
    for answer in made.marginals:
        assert answer.merged == (len(answer.clique) > 1)
        domain = made.merged_domain if answer.merged else made.domain
        assert answer.counts.shape == domain.shape(answer.clique)
    assert ("c0", "c1") in pairs_in(made)
    assert all(scores.merged for scores in scores_in(made))
    assert 0.99 <= spent_share(made, budget) <= 1
    records = Descent().build(made, silent).sample(20_000, 1, silent)
    assert np.mean(records[:, 0] % 3 == records[:, 1]) > 0.85
    assert np.unique(records[:, 0]).size > 20


@pytest.mark.parametrize("sizes", [(1,), (7,), (1, 1), (1, 9, 1)])
def test_tables_without_pairs_spend_everything_on_one_question(sizes: tuple[int, ...]) -> None:
    budget = Budget(epsilon=1)
    made = collected(schema(*sizes), dependent(300, sizes), budget)
    assert len(made.answers) == 1
    assert 0.99 <= spent_share(made, budget) <= 1
    records = Descent().build(made, silent).sample(200, 1, silent)
    assert records.shape == (200, len(sizes))


@pytest.mark.parametrize("sizes", [(4, 5, 6, 3), (60, 70, 2), (400, 5), (1,), (1, 8), (2, 2, 2, 2, 2, 2)])
@pytest.mark.parametrize("epsilon", ["0.02", "2"])
def test_stages_bound_what_is_asked(sizes: tuple[int, ...], epsilon: str) -> None:
    budget = Budget(epsilon=epsilon)
    made = collected(schema(*sizes), dependent(5_000, sizes), budget)
    stages = Dense().stages(Domain(tuple(f"c{place}" for place in range(len(sizes))), sizes), budget)
    assert sum(stage.share for stage in stages) == 1
    assert {charge.label for charge in made.charges} <= {stage.name for stage in stages}
    for stage in stages:
        bought = [charge for charge in made.charges if charge.label == stage.name]
        assert sum(len(charge.cliques) for charge in bought) <= stage.questions
        tables = [made.domain.cells(clique) for charge in bought for clique in charge.cliques]
        assert sum(tables) <= stage.cells
        assert max(tables, default=0) <= stage.largest
    assert max(answer.variance for answer in made.marginals if answer.charge == 0) <= stages[0].law.variance  # type: ignore[union-attr]
    for scores in scores_in(made):
        assert scores.variance == stages[1].law.variance  # type: ignore[union-attr]


@pytest.mark.parametrize("parts", [[1.0], [3.0, 1.0, 1e-3], [0.1] * 7, [2.0**-place for place in range(20)]])
def test_steps_keep_the_whole_and_nearly_the_proportions(parts: list[float]) -> None:
    whole, rng = Fraction(17, 1000), np.random.default_rng(3)
    for moved in ([Fraction(1)] * len(parts), [Fraction(int(each)) for each in rng.integers(1, 10**9, len(parts))]):
        made = in_steps(whole, parts, moved)
        assert sum(made) == whole
        shares = np.array(parts) / sum(parts)
        np.testing.assert_allclose([float(part / whole) for part in made], shares, rtol=0.1)
    assert in_steps(whole, [], []) == []


def test_few_laws_of_noise_serve_many_tables() -> None:
    """Tables alone, or interactions of a hundred shapes: those of one step have one law, to the last digit."""
    rng, neighbors, account = np.random.default_rng(1), Neighbors(), Budget("1").account
    parts = rng.uniform(1, 16, 5_000).tolist()
    assert len(set(in_steps(Fraction(1), parts, [Fraction(1)] * 5_000))) <= 33
    shapes = [tuple(map(int, shape)) for shape in rng.integers(2, 12, (5_000, 2))]
    moved = [interaction_sensitivity_squared(shape, neighbors) for shape in shapes]
    made = in_steps(Fraction(1), parts, moved)
    laws = {
        interaction_law(part, shape, neighbors, account) for part, shape in zip(made[:600], shapes[:600], strict=True)
    }
    ratios = {squared / part for squared, part in zip(moved, made, strict=True)}
    assert len(laws) <= len(ratios) <= 8 * (math.log2(16) + math.log2(121 * 110 / 4)) + 1


# Little data, little budget.


@pytest.mark.parametrize("rows", [0, 1, 40])
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "20"])
@pytest.mark.parametrize("sizes", [(3, 2), (40, 50, 3)], ids=["small", "more-cells-than-records"])
def test_few_rows_and_negative_counts(rows: int, epsilon: str, sizes: tuple[int, ...]) -> None:
    """From collection to records with real noise; most one-ways have negative counts then."""
    budget = Budget(epsilon=epsilon)
    made = collected(schema(*sizes), dependent(rows, sizes), budget)
    assert 0.99 <= spent_share(made, budget) <= 1
    model = Descent().build(made, silent)
    assert model.total >= 0
    for wanted in (0, 1, 25, model.total):
        records = model.sample(wanted, 3, silent)
        assert records.shape == (wanted, len(sizes))
        assert np.all((records >= 0) & (records < sizes))


def test_scores_that_noise_would_drown_are_not_bought() -> None:
    """Noise far above a quarter of the noisy total: the budget for scores and pairs buys one-ways."""
    budget = Budget(epsilon="0.05")
    made = collected(schema(5, 5, 5), dependent(200, (5, 5, 5)), budget, noise=Noise())
    assert scores_in(made) == []
    assert pairs_in(made) == set()
    assert 0.99 <= spent_share(made, budget) <= 1
    asked = collected(schema(5, 5, 5), dependent(20_000, (5, 5, 5)), budget, noise=Noise())
    assert len(scores_in(asked)) == 1


# What comes out.

DIAGONAL = {"a": 5, "b": 5, "c": 3}


def mutual_information(records: NDArray[np.int32], pair: tuple[str, str]) -> float:
    joint = counts_of(records, DIAGONAL, pair) / len(records)
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float((joint * np.log(np.maximum(joint, 1e-12) / product)).sum())


@pytest.mark.parametrize("rows", [10_000, 3_000])
def test_diagonal_pairs_stay_diagonal_and_independent_columns_independent(rows: int) -> None:
    """b = 10 a with five values, c independent, epsilon 5, pinned noise: P(b = 10 a) > .99 and I(a, c) < .001.

    A table in which a tenth of the rows has c = a mod 3 and b at random would fail both.
    """
    place = np.arange(rows)
    real = np.stack([place % 5, place % 5, place // 5 % 3], axis=1)
    made = collected(schema_of(DIAGONAL), list(real.T), Budget(epsilon=5), noise=Noise())
    model = Descent().build(made, silent)
    for wanted in (model.total, 60_000):
        records = model.sample(wanted, 11, silent)
        assert np.mean(records[:, 0] == records[:, 1]) > 0.99
        assert mutual_information(records, ("a", "c")) < 1e-3
        for name in DIAGONAL:
            assert variation(counts_of(records, DIAGONAL, (name,)), counts_of(real, DIAGONAL, (name,))) < 0.02
    rng = np.random.default_rng(1)
    few = rng.random(rows) < 0.1
    planted = real.copy()
    planted[few, 2], planted[few, 1] = planted[few, 0] % 3, rng.integers(0, 5, int(few.sum()))
    assert mutual_information(planted, ("a", "c")) > 1e-3
    assert np.mean(planted[:, 0] == planted[:, 1]) < 0.99


def test_more_budget_gives_a_nearer_table() -> None:
    """Mean total variation over all ten pairs of five columns that follow the first: below each mark, and falling."""
    sizes = {"a": 5, "b": 4, "c": 6, "d": 3, "e": 7}
    columns = dependent(20_000, tuple(sizes.values()), seed=4)
    real, pairs = np.stack(columns, axis=1), list(itertools.combinations(sizes, 2))
    means = []
    for epsilon in ("0.1", "1", "10"):
        made = collected(schema_of(sizes), columns, Budget(epsilon=epsilon), noise=Noise(seed=7))
        model = Descent().build(made, silent)
        records = model.sample(model.total, 1, silent)
        means.append(
            float(np.mean([variation(counts_of(records, sizes, pair), counts_of(real, sizes, pair)) for pair in pairs]))
        )
    assert means[0] > means[1] > means[2]
    assert means[0] < 0.09
    assert means[1] < 0.012
    assert means[2] < 0.002
    singles = {name: counts_of(real, sizes, (name,)) for name in sizes}
    flat = [variation(np.outer(singles[one], singles[two]), counts_of(real, sizes, (one, two))) for one, two in pairs]
    assert means[0] < 0.25 * float(np.mean(flat))


def test_dense_is_a_collector() -> None:
    collector: Collector = Dense()
    assert collector.name == "dense"
