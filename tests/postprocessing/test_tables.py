"""Answers restated over the working domain: merges, codes that are never written, repeated questions, the total."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from margent import Category, Schema
from margent.postprocessing.merging import member_shares, merge_low_counts
from margent.postprocessing.tables import evidence, mean_total, working_domain
from margent.schema.domain import Domain, Merge
from margent.transcript import NoisyMarginal, Transcript

SCHEMA = Schema([Category("x", ["1", "2"])], unit="row")
DOMAIN = Domain(("a", "b"), (2, 5))
MERGE = Merge("b", (0, 2, 1, 2, 2))


def answer(names: tuple[str, ...], counts: list[object], variance: int = 9, merged: bool = False) -> NoisyMarginal:
    return NoisyMarginal(names, np.array(counts, dtype=np.int64), Fraction(variance), 0, merged)


def transcript(*answers: NoisyMarginal, merges: dict[str, Merge] | None = None) -> Transcript:
    return Transcript(SCHEMA, DOMAIN, "test", (), answers, merges or {})


def test_counts_and_variances_of_merged_codes_add_up() -> None:
    record = transcript(answer(("b",), [50, 3, 20, -1, 4]), merges={"b": MERGE})
    known = evidence(record, working_domain(record))
    (table,) = known.tables
    assert table.values.tolist() == [50, 20, 6]
    assert table.variance.tolist() == [9, 9, 27]
    assert known.working.domain == Domain(("a", "b"), (2, 3))
    assert known.total == 76


def test_merged_answers_are_taken_as_they_are() -> None:
    record = transcript(answer(("a", "b"), [[1, 2, 3], [4, 5, 6]], merged=True), merges={"b": MERGE})
    (table,) = evidence(record, working_domain(record)).tables
    assert table.values.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.unique(table.variance).tolist() == [9]


def test_an_unmerged_pair_is_merged_along_its_axis() -> None:
    record = transcript(answer(("a", "b"), [[1, 2, 3, 4, 5], [0, 1, 0, 1, 0]]), merges={"b": MERGE})
    (table,) = evidence(record, working_domain(record)).tables
    assert table.values.tolist() == [[1, 3, 11], [0, 0, 2]]
    assert table.variance.tolist() == [[9, 9, 27], [9, 9, 27]]


def test_repeated_questions_are_averaged_by_precision() -> None:
    record = transcript(answer(("a",), [10, 20], 1), answer(("a",), [40, 50], 4))
    (table,) = evidence(record, working_domain(record)).tables
    np.testing.assert_allclose(table.values, [16, 26])
    np.testing.assert_allclose(table.variance, [0.8, 0.8])


def test_the_total_is_the_inverse_variance_mean_of_totals_and_never_negative() -> None:
    record = transcript(answer(("a",), [60, 40], 1), answer(("b",), [20, 20, 20, 20, 40], 4))
    # Variances of the totals are 2 and 20.
    assert evidence(record, working_domain(record)).total == pytest.approx((100 * 10 + 120) / 11)
    below = transcript(answer(("a",), [-60, 40]))
    assert evidence(below, working_domain(below)).total == 0.0
    assert mean_total([]) == 0.0


def test_codes_that_are_never_written_leave_their_records_to_the_others() -> None:
    written = {"b": np.array([True, True, True, True, False])}
    record = transcript(answer(("a", "b"), [[100, 0, 0, 0, 50], [100, 100, 100, 0, 50]], 1))
    working = working_domain(record, written)
    known = evidence(record, working)
    (table,) = known.tables
    assert working.groups["b"].tolist() == [0, 1, 2, 3, -1]
    np.testing.assert_allclose(table.values, np.array([[100, 0, 0, 0], [100, 100, 100, 0]]) * 500 / 400)
    assert known.total == 500


def test_a_group_lives_as_long_as_one_of_its_codes_is_written() -> None:
    record = transcript(answer(("b",), [50, 3, 20, -1, 4]), merges={"b": MERGE})
    part = working_domain(record, {"b": np.array([True, False, True, True, False])})
    assert part.groups["b"].tolist() == [0, -1, 1, 2, -1]
    assert part.firsts("b").tolist() == [0, 2, 3]
    assert part.mixed("b") == {}
    none = working_domain(record, {"b": np.array([True, False, True, False, False])})
    assert none.groups["b"].tolist() == [0, -1, 1, -1, -1]
    (table,) = evidence(record, none).tables
    assert table.values.size == 2


def test_noise_alone_never_decides_a_scale() -> None:
    """Almost all records lie in a code that is never written: what is left is not blown up."""
    record = transcript(answer(("a",), [1000, 2], 100))
    working = working_domain(record, {"a": np.array([False, True])})
    (table,) = evidence(record, working).tables
    assert table.values.tolist() == [2]


def test_low_counts_are_merged_only_where_there_are_two() -> None:
    # The standard deviation is 3: below 9 is low, 9 is not; the merged group comes last.
    assert merge_low_counts(answer(("b",), [50, 3, 20, -1, 9])) == Merge("b", (0, 3, 1, 3, 2))
    merge = merge_low_counts(answer(("b",), [50, 3, 20, -1, 8]))
    assert merge == Merge("b", (0, 2, 1, 2, 2))
    assert merge_low_counts(answer(("b",), [50, 3, 20, 10, 9])) is None
    assert merge_low_counts(answer(("b",), [50, 30, 20, 10, 9])) is None
    assert merge_low_counts(answer(("b",), [0, 0, 0, 0, 0])) == Merge("b", (0,) * 5)


def test_members_share_a_group_by_their_noisy_counts_or_evenly() -> None:
    record = transcript(answer(("b",), [50, 9, 20, -6, 6]), merges={"b": MERGE})
    working = working_domain(record)
    counts = np.array([50.0, 9.0, 20.0, -6.0, 6.0])
    totals = np.array([50.0, 20.0, 9.0])
    projected = member_shares(working, "b", counts, totals, "projected")
    # max(v - 3, 0) = (6, 0, 3), the nearest counts of at least 0 that sum to 9.
    np.testing.assert_allclose(projected[2], [2 / 3, 0, 1 / 3])
    uniform = member_shares(working, "b", counts, totals, "uniform")
    np.testing.assert_allclose(uniform[2], [1 / 3] * 3)
    nothing = member_shares(working, "b", counts, np.zeros(3), "projected")
    np.testing.assert_allclose(nothing[2], [1 / 3] * 3)
