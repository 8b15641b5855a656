"""Gaussian differential privacy: B = mu^2/2 adds up, and one number mu stands for the whole trade-off curve.

Adding independent discrete Gaussian noise N_Z(0, s^2) to integers that a neighbor moves by v_1, v_2, ... is
mu-GDP with mu^2 = sum_j v_j^2 g(s_j)^2. Two lemmas give g; ``proofs/accounting.md`` has both in full.

* s <= 64: g(s) = 2 Phi^-1((1 + p0)/2) with p0 = Pr[N_Z = 0], about (1 + 1/(24 s^2))/s. This is exact, and
  holds for every scale of the public grid up to 64: the finitely many inequalities that the proof leaves
  open are decided by interval arithmetic (``tests/privacy/test_scale_lemma.py``).
* s > 64: g(s) = 1/sqrt(s^2 - 4). The noise is, up to a factor within exp(+-2.1e-34) at every point, a
  continuous Gaussian of variance s^2 - 4 followed by a randomized rounding, which is post-processing.

Over 2^40 draws those factors multiply to within exp(+-ETA). A run that is mu-GDP up to that factor is
(epsilon + 2 ETA, e^ETA delta)-DP where a mu-GDP one is (epsilon, delta)-DP; every conversion below keeps that
slack, whichever scales were used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from margent.errors import UsageError
from margent.privacy import grid, normal
from margent.privacy.laws import Gaussian, Law
from margent.privacy.normal import Real, real
from margent.privacy.statement import check_delta, check_epsilon, check_positive

ETA = Fraction(1, 10**21)
VERIFIED_UP_TO = Fraction(4096)

# Below this B every stated epsilon is under 1e-22; smaller ones are stated as if they were this large.
_LEAST_SPENT = Fraction(1, 2**160)
_MOST_SPENT = Fraction(10**6)

# Where epsilon >= 0, delta(epsilon) >= 1 - 2 Q(c) at epsilon/mu - mu/2 = -c < 0, and 1 - 2 Q(.13) > .1: no statement
# lies there.
_MOST_BELOW = 0.13


@dataclass(frozen=True, slots=True)
class GdpAccount:
    """Charges are B = mu^2/2 and add up; the total at (1, 1e-9) is .016557.

    Units: B is mu^2/2, dimensionless; scales and sensitivities are in the unit the noise is an integer in.
    Source: Dong, Roth, Su 2022 (composition, group privacy, conversion); Smith, Thakurta 2022 (filters).

    >>> account = GdpAccount()
    >>> round(float(account.total(Fraction(1), Fraction(1, 10**9))), 6)
    0.016557
    """

    @property
    def name(self) -> str:
        """The account's name on a charge: 'gdp'."""
        return "gdp"

    @property
    def scale_power(self) -> int:
        """A cost falls with the square of its noise's scale."""
        return 2

    def law(self, share: Fraction, l1: Fraction, l2_squared: Fraction) -> Law:
        """Gaussian noise of the least grid scale that ``share`` pays for; ``l1`` does not matter to it."""
        return Gaussian(self.gaussian_scale(l2_squared, share))

    def total(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The most B whose curve satisfies delta(epsilon) <= delta, less the slack ETA; rounded down.

        Raises: UsageError outside 1e-12 <= epsilon <= 1e4, 1e-300 <= delta <= 0.1.
        """
        return _total(check_epsilon(epsilon), check_delta(delta))

    def gaussian_cost(self, sensitivity_squared: Fraction, scale_squared: Fraction) -> Fraction:
        """B = D^2 g(s)^2 / 2 of integers with squared L2 sensitivity D^2 under N_Z(0, s^2); rounded up.

        Raises: UsageError for a scale of at most 64 that is off the public grid, where the lemma is unproven.
        """
        check_positive(sensitivity_squared, "the squared sensitivity")
        return sensitivity_squared * squared_price(scale_squared) / 2

    def gaussian_scale(self, sensitivity_squared: Fraction, share: Fraction) -> Fraction:
        """The smallest grid scale s^2 whose `gaussian_cost` is at most ``share``."""
        check_positive(sensitivity_squared, "the squared sensitivity")
        return _scale(sensitivity_squared, check_positive(share, "the share of the budget"))

    def laplace_cost(self, sensitivity: Fraction, scale: Fraction) -> Fraction:
        """B of epsilon = sensitivity/scale: mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)); rounded up."""
        check_positive(sensitivity, "the sensitivity")
        return _pure_cost(sensitivity / check_positive(scale, "the scale"))

    def exponential_cost(self, epsilon: Fraction) -> Fraction:
        """B of an epsilon-DP choice: mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)); rounded up."""
        return _pure_cost(check_positive(epsilon, "epsilon"))

    def exponential_epsilon(self, share: Fraction) -> Fraction:
        """The epsilon of `exponential_cost` = ``share``, ln((1 - q)/q) with q = Q(mu/2); rounded down."""
        return _pure_epsilon(check_positive(share, "the share of the budget"))

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        """The smallest epsilon with delta(epsilon) <= delta at B = ``spent``, plus the slack; rounded up."""
        check_delta(delta)
        if spent == 0:
            return Fraction(0)
        if check_positive(spent, "what was spent") > _MOST_SPENT:
            raise UsageError("more than B = 1000000 was spent: no epsilon worth stating follows from that")
        return _epsilon(max(spent, _LEAST_SPENT), delta)


def _hockey_stick(epsilon: Real, mu: Real) -> tuple[Real, Real]:
    """delta(epsilon) of a mu-GDP mechanism, Q(epsilon/mu - mu/2) - e^epsilon Q(epsilon/mu + mu/2), and its last term.

    The last term, negated, is the slope in epsilon; the slope in mu is the normal density at epsilon/mu - mu/2.
    """
    mp = normal.context()
    middle = epsilon / mu
    last = mp.exp(epsilon) * normal.upper_tail(middle + mu / 2)
    return normal.upper_tail(middle - mu / 2) - last, last


def _log_delta(epsilon: float, mu: float) -> float:
    """ln delta(epsilon) of a mu-GDP mechanism in floats, where epsilon/mu - mu/2 > -1: a start for root finding.

    With R = Q/density, the density's identity e^epsilon density(b) = density(a) makes it density(a) (R(a) - R(b)).
    """
    middle = epsilon / mu
    least = middle - mu / 2
    if mu > 0.01:
        fall = normal.mills_ratio(least) - normal.mills_ratio(middle + mu / 2)
    else:  # two terms of the series about the middle, from R' = x R - 1
        ratio = normal.mills_ratio(middle)
        slope = middle * ratio - 1
        fall = -mu * (slope + mu**2 / 24 * (2 * slope + middle * (ratio + middle * slope)))
    return math.log(fall / math.sqrt(2 * math.pi)) - least**2 / 2


def _crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where ``rising`` crosses zero between ``low`` and ``high``, to about a float's precision: by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return high


@lru_cache(maxsize=8192, typed=True)
def squared_price(scale_squared: Fraction) -> Fraction:
    """g(s)^2, rounded up: what a shift by one costs under N_Z(0, s^2), as mu^2.

    Raises: UsageError for a scale of at most 64 that is off the grid.

    >>> [round(float(squared_price(Fraction(s2)) * s2), 6) for s2 in (1, 25, 8192)]
    [1.093614, 1.003348, 1.000489]
    """
    check_positive(scale_squared, "the noise scale s^2")
    if scale_squared > VERIFIED_UP_TO:
        return normal.rounded_up(real(1 / (scale_squared - 4)))
    if not grid.on_grid(scale_squared):
        raise UsageError(
            f"the noise scale s^2 = {float(scale_squared):.6g} is not on the public grid: "
            "use margent.privacy.grid.round_up"
        )
    excess = _mass_off_zero(real(scale_squared))
    return normal.rounded_up((2 * normal.upper_tail_inverse(excess / (1 + excess) / 2)) ** 2)


@lru_cache(maxsize=1024)
def _scale(sensitivity_squared: Fraction, share: Fraction) -> Fraction:
    # g(s) > 1/s, so no smaller scale can do.
    least = sensitivity_squared / (2 * share)
    return grid.first_fitting(least, lambda s2: sensitivity_squared * squared_price(s2) / 2 <= share)


def _mass_off_zero(scale_squared: Real) -> Real:
    """sum over z != 0 of exp(-z^2 / (2 s^2)), which is 1/p0 - 1; by Poisson's formula where s >= 1/2."""
    mp = normal.context()
    direct = 4 * scale_squared < 1
    rate = 1 / (2 * scale_squared) if direct else 2 * mp.pi**2 * scale_squared
    terms: list[Real] = []
    while not terms or terms[-1] > mp.ldexp(1, -normal.PRECISION_BITS):
        terms.append(mp.exp(-rate * (len(terms) + 1) ** 2))
    halves = 2 * sum(reversed(terms))
    return halves if direct else mp.sqrt(2 * mp.pi * scale_squared) * (1 + halves) - 1


@lru_cache(maxsize=1024)
def _pure_cost(epsilon: Fraction) -> Fraction:
    mp = normal.context()
    # Below 2^-128 the tail is 1/2 to within the arithmetic's error; a larger epsilon is only dearer.
    tail = 1 / (1 + mp.exp(real(max(epsilon, Fraction(1, 2**128)))))
    return normal.rounded_up(2 * normal.upper_tail_inverse(tail) ** 2)


@lru_cache(maxsize=1024)
def _pure_epsilon(share: Fraction) -> Fraction:
    mp = normal.context()
    tail = normal.upper_tail(mp.sqrt(real(share) / 2))
    found = normal.rounded_down(mp.log((1 - tail) / tail))
    return normal.first_safe(found, lambda epsilon: _pure_cost(epsilon) <= share, up=False, bits=normal.PRICE_BITS)


@lru_cache(maxsize=1024)
def _total(epsilon: Fraction, delta: Fraction) -> Fraction:
    mp = normal.context()
    kept_epsilon = real(epsilon - 2 * ETA)
    kept_delta = real(delta * (1 - ETA))
    goal = mp.log(kept_delta)

    def excess(mu: Real) -> tuple[Real, Real]:
        found, _ = _hockey_stick(kept_epsilon, mu)
        density = mp.exp(-((kept_epsilon / mu - mu / 2) ** 2) / 2) / mp.sqrt(2 * mp.pi)
        return mp.log(found) - goal, density / found

    rough = float(kept_epsilon)
    # epsilon = rho + 2 sqrt(rho ln(1/delta)) holds for every rho-zCDP mechanism, hence for this one.
    low = math.sqrt(2) * rough / (math.sqrt(rough - float(goal)) + math.sqrt(-float(goal)))
    high = math.sqrt(2 * rough) + 2 * _MOST_BELOW
    guess = _crossing(lambda mu: _log_delta(rough, mu) - float(goal), low, high)
    mu = normal.root(excess, mp.mpf(guess), mp.mpf(low) / 2, mp.mpf(high) * 2)
    return normal.first_safe(
        normal.rounded_down(mu**2 / 2),
        lambda b: _within(kept_epsilon, mp.sqrt(2 * real(b)), kept_delta),
        up=False,
        bits=normal.PRICE_BITS,
    )


@lru_cache(maxsize=1024)
def _epsilon(spent: Fraction, delta: Fraction) -> Fraction:
    mp = normal.context()
    kept_delta = real(delta * (1 - ETA))
    mu = mp.sqrt(2 * real(spent))
    if _within(mp.mpf(0), mu, kept_delta):
        return 2 * ETA
    goal = mp.log(kept_delta)
    high = mu**2 / 2 + 2 * mp.sqrt(-(mu**2) / 2 * goal)

    def saving(epsilon: Real) -> tuple[Real, Real]:
        found, last = _hockey_stick(epsilon, mu)
        return goal - mp.log(found), last / found

    rough = float(mu)
    low = max(0.0, rough * (rough / 2 - _MOST_BELOW))
    guess = _crossing(lambda epsilon: float(goal) - _log_delta(epsilon, rough), low, float(high))
    found = normal.root(saving, mp.mpf(guess), mp.mpf(0), high)
    stated = normal.first_safe(
        normal.rounded_up(found, normal.EPSILON_BITS),
        lambda value: _within(real(value), mu, kept_delta),
        up=True,
        bits=normal.EPSILON_BITS,
    )
    return stated + 2 * ETA


def _within(epsilon: Real, mu: Real, delta: Real) -> bool:
    return bool(_hockey_stick(epsilon, mu)[0] * (1 + real(normal.MARGIN)) <= delta)
