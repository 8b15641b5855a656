"""c^(2/3) budgets against exact roots and numerical optimization."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from margent.collectors.allocation import SCALE, allocate, two_thirds_power


@given(st.integers(1, 10**12))
def test_two_thirds_powers_are_exact_floors(cells: int) -> None:
    root = two_thirds_power(cells)
    assert root**3 <= cells**2 * SCALE**3 < (root + 1) ** 3


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=20), st.fractions(Fraction(1, 10**6), 10))
def test_parts_add_up_to_the_share_exactly(cells: list[int], share: Fraction) -> None:
    parts = allocate(share, cells)
    assert sum(parts) == share
    assert min(parts) > 0


@pytest.mark.parametrize("cells", [[4, 100], [6, 12, 5000, 77], [2, 2, 2], [10, 20, 30, 40, 5000]])
def test_no_other_split_has_less_noise(cells: list[int]) -> None:
    """sum c / sqrt(pi rho) is least at rho ~ c^(2/3): numerical optimization finds nothing better."""
    counts = np.array(cells, dtype=float)

    def noise(logits: np.ndarray) -> float:
        shares = np.exp(logits) / np.exp(logits).sum()
        return float((counts / np.sqrt(np.pi * shares)).sum())

    ours = np.array([float(part) for part in allocate(Fraction(1), cells)])
    best = minimize(noise, np.zeros(len(cells)), method="BFGS", options={"gtol": 1e-10})
    assert noise(np.log(ours)) == pytest.approx(best.fun, rel=1e-6)
    closed_form = (counts ** (2 / 3)).sum() ** 1.5 / np.sqrt(np.pi)
    assert noise(np.log(ours)) == pytest.approx(closed_form, rel=1e-5)
    np.testing.assert_allclose(ours, np.exp(best.x) / np.exp(best.x).sum(), atol=1e-3)


def test_nothing_to_buy_needs_nothing() -> None:
    assert allocate(Fraction(1), []) == []
