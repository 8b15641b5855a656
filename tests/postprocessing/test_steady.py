"""Arithmetic of our own against the standard library's, to the accuracy that it states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.postprocessing.steady import exponential, logarithm, logarithms, product


@settings(max_examples=400, deadline=None)
@given(st.floats(-699.99, 0.0))
def test_exponential_is_exact_to_a_few_units_of_the_last_place(x: float) -> None:
    assert exponential(x) == pytest.approx(math.exp(x), rel=1e-15, abs=0)


def test_exponential_at_its_ends() -> None:
    assert exponential(0.0) == exponential(-0.0) == 1.0
    assert exponential(-700.0) == pytest.approx(math.exp(-700), rel=1e-15, abs=0)
    assert exponential(-700.5) == exponential(-1e308) == exponential(-math.inf) == 0.0


@settings(max_examples=200, deadline=None)
@given(st.floats(-600, 0), st.floats(0, 1))
def test_exponential_never_falls(x: float, step: float) -> None:
    """The larger argument has at least the same value, up to the stated error."""
    assert exponential(min(x + step, 0.0)) >= exponential(x) * (1 - 1e-15)


@settings(max_examples=400, deadline=None)
@given(st.floats(1.0, 1e300))
def test_logarithm_from_one_upwards_is_exact_to_1e_14(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=1e-14, abs=0)


@settings(max_examples=400, deadline=None)
@given(st.floats(1e-300, 0.5))
def test_logarithm_up_to_a_half_is_exact_to_1e_14(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=1e-14, abs=0)


@pytest.mark.parametrize("x", [0.984375, 0.9999, 1 - 1e-9, math.nextafter(1, 0)])
def test_logarithm_just_below_one_is_exact_to_1e_14(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=1e-14, abs=0)


def test_logarithms_of_a_vector_are_those_of_its_entries() -> None:
    values = np.array([1e-9, 0.3, 1.0, 7.5, 1e9])
    assert logarithms(values).tolist() == [logarithm(value) for value in values.tolist()]
    assert logarithms(np.zeros(0)).size == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_product_is_the_matrix_product(seed: int, rows: int, middle: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(rows, middle)) * (rng.random((rows, middle)) < 0.7)
    right = rng.normal(size=(middle, columns))
    bound = 8 * np.finfo(float).eps * (np.abs(left) @ np.abs(right))
    assert np.all(np.abs(product(left, right) - left @ right) <= bound)


def test_product_sums_in_order() -> None:
    """1e16 + 1 - 1e16 is 0 from left to right; any other order gives 1, and other bytes on other machines."""
    left = np.array([[1e16, 1.0, -1e16]])
    assert product(left, np.ones((3, 2))).tolist() == [[0.0, 0.0]]
    assert product(left[:, ::-1].copy(), np.ones((3, 1))).tolist() == [[0.0]]
    assert product(np.array([[1e16, -1e16, 1.0]]), np.ones((3, 1))).tolist() == [[1.0]]
