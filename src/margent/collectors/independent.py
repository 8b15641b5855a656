"""The baseline: one-way marginals only, every column as if independent of the others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from margent.collectors.first_tables import first_stage, one_way_parts
from margent.collectors.one_ways import informative_columns, one_way_requests
from margent.collectors.stage import Stage
from margent.privacy.budget import Budget
from margent.privacy.requests import Curator
from margent.schema.domain import Domain
from margent.transcript import Transcript


@dataclass(frozen=True)
class Independent:
    """One-way marginals with budgets that make their summed L1 noise least: rho_a ~ k_a^(2/3), epsilon_a ~ k_a^(1/2).

    Privacy: d releases with Gaussian noise (L2 sensitivity 1 each, sqrt 2 when records are replaced, k for
    persons), or with Laplace noise (L1 sensitivity 1, 2 or k) where the account is pure.
    """

    name: str = "independent"

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """One stage with the whole budget. Privacy: none: public facts only."""
        return (first_stage(domain, budget, Fraction(1)),)

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the whole budget on one-way marginals."""
        domain = curator.domain
        parts = one_way_parts(domain, budget, Fraction(1))
        requests = one_way_requests(curator, informative_columns(domain), parts)
        answers = curator.measure(requests, label="one-way marginals") if requests else ()
        return Transcript(curator.schema, domain, self.name, curator.charges, answers)
