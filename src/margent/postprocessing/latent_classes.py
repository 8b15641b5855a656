"""A mixture of products fitted to noisy tables: a smooth law over whole records that pools all the answers.

Pr[x] = sum_k pi_k prod_a p_ka(x_a). Every pair table of it has rank at most K and the same factors p_ka serve
all pairs of column a, so the noise of hundreds of tables averages out where real tables vary together. It is
the prior to which `margent.postprocessing.posterior` shrinks each table, and records can be drawn from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.machine import threads
from margent.postprocessing.latent_steps import adam_step, logit_gradient, pair_gradient, softmax
from margent.postprocessing.steady import logarithms, product
from margent.postprocessing.tables import Table
from margent.schema.domain import Clique, Domain
from margent.stream import Stream

MOST_PRECISION = 1e15
"""Single-precision shares cannot tell more, and squares of the gradients of more would leave their range."""


@dataclass(frozen=True)
class LatentSettings:
    """How many classes, how long to fit and how strongly to hold them to the one-ways.

    K = ``richness`` sqrt(n / s) within ``classes``, s the middling noise of the tables: less noise supports more
    classes. ``fits`` such laws are fitted from different starts, and their mean is a law of so many times K classes.
    ``steps`` of Adam at ``rate``, from the one-ways stirred by ``stir`` (standard deviations of logits). ``spread``
    penalizes n sum_k pi_k KL(p_k || q), ``pull`` keeps every share near its one-way.
    """

    richness: float = 2.0
    classes: tuple[int, int] = (16, 80)
    fits: int = 2
    steps: int = 250
    rate: float = 0.05
    spread: float = 0.01
    pull: float = 30.0
    stir: float = 0.3


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """The fitted law: class weights pi (K) and, for all codes of all columns, shares p (codes, K).

    Shapes: column a has rows ``starts[a] : starts[a + 1]``.
    Privacy: none: post-processing.
    """

    domain: Domain
    starts: NDArray[np.int64]
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]

    def table(self, clique: Clique, total: float) -> NDArray[np.float64]:
        """Expected counts over a clique, axes in clique order.

        Units: records of ``total``. Shapes: that of the clique.
        """
        joint = self.weights[np.newaxis, :] * total
        for name in clique[:-1]:
            joint = (joint[:, np.newaxis, :] * self._of(name)[np.newaxis, :, :]).reshape(-1, joint.shape[1])
        last = np.ascontiguousarray(self._of(clique[-1]).T)
        result: NDArray[np.float64] = product(np.ascontiguousarray(joint), last).reshape(self.domain.shape(clique))
        return result

    def _of(self, name: str) -> NDArray[np.float64]:
        """Shares of one column, (codes, K)."""
        place = self.domain.position[name]
        own: NDArray[np.float64] = self.shares[self.starts[place] : self.starts[place + 1]]
        return own

    def records(self, rows: int, stream: Stream) -> NDArray[np.int32]:
        """Independent records: a class, then every column given the class.

        Shapes: (rows, d). Privacy: none: post-processing.
        """
        drawn = np.zeros((rows, len(self.domain.names)), dtype=np.int32)
        if rows == 0:
            return drawn
        bounds = np.cumsum(self.weights)
        classes = np.minimum(np.searchsorted(bounds / bounds[-1], stream.unit(rows), side="right"), bounds.size - 1)
        for place in range(drawn.shape[1]):
            steps = np.cumsum(self.shares[self.starts[place] : self.starts[place + 1]], axis=0)
            lower = np.arange(steps.shape[1])
            # Every class's cumulative shares on a unit of its own, so that one search serves all records.
            ladder = (steps / steps[-1] + lower).T.ravel()
            found = np.searchsorted(ladder, stream.unit(rows) + classes, side="right") - classes * steps.shape[0]
            drawn[:, place] = np.clip(found, 0, steps.shape[0] - 1)
        return drawn


def fit_latent_classes(
    one_ways: Mapping[str, Table],
    base: Mapping[str, NDArray[np.float64]],
    pairs: Sequence[Table],
    domain: Domain,
    total: float,
    settings: LatentSettings,
    stream: Stream,
    progress: Callable[[float], None],
) -> LatentClasses:
    """Fit pi and p by weighted least squares to one-ways and pairs: the mean of several fits from different starts.

    What a fit makes up differs from fit to fit and averages out; what the tables say is in all of them.

    Shapes: ``base`` gives each column's best one-way q (non-negative), ``one_ways`` the noisy ones.
    Units: records; internally shares of ``total``.
    Privacy: none: post-processing.
    """
    starts = np.cumsum([0, *domain.sizes]).astype(np.int64)
    if not pairs:
        # Without a table of two columns there is nothing to tell classes apart by: one class, independence.
        alone = [np.maximum(base[name], 0.0) for name in domain.names]
        even = [values / values.sum() if values.sum() > 0 else values + 1 / values.size for values in alone]
        return LatentClasses(domain, starts, np.ones(1), np.concatenate([*even, np.zeros(0)])[:, np.newaxis])
    # Every fit has words of its own, so its bytes do not depend on who makes it when.
    streams = [Stream(stream.seed64() >> 1, "fit", str(number)) for number in range(settings.fits)]
    tables = one_ways, base, pairs, domain, total, settings
    with ThreadPoolExecutor(max_workers=threads()) as workers:
        others = [workers.submit(_fit, *tables, own, lambda share: None) for own in streams[1:]]
        fitted = [_fit(*tables, streams[0], progress), *(other.result() for other in others)]
    return LatentClasses(
        domain,
        starts,
        np.concatenate([fit.weights for fit in fitted]) / len(fitted),
        np.concatenate([fit.shares for fit in fitted], axis=1),
    )


def _fit(
    one_ways: Mapping[str, Table],
    base: Mapping[str, NDArray[np.float64]],
    pairs: Sequence[Table],
    domain: Domain,
    total: float,
    settings: LatentSettings,
    stream: Stream,
    progress: Callable[[float], None],
) -> LatentClasses:
    """One fit, with Adam on logits."""
    starts = np.cumsum([0, *domain.sizes]).astype(np.int64)
    floor = [np.maximum(base[name], 0.5) for name in domain.names]
    q = np.concatenate([values / values.sum() for values in floor])
    noise = sorted(math.sqrt(float(table.variance.mean())) for table in pairs)
    supported = settings.richness * math.sqrt(total / noise[len(noise) // 2])
    classes = round(min(max(supported, settings.classes[0]), settings.classes[1]))
    logits = (logarithms(q)[:, np.newaxis] + settings.stir * _normals(stream, q.size, classes)).astype(np.float32)
    arrays = _pair_arrays(pairs, domain, starts, total)
    precision, aim = _single_terms(one_ways, domain, total)
    base32, logs32 = q.astype(np.float32), logarithms(q).astype(np.float32)
    shares, logs, gradient = np.empty_like(logits), np.empty_like(logits), np.empty_like(logits)
    weight_logits = np.zeros((1, classes), dtype=np.float32)
    weight_gradient, weights = np.zeros_like(weight_logits), np.full((1, classes), 1 / classes, dtype=np.float32)
    weight_starts = np.array([0, classes], dtype=np.int64)
    moments = [np.zeros_like(each) for each in (logits, logits, weight_logits, weight_logits)]
    for step in range(1, settings.steps + 1):
        softmax(logits, starts, shares, logs)
        softmax(weight_logits.T.copy(), weight_starts, column := np.empty((classes, 1), np.float32), column.copy())
        weights[0] = column[:, 0]
        gradient[:] = 0
        pair_gradient(shares, shares.T.copy(), weights[0], *arrays, gradient)
        single = (precision * ((shares * weights).sum(axis=1, dtype=np.float64) - aim)).astype(np.float32)
        logit_gradient(
            shares, logs, weights[0], starts, base32, logs32, single,
            settings.spread * total, settings.pull, gradient, weight_gradient,
        )  # fmt: skip
        # A smooth fall from one to zero, without a library cosine whose last bits differ between machines.
        gone = step / settings.steps
        rate = settings.rate * (1 - gone * gone * (3 - 2 * gone) + 0.02)
        scales = 1 / (1 - 0.9**step), 1 / (1 - 0.99**step)
        adam_step(logits, gradient, moments[0], moments[1], rate, *scales)
        adam_step(weight_logits, weight_gradient, moments[2], moments[3], rate, *scales)
        progress(step / settings.steps)
    softmax(logits, starts, shares, logs)
    return LatentClasses(domain, starts, weights[0].astype(np.float64), shares.astype(np.float64))


def _pair_arrays(
    pairs: Sequence[Table], domain: Domain, starts: NDArray[np.int64], total: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Pair tables one after the other: columns' first rows, sizes, offsets, precisions and values (`pair_gradient`)."""
    places = [[int(starts[domain.position[name]]) for name in table.clique] for table in pairs]
    sizes = [table.values.shape for table in pairs]
    offsets = np.cumsum([0, *(table.values.size for table in pairs)])[:-1]
    precision = [min(total**2 / float(table.variance.mean()), MOST_PRECISION) for table in pairs]
    values = [np.ravel(table.values) / total for table in pairs]
    return (
        np.array(places, dtype=np.int64),
        np.array(sizes, dtype=np.int64),
        offsets.astype(np.int64),
        np.array(precision, dtype=np.float32),
        np.concatenate(values).astype(np.float32),
    )


def _single_terms(
    one_ways: Mapping[str, Table], domain: Domain, total: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and target share of every code; precision 0 where a column's one-way was never bought."""
    precision, aim = [], []
    for name, size in zip(domain.names, domain.sizes, strict=True):
        if name in one_ways:
            precision.append(np.minimum(total**2 / one_ways[name].variance, MOST_PRECISION))
            aim.append(one_ways[name].values / total)
        else:
            precision.append(np.zeros(size))
            aim.append(np.zeros(size))
    return np.concatenate(precision), np.concatenate(aim)


def _normals(stream: Stream, rows: int, columns: int) -> NDArray[np.float64]:
    """Roughly normal numbers of variance one: sums of twelve uniform ones, without a logarithm."""
    uniform = stream.unit(12 * rows * columns).reshape(12, rows, columns)
    return np.asarray(uniform.sum(axis=0) - 6.0)
