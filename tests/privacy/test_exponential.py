"""The exponential mechanism: exact by enumeration, right in law, plain about bad arguments."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import stats

from margent.errors import UsageError
from margent.privacy import exponential
from margent.privacy.exponential import exponential_choice
from margent.privacy.inversion import refine
from tests.privacy.exact_laws import ALPHA, PRECISION


def _exact(scores: list[int], epsilon: Fraction, sensitivity: Fraction) -> list[mpf]:
    rate = epsilon / (2 * sensitivity)
    with mp.workprec(PRECISION):
        weights = [mp.exp(mpf(rate.numerator) * (score - max(scores)) / rate.denominator) for score in scores]
        total = mp.fsum(weights)
        return [weight / total for weight in weights]


def _law(scores: list[int], epsilon: Fraction, sensitivity: Fraction) -> exponential._ChoiceLaw:
    return exponential._ChoiceLaw(exponential._gaps(scores), epsilon / (2 * sensitivity))


CASES = [
    ([3, 1, 4, 1, 5, 9, 2, 6], Fraction(1), Fraction(1)),
    ([-70, -70, -71, 10**6 - 10**6 - 70], Fraction(3, 10), Fraction(2)),
    ([0], Fraction(1), Fraction(1)),
    ([5] * 7, Fraction(1), Fraction(1)),
    ([0, 10**40, 10**40 - 3], Fraction(1, 3), Fraction(1)),
    ([0, 700, 256, 513, 699], Fraction(1, 50), Fraction(4)),
]


@pytest.mark.parametrize(("scores", "epsilon", "sensitivity"), CASES)
def test_every_string_of_twelve_bits(scores: list[int], epsilon: Fraction, sensitivity: Fraction) -> None:
    """decided <= probability <= decided + undecided for every candidate; few strings stay open."""
    brackets = _law(scores, epsilon, sensitivity).brackets(12)
    outcomes = [brackets.outcome(string) for string in range(1 << 12)]
    undecided = outcomes.count(None)
    assert undecided <= 2 * (len(scores) - 1)
    with mp.workprec(PRECISION):
        for index, probability in enumerate(_exact(scores, epsilon, sensitivity)):
            decided = outcomes.count(index)
            assert mpf(decided) / 4096 <= probability <= mpf(decided + undecided) / 4096


@given(
    st.lists(st.integers(-5000, 5000), min_size=1, max_size=30),
    st.fractions(min_value=Fraction(1, 10**4), max_value=20, max_denominator=10**6),
    st.fractions(min_value=Fraction(1, 10), max_value=10, max_denominator=100),
    st.sampled_from([8, 64, 128]),
)
@settings(max_examples=60, deadline=None)
def test_brackets_enclose_the_sums(scores: list[int], epsilon: Fraction, sensitivity: Fraction, bits: int) -> None:
    brackets = _law(scores, epsilon, sensitivity).brackets(bits)
    assert (brackets.first, len(brackets.lows)) == (0, len(scores) + 1)
    with mp.workprec(PRECISION):
        reached, slack = mpf(0), mpf(2) ** -400
        for low, high, probability in zip(
            brackets.lows, brackets.highs, [*_exact(scores, epsilon, sensitivity), mpf(0)], strict=True
        ):
            assert low <= reached * mpf(2) ** bits + slack
            assert reached * mpf(2) ** bits - slack <= high <= low + 2
            reached += probability


@pytest.mark.parametrize("widths", [(64, 64), (4, 4)])
def test_choices_follow_the_law(widths: tuple[int, int]) -> None:
    """4,000 choices at ALPHA; half and twice the budget must both be seen."""
    scores, epsilon, sensitivity = [3, 1, 4, 1, 5, 9, 2, 6], Fraction(1), Fraction(1)
    bits, step = widths
    law = _law(scores, epsilon, sensitivity)
    if widths == (64, 64):
        chosen = [exponential_choice(scores, epsilon, sensitivity) for _ in range(4000)]
    else:
        chosen = [refine(law.brackets, exponential.random_bits(bits), bits, step) for _ in range(4000)]
    observed = np.bincount(chosen, minlength=8)
    for factor, passes in ((Fraction(1), True), (Fraction(1, 2), False), (Fraction(2), False)):
        expected = np.array([float(p) for p in _exact(scores, epsilon * factor, sensitivity)]) * 4000
        order = np.argsort(expected)
        pooled = np.append(expected[order[4:]], expected[order[:4]].sum())
        counted = np.append(observed[order[4:]], observed[order[:4]].sum())
        assert bool(stats.chisquare(counted, pooled).pvalue > ALPHA) is passes


def test_the_profile_of_a_worst_pair_is_within_epsilon() -> None:
    """log of the ratio of probabilities over all choices, for scores that each move by the sensitivity."""
    epsilon, sensitivity = Fraction(1, 2), Fraction(3)
    scores = [10, 0, 4, 25]
    with mp.workprec(PRECISION):
        worst = mpf(0)
        for pattern in np.ndindex(*(3,) * 4):
            moved = [score + 3 * (step - 1) for score, step in zip(scores, pattern, strict=True)]
            for before, after in zip(
                _exact(scores, epsilon, sensitivity), _exact(moved, epsilon, sensitivity), strict=True
            ):
                worst = max(worst, abs(mp.log(before / after)))
    assert 0.8 * epsilon < worst <= epsilon


def test_candidates_far_below_the_best_are_never_chosen() -> None:
    scores = [0] * 5000 + [10**12] + [0] * 4999
    assert exponential_choice(scores, Fraction(1), Fraction(1)) == 5000


def test_whole_numbers_of_any_kind() -> None:
    for scores in (np.array([1, 900], np.int64), np.array([1, 900], np.uint16), (1, 900)):
        assert exponential_choice(scores, Fraction(1), Fraction(1)) == 1
    assert exponential_choice(np.array([0, 2**63], np.uint64), Fraction(1), Fraction(1)) == 1


@pytest.mark.parametrize("scores", [[1.0, 2], ["31415"], [None], [Fraction(31415)], np.array([31415.5])])
def test_scores_are_whole_numbers_and_are_never_told(scores: Any) -> None:
    with pytest.raises(UsageError, match="whole numbers") as caught:
        exponential_choice(scores, Fraction(1), Fraction(1))
    assert "31415" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_no_candidates() -> None:
    with pytest.raises(UsageError, match="at least one score"):
        exponential_choice([], Fraction(1), Fraction(1))


@pytest.mark.parametrize("value", [0, 1, 0.5, None, Fraction(0), Fraction(-1, 2)])
def test_parameters_are_positive_fractions(value: Any) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        exponential_choice([1], value, Fraction(1))
    with pytest.raises(UsageError, match="sensitivity"):
        exponential_choice([1], Fraction(1), value)
