"""How noise is priced: an account turns (epsilon, delta) into a total and each noisy answer into a cost.

| name | cost | Gaussian, squared sensitivity D^2 | epsilon-DP | total at (1, 1e-9) |
|---|---|---|---|---|
| `gdp` | B = mu^2/2 | D^2 g(s)^2/2, g(s) just above 1/s | 2 Phi^-1(e^epsilon/(1 + e^epsilon))^2 | .016557 |
| `zcdp` | rho | D^2/(2 s^2) | epsilon^2/2, exponential mechanism epsilon^2/8 | .014973 |
| `pure` | epsilon | refused | epsilon | 1 (at delta 0) |

Costs add up, whatever earlier noisy answers made later questions depend on, as long as the sum stays within
the total. Every figure is a Fraction rounded against the spender. Accounts are never mixed within a budget.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from margent.errors import UsageError
from margent.privacy.gdp import GdpAccount
from margent.privacy.laws import Law
from margent.privacy.pure import PureAccount
from margent.privacy.zcdp import ZcdpAccount


class Account(Protocol):
    """A currency of privacy: additive costs, and an exchange rate to (epsilon, delta) rounded against us.

    Units: costs are mu^2/2 (gdp), rho (zcdp) or epsilon (pure). Sensitivities and scales are in the unit in
    which the exact answer is an integer.
    """

    @property
    def name(self) -> str:
        """The name a charge carries: 'gdp', 'zcdp' or 'pure'."""
        ...

    @property
    def scale_power(self) -> int:
        """p, where a table's cost falls with the p-th power of its noise's scale: 2 (gdp, zcdp) or 1 (pure)."""
        ...

    def law(self, share: Fraction, l1: Fraction, l2_squared: Fraction) -> Law:
        """The quietest noise of the public grid that ``share`` buys for integers of these sensitivities."""
        ...

    def total(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The most cost whose conversion stays within (epsilon, delta); rounded down."""
        ...

    def gaussian_cost(self, sensitivity_squared: Fraction, scale_squared: Fraction) -> Fraction:
        """The cost of N_Z(0, s^2) on each of some integers of squared L2 sensitivity D^2; rounded up."""
        ...

    def gaussian_scale(self, sensitivity_squared: Fraction, share: Fraction) -> Fraction:
        """The smallest grid scale s^2 whose `gaussian_cost` is at most ``share``."""
        ...

    def laplace_cost(self, sensitivity: Fraction, scale: Fraction) -> Fraction:
        """The cost of discrete Laplace noise of that scale on integers of that L1 sensitivity; rounded up."""
        ...

    def exponential_cost(self, epsilon: Fraction) -> Fraction:
        """The cost of one choice by the exponential mechanism at ``epsilon``; rounded up."""
        ...

    def exponential_epsilon(self, share: Fraction) -> Fraction:
        """An epsilon, as large as can be found, whose `exponential_cost` is at most ``share``."""
        ...

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        """The epsilon that may be stated with ``delta`` after ``spent``; rounded up."""
        ...


_ACCOUNTS: dict[str, Account] = {account.name: account for account in (GdpAccount(), ZcdpAccount(), PureAccount())}
ACCOUNT_NAMES = tuple(_ACCOUNTS)


def account_named(name: str) -> Account:
    """The account of that name.

    Raises: UsageError naming the three there are.

    >>> account_named("zcdp")
    ZcdpAccount()
    """
    if name not in _ACCOUNTS:
        raise UsageError(f"there is no accountant {name!r}: choose one of {', '.join(ACCOUNT_NAMES)}")
    return _ACCOUNTS[name]
