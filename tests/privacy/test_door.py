"""What the door refuses before it charges: questions that the registered sensitivities do not cover."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.errors import BudgetError, UsageError
from margent.pipeline import from_transcript, measure
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.requests import ChoiceRequest, ScoreRequest
from margent.privacy.scores import independence_distance
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Merge
from margent.schema.fields import Category, Schema

SCHEMA = Schema([Category("a", ["x", "y"]), Category("b", ["u", "v"]), Category("c", ["s", "t"])], unit="row")
SIZES = {name: Codec(SCHEMA).domain.size(name) for name in "abc"}


def door() -> DataCurator:
    domain = Codec(SCHEMA).domain
    codes = [np.array([0, 1, 1, 0], np.uint8)] * len(domain.names)
    return DataCurator(SCHEMA, CodedCounts(codes, domain), Ledger(Budget(1)))


def expectation(**counts: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {name: np.ones(size) for name, size in SIZES.items()} | counts


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("a",), expectation()),
        (("a", "b", "c"), expectation()),
        (("a", "a"), expectation()),
        (("a", "nobody"), expectation()),
        (("a", "b"), None),
        (("a", "b"), {"a": np.ones(SIZES["a"])}),
        (("a", "b"), expectation(b=np.ones(1))),
        (("a", "b"), expectation(a=np.ones(SIZES["a"] + 1))),
        (("a", "b"), expectation(a=np.ones((SIZES["a"], 1)))),
        (("a", "b"), expectation(a=np.full(SIZES["a"], np.nan))),
        (("a", "b"), expectation(b=np.full(SIZES["b"], np.inf))),
    ],
)
def test_a_score_without_a_proved_sensitivity_is_refused_before_the_charge(
    pair: Clique, expected: dict[str, NDArray[np.float64]] | None
) -> None:
    curator = door()
    with pytest.raises(UsageError, match="score"):
        curator.scores(ScoreRequest("independence", (pair,), Gaussian(Fraction(2**20)), expected=expected), label="s")
    with pytest.raises(UsageError, match="score"):
        curator.choose(ChoiceRequest("independence", (pair,), Fraction(1, 100), expected=expected), label="c")
    assert curator.charges == ()


def test_expectations_are_of_the_merged_domain_where_the_question_is() -> None:
    merges = {"a": Merge("a", (0,) * SIZES["a"])}
    curator, law = door(), Gaussian(Fraction(2**20))
    small = expectation(a=np.ones(1))
    with pytest.raises(UsageError, match="merged or not"):
        curator.scores(ScoreRequest("independence", (("a", "b"),), law, expected=small), label="s", merges=merges)
    wide = ScoreRequest("independence", (("a", "b"),), law, merged=True, expected=expectation())
    with pytest.raises(UsageError, match="merged or not"):
        curator.scores(wide, label="s", merges=merges)
    curator.scores(
        ScoreRequest("independence", (("a", "b"),), law, merged=True, expected=small), label="s", merges=merges
    )
    assert len(curator.charges) == 1


@pytest.mark.parametrize("records", [2.0**40, 2.0**47, 1e17, 1e60])
def test_one_record_moves_a_score_by_one_however_large_the_noise_made_the_expectation(records: float) -> None:
    """Sums that wrapped 64 bits would jump by 2^48."""
    rows, columns = np.array([records]), np.array([records / 2, records / 2])
    values = [independence_distance(np.array([[count, 0]]), rows, columns, records) for count in range(4)]
    assert max(abs(one - other) for one, other in pairwise(values)) <= 1


def test_an_expectation_of_nothing_leaves_the_records() -> None:
    assert independence_distance(np.array([[3, 1]]), np.zeros(1), np.zeros(2), 1.0) == 4


def test_a_release_cannot_state_less_than_its_answers_cost() -> None:
    import pyarrow as pa

    table = pa.table({name: ["x", "y"] for name in "abc"})
    bought = Budget(1)
    transcript = measure(table, SCHEMA, budget=bought, method="independent").transcript
    for other in (
        Budget("0.999"),
        Budget(1, "1e-10"),
        Budget(1, accountant="zcdp"),
        Budget(1, accountant="pure"),
        Budget(1, relation="replace"),
    ):
        with pytest.raises(BudgetError, match="not bought with this budget"):
            from_transcript(transcript, budget=other, synthesizer="independent", rows=1)
    assert from_transcript(transcript, budget=bought, synthesizer="independent", rows=1).rows == 1
