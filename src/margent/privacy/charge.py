"""Charges: plain frozen records of what was asked of the data and what it costs. No arithmetic, no data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from margent.privacy.neighbors import Neighbors, Relation

Mechanism = Literal["discrete-gaussian", "discrete-laplace", "exponential"]


@dataclass(frozen=True, slots=True)
class Charge:
    """One noisy answer's price, complete enough to be priced again by somebody else's accountant.

    ``label`` says in words what was bought; ``query`` names the registered query (`margent.privacy.queries`)
    and ``cliques`` what it was asked of. Public: written before the data is looked at.

    Units: ``sensitivity_squared`` is the squared L2 sensitivity (discrete Gaussian), the squared L1
    sensitivity (discrete Laplace) or the squared score sensitivity (exponential), in (records)^2;
    ``scale_squared`` is s^2 of the discrete Gaussian, t^2 of the discrete Laplace, in the same unit, or None
    for the exponential mechanism. ``cost`` is what the run's account is charged: mu^2/2 rounded up (gdp),
    rho (zcdp) or epsilon (pure). ``delta`` is the part of delta it uses up itself (0 for all but partition
    selection). ``epsilon`` and ``choices`` are for the exponential mechanism only: epsilon of one choice, and how
    many were made one after another, each among the candidates (``cliques``) that were left. ``children``: where a
    score is of one column against the others of its clique together, that column of each clique. ``person_rows`` is
    the most rows counted of a protected person, None where the unit is a record.
    """

    label: str
    query: str
    cliques: tuple[tuple[str, ...], ...]
    mechanism: Mechanism
    relation: Relation
    sensitivity_squared: Fraction
    scale_squared: Fraction | None
    account: str
    cost: Fraction
    delta: Fraction = Fraction(0)
    epsilon: Fraction | None = None
    choices: int = 1
    person_rows: int | None = None
    children: tuple[str, ...] = ()

    @property
    def neighbors(self) -> Neighbors:
        """Between which tables the charge holds."""
        return Neighbors(self.relation, self.person_rows)
