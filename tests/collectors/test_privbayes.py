"""PrivBayes' buying half: the network it chooses, how large tables may get, levels, accounts, replay, refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Budget, Category, Schema
from margent.collectors.privbayes import PrivBayes
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.methods import SYNTHESIZERS
from margent.postprocessing.tables import noisy_total
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.queries import marginal_law, score_units
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import PublicTables
from margent.privacy.scores import majority, mutual_information, total_variation
from margent.progress import silent
from margent.release.measurements import measurement_files, read_measurements
from margent.release.summary import coarsened_columns
from margent.schema.codec import Codec
from margent.schema.domain import Domain, outermost
from margent.schema.generalization import hierarchy_merges
from margent.transcript import Choice, Network, Node, Transcript
from tests.collectors.test_dense import dependent, schema
from tests.synthesizers.made import counts_of, variation

Columns = Sequence[NDArray[np.int64]]
SIZES = (4, 5, 6, 3)


def door(columns: Columns, budget: Budget, about: Schema) -> DataCurator:
    source = CodedCounts([codes.astype(np.uint16) for codes in columns], Codec(about).domain)
    return DataCurator(about, source, Ledger(budget))


def pure(epsilon: float, relation: str = "add-remove") -> Budget:
    return Budget(epsilon=epsilon, delta=0, accountant="pure", relation=relation)  # type: ignore[arg-type]


def network_of(transcript: Transcript) -> Network:
    assert isinstance(transcript.structure, Network)
    return transcript.structure


def chain(rows: int, sizes: Sequence[int], seed: int) -> list[NDArray[np.int64]]:
    """Each column follows the one before it, every one with its own share of rows at random."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, sizes[0], rows)]
    for place, size in enumerate(sizes[1:], start=1):
        own = rng.integers(0, size, rows)
        columns.append(np.where(rng.random(rows) < 0.1 * place, own, columns[-1] % size))
    return columns


# -- the network ------------------------------------------------------------------------------------------------------


def scored(
    columns: Columns, sizes: Sequence[int], placed: Sequence[int], cap: int, score: Callable[[NDArray[np.int64]], int]
) -> dict[tuple[int, tuple[int, ...]], int]:
    """Every further column with each maximal set of placed ones, and its exact score, in the plainest way."""
    values = {}
    for child in set(range(len(columns))) - set(placed):
        fitting = [
            parents
            for many in range(1, len(placed) + 1)
            for parents in itertools.combinations(sorted(placed), many)
            if sizes[child] * np.prod([sizes[parent] for parent in parents]) <= cap
        ]
        for parents in fitting:
            if not any(set(parents) < set(other) for other in fitting):
                table = np.zeros([sizes[child], *(sizes[parent] for parent in parents)], dtype=np.int64)
                np.add.at(table, (columns[child], *(columns[parent] for parent in parents)), 1)
                values[child, parents] = score(table.reshape(sizes[child], -1))
    return values


@pytest.mark.parametrize("score", ["r", "mutual-information", "f"])
@pytest.mark.parametrize("seed", range(3))
def test_with_a_huge_epsilon_it_is_the_exact_greedy_network(score: str, seed: int) -> None:
    """Each choice has the best exact score, but for less than a tenth of the sensitivity (odds of more below 1e-9)."""
    sizes = (2,) * 6 if score == "f" else (3, 4, 2, 5, 6)
    order = np.random.default_rng(seed).permutation(len(sizes))
    columns = [chain(5_000, [sizes[place] for place in np.argsort(order)], seed)[place] for place in order]
    exact = {"r": total_variation, "mutual-information": mutual_information, "f": majority}[score]
    records = 5_000 if score == "mutual-information" else None
    budget = pure(10_000, "replace" if records else "add-remove")
    cap = 8 if score == "f" else 40
    collector = PrivBayes(score=score, max_cells=cap, records=records)  # type: ignore[arg-type]
    made = collector.collect(door(columns, budget, schema(*sizes)), budget)
    moved = score_units(score, budget.neighbors, PublicTables(5_000))
    first, *nodes = network_of(made).nodes
    assert first == Node(f"c{np.argmin(sizes)}")
    placed, others = [int(np.argmin(sizes))], 0
    for node in nodes:
        values = scored(columns, sizes, placed, cap, exact)
        child, parents = int(node.child[1:]), tuple(int(name[1:]) for name in node.parents)
        best = max(values.values())
        assert values[child, parents] >= best - 0.1 * moved
        others += sum(value < best - 0.1 * moved for value in values.values())
        placed.append(child)
    assert others > 5  # there was something to get wrong


def test_the_first_column_follows_a_public_rule() -> None:
    budget = pure(5)
    for rule, first in (("fewest", "c3"), ("most", "c2")):
        made = PrivBayes(first=rule).collect(  # type: ignore[arg-type]
            door(dependent(2_000, SIZES), budget, schema(*SIZES)), budget
        )
        assert network_of(made).nodes[0] == Node(first)


def test_columns_are_all_there_and_parents_come_first() -> None:
    about = Schema(
        [Category("k", ["only"], required=True, unlisted={"to": "only"}), *schema(*SIZES).fields], unit="row"
    )
    columns = [np.zeros(3_000, dtype=np.int64), *dependent(3_000, SIZES)]
    for epsilon in (0.01, 1, 50):
        budget = Budget(epsilon)
        nodes = network_of(PrivBayes().collect(door(columns, budget, about), budget)).nodes
        assert sorted(node.child for node in nodes) == ["c0", "c1", "c2", "c3", "k"]
        for place, node in enumerate(nodes):
            assert set(node.parents) <= {before.child for before in nodes[:place]}
        assert nodes[-1] == Node("k")


def test_tables_inside_another_are_not_bought() -> None:
    """Four binary columns under a cap of 16: the last node's table holds all others (PrivBayes' first k tables)."""
    budget = pure(10_000)
    sizes = (2, 2, 2, 2)
    made = PrivBayes(max_cells=16).collect(door(dependent(5_000, sizes), budget, schema(*sizes)), budget)
    assert [answer.clique for answer in made.marginals[4:]] == [("c0", "c1", "c2", "c3")]
    cliques = [node.clique for node in network_of(made).nodes]
    assert outermost(cliques) == [("c0", "c1", "c2", "c3")]


# -- usefulness -------------------------------------------------------------------------------------------------------


class Silent:
    """As much of a curator as a rule about sizes may ask for."""

    def __init__(self, sizes: Sequence[int], budget: Budget) -> None:
        self.domain = Domain(tuple(f"c{place}" for place in range(len(sizes))), tuple(sizes))
        self.account, self.neighbors = budget.account, budget.neighbors


@pytest.mark.parametrize("records", [10_000, 47_461, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2])
def test_the_binary_rule_is_that_of_the_paper(records: int, epsilon: float) -> None:
    """k largest with n epsilon_2 / ((d - k) 2^(k + 2)) >= theta, where a record is replaced and noise is Laplace."""
    d, budget = 16, pure(epsilon, "replace")
    curator = Silent([2] * d, budget)
    found = PrivBayes().useful_cells(curator, curator.domain.names, records, budget.total)  # type: ignore[arg-type]
    degrees = [k for k in range(1, d) if records * epsilon / ((d - k) * 2 ** (k + 2)) >= 4 * 1.001]
    loosely = [k for k in range(1, d) if records * epsilon / ((d - k) * 2 ** (k + 2)) >= 4 * 0.98]
    assert 2 ** (max(degrees, default=-1) + 1) <= max(found, 1) <= 2 ** (max(loosely, default=-1) + 1)


@pytest.mark.parametrize("records", [10_000, 47_461, 10**6])
def test_the_general_rule_is_that_of_the_paper(records: int) -> None:
    """n epsilon_2 / (2 d theta) cells, with d - 1 tables for d."""
    budget = pure(1, "replace")
    curator = Silent([5] * 15, budget)
    collector = PrivBayes(max_cells=10**9)
    found = collector.useful_cells(curator, curator.domain.names, records, budget.total)  # type: ignore[arg-type]
    assert found == pytest.approx(records / (2 * 14 * 4), rel=0.02)
    # The same with Gaussian noise: an average cell is four times its noise.
    budget = Budget(1, relation="replace")
    curator = Silent([5] * 15, budget)
    found = collector.useful_cells(curator, curator.domain.names, records, budget.total)  # type: ignore[arg-type]
    law = marginal_law(budget.total / 14, budget.neighbors, budget.account)
    assert found == int(records / (4 * law.mean_absolute))


def test_the_number_of_records_is_the_noisy_one() -> None:
    """From the one-ways alone: the total that their answers tell, whatever the table holds."""
    budget = Budget(1)
    curator = door(dependent(3_000, SIZES), budget, schema(*SIZES))
    made = PrivBayes().collect(curator, budget)
    one_ways = [answer for answer in made.marginals if made.charges[answer.charge].label == "one-way marginals"]
    weights = np.array([1 / answer.counts.size / float(answer.variance) for answer in one_ways])
    totals = np.array([float(answer.counts.sum()) for answer in one_ways])
    assert noisy_total(one_ways) == pytest.approx(float(weights @ totals / weights.sum()))
    assert noisy_total(one_ways) != 3_000


def test_little_budget_buys_no_dependence_and_much_buys_larger_tables() -> None:
    widths = []
    for epsilon in (0.003, 0.3, 10):
        budget = pure(epsilon)
        made = PrivBayes().collect(door(dependent(5_000, SIZES), budget, schema(*SIZES)), budget)
        widths.append(max(len(answer.clique) for answer in made.marginals))
        assert sum(charge.cost for charge in made.charges) <= budget.total
        assert sum(charge.cost for charge in made.charges) > Fraction(99, 100) * budget.total
    assert widths[0] == 1
    assert widths == sorted(set(widths))


# -- levels of hierarchies --------------------------------------------------------------------------------------------

COUNTIES, ZIPS = 4, 40


def with_hierarchy() -> Schema:
    zips = [f"z{code}" for code in range(ZIPS)]
    tree = {
        "levels": ["county", "state"],
        "parents": [
            {name: f"county{code * COUNTIES // ZIPS}" for code, name in enumerate(zips)},
            {f"county{code}": f"state{code // 2}" for code in range(COUNTIES)},
        ],
    }
    listed = {"required": True, "unlisted": {"to": "z0"}}
    others = [
        Category(name, list("abcdefgh"[:size]), required=True, unlisted={"to": "a"})
        for name, size in (("party", 4), ("sex", 2))
    ]
    return Schema([Category("zip", zips, hierarchy=tree, **listed), *others], unit="row")


def by_county(rows: int) -> list[NDArray[np.int64]]:
    """The party follows the county (nine rows of ten) and the zip tells no more; sex is a coin."""
    rng = np.random.default_rng(4)
    zips = rng.integers(0, ZIPS, rows)
    party = np.where(rng.random(rows) < 0.1, rng.integers(0, 4, rows), zips * COUNTIES // ZIPS)
    return [zips, party, rng.integers(0, 2, rows)]


def test_levels_stand_beside_their_columns() -> None:
    merges = hierarchy_merges(with_hierarchy())
    assert {name: (merge.column, merge.size) for name, merge in merges.items()} == {
        "zip@county": ("zip", 4),
        "zip@state": ("zip", 2),
    }
    clash = Schema([*with_hierarchy().fields, Category("zip@county", ["u"])], unit="row")
    assert list(hierarchy_merges(clash)) == ["zip@county@", "zip@state"]


def test_generalized_parents_are_used_where_the_cap_demands() -> None:
    """party x zip has 160 cells, party x county 16."""
    about, columns, budget = with_hierarchy(), by_county(20_000), pure(1_000)
    named = {}
    for cap in (160, 100, 32):
        made = PrivBayes(max_cells=cap, first="most").collect(door(columns, budget, about), budget)
        (node,) = [node for node in network_of(made).nodes if node.child == "party"]
        named[cap] = node.parents
        assert all(answer.counts.size <= cap or len(answer.clique) == 1 for answer in made.marginals)
    assert named[160] == ("zip",)
    assert "zip@county" in named[100]
    assert "zip@county" in named[32]


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "pure"])
def test_levels_are_written_read_replayed_and_built_from(accountant: str, tmp_path: Path) -> None:
    about, columns = with_hierarchy(), by_county(20_000)
    budget = Budget(4, 0 if accountant == "pure" else "1e-9", accountant=accountant)
    collector = PrivBayes(max_cells=32, first="most")
    made = collector.collect(door(columns, budget, about), budget)
    for name, content in measurement_files(made).items():
        (tmp_path / name).write_bytes(content)
    again = read_measurements(tmp_path)
    assert again.structure == made.structure
    assert coarsened_columns(made) == []
    assert measurement_files(collector.collect(ReplayCurator(again), budget)) == measurement_files(made)
    sizes = dict(zip(made.domain.names, made.domain.sizes, strict=True))
    real = np.stack(columns, axis=1)
    for synthesizer in SYNTHESIZERS:
        if synthesizer.name == "direct":
            continue
        model = synthesizer.build(again, silent)
        records = model.sample(20_000, 3, silent)
        assert records.tobytes() == synthesizer.build(made, silent).sample(20_000, 3, silent).tobytes()
        for name in sizes:
            assert variation(counts_of(records, sizes, (name,)), counts_of(real, sizes, (name,))) < 0.03
        together = variation(counts_of(records, sizes, ("party", "zip")), counts_of(real, sizes, ("party", "zip")))
        # Only the synthesizer that knows levels can tell the county from the zip: .67 apart without.
        assert (together < 0.1) is (synthesizer.name == "ancestral")


# -- accounts, plan, refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "pure"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("score", ["r", "f"])
def test_a_budget_is_used_and_a_choice_is_charged_at_its_price(accountant: str, relation: str, score: str) -> None:
    budget = Budget(2, 0 if accountant == "pure" else "1e-9", accountant=accountant, relation=relation)  # type: ignore[arg-type]
    sizes = (2,) * 5
    collector = PrivBayes(score=score)  # type: ignore[arg-type]
    made = collector.collect(door(dependent(5_000, sizes), budget, schema(*sizes)), budget)
    spent = sum(charge.cost for charge in made.charges)
    assert Fraction(99, 100) * budget.total < spent <= budget.total
    choices = [made.charges[answer.charge] for answer in made.answers if isinstance(answer, Choice)]
    assert choices
    share = budget.total * Fraction(9, 10) * Fraction(3, 10) / 4
    for charge in choices:
        assert (charge.query, charge.mechanism, charge.choices) == (score, "exponential", 1)
        assert charge.cost == budget.account.exponential_cost(charge.epsilon or Fraction(0))
        assert Fraction(999, 1000) * share < charge.cost <= share
        lattice = {"r": 256 * (3 if relation == "replace" else 2), "f": 2}[score]
        assert charge.sensitivity_squared == lattice**2


def test_mutual_information_of_binary_columns_has_its_smaller_price() -> None:
    budget = pure(2, "replace")
    squares = []
    for sizes in ((2, 2, 2), (2, 2, 3)):
        collector = PrivBayes(score="mutual-information", records=4_000)
        made = collector.collect(door(dependent(4_000, sizes), budget, schema(*sizes)), budget)
        squares += [made.charges[answer.charge].sensitivity_squared for answer in made.answers[:4][3:]]
    assert squares[0] < squares[1]


@pytest.mark.parametrize("split", ["equal", "cells"])
def test_the_plan_bounds_the_run(split: str) -> None:
    budget = Budget(3)
    collector = PrivBayes(split=split)  # type: ignore[arg-type]
    curator = door(dependent(5_000, SIZES), budget, schema(*SIZES))
    stages = collector.stages(curator.domain, budget)
    made = collector.collect(curator, budget)
    assert sum(stage.share for stage in stages) == 1
    for stage in stages:
        bought = [answer for answer in made.marginals if made.charges[answer.charge].label == stage.name]
        assert len(bought) <= stage.questions
        assert max((answer.counts.size for answer in bought), default=0) <= stage.largest
        assert sum(answer.counts.size for answer in bought) <= stage.cells


def test_one_column_and_constant_columns() -> None:
    budget = Budget(1)
    for sizes, columns in (((5,), [np.arange(50) % 5]), ((1, 1), [np.zeros(9, dtype=np.int64)] * 2)):
        made = PrivBayes().collect(door(columns, budget, schema(*sizes)), budget)
        assert [answer.clique for answer in made.marginals] == [("c0",)]
        assert sorted(node.child for node in network_of(made).nodes) == [f"c{place}" for place in range(len(sizes))]
        assert len(PrivBayes().stages(Codec(schema(*sizes)).domain, budget)) == 1


@pytest.mark.parametrize(
    ("collector", "budget", "message"),
    [
        (PrivBayes(score="f"), pure(1), "columns of at most two codes"),
        (PrivBayes(score="mutual-information"), pure(1, "replace"), "public number of records"),
        (PrivBayes(score="mutual-information"), pure(1), "needs relation 'replace'"),
        (PrivBayes(records=100), pure(1), "the number of records is private"),
    ],
)
def test_what_has_no_price_is_refused_before_anything_is_charged(
    collector: PrivBayes, budget: Budget, message: str
) -> None:
    curator = door(dependent(100, SIZES), budget, schema(*SIZES))
    for ask in (
        lambda: collector.stages(curator.domain, budget),
        lambda: collector.collect(curator, budget),
    ):
        with pytest.raises(UsageError, match=message):
            ask()
    assert curator.charges == ()


@pytest.mark.parametrize(
    "options",
    [
        {"network_share": Fraction(0)},
        {"one_way_share": Fraction(1)},
        {"theta": 0.0},
        {"max_cells": 0},
        {"max_candidates": 0},
        {"max_candidate_cells": 0},
        {"records": -3},
    ],
    ids=str,
)
def test_senseless_parameters_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        replace(PrivBayes(), **options)  # type: ignore[arg-type]
