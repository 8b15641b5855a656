"""Pure differential privacy: epsilon adds up, delta is 0, and Gaussian noise is not for sale."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from margent.errors import BudgetError, UsageError
from margent.privacy import grid
from margent.privacy.laws import Laplace, Law
from margent.privacy.statement import check_epsilon, check_positive


@dataclass(frozen=True, slots=True)
class PureAccount:
    """Charges are epsilon and add up; every figure is exact.

    Units: epsilon, dimensionless; scales and sensitivities are in the unit the noise is an integer in.
    Source: Dwork, McSherry, Nissim, Smith 2006.

    >>> PureAccount().laplace_cost(Fraction(2), Fraction(40))
    Fraction(1, 20)
    """

    @property
    def name(self) -> str:
        """The account's name on a charge: 'pure'."""
        return "pure"

    @property
    def scale_power(self) -> int:
        """A cost falls with the noise's scale itself."""
        return 1

    def law(self, share: Fraction, l1: Fraction, l2_squared: Fraction) -> Law:
        """Laplace noise of the least grid scale t >= l1/share; the L2 sensitivity does not matter to it."""
        return Laplace(grid.round_up(check_positive(l1, "the sensitivity") / check_positive(share, "the share")))

    def total(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """Epsilon itself; delta must be 0. Raises: UsageError otherwise."""
        _refuse_delta(delta)
        return check_epsilon(epsilon)

    def gaussian_cost(self, sensitivity_squared: Fraction, scale_squared: Fraction) -> Fraction:
        """Never. Raises: BudgetError: Gaussian noise satisfies no pure epsilon."""
        _refuse_gaussian()

    def gaussian_scale(self, sensitivity_squared: Fraction, share: Fraction) -> Fraction:
        """Never. Raises: BudgetError: Gaussian noise satisfies no pure epsilon."""
        _refuse_gaussian()

    def laplace_cost(self, sensitivity: Fraction, scale: Fraction) -> Fraction:
        """Epsilon = sensitivity/scale, exact."""
        check_positive(sensitivity, "the sensitivity")
        return sensitivity / check_positive(scale, "the scale")

    def exponential_cost(self, epsilon: Fraction) -> Fraction:
        """Epsilon itself."""
        return check_positive(epsilon, "epsilon")

    def exponential_epsilon(self, share: Fraction) -> Fraction:
        """``share`` itself."""
        return check_positive(share, "the share of the budget")

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        """What was spent; delta must be 0. Raises: UsageError otherwise."""
        _refuse_delta(delta)
        return spent if spent == 0 else check_positive(spent, "what was spent")


def _refuse_delta(delta: Fraction) -> None:
    if delta != 0:
        raise UsageError("with accountant 'pure', delta must be 0: leave delta out, or take accountant 'gdp'")


def _refuse_gaussian() -> NoReturn:
    raise BudgetError(
        "this method adds Gaussian noise, which no budget with delta 0 can pay for: choose accountant 'gdp' "
        "with a delta such as 1e-9, or a method with Laplace noise"
    )
