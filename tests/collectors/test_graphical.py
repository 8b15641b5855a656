"""The collectors of the graphical methods through the real door: what they ask, pay, choose and leave alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margent import Budget
from margent.collectors.aim import Aim
from margent.collectors.capped_pairs import CappedPairs
from margent.collectors.collector import Collector
from margent.collectors.mst import Mst
from margent.collectors.privmrf import PrivMrf
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.postprocessing.junction import adjacency, tree_cells
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.replay import ReplayCurator
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Domain
from margent.synthesizers.descent import Descent
from margent.synthesizers.independent import IndependentColumns
from margent.transcript import Choice, NoisyMarginal, Scores, Transcript
from tests.collectors.test_privsyn import collected, dependent, schema, spent_share

INDEPENDENT = IndependentColumns()
COLLECTORS: list[Collector] = [CappedPairs(), Mst(), Aim(builder=INDEPENDENT), PrivMrf(builder=INDEPENDENT)]
SMALL = (4, 5, 6, 3)

every = pytest.mark.parametrize("collector", COLLECTORS, ids=lambda collector: collector.name)


def chain(rows: int, columns: int, codes: int = 4, seed: int = 0) -> list[np.ndarray]:
    """Every column follows the one before it, but for a tenth of the rows: the dependence tree is a path."""
    rng = np.random.default_rng(seed)
    made = [rng.integers(0, codes, rows)]
    while len(made) < columns:
        made.append(np.where(rng.random(rows) < 0.1, rng.integers(0, codes, rows), made[-1]))
    return made


def pairs_of(transcript: Transcript) -> list[Clique]:
    return [answer.clique for answer in transcript.marginals if len(answer.clique) > 1]


@every
@pytest.mark.parametrize("terms", [("gdp", "add-remove"), ("zcdp", "replace"), ("pure", "add-remove")])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), 2])
def test_the_budget_is_used_and_not_passed(collector: Collector, terms: tuple[Any, Any], epsilon: Any) -> None:
    accountant, relation = terms
    delta = 0 if accountant == "pure" else Fraction(1, 10**9)
    budget = Budget(epsilon=epsilon, delta=delta, accountant=accountant, relation=relation)
    made = collected(schema(*SMALL), dependent(3_000, SMALL), budget, collector)
    assert 0.99 <= spent_share(made, budget) <= 1
    assert {charge.relation for charge in made.charges} == {relation}


@every
@pytest.mark.parametrize("sizes", [(1,), (7,), (1, 1), (1, 9, 1)])
def test_tables_without_pairs_spend_everything_on_one_ways(collector: Collector, sizes: tuple[int, ...]) -> None:
    budget = Budget(epsilon=1)
    made = collected(schema(*sizes), dependent(300, sizes), budget, collector)
    assert len(made.answers) == 1
    assert 0.99 <= spent_share(made, budget) <= 1


@every
@pytest.mark.parametrize("rows", [0, 1, 40])
@pytest.mark.parametrize("sizes", [(12, 15, 20), (9, 1, 2)])
def test_with_hardly_any_rows_they_still_end(collector: Collector, rows: int, sizes: tuple[int, ...]) -> None:
    budget = Budget(epsilon=Fraction(1, 10))
    made = collected(schema(*sizes), dependent(rows, sizes), budget, collector)
    assert 0.99 <= spent_share(made, budget) <= 1
    assert all("c1" not in names or sizes[1] > 1 for charge in made.charges for names in charge.cliques)


@every
@pytest.mark.parametrize("accountant", ["gdp", "pure"])
@pytest.mark.parametrize("sizes", [SMALL, (60, 70, 2), (1,), (1, 8), (2,) * 6])
def test_stages_bound_what_is_asked(collector: Collector, accountant: Any, sizes: tuple[int, ...]) -> None:
    delta = 0 if accountant == "pure" else Fraction(1, 10**9)
    budget = Budget(epsilon=3, delta=delta, accountant=accountant)
    made = collected(schema(*sizes), dependent(5_000, sizes), budget, collector)
    stages = collector.stages(Domain(tuple(f"c{place}" for place in range(len(sizes))), sizes), budget)
    assert sum(stage.share for stage in stages) == 1
    assert {charge.label for charge in made.charges} <= {stage.name for stage in stages}
    for stage in stages:
        bought = [charge for charge in made.charges if charge.label == stage.name]
        cost = sum((charge.cost for charge in bought), Fraction(0))
        # A share that found nothing to buy is left to the last stage.
        assert stage is stages[-1] or cost <= stage.share * budget.total
        assert sum(len(charge.cliques) if charge.query == "marginal" else 1 for charge in bought) <= stage.questions
        tables = [made.domain.cells(clique) for charge in bought for clique in charge.cliques]
        assert max(tables, default=0) <= stage.largest
        if not any(charge.mechanism == "exponential" for charge in bought):
            assert sum(tables) <= stage.cells
    assert made.answers[0].variance <= stages[0].law.variance  # type: ignore[union-attr]


@every
def test_a_replay_asks_the_same_and_ends_the_same(collector: Collector) -> None:
    budget = Budget(epsilon=2)
    made = collected(schema(*(4,) * 6), chain(5_000, 6), budget, collector)
    again = collector.collect(ReplayCurator(made), budget)
    assert again.charges == made.charges
    assert [answer.charge for answer in again.answers] == [answer.charge for answer in made.answers]
    assert again.merges == made.merges


@every
def test_rare_codes_are_merged_and_pairs_asked_over_groups(collector: Collector) -> None:
    sizes = (40, 5, 6)
    columns = dependent(20_000, sizes)
    columns[0] = np.where(columns[0] < 4, columns[0], np.where(np.arange(20_000) % 50 == 0, columns[0], 0))
    made = collected(schema(*sizes), columns, Budget(epsilon=2), collector)
    assert made.merges["c0"].size < 20
    for answer in made.marginals:
        if "c0" in answer.clique and len(answer.clique) > 1:
            assert answer.merged
            assert answer.counts.shape[answer.clique.index("c0")] == made.merges["c0"].size


@pytest.mark.parametrize("accountant", ["gdp", "pure"])
def test_mst_finds_the_path(accountant: Any) -> None:
    budget = Budget(epsilon=8, delta=0 if accountant == "pure" else Fraction(1, 10**9), accountant=accountant)
    made = collected(schema(*(4,) * 7), chain(20_000, 7), budget, Mst())
    assert sorted(pairs_of(made)) == [(f"c{place}", f"c{place + 1}") for place in range(6)]
    choices = [answer for answer in made.answers if isinstance(answer, Choice)]
    if accountant == "pure":
        assert len(made.charges[choices[0].charge].cliques) == 21
        offered = [made.charges[choice.charge].cliques for choice in choices]
        taken: list[Clique] = []
        for candidates, choice in zip(offered, choices, strict=True):
            assert all(not _joined(taken, pair) for pair in candidates), "an edge that would close a cycle"
            taken += choice.cliques
    else:
        assert not choices


def _joined(edges: Sequence[Clique], pair: Clique) -> bool:
    near, reached = adjacency(edges), {pair[0]}
    frontier = [pair[0]]
    while frontier:
        fresh = near.get(frontier.pop(), frozenset()) - reached
        reached |= fresh
        frontier += fresh
    return pair[1] in reached


@pytest.mark.parametrize("collector", [CappedPairs(most_tree_cells=200), Mst(most_tree_cells=150)], ids=["pgm", "mst"])
def test_the_model_of_what_is_bought_stays_under_its_cap(collector: Any) -> None:
    sizes = (6,) * 6
    made = collected(schema(*sizes), dependent(50_000, sizes), Budget(epsilon=20), collector)
    singles = [(name,) for name in made.domain.names]
    assert pairs_of(made)
    assert tree_cells([*singles, *pairs_of(made)], made.domain) <= collector.most_tree_cells


def test_pairs_come_by_their_dependence() -> None:
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 6, 20_000) for _ in range(5)]
    columns[1] = np.where(rng.random(20_000) < 0.2, columns[1], columns[0])
    made = collected(schema(*(6,) * 5), columns, Budget(epsilon=1), CappedPairs())
    assert pairs_of(made)[0] == ("c0", "c1")
    assert len(pairs_of(made)) < 6  # of ten: rows drawn at random depend a little, too


def aim_run(**options: Any) -> Transcript:
    return collected(schema(*(4,) * 6), chain(20_000, 6), Budget(epsilon=3), Aim(**{"builder": Descent()} | options))


def test_aim_measures_what_depends_and_less_and_less_noisily() -> None:
    made = aim_run(rounds=6)
    path = {(f"c{place}", f"c{place + 1}") for place in range(5)}
    assert path <= set(pairs_of(made))
    variances = [answer.variance for answer in made.marginals if len(answer.clique) > 1]
    assert variances[-1] < variances[0]
    rounds = [answer for answer in made.answers if isinstance(answer, Scores)]
    assert {answer.kind for answer in rounds} == {"distance"}
    assert len(rounds[0].cliques) == 15
    assert all(len(answer.cliques) <= 16 for answer in rounds)


def test_aim_measures_several_tables_a_round_that_share_no_column() -> None:
    made = aim_run(rounds=6)
    together: list[list[Clique]] = []
    for before, answer in zip(made.answers, made.answers[1:], strict=False):
        if isinstance(answer, NoisyMarginal) and len(answer.clique) > 1:
            if isinstance(before, Scores):
                together.append([])
            together[-1].append(answer.clique)
    assert max(len(names) for names in together) > 1
    for names in together:
        columns = [name for pair in names for name in pair]
        assert len(columns) == len(set(columns))


def test_aim_gives_the_model_room_as_the_budget_is_used() -> None:
    sizes = (5,) * 6
    aim = Aim(builder=INDEPENDENT, most_tree_cells=150, rounds=8)
    budget = Budget(epsilon=10)
    made = collected(schema(*sizes), dependent(30_000, sizes), budget, aim)
    bought: list[Clique] = [(name,) for name in made.domain.names]
    spent = Fraction(0)
    for answer in made.answers:
        spent += made.charges[answer.charge].cost
        if isinstance(answer, NoisyMarginal) and len(answer.clique) > 1:
            bought.append(answer.clique)
            used = sum(charge.cost for charge in made.charges[: answer.charge + aim.at_once + 1]) / budget.total
            assert tree_cells(bought, made.domain) <= 150 * min(float(used) * 1.01, 1)


def test_aim_waits_for_the_room_that_a_table_needs() -> None:
    """The model has room for the one pair when more than half of the budget is used, and not before."""
    aim = Aim(builder=INDEPENDENT, most_tree_cells=130, merge_below=0.0)
    budget = Budget(epsilon=3)
    made = collected(schema(8, 8), dependent(5_000, (8, 8)), budget, aim)
    assert ("c0", "c1") in pairs_of(made)
    assert 0.99 <= spent_share(made, budget) <= 1


def test_aim_spends_all_on_one_ways_where_no_table_ever_fits() -> None:
    budget = Budget(epsilon=3)
    made = collected(schema(8, 8), dependent(5_000, (8, 8)), budget, Aim(builder=INDEPENDENT, most_tree_cells=20))
    assert pairs_of(made) == []
    assert 0.99 <= spent_share(made, budget) <= 1


def test_aim_gets_dearer_where_measuring_moves_nothing() -> None:
    """Independent columns: every table is as the model had it, each round costs four times the one before."""
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 4, 2_000) for _ in range(5)]
    aim = Aim(builder=INDEPENDENT, rounds=64, at_once=1)
    made = collected(schema(*(4,) * 5), columns, Budget(epsilon=Fraction(1, 4)), aim)
    costs = [made.charges[answer.charge].cost for answer in made.marginals if len(answer.clique) > 1]
    assert len(costs) < 10
    for before, after in itertools.pairwise(costs[:-1]):
        assert after / before == pytest.approx(4, rel=0.01)


def test_aim_takes_triples_where_it_is_asked_to() -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2, 20_000) for _ in range(4)]
    columns[2] = columns[0] ^ columns[1]  # no pair shows it
    made = collected(schema(*(2,) * 4), columns, Budget(epsilon=3), Aim(builder=INDEPENDENT, order=3, rounds=4))
    assert ("c0", "c1", "c2") in [answer.clique for answer in made.marginals]


def test_privmrf_measures_useful_tables_only() -> None:
    sizes = (14, 14, 3, 3, 2)
    collector = PrivMrf(builder=Descent(), rounds=2)
    made = collected(schema(*sizes), dependent(20_000, sizes), Budget(epsilon=1), collector)
    assert any(len(answer.clique) > 1 for answer in made.marginals)
    part = Budget(epsilon=1).total * collector.first_share / 5
    cap = 20_300 / (collector.theta * (1 / (2 * float(part))) ** 0.5)
    assert cap < 14 * 14  # or the test shows nothing
    for answer in made.marginals:
        if len(answer.clique) > 1:
            assert answer.counts.size <= cap * 1.1
    assert {answer.kind for answer in made.answers if isinstance(answer, Scores)} <= {"r", "distance"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: CappedPairs(one_way_share=Fraction(1)),
        lambda: Mst(choice_share=Fraction(2, 3)),
        lambda: Aim(builder=INDEPENDENT, choice_share=Fraction(0)),
        lambda: Aim(builder=INDEPENDENT, order=4),
        lambda: PrivMrf(builder=INDEPENDENT, first_share=Fraction(9, 10)),
        lambda: PrivMrf(builder=INDEPENDENT, rounds=0),
    ],
)
def test_impossible_settings_are_refused(make: Any) -> None:
    with pytest.raises(UsageError, match=r"share|rounds|order"):
        make()


def test_aim_through_the_field_replays() -> None:
    """The real builder: the same answers give the same fits, hence the same questions."""
    pytest.importorskip("mbi", reason="the package mbi is not installed (pip install 'margent[pgm]')")
    from margent.synthesizers.pgm import Pgm

    about, budget = schema(3, 3, 3), Budget(epsilon=3)
    aim = Aim(builder=Pgm(), rounds=2, at_once=1)
    source = CodedCounts([codes.astype(np.uint16) for codes in chain(3_000, 3, 3)], Codec(about).domain)
    made = aim.collect(DataCurator(about, source, Ledger(budget)), budget)
    assert aim.collect(ReplayCurator(made), budget).charges == made.charges
