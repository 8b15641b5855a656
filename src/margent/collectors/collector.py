"""The half of a method that spends: which answers to buy and with how much budget."""

from __future__ import annotations

from typing import Protocol

from margent.collectors.stage import Stage
from margent.privacy.budget import Budget
from margent.privacy.requests import Curator
from margent.schema.domain import Domain
from margent.transcript import Transcript


class Collector(Protocol):
    """`collect(curator, budget) -> Transcript`; a frozen dataclass whose fields are its parameters."""

    @property
    def name(self) -> str:
        """The name used on the command line and in a release."""
        ...

    def stages(self, domain: Domain, budget: Budget) -> tuple[Stage, ...]:
        """What `collect` would ask at most, in order. Privacy: none: public facts only."""
        ...

    def collect(self, curator: Curator, budget: Budget) -> Transcript:
        """Ask for answers that cost at most ``budget.total`` together and return all of them.

        Privacy: everything it knows of the data comes from the curator's noisy answers.
        """
        ...
