"""Bugs that only scores or only interactions have, and the gate that must catch each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.privacy import curator, noise
from margent.privacy.laws import Gaussian
from tests.audits import gates_noise
from tests.audits.planted_purchases import Gate, Plant

Noise = Callable[[int, Fraction], NDArray[np.int64]]
exact = noise.discrete_gaussian


def of_scores(law: Noise) -> Plant:
    """Scores, and nothing else, get this noise; a door whose noise was chosen keeps it."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        genuine = curator.DataCurator.scores

        def scores(self: Any, request: Any, **options: Any) -> Any:
            return genuine(replace(self, noise=law) if self.noise is exact else self, request, **options)

        patch.setattr(curator.DataCurator, "scores", scores)

    return plant


def drawn_in_records(patch: pytest.MonkeyPatch) -> None:
    """Interactions are parts of a record, and get noise as if they were records."""
    genuine = curator.DataCurator._draw

    def draw(self: Any, count: int, law: Any) -> Any:
        return genuine(self, count, Gaussian(law.scale_squared / 16**2) if count == 16 else law)

    patch.setattr(curator.DataCurator, "_draw", draw)


def centered_noise(patch: pytest.MonkeyPatch) -> None:
    """What post-processing may take off is taken off before: fewer numbers than were paid for."""
    genuine = curator._checked_sum

    def summed(table: NDArray[np.int64], draws: NDArray[np.int64]) -> NDArray[np.int64]:
        return genuine(table, draws - draws.mean(axis=-1, keepdims=True).astype(np.int64))

    patch.setattr(curator, "_checked_sum", summed)


BUGS: tuple[tuple[str, Gate, Plant], ...] = (
    (
        "scores with half the noise",
        gates_noise.scores_carry_the_charged_noise,
        of_scores(lambda n, s2: exact(n, s2 / 4)),
    ),
    (
        "scores with a tenth less noise",
        gates_noise.scores_carry_the_charged_noise,
        of_scores(lambda n, s2: exact(n, s2 * Fraction(81, 100))),
    ),
    (
        "one draw for all scores",
        gates_noise.scores_carry_the_charged_noise,
        of_scores(lambda n, s2: np.repeat(exact(1, s2), n)),
    ),
    (
        "one draw for two scores",
        gates_noise.scores_carry_the_charged_noise,
        of_scores(lambda n, s2: np.repeat(exact(-(-n // 2), s2), 2)[:n]),
    ),
    ("interactions with noise for records", gates_noise.interactions_carry_the_charged_noise, drawn_in_records),
    (
        "noise of interactions centered before it is added",
        gates_noise.interactions_carry_the_charged_noise,
        centered_noise,
    ),
)
