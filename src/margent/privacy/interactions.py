"""What a table says beyond its margins: the integers of its interaction, and how far one record moves them.

The interaction of a table M over columns of k_1, ..., k_q codes is its part of which every margin is 0:

    Q M = (k_1 I - J) x ... x (k_q I - J) M,   J all ones,

an integer table of the same shape: k_1 ... k_q times what is left of M without what its margins say. Where the
margins are known from elsewhere, it is all that a table has to tell, and one record moves it by less than it moves
k_1 ... k_q M: the squared ratio is prod (k_j - 1)/k_j, a quarter for two columns of two codes.

Source: ResidualPlanner (Xiao, He, Zhang, Kifer 2023); ``proofs/interaction.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from margent.privacy.neighbors import Neighbors


def interaction_of(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Q M: along every axis, k times each entry less the sum over the axis.

    Shapes: that of ``table``. Units: parts of a record, as many as the table has cells.
    Privacy: exact counts in, exact integers out: called behind the curator's door only.

    >>> interaction_of(np.array([[5, 1], [2, 2]])).tolist()
    [[4, -4], [-4, 4]]
    """
    values = table.astype(np.int64, copy=True)
    for axis, size in enumerate(table.shape):
        values = size * values - values.sum(axis=axis, keepdims=True)
    return values


def interaction_sensitivity_squared(sizes: Sequence[int], neighbors: Neighbors) -> Fraction:
    """Squared L2 sensitivity of the interaction of one table, in squared parts of a record.

    D = prod k_j (k_j - 1) for a record more or less; k^2 D for the k rows of a person, which may all lie in one cell;
    2 D m/(m - 1), m the least k_j, where a record is replaced: it then moves along the column of fewest codes.

    Shapes: ``sizes`` are the k_j, each at least 2.
    Privacy: registered sensitivity of `interaction`.
    Source: ``proofs/interaction.md``.

    >>> [str(interaction_sensitivity_squared((2, 3), each)) for each in (Neighbors(), Neighbors("replace"))]
    ['12', '48']
    """
    added = math.prod(size * (size - 1) for size in sizes)
    if neighbors.relation == "replace":
        least = min(sizes)
        return Fraction(2 * added * least, least - 1)
    return Fraction(added * neighbors.unit_rows**2)


def interaction_gain(sizes: Sequence[int]) -> float:
    """How much less the noise of a cell varies where the same budget buys the interaction: prod (k_j / (k_j - 1))^2.

    Once (k_j - 1)/k_j because a record moves it by less, once because noise in margins is no part of it.

    Privacy: none: public facts.

    >>> interaction_gain((2, 2)), round(interaction_gain((10, 20)), 3)
    (16.0, 1.368)
    """
    return math.prod((size / (size - 1)) ** 2 for size in sizes)
