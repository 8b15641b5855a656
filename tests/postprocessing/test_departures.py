"""Means under the gamma law, against 100 digits; the error that is left, against simulation."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.postprocessing.departures import DENSE, LEAST, error_left, error_table, expected_given, mean_above_zero

SHAPES = (
    1e-290, 1e-40, 1e-14, 1e-8, 1e-4, 1e-3, 0.01, 0.1, 0.4, 0.5, 0.9, 1.0, 2.0, 5.0, 10.0, 29.0, 31.0, 100.0, 1000.0,
)  # fmt: skip
HEIGHTS = (-20.0, -10.0, -3.0, -1.0, -0.1, 0.0, 0.01, 0.5, 1.0, 2.0, 3.0, 4.0, 4.9, 5.1, 6.0, 8.0, 12.0, 40.0)


def moment(shape: mpmath.mpf, height: mpmath.mpf) -> mpmath.mpf:
    """int x^(a - 1) e^(-(x - z)^2/2) dx over x > 0, but for e^(-z^2/2): by Kummer's function."""
    half = mpmath.mpf(1) / 2
    even = 2 ** (shape / 2 - 1) * mpmath.gamma(shape / 2) * mpmath.hyp1f1(shape / 2, half, height**2 / 2)
    odd = mpmath.gamma((shape + 1) / 2) * mpmath.hyp1f1((shape + 1) / 2, 3 * half, height**2 / 2)
    return even + height * 2 ** ((shape - 1) / 2) * odd


@pytest.mark.parametrize("shape", SHAPES)
def test_the_mean_is_that_of_the_integral(shape: float) -> None:
    for height in HEIGHTS:
        # For z < 0 the two parts cancel all but a few digits of very many.
        with mpmath.workdps(int(80 + 1.2 * height**2 + 2 * abs(height) * math.sqrt(shape))):
            a, z = mpmath.mpf(shape), mpmath.mpf(height)
            true = float(moment(a + 1, z) / moment(a, z))
        assert mean_above_zero(shape, height) == pytest.approx(true, rel=5e-4, abs=0), (shape, height)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-4, 1e4), st.floats(-50, 50), st.floats(0.001, 10))
def test_the_mean_is_positive_and_rises_with_the_answer(shape: float, height: float, more: float) -> None:
    below, above = mean_above_zero(shape, height), mean_above_zero(shape, height + more)
    assert 0 < below <= above * (1 + 1e-3)
    assert above <= max(height + more, 0) + math.sqrt(shape) + 1


def test_a_dense_cell_is_drawn_to_its_mean_as_a_normal_one_is() -> None:
    """m = 1,000, kappa 2: v/(v + s^2) of the way, to a hundredth of a deviation."""
    values = np.array([900.0, 1000.0, 1100.0])
    found = expected_given(values, np.full(3, 1000.0), np.full(3, 2.0), np.full(3, 900.0))
    assert found == pytest.approx(1000 + 2000 / 2900 * (values - 1000), abs=3)


def test_in_a_sparse_table_what_stands_out_is_kept_and_the_rest_is_nothing() -> None:
    """One cell in a hundred holds 3,000, 30 are expected of each, noise has deviation 500: no one factor does that."""
    values = np.array([-900.0, 0.0, 500.0, 3000.0, 4000.0])
    found = expected_given(values, np.full(5, 30.0), np.full(5, 3000.0), np.full(5, 500.0**2))
    assert found[:3].max() < 15
    assert found[3:] == pytest.approx(values[3:], rel=0.06)
    linear = 30 + 90_000 / (90_000 + 250_000) * (values - 30)
    assert linear[3] < 900


@settings(max_examples=500, deadline=None)
@given(st.floats(-1e12, 1e12), st.floats(5e-324, 1e12), st.floats(5e-324, 1e12), st.floats(1e-6, 1e9))
def test_whatever_the_sizes_are_a_cell_is_a_number_between_0_and_the_larger(
    value: float, prior: float, kappa: float, deviation: float
) -> None:
    (found,) = expected_given(*(np.array([each]) for each in (value, prior, kappa, deviation**2)))
    assert 0 <= found <= max(value, prior) * (1 + 1e-3) + 2 * LEAST * kappa


def test_the_law_of_dense_cells_joins_the_normal_one() -> None:
    """On both sides of `DENSE` noises the same is believed."""
    prior, values = np.full(2, 1e9), np.array([1.2e9, 0.9e9])
    deviation = 1e5
    near = [
        expected_given(values, prior, np.full(2, deviation / DENSE * each), np.full(2, 1e10)) for each in (0.99, 1.01)
    ]
    np.testing.assert_allclose(near[0], near[1], rtol=1e-4)


def test_without_departure_or_expectation_the_prior_stays_and_without_noise_the_answer() -> None:
    found = expected_given(
        np.array([5.0, 5.0, 5.0, -5.0]),
        np.array([2.0, 0.0, 2.0, 2.0]),
        np.array([0.0, 3.0, 3.0, 3.0]),
        np.array([1.0, 1.0, 0.0, 0.0]),
    )
    assert found.tolist() == [2.0, 0.0, 5.0, 0.0]


@pytest.mark.parametrize("shape", [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 300.0])
@pytest.mark.parametrize("noise", [0.02, 0.2, 1.0, 5.0, 1e9])
def test_the_error_left_is_that_of_many_cells(shape: float, noise: float) -> None:
    """A million cells drawn, answered with noise, and believed: within 5 % or five deviations of their own mean."""
    rng = np.random.default_rng([int(shape * 1000), int(noise * 100)])
    counts = rng.gamma(shape, size=1_000_000)
    answers = counts + noise * rng.standard_normal(counts.size)
    ones = np.ones(counts.size)
    off = np.abs(counts - expected_given(answers, shape * ones, ones, noise**2 * ones)) / shape
    five = 5 * float(off.std()) / 1000
    assert error_left(error_table(), shape, noise) == pytest.approx(float(off.mean()), rel=0.05, abs=five)


def test_without_an_answer_the_error_is_the_mean_departure() -> None:
    """E|X - m| = 2 a^a e^-a / Gamma(a + 1) of m; with ever better answers it goes to 0 in proportion to the noise."""
    for shape in (1e-3, 0.05, 0.7, 3.0, 40.0):
        mean = 2 * math.exp(shape * math.log(shape) - shape - math.lgamma(shape + 1))
        assert error_left(error_table(), shape, 1e12) == pytest.approx(mean, rel=0.02)
        assert error_left(error_table(), shape, 1e-5) == pytest.approx(
            error_left(error_table(), shape, 1e-4) / 10, rel=1e-6
        )


def test_more_noise_never_leaves_less_error() -> None:
    for shape in np.exp(np.arange(-10, 7, 0.37)):
        errors = [error_left(error_table(), float(shape), float(noise)) for noise in np.exp(np.arange(-8, 8, 0.11))]
        assert np.diff(errors).min() > -2e-3 * max(errors)
