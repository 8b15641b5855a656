"""How a long step tells how far it is: one call with public facts only."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the step's name and the share done in [0, 1], or None where the share would tell of rows."""

    def __call__(self, step: str, share: float | None) -> None:
        """Take note of the progress; must not raise."""
        ...


def silent(step: str, share: float | None) -> None:
    """Ignore all progress.

    Privacy: none: nothing is kept.
    """
