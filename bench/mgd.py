"""CPU seconds of MGD on a made marginal of the shape 12 months x 278 neighborhoods x 174 incident types.

python bench/mgd.py [resample|noisy|model ...]     every synthetic side by default

About 1.5 million records, power laws in two attributes, 165,000 non-zero cells, tolerance 2. The synthetic side is
resampled (Poisson around each count), noisy (Laplace noise of scale 2 on each cell, cut at 0) or a model in which
the three attributes are independent. "default": only months move; "finite": all three weigh 1/3.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from margent.metrics.mgd import Attribute, mgd

SHAPE = (12, 278, 174)
NAMES = ("month", "neighborhood", "incident")
RECORDS = 1_455_608
SEED = 20191


def counts(seed: int) -> NDArray[np.int64]:
    """Real counts: a product of a flat and two power laws, made uneven cell by cell of the last two axes."""
    rng = np.random.default_rng(seed)
    month = rng.dirichlet(np.full(SHAPE[0], 50.0))
    place = np.arange(1, SHAPE[1] + 1) ** -0.6
    incident = np.arange(1, SHAPE[2] + 1) ** -1.15
    mean = month[:, None, None] * rng.permutation(place)[:, None] * rng.permutation(incident)
    mean = mean * rng.gamma(0.27, 1 / 0.27, SHAPE[1:])
    return rng.poisson(RECORDS * mean / mean.sum())


def synthetic_counts(kind: str, real: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    if kind == "resample":
        return rng.poisson(real)
    if kind == "noisy":
        return np.maximum(np.rint(real + rng.laplace(0, 2, SHAPE)), 0).astype(np.int64)
    total = real.sum()
    one, two, three = (real.sum(axis) / total for axis in ((1, 2), (0, 2), (0, 1)))
    return rng.poisson(total * one[:, None, None] * two[:, None] * three)


def main() -> None:
    kinds = {
        "month": Attribute("month", 12, 12, "order"),
        "neighborhood": Attribute("neighborhood", 278, 278, "tree"),
        "incident": Attribute("incident", 174, 174, "tree"),
    }
    real = counts(SEED)
    print(f"{real.size:,} cells, {real.sum():,} records, {np.count_nonzero(real):,} non-zero cells, max {real.max():,}")
    everything = dict.fromkeys(NAMES, 1)
    for weights in (None, everything):
        start = time.process_time()
        small = {name: Attribute(name, 2, 2, one.kind) for name, one in kinds.items()}
        cube = np.arange(8).reshape(2, 2, 2)
        mgd({NAMES: cube}, {NAMES: 7 - cube}, small, weights=weights, tolerance=0)
        print(f"loading or compiling: {time.process_time() - start:.1f} s")
    for kind in sys.argv[1:] or ["resample", "noisy", "model"]:
        made = {NAMES: synthetic_counts(kind, real, SEED + 1)}
        for name, weights in (("default", None), ("finite", everything)):
            start = time.process_time()
            result = mgd({NAMES: real}, made, kinds, weights=weights, tolerance=2)
            seconds = time.process_time() - start
            proof = result.marginals[0].certificate
            print(
                f"{kind:9} {name:8} AEMC {result.value:.6f}  plan {float(proof.primal):,.3f} prices "
                f"{float(proof.dual):,.3f} {'exact' if result.exact else 'NOT EXACT'}  {seconds:6.2f} s of CPU"
            )


if __name__ == "__main__":
    main()
