"""Gates for what is drawn: the law of the noise of counts and of choices, and no draw, seed or process twice."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent.audits.laws import limit, misfit, scale_misfit
from margent.privacy import curator as door
from margent.privacy import exponential
from margent.privacy.brackets import discrete_gaussian_law
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.requests import MarginalRequest
from margent.schema.domain import Clique, Domain
from margent.schema.fields import Integer, Schema
from margent.transcript import NoisyMarginal
from tests.audits.small_table import ALPHA, CELLS, DOMAIN, PAIR, ROOMY, counted


def measured(
    exact: NDArray[np.int64],
    scales: Sequence[Fraction],
    cliques: Sequence[Clique],
    domain: Domain,
    schema: Schema = PAIR,
) -> tuple[NoisyMarginal, ...]:
    """The curator's answers about ``exact``, in a ledger with room enough."""
    ledger = Ledger(ROOMY)
    asked = [MarginalRequest(names, Gaussian(scale)) for names, scale in zip(cliques, scales, strict=True)]
    return door.DataCurator(schema, counted(exact, domain), ledger).measure(asked, label="gate")


def residuals(scale_squared: Fraction) -> NDArray[np.int64]:
    """What the curator added to a million cells, of which two in three are empty."""
    exact = np.arange(CELLS, dtype=np.int64) % 3 // 2 * (np.arange(CELLS) % 7)
    schema = Schema([Integer("cell", 0, CELLS - 1, bins=CELLS)], unit="row")
    (answer,) = measured(exact, [scale_squared], [("cell",)], Domain(("cell",), (CELLS,)), schema)
    assert np.issubdtype(answer.counts.dtype, np.integer)
    assert answer.variance == scale_squared
    return answer.counts - exact


def the_noise_has_the_charged_law() -> None:
    for scale in (Fraction(1, 2), Fraction(179, 10), Fraction(10_000)):
        law, most = discrete_gaussian_law(scale), limit(ALPHA / 20)
        noise = residuals(scale)
        assert abs(misfit(noise, law)) < most
        assert abs(scale_misfit(noise, law)) < most
        assert abs(noise.mean()) / float(scale) ** 0.5 * CELLS**0.5 < most
        # Pearson's cells are too coarse for the far tail: 63 draws are expected beyond four scales.
        far = int(np.count_nonzero(np.abs(noise) > 4 * float(scale) ** 0.5))
        assert far > 15 or scale < 1
        empty = np.arange(CELLS) % 3 // 2 * (np.arange(CELLS) % 7) == 0
        for part in (noise[empty], noise[~empty]):
            assert abs(scale_misfit(part, law)) < most


def no_draw_is_used_twice() -> None:
    noise = residuals(Fraction(179, 10)).astype(np.float64)
    again = residuals(Fraction(179, 10)).astype(np.float64)
    most = limit(ALPHA / CELLS / 3)
    for left, right in ((noise, noise), (noise, again)):
        spectrum = np.fft.rfft(left, 2 * CELLS) * np.conj(np.fft.rfft(right, 2 * CELLS))
        lags = np.fft.irfft(spectrum) / (17.9 * CELLS**0.5)
        assert np.abs(lags[1 if left is right else 0 : CELLS]).max() < most
    # Tables of one call, and scores, have draws of their own.
    exact = np.zeros((4, 4), dtype=np.int64)
    scale = Fraction(179, 10)
    tables = np.array(
        [
            [answer.counts.ravel() for answer in measured(exact, [scale] * 2, [("a", "b")] * 2, DOMAIN)]
            for _ in range(400)
        ]
    ).astype(np.float64)
    correlation = (tables[:, 0] * tables[:, 1]).mean() / 17.9
    assert abs(correlation) * tables[:, 0].size ** 0.5 < limit(ALPHA)


def no_run_goes_without_noise() -> None:
    exact = np.full((4, 4), 5, dtype=np.int64)
    for _ in range(2500):
        (answer,) = measured(exact, [Fraction(179, 10)], [("a", "b")], DOMAIN)
        # All sixteen draws are zero with probability 10^-16.
        assert not np.array_equal(answer.counts, exact)


def no_seed_reaches_the_noise() -> None:
    def drawn() -> bytes:
        np.random.seed(1)
        random.seed(1)
        (answer,) = measured(np.zeros((4, 4), dtype=np.int64), [Fraction(10_000)], [("a", "b")], DOMAIN)
        return answer.counts.tobytes()

    first, second = drawn(), drawn()
    assert first != second
    # Forked children draw at the same moment from copies of one memory.
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe(duplex=False) for _ in range(4)]
    children = [context.Process(target=lambda end=end: end.send(drawn())) for _, end in ends]
    for child in children:
        child.start()
    streams = {receive.recv() for receive, _ in ends}
    for child in children:
        child.join()
    assert len(streams) == 4


def choices_have_the_exponential_law() -> None:
    """Draws against exp(epsilon score / 2 sensitivity), and the law's whole profile on neighboring scores."""
    epsilon, sensitivity = Fraction(2), Fraction(3)
    for scores in ([0, 0, 0], [5, 0, 2], [9, 8, 7]):
        weights = np.exp(float(epsilon / (2 * sensitivity)) * np.array(scores, dtype=float))
        chances = weights / weights.sum()
        draws = [exponential.exponential_choice(scores, epsilon, sensitivity) for _ in range(6000)]
        seen = np.bincount(draws, minlength=3) / len(draws)
        assert (np.abs(seen - chances) * len(draws) ** 0.5 < limit(ALPHA / 9) * (chances * (1 - chances)) ** 0.5).all()
