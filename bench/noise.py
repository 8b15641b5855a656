"""Draws of exact noise for each second of CPU, and OpenDP beside them where it is installed.

python bench/noise.py            a million draws, the best of five
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from margent.privacy import noise
from margent.privacy.exponential import exponential_choice
from margent.privacy.noise import discrete_gaussian, discrete_laplace
from margent.privacy.randomness import random_words

DRAWS = 1_000_000


def best_of(action: Callable[[], object], repeats: int = 5) -> float:
    """The least CPU time of the action, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def rate(name: str, sampler: Callable[[int, Fraction], object], scale: Fraction) -> None:
    noise._sampler.cache_clear()
    first = best_of(lambda: sampler(1, scale), repeats=1)
    seconds = best_of(lambda: sampler(DRAWS, scale))
    print(f"{name:32} {float(scale):>10.4g} {DRAWS / seconds / 1e6:9.1f} {first * 1e3:12.1f}")


def theirs(name: str, make: Callable[..., Any], space: tuple[Any, Any], scale: float, count: int) -> None:
    measurement = make(*space, scale=scale)
    seconds = best_of(lambda: measurement([0] * count), repeats=3)
    print(f"{name:32} {scale:>10.4g} {count / seconds / 1e6:9.3f}")


def main() -> None:
    words = best_of(lambda: random_words(DRAWS))
    print(f"random words: {8 * DRAWS / words / 1e6:,.0f} MB per CPU second")
    print(f"{'':32} {'scale':>10} {'M draws/s':>9} {'tables in ms':>12}")
    for scale_squared in ("17.9", "1000", "1e4", "1e6", "4e6", "4000001", "1e12", str(2**100)):
        rate("discrete Gaussian (scale: s^2)", discrete_gaussian, Fraction(scale_squared))
    for scale in ("5", "100", "2000", "2001", "1e12"):
        rate("discrete Laplace (scale: t)", discrete_laplace, Fraction(scale))
    plain = np.random.default_rng(0)
    seconds = best_of(lambda: np.rint(plain.normal(0, 31.6, DRAWS)).astype(np.int64))
    print(f"{'numpy, rounded, not exact':32} {1000:>10.4g} {DRAWS / seconds / 1e6:9.1f}")
    for candidates in (100, 10_000):
        scores = [int(word >> np.uint64(50)) for word in random_words(candidates)]
        seconds = best_of(lambda scores=scores: exponential_choice(scores, Fraction(1, 10), Fraction(1)))
        print(f"exponential mechanism, {candidates:,} candidates: {seconds * 1e3:.1f} ms of CPU")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import opendp.prelude as dp
    except ImportError:
        print("OpenDP is not installed")
        return
    dp.enable_features("contrib")
    numbers = dp.vector_domain(dp.atom_domain(T="i64"))
    theirs("OpenDP Gaussian (scale: s)", dp.m.make_gaussian, (numbers, dp.l2_distance(T=float)), 31.6, 100_000)
    theirs("OpenDP Laplace (scale: t)", dp.m.make_laplace, (numbers, dp.l1_distance(T="i64")), 100.0, 100_000)


if __name__ == "__main__":
    main()
