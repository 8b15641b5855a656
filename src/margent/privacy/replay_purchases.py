"""A merchant with a transcript and no data: it answers by position and insists that the purchases are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from margent.errors import TranscriptError
from margent.privacy.accounting import account_named
from margent.privacy.charge import Charge
from margent.privacy.partitions import threshold
from margent.privacy.purchases import OpenSetRequest, PurchaseRequest, QuantilesRequest, SizesRequest, purchase_charge
from margent.transcript import Bought, OpenValues, Quantiles, Sizes, Transcript

ANSWERS: Mapping[type, type] = {QuantilesRequest: Quantiles, OpenSetRequest: OpenValues, SizesRequest: Sizes}


class ReplayMerchant:
    """Answers from a transcript; raises `TranscriptError` at the first purchase that differs from the record.

    Privacy: none: holds no data.
    """

    def __init__(self, transcript: Transcript) -> None:
        if not transcript.bought:
            raise TranscriptError("nothing was bought before the codes were fixed: there is nothing to replay")
        self._transcript = transcript
        self._charges: list[Charge] = []

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges asked for so far, each equal to the recorded one."""
        return tuple(self._charges)

    def quantiles(self, requests: Sequence[QuantilesRequest], *, label: str) -> tuple[Quantiles, ...]:
        """The recorded counts on the grids."""
        found = [self._take(request, label) for request in requests]
        return tuple(answer for answer in found if isinstance(answer, Quantiles))

    def sizes(self, request: SizesRequest, *, label: str) -> Sizes:
        """The recorded numbers of persons by their rows."""
        answer = self._take(request, label)
        assert isinstance(answer, Sizes)
        return answer

    def open_sets(self, requests: Sequence[OpenSetRequest], *, label: str) -> tuple[OpenValues, ...]:
        """The recorded values, each of which reached the threshold, at most as many as are asked for."""
        answers = []
        for request in requests:
            answer = self._take(request, label)
            assert isinstance(answer, OpenValues)
            bar = threshold(request.law, request.delta, self._transcript.charges[answer.charge].neighbors)
            if len(answer.values) > request.most or (answer.counts < bar).any():
                raise self._differs()
            answers.append(answer)
        return tuple(answers)

    def _take(self, request: PurchaseRequest, label: str) -> Bought:
        place = len(self._charges)
        if place >= len(self._transcript.bought):
            raise self._differs()
        answer = self._transcript.bought[place]
        recorded = self._transcript.charges[answer.charge]
        charge = purchase_charge(request, label, recorded.neighbors, account_named(recorded.account))
        kind = ANSWERS[type(request)]
        if charge != recorded or not isinstance(answer, kind) or answer.column != request.column:
            raise self._differs()
        self._charges.append(charge)
        return answer

    def _differs(self) -> TranscriptError:
        return TranscriptError(f"purchase {len(self._charges) + 1} differs from the recorded one")
