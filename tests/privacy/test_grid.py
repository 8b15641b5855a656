"""The public scale grid: exact rounding up, 1024 steps an octave, a floor, no top."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import UsageError
from margent.privacy.grid import FLOOR, first_fitting, index_above, on_grid, point, round_up

scales = st.builds(
    lambda numerator, denominator, octaves: Fraction(numerator, denominator) * Fraction(2) ** octaves,
    st.integers(1, 10**12),
    st.integers(1, 10**12),
    st.integers(-40, 400),
)


def test_points_are_1024_to_2047_times_a_power_of_two() -> None:
    for index in (0, 1, 1023, 1024, 5000, 16384, 200_000):
        mantissa = point(index)
        while mantissa < 1024:
            mantissa *= 2
        while mantissa >= 2048:
            mantissa /= 2
        assert mantissa.denominator == 1
        assert 1024 <= mantissa <= 2047
    assert point(0) == FLOOR == Fraction(1, 16)
    assert point(16384) == 4096


def test_points_rise_by_less_than_a_thousandth() -> None:
    points = [point(index) for index in range(4097)]
    assert all(low < high <= low * Fraction(1025, 1024) for low, high in itertools.pairwise(points))
    assert len(set(points)) == 4097


@settings(max_examples=500, deadline=None)
@given(scales)
def test_rounding_up_takes_the_least_point_at_or_above(scale: Fraction) -> None:
    index = index_above(scale)
    assert round_up(scale) == point(index) >= scale
    assert index == 0 or point(index - 1) < scale
    assert round_up(round_up(scale)) == round_up(scale)


def test_rounding_up_agrees_with_a_plain_search() -> None:
    points = [point(index) for index in range(3000)]
    for index in range(0, 2999, 37):
        for scale in (
            points[index],
            (points[index] + points[index + 1]) / 2,
            points[index] + Fraction(1, 10**30),
        ):
            assert round_up(scale) == next(candidate for candidate in points if candidate >= scale)


def test_everything_below_the_floor_rounds_to_the_floor() -> None:
    assert round_up(Fraction(1, 10**50)) == FLOOR
    assert not on_grid(Fraction(1, 17))
    assert on_grid(FLOOR)
    assert on_grid(Fraction(25))
    assert not on_grid(Fraction(25) + Fraction(1, 10**40))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), 2.5, True, "4", float("nan")])
def test_only_exact_numbers_above_zero_are_scales(scale: object) -> None:
    with pytest.raises(UsageError, match="exact Fraction above 0"):
        round_up(scale)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="starts at index 0"):
        point(-1)


@settings(max_examples=200, deadline=None)
@given(scales, st.integers(0, 5000))
def test_first_fitting_is_the_least_that_fits(start: Fraction, steps: int) -> None:
    threshold = point(index_above(start) + steps)
    tried = []

    def fits(scale: Fraction) -> bool:
        tried.append(scale)
        return scale >= threshold

    assert first_fitting(start, fits) == threshold
    assert len(tried) <= 2 + 2 * (steps + 1).bit_length()
