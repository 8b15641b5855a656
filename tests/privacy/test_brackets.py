"""Brackets against 600-bit values of the definitions, and the first decision table string by string."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from margent.privacy import grid
from margent.privacy.brackets import (
    Brackets,
    DiscreteLaw,
    Interval,
    discrete_gaussian_law,
    discrete_laplace_law,
    exp_bracket,
    listed_brackets,
    multiply,
)
from tests.privacy.exact_laws import PRECISION, exact_distribution, exact_weights
from tests.sizes import rounds

CHARGED_LAWS = rounds(30, 1_000)

LAWS = {
    **{f"gaussian {s2}": discrete_gaussian_law(Fraction(s2)) for s2 in ("1/50", "1/16", "1/2", "17.9", "1000")},
    "gaussian 9999.7": discrete_gaussian_law(Fraction("9999.7")),
    **{f"laplace {t}": discrete_laplace_law(Fraction(t)) for t in ("1/30", "1/3", "1", "7/3", "40.25")},
    "half a gaussian": DiscreteLaw(Fraction(1, 1800), Fraction(1, 900), two_sided=False),
    "half a laplace": DiscreteLaw(Fraction(3, 70), Fraction(0), two_sided=False),
    "neither": DiscreteLaw(Fraction(1, 7), Fraction(1, 90)),
}


@given(st.fractions(min_value=0, max_value=400), st.integers(1, 300))
@settings(max_examples=300, deadline=None)
def test_exp_bracket_encloses_the_exponential(exponent: Fraction, precision: int) -> None:
    low, high = exp_bracket(exponent, precision)
    with mp.workprec(PRECISION + 600):
        true = mp.exp(-mpf(exponent.numerator) / exponent.denominator) * mpf(2) ** precision
        assert low <= true <= high
    assert high - low <= 2
    assert 0 <= low <= high <= 1 << precision


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 10**30), Fraction(10**30), Fraction(255), Fraction(257)])
def test_exp_bracket_at_the_ends(exponent: Fraction) -> None:
    low, high = exp_bracket(exponent, 256)
    with mp.workprec(PRECISION):
        assert low <= mp.exp(-mpf(exponent.numerator) / exponent.denominator) * mpf(2) ** 256 <= high
    assert high - low <= 2


@given(st.integers(0, 2**20), st.integers(0, 9), st.integers(0, 2**20), st.integers(0, 9))
def test_products_enclose_the_products_of_the_ends(left: int, wide: int, right: int, broad: int) -> None:
    low, high = multiply(Interval(left, left + wide), Interval(right, right + broad), 10)
    assert low <= Fraction(left * right, 1 << 10)
    assert Fraction((left + wide) * (right + broad), 1 << 10) <= high


@pytest.mark.parametrize("bits", [8, 16, 64, 128, 192])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_brackets_enclose_the_distribution_function(law: DiscreteLaw, bits: int) -> None:
    brackets = law.brackets(bits)
    assert brackets.lows == sorted(brackets.lows)
    assert brackets.highs == sorted(brackets.highs)
    assert all(high - low <= 2 for low, high in zip(brackets.lows, brackets.highs, strict=True))
    below = exact_distribution(law)
    with mp.workprec(PRECISION):
        scale = mpf(2) ** bits
        for place, (low, high) in enumerate(zip(brackets.lows, brackets.highs, strict=True)):
            true = below[brackets.first + place] * scale
            assert low <= true <= high
        # What is not listed is a tail of less than one string.
        last = brackets.first + len(brackets.lows) - 1
        assert (1 - below[last]) * scale < 1


def test_brackets_of_a_wide_law() -> None:
    law = discrete_gaussian_law(Fraction(1000**2))
    brackets = law.brackets(64)
    below = exact_distribution(law)
    with mp.workprec(PRECISION):
        for place in range(0, len(brackets.lows), 7):
            true = below[brackets.first + place] * mpf(2) ** 64
            assert brackets.lows[place] <= true <= brackets.highs[place] <= brackets.lows[place] + 2


@given(
    st.fractions(min_value=Fraction(1, 40), max_value=30, max_denominator=10**6),
    st.fractions(min_value=0, max_value=3, max_denominator=10**6),
    st.booleans(),
    st.integers(4, 90),
)
@settings(max_examples=25, deadline=None)
def test_brackets_of_any_law(slope: Fraction, curvature: Fraction, two_sided: bool, bits: int) -> None:
    law = DiscreteLaw(slope, curvature, two_sided)
    brackets = law.brackets(bits)
    below = exact_distribution(law)
    with mp.workprec(PRECISION):
        for place, (low, high) in enumerate(zip(brackets.lows, brackets.highs, strict=True)):
            assert low <= below[brackets.first + place] * mpf(2) ** bits <= high <= low + 2


def test_brackets_of_the_laws_of_charges_at_three_precisions() -> None:
    """Scales of the public grid, evenly on a logarithmic scale: 30 laws at every commit, 1,000 in an audit."""
    rng = random.Random(13)
    for number in range(CHARGED_LAWS):
        if number % 2:
            law = discrete_laplace_law(grid.round_up(Fraction(10 ** rng.uniform(-1.5, 1.5))))
        else:
            law = discrete_gaussian_law(grid.round_up(Fraction(10 ** rng.uniform(-1.5, 3))))
        below = exact_distribution(law)
        with mp.workprec(PRECISION):
            for bits in (16, 64, 128):
                brackets, whole = law.brackets(bits), mpf(2) ** bits
                for place, (low, high) in enumerate(zip(brackets.lows, brackets.highs, strict=True)):
                    assert low <= below[brackets.first + place] * whole <= high <= low + 2


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_coarser_brackets_enclose_the_finer(law: DiscreteLaw) -> None:
    fine = law.brackets(64)
    coarse = fine.coarser(16)
    assert (coarse.bits, coarse.first) == (16, fine.first)
    for low, high, below, above in zip(coarse.lows, coarse.highs, fine.lows, fine.highs, strict=True):
        assert low << 48 <= below <= above <= high << 48
        assert high - low <= 2


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_every_string_of_ten_bits_is_decided_only_when_it_is_certain(law: DiscreteLaw) -> None:
    """A string decides k only if its whole interval lies in [Pr[X < k], Pr[X < k + 1]]; few stay open."""
    brackets = law.brackets(10)
    below = exact_distribution(law)
    decided = 0
    with mp.workprec(PRECISION):
        for string in range(1 << 10):
            outcome = brackets.outcome(string)
            if outcome is not None:
                decided += 1
                assert below[outcome] <= mpf(string) / 1024
                assert mpf(string + 1) / 1024 <= below[outcome + 1]
        # A string left open touches a value of the distribution function, or is the first or last.
        holds = {int(value * 1024) + step for value in below.values() for step in (-1, 0, 1)}
    assert 1024 - decided <= len(holds & set(range(1024)))


@pytest.mark.parametrize("resolution", [1, 3, 8, 40])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_sums_enclose_the_whole_tail(law: DiscreteLaw, resolution: int) -> None:
    """Cut early, so that what is left out is large: the bracket of the whole sum must still hold it."""
    sums, every = law.sums(100, resolution)
    weights = exact_weights(law)
    with mp.workprec(PRECISION):
        scale, reached = mpf(2) ** 100, mpf(0)
        for place, (low, high) in enumerate(sums):
            reached += weights[place] if place else 0
            assert low <= reached * scale <= high
        whole = mp.fsum(weights[1:])
        assert every.low <= whole * scale <= every.high
        assert whole - reached < mpf(2) ** -resolution


def test_the_ends_of_a_two_sided_law_are_never_decided() -> None:
    for law in (discrete_gaussian_law(Fraction(3)), discrete_laplace_law(Fraction(3))):
        for bits in (8, 64, 128):
            brackets = law.brackets(bits)
            assert brackets.outcome(0) is None
            assert brackets.outcome((1 << bits) - 1) is None


def test_listed_weights_share_the_whole() -> None:
    brackets = listed_brackets([Interval(4, 4), Interval(8, 8), Interval(4, 4)], 4)
    assert brackets == Brackets(4, 0, [0, 4, 12, 16], [0, 4, 12, 16])
    assert [brackets.outcome(string) for string in range(16)] == [0] * 4 + [1] * 8 + [2] * 4


@pytest.mark.parametrize("scale", [Fraction(1, 30), Fraction(7, 3), Fraction(20)])
def test_the_laplace_brackets_agree_with_its_closed_form(scale: Fraction) -> None:
    """Pr[X < k] = q^(1 - k) / (1 + q) for k <= 0, with q = exp(-1 / t)."""
    brackets = discrete_laplace_law(scale).brackets(128)
    with mp.workprec(PRECISION):
        q = mp.exp(-mpf(scale.denominator) / scale.numerator)
        for k in range(brackets.first, 1):
            place = k - brackets.first
            true = q ** (1 - k) / (1 + q) * mpf(2) ** 128
            assert brackets.lows[place] <= true <= brackets.highs[place]
