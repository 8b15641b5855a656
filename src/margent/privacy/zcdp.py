"""Zero-concentrated differential privacy: rho adds up, and the discrete Gaussian costs exactly D^2/(2 s^2).

The conservative account: valid for the discrete Gaussian as it stands, without any lemma about its
trade-off curve, at about 5 % more noise than the GDP account. The conversion is that of Canonne, Kamath,
Steinke 2020: delta = exp(x ((1 + x) rho - epsilon)) (1 + 1/x)^-(1 + x) / x is valid for every x = alpha - 1
above 0, so a statement made at any x is true and only the best x is approximate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from margent.privacy import grid, normal
from margent.privacy.laws import Gaussian, Law
from margent.privacy.normal import Real, real
from margent.privacy.statement import check_delta, check_epsilon, check_positive


@dataclass(frozen=True, slots=True)
class ZcdpAccount:
    """Charges are rho and add up; the total at (1, 1e-9) is .014973.

    Units: rho, dimensionless; scales and sensitivities are in the unit the noise is an integer in.
    Source: Bun, Steinke 2016; Canonne, Kamath, Steinke 2020; Cesar, Rogers 2021 (exponential mechanism).

    >>> round(float(ZcdpAccount().total(Fraction(1), Fraction(1, 10**9))), 6)
    0.014973
    """

    @property
    def name(self) -> str:
        """The account's name on a charge: 'zcdp'."""
        return "zcdp"

    @property
    def scale_power(self) -> int:
        """A cost falls with the square of its noise's scale."""
        return 2

    def law(self, share: Fraction, l1: Fraction, l2_squared: Fraction) -> Law:
        """Gaussian noise of the least grid scale that ``share`` pays for; ``l1`` does not matter to it."""
        return Gaussian(self.gaussian_scale(l2_squared, share))

    def total(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The most rho whose tight conversion stays within (epsilon, delta); rounded down.

        Raises: UsageError outside 1e-12 <= epsilon <= 1e4, 1e-300 <= delta <= 0.1.
        """
        return _total(check_epsilon(epsilon), check_delta(delta))

    def gaussian_cost(self, sensitivity_squared: Fraction, scale_squared: Fraction) -> Fraction:
        """Rho = D^2/(2 s^2) of integers with squared L2 sensitivity D^2 under N_Z(0, s^2); exact."""
        check_positive(sensitivity_squared, "the squared sensitivity")
        return sensitivity_squared / (2 * check_positive(scale_squared, "the noise scale s^2"))

    def gaussian_scale(self, sensitivity_squared: Fraction, share: Fraction) -> Fraction:
        """The smallest grid scale s^2 whose `gaussian_cost` is at most ``share``."""
        check_positive(sensitivity_squared, "the squared sensitivity")
        return grid.round_up(sensitivity_squared / (2 * check_positive(share, "the share of the budget")))

    def laplace_cost(self, sensitivity: Fraction, scale: Fraction) -> Fraction:
        """Rho = epsilon^2/2 of epsilon = sensitivity/scale; exact."""
        check_positive(sensitivity, "the sensitivity")
        return (sensitivity / check_positive(scale, "the scale")) ** 2 / 2

    def exponential_cost(self, epsilon: Fraction) -> Fraction:
        """Rho = epsilon^2/8 of a choice by the exponential mechanism at epsilon (bounded range); exact."""
        return check_positive(epsilon, "epsilon") ** 2 / 8

    def exponential_epsilon(self, share: Fraction) -> Fraction:
        """sqrt(8 rho) of rho = ``share``; rounded down."""
        return normal.rounded_down(normal.context().sqrt(8 * real(check_positive(share, "the share of the budget"))))

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        """The smallest epsilon that rho = ``spent`` implies at ``delta``; rounded up."""
        check_delta(delta)
        return Fraction(0) if spent == 0 else _epsilon(check_positive(spent, "what was spent"), delta)


def _offset(x: Real, log_inverse_delta: Real) -> Real:
    """epsilon - (1 + x) rho at order alpha = 1 + x: (ln(1/delta) - ln(1 + x))/x - ln(1 + 1/x)."""
    mp = normal.context()
    return (log_inverse_delta - mp.log1p(x)) / x - mp.log1p(1 / x)


@lru_cache(maxsize=1024)
def _epsilon(spent: Fraction, delta: Fraction) -> Fraction:
    mp = normal.context()
    rho, goal = real(spent), -mp.log(real(delta))

    # The derivative of (1 + x) rho + _offset(x) vanishes where rho x^2 + ln(1 + x) = ln(1/delta).
    def derivative(log_x: Real) -> tuple[Real, Real]:
        x = mp.exp(log_x)
        square, log1p = rho * x * x, mp.log1p(x)
        return mp.log((square + log1p) / goal), (2 * square + x / (1 + x)) / (square + log1p)

    high = min(mp.log(goal / rho) / 2, goal)
    best = mp.exp(normal.root(derivative, high, high - goal - 10, high))
    stated = (1 + best) * rho + _offset(best, goal)
    return normal.rounded_up(stated, normal.EPSILON_BITS) if stated > 0 else Fraction(0)


@lru_cache(maxsize=1024)
def _total(epsilon: Fraction, delta: Fraction) -> Fraction:
    mp = normal.context()
    target, goal = real(epsilon), -mp.log(real(delta))

    # The same condition with rho = (goal - ln(1 + x))/x^2 put in; what is left falls in x.
    def shortfall(log_x: Real) -> tuple[Real, Real]:
        x = mp.exp(log_x)
        kept = (1 + x) * (goal - mp.log1p(x)) / x**2
        return target - kept - _offset(x, goal), 1 / x + 2 * kept

    # The x that is best for a rho falls in it, and is at most sqrt(goal/rho). No less is found than the rho with
    # epsilon = rho + 2 sqrt(rho goal).
    most = (mp.sqrt(target + goal) + mp.sqrt(goal)) * mp.sqrt(goal) / target
    high = mp.log(min(mp.expm1(goal), most))
    low = high
    while shortfall(low)[0] > 0:
        low -= 4
    best = mp.exp(normal.root(shortfall, high, low, high))
    found = (target - _offset(best, goal)) / (1 + best)
    return normal.rounded_down(found)
