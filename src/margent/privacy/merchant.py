"""The same door before the codes are fixed: counts on public grids, and texts with their counts, plus noise.

Together with `margent.privacy.curator` this is where exact counts are held. Every method prices the request from public
facts, spends (all of it or nothing), and only then looks. A text leaves only if its noisy count passed the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from margent.counts.source import CountSource, PersonSource, TextSource
from margent.errors import sealed
from margent.privacy import curator as door
from margent.privacy.charge import Charge
from margent.privacy.curator import GaussianNoise, LaplaceNoise
from margent.privacy.laws import Gaussian, Law
from margent.privacy.ledger import Ledger
from margent.privacy.noise import discrete_gaussian, discrete_laplace, require_drawable
from margent.privacy.partitions import threshold
from margent.privacy.purchases import OpenSetRequest, PurchaseRequest, QuantilesRequest, SizesRequest, purchase_charge
from margent.progress import Progress, silent
from margent.transcript import OpenValues, Quantiles, Sizes


@dataclass(frozen=True)
class DataMerchant:
    """Buys bins and values from exact counts plus exact noise.

    ``grids``: counts of the columns on their grids, None where no quantiles are asked for. ``texts``: counts of texts.
    ``persons``: None where the unit is a row.

    Privacy: every answer's charge is in ``ledger`` before the counts it needs are taken.
    """

    grids: CountSource | None = field(repr=False)
    texts: TextSource = field(repr=False)
    ledger: Ledger
    noise: GaussianNoise = discrete_gaussian
    laplace_noise: LaplaceNoise = discrete_laplace
    persons: PersonSource | None = field(default=None, repr=False)
    progress: Progress = field(default=silent)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges written so far, in order."""
        return self.ledger.charges

    def quantiles(self, requests: Sequence[QuantilesRequest], *, label: str) -> tuple[Quantiles, ...]:
        """The counts of each column on its grid plus independent noise of the request's law in every cell.

        Privacy: sensitivities of a marginal (`margent.privacy.purchases`).
        Raises: BudgetError when the charges together pass the budget, PlanError for noise wider than 64-bit counts
            (nothing is then charged or looked at).
        """
        places = self._paid(requests, label)
        assert self.grids is not None
        self.progress(label, None)
        asked = partial(self.grids.count, [(request.column,) for request in requests])
        tables = sealed("the rows could not be counted", asked)
        return tuple(
            Quantiles(request.column, self._noisy(exact, request.law), request.law.variance, place)
            for request, exact, place in zip(requests, tables, places, strict=True)
        )

    def sizes(self, request: SizesRequest, *, label: str) -> Sizes:
        """The numbers of persons with 1, 2, ... kept rows plus independent noise of the request's law.

        Privacy: sensitivity one person, in one cell.
        Raises: UsageError where the unit is a row, else as `quantiles`.
        """
        (place,) = self._paid([request], label)
        assert self.persons is not None
        exact = sealed("the persons could not be counted", self.persons.sizes)
        return Sizes(request.column, self._noisy(exact, request.law), request.law.variance, place)

    def open_sets(self, requests: Sequence[OpenSetRequest], *, label: str) -> tuple[OpenValues, ...]:
        """The values of each column whose noisy count reaches the threshold, sorted; the heaviest where they are many.

        Privacy: sensitivities of a marginal, and the request's delta; cutting to ``most`` is post-processing.
        Raises: UsageError at delta 0, BudgetError when the charges together pass the part of delta set apart, else as
            `quantiles`.
        """
        neighbors = self.ledger.budget.neighbors
        bars = [threshold(request.law, request.delta, neighbors) for request in requests]
        places = self._paid(requests, label)
        answers = []
        for request, bar, place in zip(requests, bars, places, strict=True):
            self.progress(label, None)
            told: list[tuple[str, int]] = []
            blocks = iter(self.texts.texts(request.column))
            while (block := sealed("the texts could not be counted", partial(next, blocks, None))) is not None:
                names, exact = block
                counts = self._noisy(exact, request.law)
                told += [(names[i], int(counts[i])) for i in np.flatnonzero(counts >= bar).tolist()]
                told = heaviest(told, request.most)
            answers.append(
                OpenValues(
                    request.column,
                    tuple(name for name, _ in told),
                    np.array([count for _, count in told], dtype=np.int64),
                    request.law.variance,
                    place,
                )
            )
        return tuple(answers)

    def _paid(self, requests: Sequence[PurchaseRequest], label: str) -> range:
        for request in requests:
            require_drawable(request.law)
        budget = self.ledger.budget
        return self.ledger.spend(
            [purchase_charge(request, label, budget.neighbors, budget.account) for request in requests]
        )

    def _noisy(self, exact: NDArray[np.int64], law: Law) -> NDArray[np.int64]:
        draw = partial(self.noise, exact.size, law.scale_squared)
        if not isinstance(law, Gaussian):
            draw = partial(self.laplace_noise, exact.size, law.scale)
        return sealed("noise could not be added", lambda: door._checked_sum(exact, draw()))


def heaviest(told: Sequence[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """The ``most`` values of largest noisy count (of equal ones the first by name), sorted by name.

    Privacy: none: post-processing of what was told.

    >>> heaviest([("c", 5), ("a", 9), ("b", 5)], 2)
    [('a', 9), ('b', 5)]
    """
    kept = sorted(told, key=lambda value: (-value[1], value[0]))[:most]
    return sorted(kept)
