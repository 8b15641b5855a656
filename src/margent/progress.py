"""How a long step tells how far it is: one call with public facts only."""

from __future__ import annotations

import logging
from typing import Protocol

LOGGER = logging.getLogger("margent")
"""Where steps are logged: public facts only, never a row, a count, a size of the input or a path."""


class Progress(Protocol):
    """Called with the step's name and the share done in [0, 1], or None where the share would tell of rows."""

    def __call__(self, step: str, share: float | None) -> None:
        """Take note of the progress; raises nothing but to end the step, where its result is no longer wanted."""
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


def halves(progress: Progress) -> tuple[Progress, Progress]:
    """Progress of the two halves of one step.

    >>> first, second = halves(lambda step, share: print(step, share))
    >>> first("records", 1.0), second("records", 0.5)
    records 0.5
    records 0.75
    (None, None)
    """

    def first(step: str, share: float | None) -> None:
        progress(step, None if share is None else share / 2)

    def second(step: str, share: float | None) -> None:
        progress(step, None if share is None else 0.5 + share / 2)

    return first, second
