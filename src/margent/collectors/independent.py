"""The baseline: one-way marginals only, every column as if independent of the others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from margent.collectors.allocation import allocate
from margent.collectors.one_ways import informative_columns, one_way_requests, one_way_stage
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
        return (one_way_stage(domain, budget, Fraction(1), self._parts(domain, budget)),)

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the whole budget on one-way marginals."""
        domain = curator.domain
        requests = one_way_requests(curator, informative_columns(domain), self._parts(domain, budget))
        answers = curator.measure(requests, label="one-way marginals") if requests else ()
        return Transcript(curator.schema, domain, self.name, curator.charges, answers)

    def _parts(self, domain: Domain, budget: Budget) -> list[Fraction]:
        sizes = [domain.size(name) for name in informative_columns(domain)]
        return allocate(budget.total, sizes, budget.account.scale_power)
