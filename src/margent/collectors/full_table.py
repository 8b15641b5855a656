"""The baseline: one contingency table over all columns at once, where it fits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage
from margent.errors import PlanError
from margent.privacy.budget import Budget
from margent.privacy.queries import marginal_law
from margent.privacy.requests import Curator, MarginalRequest
from margent.schema.domain import Domain, clique
from margent.settings import MOST_CELLS, require_between
from margent.transcript import Transcript


@dataclass(frozen=True)
class FullTable:
    """The whole budget on the one table over all columns of more than one code, of at most ``max_cells`` cells.

    Privacy: one release: Laplace noise where the account is pure, Gaussian noise otherwise; sensitivities as registered
    for `marginal`.
    Source: Dwork, McSherry, Nissim, Smith 2006; the baseline of Li, Dang, Wang, Li 2021.
    """

    max_cells: int = 10_000_000
    name: str = "laplace"

    def __post_init__(self) -> None:
        """Check the cap. Raises: UsageError."""
        require_between(self, max_cells=(1, MOST_CELLS))

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """One stage. Privacy: none: public facts only. Raises: PlanError where the table is over the cap."""
        names = informative_columns(domain)
        cells = domain.cells(names)
        if cells > self.max_cells:
            sizes = ", ".join(f"{name!r} ({domain.size(name):,})" for name in names[:8])
            more = f" and {len(names) - 8} more columns" if len(names) > 8 else ""
            raise PlanError(
                f"method {self.name!r} counts all columns in one table, which would have {shown(cells)} cells, and the "
                f"cap is {self.max_cells:,}: columns (codes) {sizes}{more}; drop columns, give them fewer codes, or "
                "take another method"
            )
        law = marginal_law(budget.total, budget.neighbors, budget.account) if names else None
        return (Stage("table of all columns", Fraction(1), len(names[:1]), cells, cells, law),)

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Buy the one table. Raises: PlanError where it is over the cap (before anything is charged)."""
        domain = curator.domain
        self.stages(domain, budget)
        names = clique(informative_columns(domain))
        law = marginal_law(budget.total, curator.neighbors, curator.account) if names else None
        requests = [] if law is None else [MarginalRequest(names, law)]
        answers = curator.measure(requests, label="table of all columns")
        return Transcript(curator.schema, domain, self.name, curator.charges, answers)


def shown(cells: int) -> str:
    """A number of cells as a person reads it, however large.

    >>> shown(12_345), shown(2 * 10**30)
    ('12,345', '2.0e+30')
    """
    return f"{cells:,}" if cells < 10**12 else f"{cells // 10 ** (len(str(cells)) - 2) / 10:.1f}e+{len(str(cells)) - 1}"
