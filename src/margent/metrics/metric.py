"""What every metric is: a question in plain words, and one score a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from margent.errors import MargentError

if TYPE_CHECKING:
    from margent.metrics.study import Study

Better = Literal["lower", "higher", "nearer"]
"""Which scores are good: lower, higher, or nearer to that of the resampled real rows."""


class NotComputableError(MargentError):
    """A metric has nothing to say about these tables; the text is a plain sentence from public facts alone."""


@dataclass(frozen=True)
class Score:
    """A number about one table (None where it is undefined) and what is behind it, ready for JSON.

    Privacy: exact functions of the real table: INTERNAL.
    """

    value: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


class Metric(Protocol):
    """One question about tables.

    ``paragraph`` says what it asks, how to read it and which value a resample of the real rows would give.
    """

    @property
    def key(self) -> str:
        """The name in files and options: lower case with hyphens."""
        ...

    @property
    def title(self) -> str:
        """The name on the page."""
        ...

    @property
    def paragraph(self) -> str:
        """What it asks, how to read it, and the yardstick, in plain words."""
        ...

    @property
    def better(self) -> Better:
        """Which scores are good."""
        ...

    def measure(self, study: Study) -> list[Score]:
        """One score a table of ``study.tables``, in that order.

        Raises: NotComputableError when the tables or options leave nothing to measure.
        """
        ...
