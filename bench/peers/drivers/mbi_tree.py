"""A maximum spanning tree on mbi, which is a library of estimation: its mechanisms are not in the package on PyPI.

So the measuring here is this driver's, after McKenna, Miklau, Sheldon 2021 (MST): a third of rho for one-ways, a third
for the tree's edges (the exponential mechanism on the L1 distance of a pair from the model of one-ways), a third for
the tree's pairs; codes whose noisy count is under three standard deviations are one code. The floats of the noise are
numpy's. Fitting and drawing, which is what takes the time, is all mbi's, with its defaults.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from coded import Task, drive
from zcdp import rho_of

jax.config.update("jax_enable_x64", True)

import mbi  # noqa: E402  (it looks at the setting when imported)

Pair = tuple[int, int]


@dataclass(frozen=True)
class Merged:
    """Codes of one column as the model sees them: ``to`` of shape (size,), and how many there are."""

    to: Any
    size: int

    def drawn_back(self, codes: Any, rng: np.random.Generator) -> Any:
        """A code of the column for every merged one, the merged ones' originals alike likely."""
        out = np.empty(codes.size, dtype=np.int64)
        for code in range(self.size):
            where = np.flatnonzero(codes == code)
            out[where] = rng.choice(np.flatnonzero(self.to == code), where.size)
        return out


def merged(counts: Any, deviation: float) -> Merged:
    kept = counts >= 3 * deviation
    if np.count_nonzero(~kept) < 2:
        return Merged(np.arange(counts.size), counts.size)
    to = np.full(counts.size, np.count_nonzero(kept))
    to[kept] = np.arange(np.count_nonzero(kept))
    return Merged(to, int(to.max()) + 1)


def counted(codes: Any, sizes: list[int], left: int, right: int) -> Any:
    flat = codes[:, left] * sizes[right] + codes[:, right]
    return np.bincount(flat, minlength=sizes[left] * sizes[right]).reshape(sizes[left], sizes[right])


def chosen_tree(codes: Any, sizes: list[int], one_ways: Any, rho: float, rng: np.random.Generator) -> list[Pair]:
    """Kruskal's edges, each by the exponential mechanism among those that join two components."""
    weights = {}
    for left, right in itertools.combinations(range(len(sizes)), 2):
        expected = np.outer(one_ways[left], one_ways[right]) / max(one_ways[left].sum(), 1.0)
        weights[left, right] = float(np.abs(counted(codes, sizes, left, right) - expected).sum())
    epsilon = math.sqrt(8 * rho / max(len(sizes) - 1, 1))
    component, edges = list(range(len(sizes))), []
    while len(edges) < len(sizes) - 1:
        open_pairs = [pair for pair in weights if component[pair[0]] != component[pair[1]]]
        scores = np.array([epsilon * weights[pair] / 2 for pair in open_pairs]) + rng.gumbel(size=len(open_pairs))
        left, right = open_pairs[int(scores.argmax())]
        edges.append((left, right))
        gone, stays = component[right], component[left]
        component = [stays if each == gone else each for each in component]
    return edges


def synthesize(task: Task) -> Any:
    rng = np.random.default_rng()
    rho = rho_of(task.epsilon, task.delta)
    columns = range(len(task.sizes))
    first = math.sqrt(len(task.sizes) / (2 * rho / 3))
    noisy = [
        np.bincount(task.codes[:, place], minlength=task.sizes[place]) + rng.normal(0, first, task.sizes[place])
        for place in columns
    ]
    merges = [merged(counts, first) for counts in noisy]
    sizes = [merge.size for merge in merges]
    codes = np.stack([merge.to[task.codes[:, place]] for place, merge in enumerate(merges)], axis=1)
    domain = mbi.Domain(list(columns), sizes)
    total = max(float(np.mean([counts.sum() for counts in noisy])), 1.0)
    measurements = []
    for place, merge in enumerate(merges):
        # A merged code's noise is that of its codes' sum; scaled so, every answer has the same deviation.
        scale = 1 / np.sqrt(np.bincount(merge.to, minlength=merge.size))
        sums = np.bincount(merge.to, weights=noisy[place], minlength=merge.size)
        measurements.append(mbi.LinearMeasurement(sums * scale, (place,), first, mbi.WeightedQuery(scale)))
    model = mbi.estimation.MirrorDescent().estimate(domain, measurements, total)
    one_ways = [np.asarray(model.project((place,)).datavector()) for place in columns]
    edges = chosen_tree(codes, sizes, one_ways, rho / 3, rng)
    second = math.sqrt(max(len(edges), 1) / (2 * rho / 3))
    for left, right in edges:
        counts = counted(codes, sizes, left, right) + rng.normal(0, second, (sizes[left], sizes[right]))
        measurements.append(mbi.LinearMeasurement(counts.ravel(), (left, right), second))
    model = mbi.estimation.MirrorDescent().estimate(domain, measurements, total)
    drawn = model.synthetic_data(rows=task.rows).to_dict()
    return np.stack([merge.drawn_back(np.asarray(drawn[place]), rng) for place, merge in enumerate(merges)], axis=1)


if __name__ == "__main__":
    drive(synthesize)
