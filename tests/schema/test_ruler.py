"""Whole columns against landmarks, compared with exact fractions one at a time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.schema.ruler import Ruler, shortest

marks = st.lists(
    st.one_of(
        st.fractions(-1000, 1000, max_denominator=60),
        st.integers(-(2**64), 2**64),
        st.sampled_from([Fraction(3, 10), Fraction(1, 3), Fraction(10**40), Fraction(-(10**40)), Fraction(7, 10)]),
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


def slow(ruler: Ruler, value: Fraction) -> int:
    return sum(mark < value for mark in ruler.marks) + sum(mark <= value for mark in ruler.marks)


@settings(max_examples=200, deadline=None)
@given(marks, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=10))
def test_integers(found: list[Any], values: list[int]) -> None:
    ruler = Ruler(tuple(sorted(found)))
    near = [int(mark) + shift for mark in found for shift in (-1, 0, 1)]
    values += [value for value in near if -(2**63) <= value < 2**63]
    regions = ruler.of_integers(np.array(values, dtype=np.int64))
    assert regions.tolist() == [slow(ruler, Fraction(value)) for value in values]
    assert regions.tolist() == [ruler.of_exact(value) for value in values]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@settings(max_examples=200, deadline=None)
@given(marks, st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=10))
def test_floats_by_their_shortest_text(kind: Any, found: list[Any], more: list[float]) -> None:
    ruler = Ruler(tuple(sorted(found)))
    near = np.array([float(mark) for mark in found if abs(mark) < 10**38]).astype(kind)
    values = np.concatenate(
        [near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf)), np.array(more, kind)]
    )
    regions = ruler.of_floats(values)
    assert regions.tolist() == [slow(ruler, shortest(value)) for value in values]


def test_infinite_floats_lie_beyond_all_landmarks() -> None:
    ruler = Ruler((Fraction(-1), Fraction(1)))
    assert ruler.of_floats(np.array([-np.inf, np.inf])).tolist() == [0, 4]
    assert Ruler(()).of_floats(np.array([1.0, np.inf])).tolist() == [0, 0]


@settings(max_examples=200, deadline=None)
@given(marks, st.lists(st.decimals(-1000, 1000, places=20, allow_nan=False).map(str), max_size=8))
def test_rounded_numbers_are_right_wherever_they_are_not_in_doubt(found: list[Any], texts: list[str]) -> None:
    ruler = Ruler(tuple(sorted(found)))
    texts += [str(float(mark)) for mark in found if abs(mark) < 10**30]
    regions, doubtful = ruler.of_rounded(np.array([float(text) for text in texts]))
    for text, region, doubt in zip(texts, regions.tolist(), doubtful.tolist(), strict=True):
        assert doubt or region == slow(ruler, Fraction(text))
