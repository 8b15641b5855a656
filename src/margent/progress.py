"""How a long step tells how far it is: one call with public facts only."""

from __future__ import annotations

import logging
from typing import Protocol

LOGGER = logging.getLogger("margent")
"""Where steps are logged: public facts only, never a row, a count, a size of the input or a path."""


class Progress(Protocol):
    """Called with the step's name and the share done in [0, 1], or None where the share would tell of rows."""

    def __call__(self, step: str, share: float | None) -> None:
        """Take note of the progress; must not raise."""
        ...


def silent(step: str, share: float | None) -> None:
    """Ignore all progress.

    Privacy: none: nothing is kept.
    """


def logged(inner: Progress = silent) -> Progress:
    """A progress callback that logs each step's name once (logger ``margent``, level INFO), then calls ``inner``.

    Privacy: names of steps are functions of schema, options and noisy answers.

    >>> logged()("one-way marginals", 0.5)
    """
    seen = set[str]()

    def note(step: str, share: float | None) -> None:
        if step not in seen:
            seen.add(step)
            LOGGER.info("step: %s", step)
        inner(step, share)

    return note
