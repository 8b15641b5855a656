"""Gates for the noise of scores and of interactions: the law that was charged, and a draw of its own for each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent.audits.laws import limit, misfit, scale_misfit
from margent.privacy import curator as door
from margent.privacy.brackets import discrete_gaussian_law
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.requests import MarginalRequest, ScoreRequest
from tests.audits.small_table import ALPHA, PAIR, ROOMY, counted

EXACT = np.array([[3, 0, 1, 0], [0, 2, 0, 0], [1, 1, 4, 0], [0, 0, 0, 0]], dtype=np.int64)
SCORES = 20_000
TABLES = 2_000


def scores_carry_the_charged_noise() -> None:
    """A tenth less of it is 14 deviations of 20,000 draws away; the correct door is refused in one run of 10^8."""
    scale = Fraction(10_000)
    expected = {name: np.array([7.3, 4.0, 1.9, 0.05]) for name in "ab"}
    request = ScoreRequest("independence", (("a", "b"),) * SCORES, Gaussian(scale), expected=expected)
    answer = door.DataCurator(PAIR, counted(EXACT), Ledger(ROOMY)).scores(request, label="gate")
    quiet = door.DataCurator(
        PAIR, counted(EXACT), Ledger(ROOMY), noise=lambda count, _: np.zeros(count, dtype=np.int64)
    )
    true = quiet.scores(
        ScoreRequest("independence", (("a", "b"),), Gaussian(scale), expected=expected), label="gate"
    ).values
    _fits(answer.values - true[0], scale)


def interactions_carry_the_charged_noise() -> None:
    """Their integers are parts of a record, and so is their noise: 32,000 draws."""
    scale = Fraction(10_000)
    requests = [MarginalRequest(("a", "b"), Gaussian(scale), interaction=True)] * TABLES
    answers = door.DataCurator(PAIR, counted(EXACT), Ledger(ROOMY)).measure(requests, label="gate")
    true = 16 * EXACT - 4 * EXACT.sum(axis=0) - 4 * EXACT.sum(axis=1, keepdims=True) + EXACT.sum()
    _fits(np.stack([answer.counts - true for answer in answers]).ravel(), scale)


def _fits(noise: NDArray[np.int64], scale: Fraction) -> None:
    law, most = discrete_gaussian_law(scale), limit(ALPHA / 8)
    assert abs(misfit(noise, law)) < most
    assert abs(scale_misfit(noise, law)) < most
    assert abs(noise.mean()) / float(scale) ** 0.5 * noise.size**0.5 < most
    # Neighbors in the answer have nothing to do with each other.
    correlation = float((noise[1:].astype(np.float64) * noise[:-1]).mean()) / float(scale)
    assert abs(correlation) * (noise.size - 1) ** 0.5 < most
