"""Bugs of draws: noise of another law or drawn twice, and choices, each as somebody once wrote it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.privacy import curator, exponential, noise
from tests.audits import gates_draws as gates
from tests.audits.planting import Bug, Noise, Plant, exact, noisy


def adding(rule: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]]) -> Plant:
    """Exact counts and noise meet by ``rule``."""
    return lambda patch: patch.setattr(curator, "_checked_sum", rule)


def normal(scale_squared: Fraction) -> float:
    return float(scale_squared) ** 0.5


class Remembered:
    """The same draws whenever the same question comes."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, Fraction], NDArray[np.int64]] = {}

    def __call__(self, count: int, scale_squared: Fraction) -> NDArray[np.int64]:
        if (count, scale_squared) not in self.known:
            self.known[count, scale_squared] = exact(count, scale_squared)
        return self.known[count, scale_squared]


def seldom_none(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return exact(count, scale_squared) * (random.random() > 0.01)


def global_numpy(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.rint(np.random.normal(0, normal(scale_squared), count)).astype(np.int64)


def forked_generator() -> Noise:
    generator = np.random.default_rng()
    return lambda count, s2: np.rint(generator.normal(0, normal(s2), count)).astype(np.int64)


def laplace(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return noise.discrete_laplace(count, Fraction(round(normal(scale_squared) / 2**0.5 * 1000) or 1, 1000))


def uniform(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    reach = round(normal(scale_squared) * 3**0.5)
    return np.random.default_rng().integers(-reach, reach + 1, count)


def tiled(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.resize(exact(min(count, 1000), scale_squared), count)


def mirrored(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    half = exact(-(-count // 2), scale_squared)
    return np.concatenate([half, -half])[:count]


def running(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    """Neighbors share a part of their noise."""
    parts = exact(count + 1, scale_squared / 2)
    return parts[1:] + parts[:-1]


NOISE: tuple[tuple[str, Noise], ...] = (
    ("half the noise", lambda n, s2: exact(n, s2 / 4)),
    ("half the variance", lambda n, s2: exact(n, s2 / 2)),
    ("a tenth less noise", lambda n, s2: exact(n, s2 * Fraction(81, 100))),
    ("a hundredth less noise", lambda n, s2: exact(n, s2 * Fraction(98, 100))),
    ("s taken for s^2", lambda n, s2: exact(n, Fraction(max(math.isqrt(int(s2)), 1)))),
    ("s^2 rounded down to a whole number", lambda n, s2: exact(n, Fraction(max(int(s2), 1), 1 if s2 > 1 else 4))),
    ("no noise at all", lambda n, s2: np.zeros(n, dtype=np.int64)),
    ("noise cut at two scales", lambda n, s2: np.clip(exact(n, s2), -int(2 * normal(s2)), int(2 * normal(s2)))),
    ("noise cut at four scales", lambda n, s2: np.clip(exact(n, s2), -int(4 * normal(s2)), int(4 * normal(s2)))),
    ("noise in eight bits", lambda n, s2: exact(n, s2).astype(np.int8).astype(np.int64)),
    ("only positive noise", lambda n, s2: np.abs(exact(n, s2))),
    ("noise with a lean", lambda n, s2: exact(n, s2) + (np.arange(n) % 40 == 0)),
    ("only even noise", lambda n, s2: 2 * exact(n, s2 / 4)),
    ("normal noise, rounded", lambda n, s2: np.rint(np.random.default_rng().normal(0, normal(s2), n)).astype(np.int64)),
    ("normal noise, cut to whole", lambda n, s2: np.random.default_rng().normal(0, normal(s2), n).astype(np.int64)),
    ("Laplace noise of that variance", laplace),
    ("uniform noise of that variance", uniform),
)

REUSE: tuple[tuple[str, Noise], ...] = (
    ("a thousand draws over and over", tiled),
    ("each draw and its mirror image", mirrored),
    ("neighboring cells share noise", running),
    ("the same draws for tables of one shape", Remembered()),
    ("one draw for a whole block", lambda n, s2: np.repeat(exact(-(-n // 4), s2), 4)[:n]),
)


def no_noise_on_empty(table: NDArray[np.int64], draws: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(table == 0, 0, table + draws)


def less_noise_on_large(table: NDArray[np.int64], draws: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(table > 3, table + draws // 2, table + draws)


def choosing(rule: Callable[[list[int], Fraction, Fraction], int]) -> Plant:
    return lambda patch: patch.setattr(exponential, "exponential_choice", rule)


genuine_choice = exponential.exponential_choice


def permute_and_flip(values: list[int], epsilon: Fraction, sensitivity: Fraction) -> int:
    rng = np.random.default_rng()
    while True:
        for place in rng.permutation(len(values)):
            if rng.random() < math.exp(float(epsilon) * (values[place] - max(values)) / (2 * float(sensitivity))):
                return int(place)


BUGS: tuple[Bug, ...] = (
    *(Bug(name, gates.the_noise_has_the_charged_law, noisy(law)) for name, law in NOISE),
    *(Bug(name, gates.no_draw_is_used_twice, noisy(law)) for name, law in REUSE),
    Bug("no noise in one run of a hundred", gates.no_run_goes_without_noise, noisy(seldom_none)),
    Bug("noise from numpy's global generator", gates.no_seed_reaches_the_noise, noisy(global_numpy)),
    Bug("noise from a generator that a fork copies", gates.no_seed_reaches_the_noise, noisy(forked_generator())),
    Bug("no noise on empty cells", gates.the_noise_has_the_charged_law, adding(no_noise_on_empty)),
    Bug("less noise on large cells", gates.the_noise_has_the_charged_law, adding(less_noise_on_large)),
    Bug(
        "counts below zero cut off before they are kept",
        gates.the_noise_has_the_charged_law,
        adding(lambda table, draws: np.maximum(table + draws, 0)),
    ),
    Bug(
        "the best candidate, without noise",
        gates.choices_have_the_exponential_law,
        choosing(lambda values, epsilon, sensitivity: values.index(max(values))),
    ),
    Bug(
        "permute and flip, priced as the exponential mechanism",
        gates.choices_have_the_exponential_law,
        choosing(permute_and_flip),
    ),
    Bug(
        "choices at twice epsilon",
        gates.choices_have_the_exponential_law,
        choosing(lambda values, epsilon, sensitivity: genuine_choice(values, 2 * epsilon, sensitivity)),
    ),
    Bug(
        "the sensitivity of choices forgotten",
        gates.choices_have_the_exponential_law,
        choosing(lambda values, epsilon, sensitivity: genuine_choice(values, epsilon, Fraction(1))),
    ),
)
