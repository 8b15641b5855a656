"""The program that divides the budget: seconds for thousands of pairs, and how far it is from its optimum.

    python bench/allocation.py [--columns 110] [--budget .02]

Random columns of 2 to 300 codes and random distances from independence (seeded). At the optimum every bought table
has the same slope, and none that was left out has a steeper one at 0: printed are the largest relative difference of a
bought pair's slope from the level, the steepest slope left out over the level, and the share of the budget not spent.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from margent.collectors.waterfill import Program, largest_kappa, pair_sketch, sketch, stacked, variance_factors
from margent.privacy.interactions import interaction_gain


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=110)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--budget", type=float, default=0.0166)
    options = parser.parse_args()
    rng = np.random.default_rng(20261127)
    sizes = np.exp(rng.uniform(np.log(2), np.log(300), options.columns)).astype(int)
    counts = [rng.dirichlet(np.full(size, 0.5)) * options.rows for size in sizes]
    pairs = list(itertools.combinations(range(options.columns), 2))
    distances = options.rows * rng.beta(0.5, 8.0, len(pairs))
    for repeat in ("first", "warm"):
        start = time.process_time()
        sketches = [sketch(each) for each in counts]
        expected, weights = stacked([pair_sketch(sketches[a], sketches[b], options.rows) for a, b in pairs])
        most = np.array([largest_kappa(counts[a], counts[b]) for a, b in pairs])
        kappas = variance_factors(distances, expected, weights, most)
        program = Program(
            expected=expected,
            weights=weights,
            kappas=kappas,
            gains=np.array([interaction_gain((max(sizes[a], 2), max(sizes[b], 2))) for a, b in pairs]),
            sizes=sizes.astype(np.float64),
            shares=np.full(options.columns, 0.5 * (options.columns - 1)),
            owned=np.full(options.columns, 0.15 * options.budget / options.columns),
        )
        bought, more = program.solve(options.budget)
        print(f"{len(pairs):,} pairs, {repeat}: {time.process_time() - start:.2f} CPU s")
    spent = bought.sum() + more.sum()
    # A slope is the difference of two errors a thousandth apart.
    some = np.flatnonzero(bought > 0)
    picked = rng.choice(some, min(100, some.size), replace=False)
    near = np.stack([program.errors(bought[place] * np.array([0.999, 1.001]))[place] for place in picked])
    at = (near[:, 0] - near[:, 1]) / (0.002 * bought[picked])
    level = float(np.median(at))
    # Of a pair that was left out, the best that any budget does, a record at a time.
    grid = np.append(0.0, options.budget * np.exp2(-np.arange(60) / 2.0))
    errors = program.errors(grid)[bought == 0]
    left_out = float(((errors[:, :1] - errors[:, 1:]) / grid[1:]).max(initial=0.0))
    print(
        f"{some.size:,} pairs and {np.count_nonzero(more):,} further one-ways bought; level {level:.4g} records a unit"
    )
    print(
        f"bought pairs' slopes: median |slope / level - 1| {np.median(np.abs(at / level - 1)):.2g}, "
        f"95th percentile {np.quantile(np.abs(at / level - 1), 0.95):.2g}"
    )
    print(f"steepest slope left out: {left_out / level:.3f} of the level; not spent: {1 - spent / options.budget:.1e}")


if __name__ == "__main__":
    main()
