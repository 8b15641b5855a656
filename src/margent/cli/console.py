"""Progress on a terminal, silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from margent.progress import Progress, silent


@contextmanager
def shown_progress(*, wanted: bool = True) -> Iterator[Progress]:
    """Give a progress callback that draws bars on standard error where that is a terminal.

    Privacy: steps and shares are public facts; nothing is drawn from rows.
    """
    if not wanted or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, share: float | None) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=None if share is None else 1.0)
            if share is not None:
                bars.update(tasks[step], total=1.0, completed=share)

        yield show
