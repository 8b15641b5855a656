"""Whole counts from shares: sums, bounds, no bias, random order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from margent.stream import Stream
from margent.synthesizers.apportion import apportion
from margent.synthesizers.shares import shuffled_codes

weights = arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1000).map(lambda value: round(value, 4)))


@given(weights, st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_counts_are_floors_or_ceilings_that_sum_to_the_rows(
    shares: NDArray[np.float64], rows: int, start: float
) -> None:
    counts = apportion(shares, rows, start)
    assert counts.sum() == rows
    assert counts.min() >= 0
    if shares.sum() > 0:
        expected = shares * (rows / shares.sum())
        assert np.abs(counts - expected).max() < 1 + 1e-6
        assert counts[shares == 0].sum() == 0


def test_rounding_has_no_bias() -> None:
    shares = np.array([0.31, 2.5, 0.0, 0.19, 1.0])
    starts = (np.arange(1000) + 0.5) / 1000
    mean = np.mean([apportion(shares, 3, start) for start in starts], axis=0)
    np.testing.assert_allclose(mean, 3 * shares / shares.sum(), atol=2e-3)


def test_nothing_to_go_by_means_all_alike() -> None:
    assert apportion(np.zeros(4), 8, 0.3).tolist() == [2, 2, 2, 2]
    assert apportion(np.zeros(0), 8, 0.3).tolist() == []


def test_shuffled_codes_are_in_uniform_order() -> None:
    """Position of the single 1 among 5 rows over 5,000 streams: chi-square with 4 degrees, false alarm 1e-6."""
    places = [int(np.argmax(shuffled_codes(np.array([4.0, 1.0]), 5, Stream(seed)))) for seed in range(5000)]
    observed = np.bincount(places, minlength=5)
    assert ((observed - 1000) ** 2 / 1000).sum() < 33.4
    assert shuffled_codes(np.array([1.0, 1.0]), 0, Stream(0)).tolist() == []


@pytest.mark.parametrize("rows", [1, 7])
def test_the_same_stream_gives_the_same_codes(rows: int) -> None:
    shares = np.array([1.0, 2.0, 3.0])
    first = shuffled_codes(shares, rows, Stream(3, "x"))
    assert first.tolist() == shuffled_codes(shares, rows, Stream(3, "x")).tolist()
