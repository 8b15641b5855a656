"""The laws of noise that an answer may carry: discrete Gaussian or discrete Laplace, with what the public may know.

| law | Pr[x] proportional to | variance | mean absolute value |
|---|---|---|---|
| `Gaussian(s^2)` | exp(-x^2 / (2 s^2)) | s^2, its parameter | s sqrt(2/pi) |
| `Laplace(t)` | exp(-abs(x) / t) | 2q/(1 - q)^2, q = exp(-1/t) | 2q/(1 - q^2) |

A law is a public fact: it is fixed before the data is looked at, and stands in the charge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from margent.privacy import normal
from margent.privacy.charge import Charge, Mechanism
from margent.privacy.normal import real
from margent.privacy.statement import check_positive

SCALE_LIMIT = 1 << 50
"""The widest noise there is: Pr[|draw| >= 2^62] < 2^-5900, and it would be an error rather than a wrong number."""
VARIANCE_BITS = 60
"""A stated variance of Laplace noise is a fraction of about so many bits, the same on every machine."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """N_Z(0, s^2) on the integers: Pr[x] proportional to exp(-x^2 / (2 s^2)).

    Units: ``scale_squared`` is s^2, in the squared unit in which the exact answer is an integer.
    """

    scale_squared: Fraction

    @property
    def mechanism(self) -> Mechanism:
        """The name a charge carries."""
        return "discrete-gaussian"

    @property
    def variance(self) -> Fraction:
        """The parameter s^2, which is the variance for all scales in practical use.

        >>> Gaussian(Fraction(100)).variance
        Fraction(100, 1)
        """
        return self.scale_squared

    @property
    def mean_absolute(self) -> float:
        """Mean absolute noise, s sqrt(2/pi).

        >>> round(Gaussian(Fraction(100)).mean_absolute, 2)
        7.98
        """
        return math.sqrt(2 * self.scale_squared / math.pi)

    def in_units_of(self, unit: int) -> Gaussian:
        """The same noise counted in units that hold ``unit`` of the old ones."""
        return Gaussian(self.scale_squared / unit**2)

    def in_parts_of(self, unit: int) -> Gaussian:
        """The same noise counted in parts, ``unit`` of which make one of the old units."""
        return Gaussian(self.scale_squared * unit**2)


@dataclass(frozen=True, slots=True)
class Laplace:
    """Pr[x] proportional to exp(-abs(x) / t) on the integers.

    Units: ``scale`` is t, in the unit in which the exact answer is an integer.
    """

    scale: Fraction

    @property
    def mechanism(self) -> Mechanism:
        """The name a charge carries."""
        return "discrete-laplace"

    @property
    def scale_squared(self) -> Fraction:
        """t^2, as a charge states it."""
        return self.scale**2

    @property
    def variance(self) -> Fraction:
        """2q/(1 - q)^2 = 1/(2 sinh(1/(2t))^2), q = exp(-1/t): 2 t^2 - 1/6 and a little; to 60 bits.

        >>> round(float(Laplace(Fraction(10)).variance), 3)
        199.833
        """
        return _laplace_variance(self.scale)

    @property
    def mean_absolute(self) -> float:
        """Mean absolute noise, 2q/(1 - q^2) = 1/sinh(1/t): t for all but narrow laws.

        >>> round(Laplace(Fraction(10)).mean_absolute, 2)
        9.98
        """
        inverse = float(1 / self.scale)
        return 1 / math.sinh(inverse) if inverse < 700 else 0.0

    def in_units_of(self, unit: int) -> Laplace:
        """The same noise counted in units that hold ``unit`` of the old ones."""
        return Laplace(self.scale / unit)

    def in_parts_of(self, unit: int) -> Laplace:
        """The same noise counted in parts, ``unit`` of which make one of the old units."""
        return Laplace(self.scale * unit)


Law = Gaussian | Laplace


def law_of(charge: Charge) -> Law:
    """The law of the noise that a charge paid for.

    Privacy: none: charges are public.
    Raises: ValueError where the charge names no noise, or a Laplace scale that is not the square of a fraction.
    """
    if charge.scale_squared is None:
        raise ValueError("the charge paid for a choice, which adds no noise")
    if charge.mechanism == "discrete-gaussian":
        return Gaussian(charge.scale_squared)
    return Laplace(exact_root(charge.scale_squared))


def exact_root(square: Fraction) -> Fraction:
    """The positive fraction of that square.

    Raises: ValueError where there is none.

    >>> exact_root(Fraction(9, 4))
    Fraction(3, 2)
    """
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root <= 0 or root**2 != square:
        raise ValueError("not the square of a positive fraction")
    return root


@lru_cache(maxsize=4096)
def _laplace_variance(scale: Fraction) -> Fraction:
    check_positive(scale, "the scale")
    return normal.rounded_up(1 / (2 * normal.context().sinh(real(1 / (2 * scale))) ** 2), VARIANCE_BITS)
