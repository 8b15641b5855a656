"""The chain of levels: against enumeration, its limits, and what it gains on columns of every kind."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.postprocessing.levels import LevelSettings, expected_counts
from margent.postprocessing.levels_steps import beliefs, likelihoods
from margent.postprocessing.simplex import norm_sub

Array = NDArray[np.float64]


# Against enumeration.


def enumerated(
    fits: Array, common: Array, near: Array, fresh: float, spike: float
) -> tuple[Array, Array, Array, float, float]:
    """All paths of chain levels, fresh draws, spikes and spike levels, one by one."""
    codes, levels = fits.shape
    moves = np.array(
        [[near[abs(a - b)] if abs(a - b) < near.size else 0.0 for b in range(levels)] for a in range(levels)]
    )
    moves /= moves.sum(axis=1, keepdims=True)
    mass, posterior = 0.0, np.zeros(fits.shape)
    draws, distances, news, spikes = np.zeros(levels), np.zeros(near.size), 0.0, 0.0
    for path in itertools.product(range(levels), repeat=codes):
        for drawn in itertools.product((False, True), repeat=codes - 1):
            chain = common[path[0]]
            for place, anew in enumerate(drawn):
                here, there = path[place], path[place + 1]
                chain *= fresh * common[there] if anew else (1 - fresh) * moves[here, there]
            if chain == 0:
                continue
            for shown in itertools.product((None, *range(levels)), repeat=codes):
                weight = chain
                for code, level in enumerate(shown):
                    weight *= (
                        (1 - spike) * fits[code, path[code]]
                        if level is None
                        else spike * common[level] * fits[code, level]
                    )
                mass += weight
                draws[path[0]] += weight
                for place, anew in enumerate(drawn):
                    if anew:
                        news += weight
                        draws[path[place + 1]] += weight
                    else:
                        distances[abs(path[place] - path[place + 1])] += weight
                for code, level in enumerate(shown):
                    posterior[code, path[code] if level is None else level] += weight
                    if level is not None:
                        spikes += weight
                        draws[level] += weight
    return posterior / mass, draws / mass, distances / mass, news / mass, spikes / mass


@pytest.mark.parametrize("seed", range(4))
def test_beliefs_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fits, common = rng.random((3, 4)), rng.dirichlet(np.ones(4))
    near = rng.random(3)
    near /= near[0] + 2 * near[1:].sum()
    fresh, spike = rng.random(2)
    found, right = beliefs(fits, common, near, fresh, spike), enumerated(fits, common, near, fresh, spike)
    for mine, theirs in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_likelihoods_are_normal_densities() -> None:
    values, variance = np.array([3.0, -2.0]), np.array([4.0, 9.0])
    levels, widths = np.array([0.0, 1.0, 5.0]), np.array([0.0, 0.5, 2.0])
    wide = variance[:, np.newaxis] + widths**2
    right = np.exp(-((values[:, np.newaxis] - levels) ** 2) / (2 * wide)) / np.sqrt(wide)
    found = likelihoods(values, variance, levels, widths)
    np.testing.assert_allclose(found, right / right.max(axis=1, keepdims=True), rtol=1e-12)


# Limits.


@settings(max_examples=60, deadline=None)
@given(
    codes=st.integers(0, 40),
    scale=st.sampled_from([1e-6, 1.0, 1e3, 1e9]),
    deviation=st.sampled_from([1e-3, 1.0, 1e5, 1e12]),
    total=st.sampled_from([1.0, 500.0, 1e9]),
    seed=st.integers(0, 99),
)
def test_any_column_gives_finite_counts(codes: int, scale: float, deviation: float, total: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = scale * rng.normal(0, 1, codes)
    variance = deviation**2 * rng.choice([1.0, 30.0], codes)
    counts, left = expected_counts(values, variance, total)
    assert counts.shape == left.shape == values.shape
    assert np.isfinite(counts).all()
    assert np.isfinite(left).all()
    assert left.min(initial=0.0) >= 0
    if codes >= LevelSettings().fewest:
        again = expected_counts(values, variance, total)
        assert (again[0].tobytes(), again[1].tobytes()) == (counts.tobytes(), left.tobytes())


def test_without_noise_counts_are_believed() -> None:
    exact = np.random.default_rng(3).integers(0, 5_000, 60).astype(float)
    counts, variance = expected_counts(exact, np.full(60, 0.01), float(exact.sum()))
    np.testing.assert_allclose(counts, exact, atol=0.05)
    assert variance.max() < 0.02


def test_few_codes_and_very_many_are_left_as_they_are() -> None:
    values, variance = np.array([5.0, -1.0, 7.0]), np.full(3, 4.0)
    assert expected_counts(values, variance, 11.0) == (values, variance)
    many = np.ones(30)
    assert expected_counts(many, many, 30.0, LevelSettings(most=20))[0] is many


def test_order_backwards_gives_the_counts_backwards() -> None:
    """The chain has no direction but for the first code's level and the ends of the ladder."""
    rng = np.random.default_rng(4)
    exact = 400 * np.exp(-(((np.arange(50) - 20) / 9.0) ** 2))
    noisy, variance = exact + rng.normal(0, 30, 50), np.full(50, 900.0)
    forward, backward = (expected_counts(values, variance, exact.sum())[0] for values in (noisy, noisy[::-1]))
    np.testing.assert_allclose(forward, backward[::-1], atol=4.0)


# What is gained.


def columns() -> dict[str, Array]:
    rng = np.random.default_rng(5)
    bell = np.exp(-(((np.arange(100) - 40) / 15.0) ** 2))
    spiky = bell.copy()
    spiky[::10] *= 4
    sparse = np.zeros(100)
    sparse[[3, 17, 40, 77]] = 5, 2, 1, 8
    powers = rng.permutation(1 / (1 + np.arange(100.0)) ** 1.2)
    return {
        name: 20_000 * column / column.sum()
        for name, column in {
            "bell": bell,
            "spiky": spiky,
            "sparse": sparse,
            "powers": powers,
            "flat": np.ones(100),
            "shuffled bell": rng.permutation(bell),
        }.items()
    }


def distances(exact: Array, deviation: float, variance: float | None = None) -> tuple[float, float, float, float]:
    """Mean total variation over 20 noises: plain projection, ours; squared errors stated and met."""
    rng = np.random.default_rng(6)
    plain, ours, stated, met = [], [], [], []
    for _ in range(20):
        noisy = exact + rng.normal(0, deviation, exact.size)
        counts, left = expected_counts(noisy, np.full(exact.size, variance or deviation**2), float(exact.sum()))
        for made, found in ((plain, noisy), (ours, counts)):
            made.append(np.abs(norm_sub(found, float(exact.sum())) - exact).sum() / 2 / exact.sum())
        stated.append(left.sum())
        met.append(np.square(counts - exact).sum())
    return float(np.mean(plain)), float(np.mean(ours)), float(np.mean(stated)), float(np.mean(met))


GAINS = {"bell": 0.8, "spiky": 0.85, "sparse": 0.55, "powers": 0.9, "flat": 0.65, "shuffled bell": 1.02}
"""Error left as a share of that of the plain projection, at most, at noise 30 and 100."""


@pytest.mark.parametrize("deviation", [30.0, 100.0])
@pytest.mark.parametrize("kind", list(GAINS))
def test_the_error_is_lower_than_that_of_projecting_alone(kind: str, deviation: float) -> None:
    """Means over 20 noises; a column whose order means nothing and whose codes are all frequent does not lose."""
    plain, ours, _, _ = distances(columns()[kind], deviation)
    assert ours < GAINS[kind] * plain


@pytest.mark.parametrize("kind", ["bell", "spiky", "sparse", "powers", "shuffled bell"])
def test_the_stated_variance_is_about_the_squared_error(kind: str) -> None:
    """Within a factor of 1.6 over 20 noises; the variance of the noise itself is farther off where much is gained."""
    _, _, stated, met = distances(columns()[kind], 60.0)
    assert 1 / 1.6 < stated / met < 1.6
    if kind == "sparse":
        assert 100 * 60.0**2 / met > 1.6


def test_the_statistics_catch_a_wrong_noise() -> None:
    """A planted fault: told a variance 400 times too large, the chain drops what it should keep."""
    plain, ours, _, _ = distances(columns()["spiky"], 30.0, variance=400 * 30.0**2)
    assert ours > GAINS["spiky"] * plain
