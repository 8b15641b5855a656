"""One-way marginals: which columns have one worth asking for, and the requests that a budget pays for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from margent.collectors.stage import Stage
from margent.privacy.budget import Budget
from margent.privacy.queries import marginal_law
from margent.privacy.requests import Curator, MarginalRequest
from margent.schema.domain import Domain


def informative_columns(domain: Domain) -> tuple[str, ...]:
    """Columns whose one-way marginal is worth asking for: all with more than one code.

    A column of one code is constant and costs nothing. If all are, the first is asked, for the number of
    records.

    Privacy: none: public facts only.

    >>> informative_columns(Domain(("country", "sex"), (1, 2)))
    ('sex',)
    """
    several = tuple(name for name, size in zip(domain.names, domain.sizes, strict=True) if size > 1)
    return several or domain.names[:1]


def one_way_requests(curator: Curator, columns: Sequence[str], parts: Sequence[Fraction]) -> list[MarginalRequest]:
    """One request a column, each at the least noise that its part of the budget pays for.

    Units: parts in the account's unit. Privacy: none: public facts only.
    """
    laws = {part: marginal_law(part, curator.neighbors, curator.account) for part in set(parts)}
    return [MarginalRequest((name,), laws[part]) for name, part in zip(columns, parts, strict=True)]


def one_way_stage(domain: Domain, budget: Budget, share: Fraction, parts: Sequence[Fraction]) -> Stage:
    """The plan's line for a one-way marginal of every informative column, the noise that of the least part.

    Privacy: none: public facts only.
    """
    columns = informative_columns(domain)
    sizes = [domain.size(name) for name in columns]
    law_of = {part: marginal_law(part, budget.neighbors, budget.account) for part in set(parts)}
    return Stage(
        name="one-way marginals",
        share=share,
        questions=len(columns),
        largest=max(sizes, default=0),
        cells=sum(sizes),
        law=max(law_of.values(), key=lambda law: law.variance, default=None),
        columns=tuple((name, law_of[part]) for name, part in zip(columns, parts, strict=True)),
    )
