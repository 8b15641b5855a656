"""The laws of the noise, computed a second time: 600-bit floating point, straight from the definitions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy import stats

from margent.privacy.brackets import DiscreteLaw

PRECISION = 600  # bits of the arithmetic
CUT = 300  # weights below 2^-CUT of the largest are left out: far below the finest bracket tested
ALPHA = 1e-8  # false-alarm rate of each statistical test; with about 80 of them, under 1e-6 for a run


def exponent(law: DiscreteLaw, magnitude: int) -> mpf:
    slope = mpf(law.slope.numerator) / law.slope.denominator
    curvature = mpf(law.curvature.numerator) / law.curvature.denominator
    return slope * magnitude + curvature * magnitude * (magnitude - 1) / 2


def exact_weights(law: DiscreteLaw) -> list[mpf]:
    """exp(-E(j)) for j = 0, 1, .. until it is below 2^-CUT."""
    with mp.workprec(PRECISION):
        weights = []
        while True:
            weights.append(mp.exp(-exponent(law, len(weights))))
            if weights[-1] < mpf(2) ** -CUT:
                return weights


@lru_cache(maxsize=32)
def exact_masses(law: DiscreteLaw) -> tuple[int, list[mpf]]:
    """The first outcome and the probabilities from there on."""
    weights = exact_weights(law)
    with mp.workprec(PRECISION):
        if law.two_sided:
            first, listed = 1 - len(weights), weights[:0:-1] + weights
        else:
            first, listed = 0, weights
        total = mp.fsum(listed)
        return first, [weight / total for weight in listed]


@lru_cache(maxsize=32)
def exact_distribution(law: DiscreteLaw) -> dict[int, mpf]:
    """k -> Pr[X < k], over all k where it is not within 2^-CUT of 0 or 1."""
    first, masses = exact_masses(law)
    below = {}
    with mp.workprec(PRECISION):
        reached = mpf(0)
        for place, mass in enumerate(masses):
            below[first + place] = reached
            reached += mass
        below[first + len(masses)] = reached
    return below


def chi_square_p(draws: NDArray[np.int64], law: DiscreteLaw, bins: int = 0) -> float:
    """The p-value of Pearson's test of ``draws`` against the law, in cells of at least 20 expected draws."""
    first, exact = exact_masses(law)
    masses = np.array([float(mass) for mass in exact])
    places = np.clip(draws - first, 0, masses.size - 1)
    observed = np.bincount(places, minlength=masses.size)
    expected = masses * draws.size
    groups = np.floor(np.minimum(np.cumsum(expected), draws.size - 20) / max(20, draws.size / (bins or 200)))
    _, groups = np.unique(groups, return_inverse=True)
    merged_expected = np.bincount(groups, weights=expected)
    merged_observed = np.bincount(groups, weights=observed)
    keep = merged_expected > 0
    statistic = float(((merged_observed - merged_expected)[keep] ** 2 / merged_expected[keep]).sum())
    return float(stats.chi2.sf(statistic, keep.sum() - 1))


def two_sample_p(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """The p-value of the chi-square test that two samples have one law, cells merged likewise."""
    low = min(left.min(), right.min())
    size = int(max(left.max(), right.max()) - low) + 1
    table = np.stack([np.bincount(sample - low, minlength=size) for sample in (left, right)])
    smaller = min(left.size, right.size) / (left.size + right.size)
    cells = np.cumsum(table.sum(axis=0)) * smaller
    groups = np.floor(np.minimum(cells, cells[-1] - 20) / 20).astype(np.int64)
    _, groups = np.unique(groups, return_inverse=True)
    merged = np.stack([np.bincount(groups, weights=row) for row in table])
    return float(stats.chi2_contingency(merged[:, merged.sum(axis=0) > 0], correction=False).pvalue)
