"""Independent columns: right shares, no dependence, exact expectations."""

from __future__ import annotations

import numpy as np
import pytest

from margent.progress import silent
from margent.schema.domain import Merge
from margent.synthesizers.independent import IndependentColumns
from tests.synthesizers.made import counts_of, transcript, variation

SIZES = {"a": 3, "k": 1, "b": 4}
ONE_WAYS = [(("a",), np.array([600, 300, 100])), (("b",), np.array([100, 0, 500, 400]))]


def test_shares_come_back_and_columns_are_independent() -> None:
    model = IndependentColumns().build(transcript(SIZES, ONE_WAYS), silent)
    assert model.total == 1000
    made = model.sample(1000, 3, silent)
    assert np.bincount(made[:, 0]).tolist() == [600, 300, 100]
    assert np.bincount(made[:, 2], minlength=4).tolist() == [100, 0, 500, 400]
    expected, single, constant = model.marginals([("a", "b"), ("b",), ("a", "k")], seed=0)
    np.testing.assert_allclose(expected, np.outer([0.6, 0.3, 0.1], [100, 0, 500, 400]), atol=1e-9)
    np.testing.assert_allclose(single, [100, 0, 500, 400], atol=1e-9)
    assert constant.shape == (3, 1)
    large = model.sample(200_000, 3, silent)
    # Chi-square of independence, 4 degrees (one code is empty): above 40 by chance below 1e-7.
    counts = counts_of(large, SIZES, ("a", "b"))[:, [0, 2, 3]]
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    assert ((counts - product) ** 2 / product).sum() < 40


def test_pairs_are_used_for_their_margins() -> None:
    sizes = {"a": 2, "b": 2}
    model = IndependentColumns().build(transcript(sizes, [(("a", "b"), np.array([[80, 0], [0, 20]]))]), silent)
    made = model.sample(10_000, 1, silent)
    assert variation(counts_of(made, sizes, ("a", "b")), np.array([[64, 16], [16, 4]])) < 0.03


def test_merged_and_never_written_codes() -> None:
    sizes = {"a": 5}
    merges = {"a": Merge("a", (0, 1, 1, 1, 1))}
    record = transcript(sizes, [(("a",), np.array([700, 12, -3, 6, 90]))], merges=merges, never=("a",))
    model = IndependentColumns().build(record, silent)
    made = np.bincount(model.sample(8000, 2, silent)[:, 0], minlength=5)
    assert made[4] == made[2] == 0
    assert made[1] == pytest.approx(2 * made[3], abs=2)
    (expected,) = model.marginals([("a",)], seed=0)
    assert expected[4] == 0
    np.testing.assert_allclose(made / 8000, expected / expected.sum(), atol=1e-3)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_rows_and_no_records(rows: int) -> None:
    model = IndependentColumns().build(transcript(SIZES, [(("a",), np.array([-4, -2, -9]))], variance=9), silent)
    assert model.total == 0
    assert model.sample(rows, 1, silent).shape == (rows, 3)
    assert [table.sum() for table in model.marginals([("a",), ("b",)], seed=0)] == [0, 0]
