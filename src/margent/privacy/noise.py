"""Exact discrete Gaussian and discrete Laplace noise from the operating system's randomness. No seed exists.

A draw has exactly the law that its charge is priced for: no floating point, no cut tail, no rounding. Scales
up to 2,000 are drawn by inversion, wider ones by blocks with an exact rejection; both are integers only.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from margent.errors import PlanError, UsageError
from margent.privacy.brackets import DiscreteLaw, discrete_gaussian_law, discrete_laplace_law
from margent.privacy.inversion import Inversion
from margent.privacy.laws import SCALE_LIMIT, Law
from margent.privacy.rejection import BlockRejection

INVERSION_LIMIT = 2_000  # the scale up to which the tables stay small and quick to make
_BLOCK_SCALE = 10  # binary logarithm of the scale, counted in blocks, at which blocks are drawn


def discrete_gaussian(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    """``count`` independent draws of N_Z(0, s^2): Pr[x] proportional to exp(-x^2 / (2 s^2)) on the integers.

    Shapes: (count,).
    Units: ``scale_squared`` in records squared. Every draw is below 2^62 in magnitude.
    Privacy: the noise of a "discrete-gaussian" charge; the charge is the caller's, and draws are used once.
    Source: the law and its use, Canonne, Kamath, Steinke 2020; the sampler, `margent.privacy.inversion`.
    Raises: UsageError for a malformed argument, PlanError for s above 2^50.

    >>> discrete_gaussian(4, Fraction(179, 10)).dtype
    dtype('int64')
    """
    _check("scale_squared", scale_squared, SCALE_LIMIT**2, count)
    wide = scale_squared > INVERSION_LIMIT**2
    return _sampler(discrete_gaussian_law(scale_squared), wide).draw(count)


def discrete_laplace(count: int, scale: Fraction) -> NDArray[np.int64]:
    """``count`` independent draws with Pr[x] proportional to exp(-|x| / t) on the integers.

    Shapes: (count,).
    Units: ``scale`` in records. Every draw is below 2^62 in magnitude.
    Privacy: the noise of a "discrete-laplace" charge; the charge is the caller's, and draws are used once.
    Raises: UsageError for a malformed argument, PlanError for t above 2^50.

    >>> discrete_laplace(4, Fraction(2)).shape
    (4,)
    """
    _check("scale", scale, SCALE_LIMIT, count)
    return _sampler(discrete_laplace_law(scale), scale > INVERSION_LIMIT).draw(count)


def require_drawable(law: Law) -> None:
    """Refuse noise so wide that a draw might not fit 64 bits; asked of a plan, and again before each charge.

    Privacy: none: laws are public.
    Raises: PlanError with the next step.
    """
    if law.scale_squared > SCALE_LIMIT**2:
        raise PlanError(
            f"noise of scale {_shown_scale(law)} would be needed, and above {float(SCALE_LIMIT):.2g} a noisy count "
            "might not fit 64 bits: raise epsilon, keep fewer rows of each person, or ask for fewer columns"
        )


def _shown_scale(law: Law) -> str:
    """The scale of a law to two digits, without a float that could overflow.

    >>> from margent.privacy.laws import Laplace
    >>> _shown_scale(Laplace(Fraction(2**70)))
    '1.2e+21'
    """
    return f"{Decimal(math.isqrt(math.ceil(law.scale_squared))):.1e}"


@lru_cache(maxsize=64)
def _sampler(law: DiscreteLaw, wide: bool) -> Inversion | BlockRejection:
    """Keep the tables of the laws in use; a law of usual scale takes a millisecond or two to prepare."""
    if not wide:
        return Inversion(law)
    # The first shift at which the blocks' law has a scale of about 2^10.
    shift = 1
    while law.exponent(1 << (shift + _BLOCK_SCALE)) < Fraction(1, 2):
        shift += 1
    return BlockRejection(law, shift)


def _check(name: str, scale: Fraction, limit: int, count: int) -> None:
    if not isinstance(scale, Fraction) or scale <= 0:
        raise UsageError(f"{name} must be a positive Fraction, such as Fraction(179, 10)")
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise UsageError("count must be a whole number of at least 0")
    if scale > limit:
        raise PlanError(f"{name} must be at most {limit}: above it a draw might not fit 64 bits; give it more budget")
