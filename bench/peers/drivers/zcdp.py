"""The rho of zero-concentrated differential privacy that an (epsilon, delta) allows, for drivers that need one."""

from __future__ import annotations

import numpy as np


def delta_of(rho: float, epsilon: float) -> float:
    """Least delta of rho-zCDP at epsilon over a grid of orders (Canonne, Kamath, Steinke 2020, corollary 13)."""
    orders = 1 + np.geomspace(1e-3, 1e4, 20_000)
    logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    return float(np.exp(min(logs.min(), 0.0)))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho, by bisection."""
    low, high = 0.0, epsilon + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low
