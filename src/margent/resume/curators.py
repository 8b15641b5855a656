"""Who stands at the door of a run that may be interrupted: committed answers first, live ones committed before use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from margent.privacy.accounting import Account
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.neighbors import Neighbors
from margent.privacy.purchases import (
    Merchant,
    OpenSetRequest,
    PurchaseRequest,
    QuantilesRequest,
    SizesRequest,
    purchase_charge,
)
from margent.privacy.queries import choice_charge, marginal_charges, score_charge
from margent.privacy.requests import ChoiceRequest, Curator, MarginalRequest, ScoreRequest
from margent.resume.state import KeptRun
from margent.schema.domain import NO_MERGES, Domain, Merge
from margent.schema.fields import Schema
from margent.transcript import Choice, NoisyMarginal, OpenValues, Quantiles, Scores, Sizes, Transcript


class ResumedCurator:
    """Answers what was committed before the interruption by position, to equal questions only; then as ``live`` does.

    Privacy: as ``live``; what is answered again was paid for.
    """

    def __init__(self, run: KeptRun, live: Curator) -> None:
        self._run, self._live = run, live
        self._bare = Transcript(live.schema, live.domain, "", (), ())

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._live.schema

    @property
    def domain(self) -> Domain:
        """The codes' domain."""
        return self._live.domain

    @property
    def account(self) -> Account:
        """How charges are priced in this run."""
        return self._live.account

    @property
    def neighbors(self) -> Neighbors:
        """Which tables count as neighbors in this run."""
        return self._live.neighbors

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges so far in the order they were written, those of lost answers included."""
        return self._live.charges[: self._run.seen]

    def measure(
        self, requests: Sequence[MarginalRequest], *, label: str, merges: Mapping[str, Merge] = NO_MERGES
    ) -> tuple[NoisyMarginal, ...]:
        """The noisy tables, committed together; charges and sensitivities as `DataCurator.measure`."""
        if not requests:
            return ()
        found = self._run.answer(
            marginal_charges(requests, label, self.neighbors, self.account, self.domain, merges),
            merges,
            lambda: self._live.measure(requests, label=label, merges=merges),
            self._bare,
        )
        return tuple(cast(NoisyMarginal, answer) for answer in found)

    def scores(self, request: ScoreRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Scores:
        """The noisy scores; charge and sensitivity as `DataCurator.scores`."""
        (found,) = self._run.answer(
            [score_charge(request, label, self.neighbors, self.account)],
            merges,
            lambda: (self._live.scores(request, label=label, merges=merges),),
            self._bare,
        )
        return cast(Scores, found)

    def choose(self, request: ChoiceRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Choice:
        """The cliques chosen; charge and sensitivity as `DataCurator.choose`."""
        (found,) = self._run.answer(
            [choice_charge(request, label, self.neighbors, self.account)],
            merges,
            lambda: (self._live.choose(request, label=label, merges=merges),),
            self._bare,
        )
        return cast(Choice, found)


class ResumedMerchant:
    """The same for bins and values that are bought before the codes are fixed.

    Privacy: as ``live``.
    """

    def __init__(self, run: KeptRun, live: Merchant, budget: Budget) -> None:
        self._run, self._live, self._budget = run, live, budget

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges so far in the order they were written."""
        return self._live.charges[: self._run.seen]

    def quantiles(self, requests: Sequence[QuantilesRequest], *, label: str) -> tuple[Quantiles, ...]:
        """The noisy counts on the grids, committed together."""
        found = self._run.answer(
            self._priced(requests, label), NO_MERGES, lambda: self._live.quantiles(requests, label=label)
        )
        return tuple(cast(Quantiles, answer) for answer in found)

    def sizes(self, request: SizesRequest, *, label: str) -> Sizes:
        """The noisy numbers of persons by their rows."""
        (found,) = self._run.answer(
            self._priced([request], label), NO_MERGES, lambda: (self._live.sizes(request, label=label),)
        )
        return cast(Sizes, found)

    def open_sets(self, requests: Sequence[OpenSetRequest], *, label: str) -> tuple[OpenValues, ...]:
        """The values whose noisy counts reached the threshold, committed together."""
        found = self._run.answer(
            self._priced(requests, label), NO_MERGES, lambda: self._live.open_sets(requests, label=label)
        )
        return tuple(cast(OpenValues, answer) for answer in found)

    def _priced(self, requests: Sequence[PurchaseRequest], label: str) -> list[Charge]:
        neighbors, account = self._budget.neighbors, self._budget.account
        return [purchase_charge(request, label, neighbors, account) for request in requests]
