"""Whether a charge that somebody wrote down was priced for its question: by the registered sensitivity, or more.

A ledger holds a price against the sensitivity and the scale that the charge itself states. In a file from elsewhere
the sensitivity too may be false, and half of it makes a price a quarter. It is a function of the charge, but for two
facts: an interaction's needs the sizes of its columns, and that of mutual information the public number of records, in
whose place stands the least that there could be.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from margent.privacy.charge import Charge
from margent.privacy.interactions import interaction_sensitivity_squared
from margent.privacy.purchases import ONE_PERSON, OPEN_SET, QUANTILES, SIZES
from margent.privacy.queries import (
    SCORE_LATTICE,
    marginal_sensitivity_l1,
    marginal_sensitivity_squared,
    score_units,
)
from margent.privacy.requests import PublicTables

_TABLES = ("marginal", QUANTILES, OPEN_SET)
_FEWEST = PublicTables(1, binary=True)


def least_sensitivity_squared(charge: Charge, sizes: Sequence[int] | None = None) -> Fraction:
    """The squared sensitivity that an honest charge for this question states at least, in its mechanism's norm.

    ``sizes``: the numbers of codes of an interaction's columns; without them nothing is known of it, and 0 is returned.

    Privacy: none: charges are public.
    Raises: ValueError where there is no such question, or none that can be asked in this way.
    """
    neighbors, count = charge.neighbors, len(charge.cliques)
    if charge.query in SCORE_LATTICE:
        if charge.query == "mutual-information" and neighbors.relation != "replace":
            raise ValueError("mutual information has no price here")
        units = score_units(charge.query, neighbors, _FEWEST)
        if charge.mechanism == "exponential":
            return Fraction(units**2)
        return Fraction((count * units) ** 2 if charge.mechanism == "discrete-laplace" else count * units**2)
    if charge.mechanism == "exponential" or count != 1:
        raise ValueError("tables are asked for one a charge, and with noise")
    if charge.query == SIZES:
        if neighbors.person_rows is None:
            raise ValueError("no person is protected")
        return ONE_PERSON
    if charge.query in _TABLES:
        laplace = charge.mechanism == "discrete-laplace"
        return marginal_sensitivity_l1(neighbors) ** 2 if laplace else marginal_sensitivity_squared(neighbors)
    if charge.query != "interaction" or charge.mechanism != "discrete-gaussian":
        raise ValueError("no such question")
    if sizes is None:
        return Fraction(0)
    if min(sizes, default=0) < 2:
        raise ValueError("an interaction of a column of one code")
    return interaction_sensitivity_squared(sizes, neighbors)


def require_registered(charge: Charge, sizes: Sequence[int] | None = None) -> None:
    """Refuse a charge that states a smaller sensitivity than its question has, or no delta where values are selected.

    Privacy: none: charges are public.
    Raises: ValueError.
    """
    if charge.sensitivity_squared < least_sensitivity_squared(charge, sizes):
        raise ValueError("priced for a smaller sensitivity than the question has")
    if (charge.delta > 0) != (charge.query == OPEN_SET):
        raise ValueError("selecting values uses up delta, and nothing else does")
