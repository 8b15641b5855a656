"""A curator with a transcript and no data: it answers by position and insists that the questions are the same.

It shows that everything after the noisy answers is post-processing: a collector run against it must ask for
exactly what was asked, in the same order, and end with the same transcript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from margent.errors import TranscriptError
from margent.privacy.accounting import Account, account_named
from margent.privacy.charge import Charge
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import choice_charge, marginal_charges, score_charge
from margent.privacy.requests import ChoiceRequest, MarginalRequest, ScoreRequest
from margent.schema.domain import NO_MERGES, Domain, Merge
from margent.schema.fields import Schema
from margent.transcript import Answer, Choice, NoisyMarginal, Scores, Transcript


class ReplayCurator:
    """Answers from a transcript; raises `TranscriptError` at the first question that differs from the record.

    Privacy: none: holds no data.
    """

    def __init__(self, transcript: Transcript) -> None:
        if not transcript.charges:
            raise TranscriptError("a transcript without charges cannot be replayed")
        self._transcript = transcript
        self._next = len(transcript.bought)  # those come first, and fixed the schema
        self._charges = [transcript.charges[answer.charge] for answer in transcript.bought]

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._transcript.schema

    @property
    def domain(self) -> Domain:
        """The codes' domain."""
        return self._transcript.domain

    @property
    def account(self) -> Account:
        """How the recorded charges were priced."""
        return account_named(self._transcript.charges[0].account)

    @property
    def neighbors(self) -> Neighbors:
        """Between which tables the recorded charges hold."""
        return self._transcript.charges[0].neighbors

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges asked for so far, each equal to the recorded one."""
        return tuple(self._charges)

    def measure(
        self, requests: Sequence[MarginalRequest], *, label: str, merges: Mapping[str, Merge] = NO_MERGES
    ) -> tuple[NoisyMarginal, ...]:
        """The recorded marginals for these requests."""
        answers = []
        charges = marginal_charges(requests, label, self.neighbors, self.account, self.domain, merges)
        for request, charge in zip(requests, charges, strict=True):
            answer = self._take(charge, merges)
            asked = request.merged, request.interaction
            if not isinstance(answer, NoisyMarginal) or (answer.merged, answer.interaction) != asked:
                raise self._differs()
            answers.append(answer)
        return tuple(answers)

    def scores(self, request: ScoreRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Scores:
        """The recorded scores for this request."""
        answer = self._take(score_charge(request, label, self.neighbors, self.account), merges)
        if not isinstance(answer, Scores) or (answer.merged, answer.children) != (request.merged, request.children):
            raise self._differs()
        return answer

    def choose(self, request: ChoiceRequest, *, label: str, merges: Mapping[str, Merge] = NO_MERGES) -> Choice:
        """The recorded choice for this request."""
        answer = self._take(choice_charge(request, label, self.neighbors, self.account), merges)
        if not isinstance(answer, Choice) or answer.merged != request.merged:
            raise self._differs()
        return answer

    def _take(self, charge: Charge, merges: Mapping[str, Merge]) -> Answer:
        if self._next >= len(self._transcript.answers):
            raise self._differs()
        answer = self._transcript.answers[self._next]
        if charge != self._transcript.charges[answer.charge] or dict(merges) not in (
            {},
            dict(self._transcript.merges),
        ):
            raise self._differs()
        self._next += 1
        self._charges.append(charge)
        return answer

    def _differs(self) -> TranscriptError:
        return TranscriptError(f"question {self._next + 1} differs from the recorded one")
