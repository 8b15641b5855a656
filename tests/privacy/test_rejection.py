"""Wide laws: proposal times acceptance is the law, the coin is exact, and the draws agree with others."""

from __future__ import annotations

import secrets
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy import stats

from margent.errors import PlanError
from margent.privacy import rejection
from margent.privacy.brackets import DiscreteLaw, discrete_gaussian_law, discrete_laplace_law
from margent.privacy.inversion import BLOCK
from margent.privacy.noise import discrete_gaussian, discrete_laplace
from margent.privacy.rejection import BlockRejection, ExponentRise, block_law, keeps
from tests.privacy.exact_laws import ALPHA, PRECISION, chi_square_p, two_sample_p


@given(
    st.fractions(min_value=Fraction(1, 2**90), max_value=3),
    st.fractions(min_value=0, max_value=3),
    st.integers(1, 50),
    st.integers(0, 1000),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_block_and_acceptance_multiply_to_the_law(
    slope: Fraction, curvature: Fraction, shift: int, block: int, data: st.DataObject
) -> None:
    """E_blocks(Q) + gamma(Q, R) = E(mQ + R), exactly: the accepted proposals have the law's weights."""
    size = 1 << shift
    place = data.draw(st.integers(0, size - 1))
    law = DiscreteLaw(slope, curvature)
    rise = ExponentRise.of(law)
    gamma = Fraction(rise.top(size * block, place), rise.bottom)
    assert gamma >= 0
    assert block_law(law, size).exponent(block) + gamma == law.exponent(size * block + place)
    # What is accepted unseen is above this bound.
    assert rise.top(size * block, place) <= rise.top(size * (block + 1), size - 1)


@pytest.mark.parametrize(
    "gamma", [Fraction(0), Fraction(1, 10**40), Fraction(1, 300), Fraction(1, 2), Fraction(9, 7), Fraction(6)]
)
def test_the_coin_is_exact_by_enumeration(gamma: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """All strings of ten bits; those that ask for more are the one or two that hold 1 - exp(-gamma)."""

    class AskedForMoreError(Exception):
        pass

    def ask(width: int) -> int:
        raise AskedForMoreError

    monkeypatch.setattr(rejection, "random_bits", ask)
    kept = asked = 0
    for string in range(1 << 10):
        try:
            kept += keeps(gamma.numerator, gamma.denominator, string, 10)
        except AskedForMoreError:
            asked += 1
    assert asked <= 3
    with mp.workprec(PRECISION):
        chance = mp.exp(-mpf(gamma.numerator) / gamma.denominator)
        assert mpf(kept) / 1024 <= chance <= mpf(kept + asked) / 1024


def test_the_coin_goes_on_with_fresh_bits() -> None:
    """From a two-bit string that leaves it open, the share kept is that of the number's true place in it."""
    gamma = Fraction(1, 2)  # 1 - exp(-1/2) = .3935 lies in [1/4, 1/2)
    kept = sum(keeps(1, 2, 1, 2) for _ in range(4000))
    share = float((mp.exp(-mpf(gamma.numerator) / gamma.denominator) - 0.5) / 0.25)
    assert stats.binomtest(kept, 4000, share).pvalue > ALPHA
    assert stats.binomtest(kept, 4000, share + 0.12).pvalue < ALPHA


@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize(
    "law",
    [discrete_gaussian_law(Fraction(300)), discrete_laplace_law(Fraction("20.5"))],
    ids=["gaussian", "laplace"],
)
def test_narrow_laws_through_large_blocks(law: DiscreteLaw, shift: int) -> None:
    """Blocks of up to 16 at scale 17 to 20: acceptance matters at every draw. Then what must be seen."""
    draws = BlockRejection(law, shift).draw(100_000)
    assert chi_square_p(draws, law) > ALPHA
    assert chi_square_p(np.append(draws, np.zeros(2000, np.int64)), law) < ALPHA  # zero taken with both signs


def test_accepting_all_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection, "keeps", lambda *arguments: True)
    law = discrete_gaussian_law(Fraction(300))
    assert chi_square_p(BlockRejection(law, 3).draw(150_000), law) < ALPHA


def _spread_p(draws: NDArray[np.int64], law: DiscreteLaw, width: int) -> float:
    """The least p of chi-square on sizes and on remainders modulo ``width``, which are nearly uniform."""
    return min(
        chi_square_p(draws, law, bins=100),
        float(stats.chisquare(np.bincount(draws % width, minlength=width)).pvalue),
    )


def test_just_above_the_limit_of_inversion() -> None:
    """s = 2,001: cells of a hundredth of the mass, and remainders modulo 16."""
    law = discrete_gaussian_law(Fraction(2001**2))
    assert _spread_p(discrete_gaussian(300_000, Fraction(2001**2)), law, 16) > ALPHA / 2
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert _spread_p(discrete_gaussian(100_000, Fraction(2001**2) * factor**2), law, 16) < ALPHA / 2


@pytest.mark.parametrize("scale", [2001, 10**6, 2**50], ids=["2001", "10^6", "2^50"])
def test_wide_draws_against_the_continuous_law(scale: int) -> None:
    """The step is under 1/2000 of the scale: below what 100,000 draws in 50 cells resolve."""
    edges = np.linspace(0, 1, 51)[1:-1]
    gaussian = discrete_gaussian(100_000, Fraction(scale) ** 2) / scale
    laplace = discrete_laplace(100_000, Fraction(scale)) / scale
    for draws, law in ((gaussian, stats.norm), (laplace, stats.laplace)):
        for factor, passes in ((1.0, True), (0.9, False), (1.1, False)):
            cells = np.bincount(np.searchsorted(law.ppf(edges), draws * factor), minlength=50)
            assert bool(stats.chisquare(cells).pvalue > ALPHA) is passes
    # The low bits of wide draws are uniform.
    wide = discrete_gaussian(100_000, Fraction(scale) ** 2)
    assert stats.chisquare(np.bincount(wide & 31, minlength=32)).pvalue > ALPHA


def _bernoulli_exp(gamma: Fraction) -> bool:
    """Algorithm 1 of Canonne, Kamath, Steinke 2020, as printed."""
    while gamma > 1:
        if not _bernoulli_exp(Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while secrets.randbelow(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1


def _reference_laplace(t: int) -> int:
    """Algorithm 2 of the same, s = 1."""
    while True:
        u = secrets.randbelow(t)
        if not _bernoulli_exp(Fraction(u, t)):
            continue
        v = 0
        while _bernoulli_exp(Fraction(1)):
            v += 1
        x = u + t * v
        if secrets.randbelow(2):
            if x == 0:
                continue
            return -x
        return x


def _reference_gaussian(scale_squared: int, t: int) -> int:
    """Algorithm 3 of the same, t = floor(s) + 1."""
    while True:
        y = _reference_laplace(t)
        if _bernoulli_exp((abs(y) - Fraction(scale_squared, t)) ** 2 / (2 * scale_squared)):
            return y


def test_both_samplers_agree_with_the_published_one() -> None:
    theirs = np.array([_reference_gaussian(50, 8) for _ in range(4000)])
    assert two_sample_p(discrete_gaussian(100_000, Fraction(50)), theirs) > ALPHA
    assert two_sample_p(BlockRejection(discrete_gaussian_law(Fraction(50)), 2).draw(100_000), theirs) > ALPHA
    assert two_sample_p(discrete_gaussian(100_000, Fraction(50) * Fraction(64, 100)), theirs) < ALPHA
    laplace = np.array([_reference_laplace(6) for _ in range(4000)])
    assert two_sample_p(BlockRejection(discrete_laplace_law(Fraction(6)), 1).draw(100_000), laplace) > ALPHA


def test_sign_place_and_coin_share_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known bits: the place is a word's top bits; of another word the last bit is the sign, the rest V."""
    generator = np.random.default_rng(2)
    drawn: list[NDArray[np.uint64]] = []
    coins: list[int] = []

    def known_words(count: int) -> NDArray[np.uint64]:
        drawn.append(generator.integers(0, 2**64, count, dtype=np.uint64))
        return drawn[-1]

    def keep_all(top: int, bottom: int, string: int, bits: int) -> bool:
        assert bits == 63
        coins.append(string)
        return True

    sampler = BlockRejection(discrete_laplace_law(Fraction(20)), 4)
    monkeypatch.setattr(rejection, "random_words", known_words)
    monkeypatch.setattr(rejection, "keeps", keep_all)
    monkeypatch.setattr(sampler._blocks, "draw", lambda count: np.ones(count, np.int64))
    draws = sampler.draw(500)
    places, words = (words.tolist() for words in drawn)
    expected = [(-1 if word & 1 else 1) * (16 + (place >> 60)) for place, word in zip(places, words, strict=True)]
    assert draws.tolist() == expected[:500]
    assert coins
    assert set(coins) <= {word >> 1 for word in words}


def test_counts_are_filled_exactly() -> None:
    sampler = BlockRejection(discrete_laplace_law(Fraction(4)), 1)  # a fifth of the proposals is rejected
    for count in (0, 1, 100, BLOCK + 3):
        draws = sampler.draw(count)
        assert draws.shape == (count,)
        assert np.count_nonzero(draws) >= count // 2


def test_a_draw_that_would_not_fit_is_an_error() -> None:
    with pytest.raises(PlanError, match="64 bits"):
        BlockRejection(discrete_laplace_law(Fraction(2**61)), 51).draw(1000)
