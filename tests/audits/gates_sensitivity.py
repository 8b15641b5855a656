"""Gates for sensitivities: exact answers of neighbors, and how far they move."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.privacy import curator as door
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.requests import MarginalRequest, PublicTables, ScoreRequest
from margent.schema.domain import Domain
from tests.audits.small_table import PAIR, ROOMY, counted


def _silent(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


def answers_move_no_more_than_registered() -> None:
    """Exact answers (noise switched off) of neighbors: at most the sensitivity that was charged."""
    heavy = np.zeros((4, 4), dtype=np.int64)
    heavy[0, 0] = 16
    mixed = np.array([[3, 0, 1, 0], [0, 2, 0, 0], [1, 1, 4, 0], [0, 0, 0, 0]], dtype=np.int64)
    twisted = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=np.int64)
    units = ({}, {"relation": "replace"}, {"person_rows": 3})
    for unit, start in product(units, (heavy, mixed, twisted)):
        budget = Budget(10_000, "0.001", accountant="zcdp", **unit)
        for cell in range(16):
            changed = start.copy()
            changed.ravel()[cell] += budget.person_rows or 1
            if budget.relation == "replace":
                changed.ravel()[int(np.argmax(start))] -= 1
            for charge, moved in zip(*_answers(start, changed, budget), strict=True):
                assert moved <= charge.sensitivity_squared, charge.query


def _answers(start: NDArray[np.int64], changed: NDArray[np.int64], budget: Budget) -> tuple[list[Charge], list[float]]:
    vectors = []
    charges: tuple[Charge, ...] = ()
    flat = {name: np.array([7.3, 4.0, 1.9, 0.05]) for name in "ab"}
    pairs = (("a", "b"),) * 3
    for exact in (start, changed):
        ledger = Ledger(budget)
        curator = door.DataCurator(PAIR, counted(exact), ledger, noise=_silent)
        wanted = [MarginalRequest(names, Gaussian(Fraction(9))) for names in (("a",), ("b",), ("a", "b"))]
        wanted += [MarginalRequest(names, Gaussian(Fraction(900)), interaction=True) for names in (("a",), ("a", "b"))]
        stack = [answer.counts.ravel() for answer in curator.measure(wanted, label="gate")]
        for request in (
            ScoreRequest("indif", pairs, Gaussian(Fraction(10**7))),
            ScoreRequest("r", pairs, Gaussian(Fraction(10**7))),
            ScoreRequest("independence", pairs, Gaussian(Fraction(9)), expected=flat),
        ):
            stack.append(curator.scores(request, label="gate").values)
        vectors.append(stack)
        charges = ledger.charges
    assert len(charges) == len(vectors[0])
    moved = [float(((one - other) ** 2).sum()) for one, other in zip(*vectors, strict=True)]
    return list(charges), moved


def mutual_information_moves_no_more_than_registered() -> None:
    """One of seven records replaced, where the score moves most; refused where their number is private."""
    start, changed = (np.zeros((4, 4), dtype=np.int64) for _ in range(2))
    start[0, 1] = start[1, 0] = changed[0, 1] = changed[1, 0] = 3
    start[0, 0] = changed[2, 2] = 1
    request = ScoreRequest("mutual-information", (("a", "b"),), Gaussian(Fraction(10**7)), tables=PublicTables(7))
    values = []
    for exact in (start, changed):
        ledger = Ledger(Budget(10_000, "0.001", accountant="zcdp", relation="replace"))
        curator = door.DataCurator(PAIR, counted(exact), ledger, noise=_silent)
        values.append(int(curator.scores(request, label="gate").values[0]))
    (charge,) = ledger.charges
    assert (values[0] - values[1]) ** 2 <= charge.sensitivity_squared
    curator = door.DataCurator(PAIR, counted(start), Ledger(ROOMY))
    with contextlib.suppress(UsageError):
        curator.scores(request, label="gate")
        raise AssertionError("mutual information was sold where the number of records is private")


def f_moves_no_more_than_registered() -> None:
    """A child that its parent tells, where F moves most: a record more, three more, one replaced."""
    domain, start = Domain(("a", "b"), (2, 2)), np.array([[9, 0], [0, 9]])
    request = ScoreRequest("f", (("a", "b"),), Gaussian(Fraction(10**4)), children=("a",))
    for unit, changed in (
        ({}, [[9, 0], [1, 9]]),
        ({"person_rows": 3}, [[9, 0], [3, 9]]),
        ({"relation": "replace"}, [[8, 0], [1, 9]]),
    ):
        values = []
        for exact in (start, np.array(changed)):
            ledger = Ledger(Budget(10_000, "0.001", accountant="zcdp", **unit))  # type: ignore[arg-type]
            curator = door.DataCurator(PAIR, counted(exact, domain), ledger, noise=_silent)
            values.append(int(curator.scores(request, label="gate").values[0]))
        (charge,) = ledger.charges
        assert (values[0] - values[1]) ** 2 <= charge.sensitivity_squared, unit


def scores_are_rounded_without_a_second_step() -> None:
    """Small tables against awkward expectations: rounding must not let one record move a score by two."""
    rng = np.random.default_rng(3)
    rows = [rng.random(2) * 9 for _ in range(40)]
    for expected in zip(rows[::2], rows[1::2], strict=True):
        total = max(float(expected[0].sum()), 1.0)
        for cells in product(range(3), repeat=4):
            table = np.array(cells, dtype=np.int64).reshape(2, 2)
            value = door.exact_scores.independence_distance(table, *expected, total)
            for cell in range(4):
                more = table.copy()
                more.ravel()[cell] += 1
                assert abs(door.exact_scores.independence_distance(more, *expected, total) - value) <= 1
