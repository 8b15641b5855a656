"""PrivBayes' F against its definition, and its sensitivity against brute force over all small tables."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import SCORE_LATTICE, score_units
from margent.privacy.requests import ChoiceRequest, ScoreRequest
from margent.privacy.scores import majority
from margent.schema.codec import Codec
from tests.collectors.test_dense import schema
from tests.privacy.all_tables import AllTables, climbed

MOST = 8
REPLACED = Neighbors("replace")
PERSONS = [Neighbors("add-remove", rows) for rows in (1, 2, 3)]
ALL = [Neighbors(), REPLACED, *PERSONS]


def by_every_rule(table: NDArray[np.int64]) -> int:
    """2 n F from all 2^c rules."""
    total, found = int(table.sum()), []
    for rule in itertools.product((0, 1), repeat=table.shape[1]):
        right = [sum(int(table[x, place]) for place, named in enumerate(rule) if named == x) for x in (0, 1)]
        found.append(sum(max(total - 2 * count, 0) for count in right))
    return -min(found)


def by_definition(table: NDArray[np.int64]) -> float:
    """-1/2 min |P - Q|_1 by linear programs, one a rule: Q even in the child, which the rule determines."""
    spare = np.concatenate([table, np.zeros((2, 1), dtype=np.int64)], axis=1)  # a combination that nobody has
    share, cells = spare.ravel() / table.sum(), spare.size
    distances = []
    for rule in itertools.product((0, 1), repeat=spare.shape[1]):
        if len(set(rule)) < 2:
            continue
        allowed = np.array([[named == x for named in rule] for x in (0, 1)]).ravel()
        even = np.zeros((2, 2 * cells))
        even[0, : cells // 2] = even[1, cells // 2 : cells] = 1.0
        above = np.block([[np.eye(cells), -np.eye(cells)], [-np.eye(cells), -np.eye(cells)]])
        bounds = [(0, 1 if free else 0) for free in allowed] + [(0, None)] * cells
        cost = np.concatenate([np.zeros(cells), np.ones(cells)])
        solved = linprog(cost, above, np.concatenate([share, -share]), even, [0.5, 0.5], bounds)
        distances.append(solved.fun)
    return -0.5 * min(distances)


small = st.lists(st.integers(0, 40), min_size=2, max_size=14).map(
    lambda cells: np.array(cells[: len(cells) // 2 * 2]).reshape(2, -1)
)


@given(small)
def test_f_is_the_best_of_all_rules(table: NDArray[np.int64]) -> None:
    assert majority(table) == by_every_rule(table)


@pytest.mark.parametrize("seed", range(12))
def test_f_is_the_distance_that_privbayes_defines(seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 6, (2, 3))
    if table.sum():
        assert majority(table) / 2 / table.sum() == pytest.approx(by_definition(table), abs=1e-9)


def test_golden_values() -> None:
    """2 n F by hand: two columns that are one, an even coin nobody can guess, a constant child, no records."""
    for cells, expected in (
        ([[3, 0], [0, 3]], 0),
        ([[2, 2], [2, 2]], -4 * 2),
        ([[6, 2], [0, 0]], -8),
        ([[0, 0], [0, 0]], 0),
        ([[5, 1], [2, 4]], -6),  # K_0 = 5, K_1 = 4 of 12: 12 - 10 + 12 - 8
    ):
        assert majority(np.array(cells)) == expected
    assert majority(np.array([[7, 2]])) == -9
    assert [score_units("f", neighbors) for neighbors in ALL] == [2, 2, 2, 4, 6]
    assert SCORE_LATTICE["f"] == 2


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_f_of_all_small_tables(columns: int) -> None:
    every = AllTables((2, columns), MOST)
    scores = every.values(majority)
    assert scores.max() == 0
    for neighbors in ALL:
        found = every.largest(scores, neighbors)
        assert found <= score_units("f", neighbors), str(neighbors)
        if columns > 1:
            assert found == score_units("f", neighbors), str(neighbors)


@pytest.mark.parametrize("neighbors", ALL, ids=str)
def test_climbing_finds_nothing_beyond_the_registered_sensitivity_of_f(neighbors: Neighbors) -> None:
    found = climbed(majority, (2, 5), neighbors, most=40, starts=3, seed=1)
    assert 0.9 * score_units("f", neighbors) <= found <= score_units("f", neighbors)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_extreme_tables_reach_the_registered_sensitivity_of_f(rows: int) -> None:
    before = np.array([[10**9, 0], [0, 10**9]])
    after = before + np.array([[0, 0], [rows, 0]])
    assert majority(before) - majority(after) == score_units("f", Neighbors("add-remove", rows))
    replaced = before + np.array([[-1, 0], [1, 0]])
    assert majority(before) - majority(replaced) == score_units("f", REPLACED)


def test_a_price_of_half_a_record_is_caught() -> None:
    """Planted: half of the true sensitivity."""
    every = AllTables((2, 2), MOST)
    assert every.largest(every.values(majority), Neighbors()) > 1


def test_f_is_of_a_child_of_two_codes() -> None:
    about = schema(2, 2, 3)
    codes = [np.array([0, 1, 1, 0], dtype=np.uint16) for _ in range(3)]
    curator = DataCurator(
        about,
        CodedCounts(codes, Codec(about).domain),
        Ledger(Budget(50)),
        noise=lambda count, scale: np.zeros(count, dtype=np.int64),
    )
    law, trio = Gaussian(Fraction(10**4)), ("c0", "c1", "c2")
    with pytest.raises(UsageError, match="one child a clique: name them"):
        curator.scores(ScoreRequest("f", (trio,), law), label="f")
    with pytest.raises(UsageError, match="'c2' has more: ask for 'r'"):
        curator.choose(ChoiceRequest("f", (trio,), Fraction(1), children=("c2",)), label="f")
    assert curator.charges == ()
    answer = curator.scores(ScoreRequest("f", (trio, ("c0", "c1")), law, children=("c1", "c0")), label="f")
    assert answer.records().tolist() == [0.0, 0.0]  # even, and told by its parents
    assert curator.charges[0].sensitivity_squared == 2 * 2**2
