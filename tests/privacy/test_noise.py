"""The samplers' exactness by enumeration, their statistics with power, and an outside oracle."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy import stats

from margent.errors import PlanError, UsageError
from margent.privacy import inversion, noise
from margent.privacy.brackets import Brackets, DiscreteLaw, discrete_gaussian_law, discrete_laplace_law
from margent.privacy.inversion import BLOCK, Inversion, decision_table, refine
from margent.privacy.noise import SCALE_LIMIT, discrete_gaussian, discrete_laplace
from margent.privacy.randomness import random_words
from tests.privacy.exact_laws import (
    ALPHA,
    PRECISION,
    chi_square_p,
    exact_distribution,
    exact_masses,
    two_sample_p,
)

LAWS = {
    "gaussian 1/16": discrete_gaussian_law(Fraction(1, 16)),
    "gaussian 17.9": discrete_gaussian_law(Fraction("17.9")),
    "gaussian 1000": discrete_gaussian_law(Fraction(1000)),
    "laplace 1/3": discrete_laplace_law(Fraction(1, 3)),
    "laplace 9/2": discrete_laplace_law(Fraction(9, 2)),
    "half a gaussian": DiscreteLaw(Fraction(1, 200), Fraction(1, 100), two_sided=False),
}
each_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


# Exactness without statistics


@each_law
def test_every_string_of_two_levels_is_decided_rightly(law: DiscreteLaw) -> None:
    """All 65,536 strings of 8 bits and 8 bits more: decided <= pmf <= decided + undecided."""
    sampler = Inversion(law, first=8, second=16)
    assert sampler.table.shape == (256,)
    strings = np.arange(1 << 16, dtype=np.uint64)
    outcomes, decided = sampler.search(strings)
    at_once = np.repeat(sampler.table, 256).astype(np.int64)
    known = at_once != sampler.mark
    outcomes[known], decided[known] = at_once[known], True

    below = exact_distribution(law)
    mass = Counter(outcomes[decided].tolist())
    undecided = int(np.count_nonzero(~decided))
    first, masses = exact_masses(law)
    with mp.workprec(PRECISION):
        for outcome in mass:  # string by string, in runs: all of a law's strings are consecutive
            places = np.flatnonzero(decided & (outcomes == outcome))
            assert below[outcome] <= mpf(int(places[0])) / 65536
            assert mpf(int(places[-1]) + 1) / 65536 <= below[outcome + 1]
        for place, pmf in enumerate(masses):
            share = mass[first + place]
            assert mpf(share) / 65536 <= pmf <= mpf(share + undecided) / 65536
    # No more strings are left open than two a value of the distribution function, plus the ends.
    assert undecided <= 3 * len({int(value * 65536) for value in below.values()}) + 2


@each_law
def test_the_table_in_use_decides_rightly(law: DiscreteLaw) -> None:
    """Every entry of the 16-bit table that is drawn from: its whole interval belongs to its outcome."""
    sampler = Inversion(law)
    below = exact_distribution(law)
    outcomes = sampler.table.astype(np.int64)
    assert np.mean(outcomes == sampler.mark) < 0.02
    with mp.workprec(PRECISION):
        for outcome in np.unique(outcomes[outcomes != sampler.mark]):
            places = np.flatnonzero(outcomes == outcome)
            assert below[int(outcome)] <= mpf(int(places[0])) / 65536
            assert mpf(int(places[-1]) + 1) / 65536 <= below[int(outcome) + 1]


def test_a_table_holds_outcomes_of_any_size() -> None:
    half = Brackets(16, 40_000, [0, 1 << 15, 1 << 16], [0, 1 << 15, 1 << 16])
    table, mark = decision_table(half)
    assert (table[0], table[-1]) == (40_000, 40_001)
    assert mark not in table


@each_law
def test_the_search_in_use_is_right_on_both_sides_of_every_bracket(law: DiscreteLaw) -> None:
    sampler = Inversion(law)
    brackets = law.brackets(64)
    edges = {low + step for low in brackets.lows for step in (-3, -2, -1, 0, 1, 2, 3)} | {0, 2**64 - 1}
    strings = sorted(edge for edge in edges if 0 <= edge < 2**64)
    outcomes, decided = sampler.search(np.array(strings, dtype=np.uint64))
    below = exact_distribution(law)
    with mp.workprec(PRECISION):
        for string, outcome, sure in zip(strings, outcomes.tolist(), decided.tolist(), strict=True):
            if sure:
                assert below[outcome] <= mpf(string) / 2**64
                assert mpf(string + 1) / 2**64 <= below[outcome + 1]
    assert 0.2 < decided.mean() < 1


@pytest.mark.parametrize("law", [discrete_laplace_law(Fraction(2000)), discrete_gaussian_law(Fraction(179, 10))])
def test_the_search_by_prefix_is_the_search_among_all(law: DiscreteLaw) -> None:
    """Of the widest law that has tables and of a usual one: at ends of prefixes, around brackets, at random strings."""
    sampler = Inversion(law)
    brackets = law.brackets(64)
    lows = np.array(brackets.lows, dtype=np.uint64)
    highs = np.array([min(high, 2**64 - 1) for high in brackets.highs], dtype=np.uint64)
    ends = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    strings = np.concatenate([ends, ends - np.uint64(1), lows, lows[1:] - np.uint64(1), highs, random_words(500_000)])
    places = np.searchsorted(lows, strings, side="right") - 1
    sure = (places >= 0) & (places < lows.size - 1) & (highs[places] <= strings)
    outcomes, decided = sampler.search(strings)
    assert np.array_equal(decided, sure)
    assert np.array_equal(outcomes, places + brackets.first)


@each_law
def test_open_strings_are_refined_to_the_true_outcome(law: DiscreteLaw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each open 16-bit string, continued by known bits, ends where the whole number lies."""
    below = exact_distribution(law)
    brackets = law.brackets(16)
    open_strings = [string for string in range(1 << 16) if brackets.outcome(string) is None]
    bits = np.random.default_rng(5)
    with mp.workprec(PRECISION):
        for string in open_strings[:: max(1, len(open_strings) // 40)]:
            drawn: list[int] = []

            def known(width: int, drawn: list[int] = drawn) -> int:
                drawn.append(int(bits.integers(1 << width)))
                return drawn[-1]

            monkeypatch.setattr(inversion, "random_bits", known)
            outcome = refine(law.brackets, string, 16, 16)
            number = string
            for value in drawn:
                number = number << 16 | value
            scale = mpf(2) ** (16 * (1 + len(drawn)))
            assert drawn
            assert below[outcome] <= number / scale
            assert (number + 1) / scale <= below[outcome + 1]


def test_a_draw_uses_its_own_bits_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known bits: the prefix is the word's bytes in order, the continuation a word of the draw's own."""
    law = LAWS["gaussian 17.9"]
    sampler = Inversion(law, first=8, second=16)
    generator = np.random.default_rng(3)
    words: list[NDArray[np.uint64]] = []

    def known_words(count: int) -> NDArray[np.uint64]:
        words.append(generator.integers(0, 2**64, count, dtype=np.uint64))
        return words[-1]

    monkeypatch.setattr(inversion, "random_words", known_words)
    monkeypatch.setattr(inversion, "random_bits", lambda width: (1 << width) // 3)  # 0101..
    draws = sampler.draw(BLOCK + 1001)
    supply = iter(words)
    expected: list[int] = []
    brackets, fine = law.brackets(16), law.brackets(400)
    for size in (BLOCK, 1001):
        prefixes = next(supply).view(np.uint8)[:size]
        pending = np.flatnonzero(sampler.table[prefixes] == sampler.mark)
        continuation = dict(zip(pending.tolist(), (next(supply) >> np.uint64(56)).tolist(), strict=True))
        for place, prefix in enumerate(prefixes.tolist()):
            if place not in continuation:
                expected.append(int(sampler.table[prefix]))
                continue
            string = prefix << 8 | continuation[place]
            outcome = brackets.outcome(string)
            expected.append(fine.outcome(string << 384 | (1 << 384) // 3) if outcome is None else outcome)  # type: ignore[arg-type]
    assert draws.tolist() == expected
    assert not list(supply)


# Statistics, each at ALPHA, and what they must reject


@each_law
@pytest.mark.parametrize("widths", [(16, 64), (8, 16)])
def test_draws_follow_the_law(law: DiscreteLaw, widths: tuple[int, int]) -> None:
    first, second = widths
    assert chi_square_p(Inversion(law, first=first, second=second).draw(300_000), law) > ALPHA


@pytest.mark.parametrize("scale_squared", [Fraction(1, 4), Fraction("17.9"), Fraction(1000)])
def test_the_claimed_scale_passes_and_its_neighbors_fail(scale_squared: Fraction) -> None:
    law = discrete_gaussian_law(scale_squared)
    for factor, passes in ((Fraction(1), True), (Fraction(9, 10), False), (Fraction(11, 10), False)):
        draws = discrete_gaussian(60_000, scale_squared * factor**2)
        assert (chi_square_p(draws, law) > ALPHA) is passes


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(9, 2), Fraction(40)])
def test_the_claimed_laplace_scale_passes_and_its_neighbors_fail(scale: Fraction) -> None:
    law = discrete_laplace_law(scale)
    for factor, passes in ((Fraction(1), True), (Fraction(9, 10), False), (Fraction(11, 10), False)):
        assert (chi_square_p(discrete_laplace(60_000, scale * factor), law) > ALPHA) is passes


def suspicions(left: NDArray[np.int64], right: NDArray[np.int64], scale_squared: Fraction) -> set[str]:
    """The checks that two vectors, said to be independent noise of parameter s^2, fail; each at ALPHA."""
    law = discrete_gaussian_law(scale_squared)
    size, spread = left.size, float(scale_squared) ** 0.5  # the variance of N_Z(0, s^2) is at most s^2
    limit = stats.norm.isf(ALPHA / 2)
    found = set()
    if chi_square_p(left, law) < ALPHA or chi_square_p(right, law) < ALPHA:
        found.add("law")
    if abs(left.mean()) > limit * spread / size**0.5:
        found.add("mean")
    if abs(np.mean(left * right)) > limit * float(scale_squared) / size**0.5:
        found.add("reuse")
    if np.abs(left).max() <= 3 * spread:  # misses only if no draw of 60,000 exceeds 3 s: under 1e-60
        found.add("reach")
    return found


@pytest.mark.parametrize("scale_squared", [Fraction("17.9"), Fraction(1000)])
def test_planted_bugs_are_caught_by_name(scale_squared: Fraction) -> None:
    left, right = (discrete_gaussian(60_000, scale_squared) for _ in range(2))
    assert suspicions(left, right, scale_squared) == set()
    assert suspicions(np.abs(left), np.abs(right), scale_squared) >= {"law", "mean", "reuse"}
    cap = int(2 * float(scale_squared) ** 0.5)
    assert suspicions(np.clip(left, -cap, cap), np.clip(right, -cap, cap), scale_squared) == {"law", "reach"}
    assert suspicions(left, left, scale_squared) == {"reuse"}
    assert suspicions(left, -left, scale_squared) == {"reuse"}
    forgotten = left.copy()
    forgotten[::20] = 0
    assert suspicions(forgotten, right, scale_squared) == {"law"}
    shifted = left + (left >= 0)  # no zero, as where a sign is put on a one-sided draw
    assert "law" in suspicions(shifted, right, scale_squared)


def test_neighboring_draws_are_independent() -> None:
    """Pairs (draw i, draw i + lag) against the product law: chi-square on values, at ALPHA each lag."""

    def least_p(draws: NDArray[np.int64]) -> float:
        found = []
        for lag in (1, 2, 4, 8, BLOCK):
            left, right = np.clip(draws[:-lag], -5, 5) + 5, np.clip(draws[lag:], -5, 5) + 5
            table = np.bincount(left * 11 + right, minlength=121).reshape(11, 11)
            found.append(float(stats.chi2_contingency(table, correction=False).pvalue))
        return min(found)

    draws = discrete_gaussian(200_000, Fraction(10))
    assert least_p(draws) > ALPHA
    repeated_block = np.concatenate([draws[:BLOCK], draws[:BLOCK]])
    every_tenth_twice = draws.copy()
    every_tenth_twice[1::10] = draws[::10]
    assert least_p(repeated_block) < ALPHA
    assert least_p(every_tenth_twice) < ALPHA


def test_no_two_vectors_are_alike() -> None:
    seen: set[bytes] = set()
    lock = threading.Lock()

    def draw() -> None:
        for _ in range(5):
            drawn = discrete_gaussian(64, Fraction(10**6)).tobytes()
            with lock:
                seen.add(drawn)

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 40


# An independent implementation


@pytest.fixture
def opendp() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prelude = pytest.importorskip("opendp.prelude", reason="OpenDP, the oracle of this test, is not installed")
        prelude.enable_features("contrib")
        yield prelude


def test_the_gaussian_agrees_with_opendp(opendp: Any) -> None:
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T=float)
    theirs = np.array(opendp.m.make_gaussian(*space, scale=4.0)([0] * 20_000), dtype=np.int64)
    assert two_sample_p(discrete_gaussian(200_000, Fraction(16)), theirs) > ALPHA
    assert two_sample_p(discrete_gaussian(200_000, Fraction(16) * Fraction(64, 100)), theirs) < ALPHA


def test_the_laplace_agrees_with_opendp(opendp: Any) -> None:
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    theirs = np.array(opendp.m.make_laplace(*space, scale=4.0)([0] * 20_000), dtype=np.int64)
    assert two_sample_p(discrete_laplace(200_000, Fraction(4)), theirs) > ALPHA
    assert two_sample_p(discrete_laplace(200_000, Fraction(4) * Fraction(8, 10)), theirs) < ALPHA


# Arguments


def test_sizes_and_kinds() -> None:
    for count, sampler in itertools.product((0, 1, 17, BLOCK, BLOCK + 1), (discrete_gaussian, discrete_laplace)):
        for scale in (Fraction(1, 100), Fraction(3), Fraction(10**9)):
            draws = sampler(count, scale)
            assert draws.shape == (count,)
            assert draws.dtype == np.int64


def test_the_tables_serve_up_to_two_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[DiscreteLaw, bool]] = []

    class Recorder:
        def draw(self, count: int) -> NDArray[np.int64]:
            return np.zeros(count, np.int64)

    def record(law: DiscreteLaw, wide: bool) -> Recorder:
        chosen.append((law, wide))
        return Recorder()

    monkeypatch.setattr(noise, "_sampler", record)
    for above in (Fraction(0), Fraction(1, 10)):
        discrete_gaussian(1, Fraction(2000) ** 2 + above)
        discrete_laplace(1, Fraction(2000) + above)
    assert [wide for _, wide in chosen] == [False, False, True, True]
    assert chosen[0][0].exponent(2000) == Fraction(1, 2)
    assert chosen[1][0].exponent(2000) == 1


def test_tiny_scales_are_almost_always_zero() -> None:
    """At s^2 = 10^-9 another value than 0 has probability exp(-5e8); strings of zeros or ones end quickly."""
    for scale in (Fraction(1, 10**9), Fraction(1, 10**300)):
        assert not discrete_gaussian(300_000, scale).any()
        assert not discrete_laplace(300_000, scale).any()


@pytest.mark.parametrize("scale", [0, 1, 1.5, "2", None, True, Fraction(0), Fraction(-1), float("nan")])
@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
def test_a_scale_is_a_positive_fraction(sampler: Any, scale: Any) -> None:
    with pytest.raises(UsageError, match="positive Fraction"):
        sampler(1, scale)


@pytest.mark.parametrize("count", [-1, 1.0, "3", None, True])
@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
def test_a_count_is_a_whole_number(sampler: Any, count: Any) -> None:
    with pytest.raises(UsageError, match="count"):
        sampler(count, Fraction(1))


def test_scales_beyond_64_bits_are_refused() -> None:
    assert discrete_gaussian(5, Fraction(SCALE_LIMIT**2)).shape == (5,)
    assert discrete_laplace(5, Fraction(SCALE_LIMIT)).shape == (5,)
    with pytest.raises(PlanError, match="64 bits"):
        discrete_gaussian(5, SCALE_LIMIT**2 + Fraction(1, 2))
    with pytest.raises(PlanError, match="64 bits"):
        discrete_laplace(5, SCALE_LIMIT + Fraction(1, 2))
