"""How a privacy bug is planted, and the gate that must catch it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.privacy import curator, noise

Plant = Callable[[pytest.MonkeyPatch], None]
Noise = Callable[[int, Fraction], NDArray[np.int64]]
exact = noise.discrete_gaussian


@dataclass(frozen=True)
class Bug:
    name: str
    gate: Callable[..., None]
    plant: Plant


def noisy(law: Noise) -> Plant:
    """The curator draws from ``law`` unless it is told otherwise."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        made = functools.partial(curator.DataCurator, noise=law)
        for module in ("margent.privacy.curator", "margent.pipeline", "margent.audits.doors"):
            patch.setattr(f"{module}.DataCurator", made)

    return plant


def setting(place: str, value: Any) -> Plant:
    return lambda patch: patch.setattr(place, value)
