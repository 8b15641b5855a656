"""PriView's buying half: noisy tables ("views") of a covering design, so that every t columns lie in one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from margent.collectors.allocation import allocate
from margent.collectors.covering import Cover, best_cover
from margent.collectors.one_ways import informative_columns
from margent.collectors.stage import Stage, shares_leave_a_rest
from margent.errors import PlanError, UsageError
from margent.privacy.budget import Budget
from margent.privacy.laws import Gaussian, Law
from margent.privacy.queries import marginal_law
from margent.privacy.requests import Curator, MarginalRequest
from margent.schema.domain import Domain
from margent.settings import MOST_CELLS, require_between
from margent.transcript import NoisyMarginal, Transcript


@dataclass(frozen=True)
class PriView:
    """Buy one noisy table a view; the data decide at most whether every two or every three columns share one.

    - ``strength``: t; every t columns lie in a view. 2, 3 (all columns where there are fewer), or None: the one-way of
      the column with fewest codes is bought first, and t is 3 where noise would then be at most ``most_noise`` of the
      noisy number of records in the mean table of three columns, and else 2.
    - ``split``: "even" gives every view the same part of the budget, as published; "cells" gives it in
      proportion to c^(2/3) (c^(1/2) where the account is pure), which leaves less noise in large views.
    - ``total_share``: what the choice of t may cost.
    - ``most_cells``: most cells of all views together.

    Privacy: Gaussian releases, or Laplace ones where the account is pure; sensitivity as registered for `marginal`.
    Source: PriView (Qardaji, Yang, Li, SIGMOD 2014); for columns of different sizes see `margent.collectors.covering`.
    """

    strength: int | None = None
    split: Literal["even", "cells"] = "even"
    total_share: Fraction = Fraction(1, 50)
    most_noise: float = 0.1
    most_cells: int = 20_000_000
    name: str = "priview"

    def __post_init__(self) -> None:
        """Check the strength and the share. Raises: UsageError."""
        if self.strength not in (None, 2, 3):
            raise UsageError("priview: strength must be 2 or 3, how many columns always share a view, or None")
        if not shares_leave_a_rest(self.total_share):
            raise UsageError("priview: the share for the number of records must lie between 0 and 1")
        require_between(self, most_noise=(0, 1e6), most_cells=(1, MOST_CELLS))

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """The number of records where t depends on it, and the views: the larger of both designs.

        Privacy: none: public facts only.
        Raises: PlanError where the views would have too many cells, naming the widest columns.
        """
        designs = self._designs(domain, budget.account.scale_power)
        if len(designs) == 1:
            return (self._views_stage(domain, budget, designs, Fraction(1)),)
        column = _narrowest(domain)
        law = marginal_law(budget.total * self.total_share, budget.neighbors, budget.account)
        first = Stage(
            name="number of records",
            share=self.total_share,
            questions=1,
            largest=domain.size(column),
            cells=domain.size(column),
            law=law,
            note=f"the one-way of {column}; it decides whether every 2 or every 3 columns lie in a view",
            total=domain.size(column) * float(law.variance),
        )
        return first, self._views_stage(domain, budget, designs, 1 - self.total_share)

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Spend the budget on the views, and a little before on the number of records where t depends on it."""
        domain, power = curator.domain, curator.account.scale_power
        designs, left = self._designs(domain, power), budget.total
        counted: tuple[NoisyMarginal, ...] = ()
        chosen = designs[0]
        if len(designs) > 1:
            share = budget.total * self.total_share
            left -= share
            law = marginal_law(share, curator.neighbors, curator.account)
            request = MarginalRequest((_narrowest(domain),), law)
            counted = curator.measure([request], label="number of records")
            law = marginal_law(left, curator.neighbors, curator.account)
            noise = law.mean_absolute * designs[1].noise / math.comb(len(informative_columns(domain)), 3)
            if noise / 2 <= self.most_noise * int(counted[0].counts.sum()):
                chosen = designs[1]
        views = chosen.cliques(informative_columns(domain))
        parts = self._parts(left, [domain.cells(view) for view in views], power)
        laws = {part: marginal_law(part, curator.neighbors, curator.account) for part in set(parts)}
        requests = [MarginalRequest(view, laws[part]) for view, part in zip(views, parts, strict=True)]
        measured = curator.measure(requests, label="views") if requests else ()
        return Transcript(curator.schema, domain, self.name, curator.charges, (*counted, *measured))

    def _designs(self, domain: Domain, scale_power: int) -> tuple[Cover, ...]:
        """The designs that may be bought: one, or that of every two columns and that of every three.

        Raises: PlanError where the smallest would have too many cells.
        """
        columns = informative_columns(domain)
        if not columns:
            return (Cover(0, (), "there is no column", 0.0),)
        sizes = tuple(domain.size(name) for name in columns)
        wanted = (2, 3) if self.strength is None else (self.strength,)
        strengths = sorted({min(each, len(columns)) for each in wanted})
        covers = [_cover(sizes, each, scale_power, self.split == "even", self.most_cells) for each in strengths]
        found = tuple(cover for cover in covers if cover is not None)
        if covers[0] is None:
            widest = sorted(zip(sizes, columns, strict=True), reverse=True)[:3]
            named = ", ".join(f"{name!r} ({size:,} codes)" for size, name in widest)
            raise PlanError(
                f"views that hold every {strengths[0]} columns would have more than {self.most_cells:,} cells; the "
                f"widest columns are {named}: give them fewer bins or categories, or take method dense, which counts "
                "rare codes together"
            )
        return found

    def _parts(self, share: Fraction, cells: list[int], scale_power: int) -> list[Fraction]:
        if self.split == "even":
            return [share / len(cells) for _ in cells]
        return allocate(share, cells, scale_power)

    def _views_stage(self, domain: Domain, budget: Budget, designs: tuple[Cover, ...], share: Fraction) -> Stage:
        """What the views would cost: for each figure the larger of the designs."""
        columns = informative_columns(domain)
        notes, laws, variances = [], list[Law](), dict[str, float]()
        questions, largest, total, total_variance = 0, 0, 0, 0.0
        for design in designs if columns else ():
            views = design.cliques(columns)
            cells = [domain.cells(view) for view in views]
            parts = self._parts(budget.total * share, cells, budget.account.scale_power)
            noise = {part: marginal_law(part, budget.neighbors, budget.account) for part in set(parts)}
            precision = dict.fromkeys(columns, 0.0)
            for view, count, part in zip(views, cells, parts, strict=True):
                for name in view:
                    precision[name] += domain.size(name) / (count * float(noise[part].variance))
            for name, each in precision.items():
                variances[name] = max(variances.get(name, 0.0), 1 / each)
            whole = sum(1 / (count * float(noise[part].variance)) for count, part in zip(cells, parts, strict=True))
            total_variance = max(total_variance, 1 / whole)
            laws += noise.values()
            questions, largest = max(questions, len(views)), max(largest, *cells)
            total = max(total, sum(cells))
            notes.append(f"every {design.strength} columns lie in one of {len(views):,} views ({design.made_by})")
        return Stage(
            name="views",
            share=share,
            questions=questions,
            largest=largest,
            cells=total,
            law=max(laws, key=lambda law: law.variance, default=None),
            note=", or ".join(notes),
            # What all views together say of single columns.
            columns=tuple((name, Gaussian(Fraction(variance))) for name, variance in variances.items()),
            total=total_variance or None,
        )


def _narrowest(domain: Domain) -> str:
    """The column whose one-way tells the number of records best."""
    return min(informative_columns(domain), key=lambda name: (domain.size(name), name))


@lru_cache(maxsize=64)
def _cover(sizes: tuple[int, ...], strength: int, scale_power: int, even: bool, most_cells: int) -> Cover | None:
    return best_cover(sizes, strength, scale_power, even, most_cells)
