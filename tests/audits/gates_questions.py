"""Gates for adaptive collectors: what they ask next follows from the noisy answers so far, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.collectors.aim import Aim
from margent.collectors.capped_pairs import CappedPairs
from margent.collectors.collector import Collector
from margent.collectors.mst import Mst
from margent.collectors.privmrf import PrivMrf
from margent.counts.source import CodedCounts
from margent.privacy import curator as door
from margent.privacy.budget import Budget
from margent.privacy.ledger import Ledger
from margent.schema.codec import Codec
from margent.synthesizers.independent import IndependentColumns
from margent.transcript import Scores, Transcript
from tests.synthesizers.made import schema_of

SIZES = {"a": 3, "b": 4, "c": 2, "d": 3, "e": 2}
Rule = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def questions_follow_from_noisy_answers() -> None:
    """With the answers pinned, tables that have nothing in common, size included, are asked the same all the way."""
    for make in (Mst, CappedPairs, _aim, _privmrf):
        first, *others = (_asked(make(), codes) for codes in (_following(150), _tied(), _apart()))
        assert any(len(answer.clique) > 1 for answer in first.marginals), make  # or nothing was chosen
        for other in others:
            assert first.charges == other.charges, make
            assert first.merges == other.merges, make
            assert [answer.charge for answer in first.answers] == [answer.charge for answer in other.answers], make


def every_answer_is_paid_for() -> None:
    """Each answer names a charge of its own for exactly what it tells of: nothing is told free or twice."""
    for make in (Mst, CappedPairs, _aim, _privmrf):
        made = _asked(make(), _following(150))
        assert [answer.charge for answer in made.answers] == list(range(len(made.charges))), make
        for answer in made.answers:
            told = answer.cliques if isinstance(answer, Scores) else (answer.clique,)  # type: ignore[union-attr]
            assert made.charges[answer.charge].cliques == told, make


def _aim() -> Collector:
    return Aim(builder=IndependentColumns(), rounds=4)


def _privmrf() -> Collector:
    return PrivMrf(builder=IndependentColumns(), theta=0.01, rounds=2)


def _following(rows: int) -> NDArray[np.int64]:
    """Columns that repeat at their own pace."""
    return np.stack([np.arange(rows) % size for size in SIZES.values()], axis=1)


def _tied() -> NDArray[np.int64]:
    """The first and third column are one, and so are the second and fourth."""
    rng = np.random.default_rng(7)
    c, b, e = rng.integers(0, 2, 6_000), rng.integers(0, 3, 6_000), rng.integers(0, 2, 6_000)
    return np.stack([c, b, c, b, e], axis=1)


def _apart() -> NDArray[np.int64]:
    rng = np.random.default_rng(6)
    return np.stack([rng.integers(0, size, 60_000) for size in SIZES.values()], axis=1)


def _asked(collector: Collector, codes: NDArray[np.int64]) -> Transcript:
    schema, budget = schema_of(SIZES), Budget(100)
    source = CodedCounts([column.astype(np.uint16) for column in codes.T], Codec(schema).domain)
    genuine: Any = door._checked_sum

    def pinned(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        # What a bug adds to the noise stays; the exact counts go, and the noise becomes a pinned one.
        shape = genuine(exact, noise).shape
        return np.random.default_rng(int(np.prod(shape))).integers(300, 3000, shape)

    door._checked_sum = pinned  # type: ignore[assignment]
    try:
        return collector.collect(door.DataCurator(schema, source, Ledger(budget)), budget)
    finally:
        door._checked_sum = genuine
