"""Ctrl-C in a run that spends: wait for the answer that is being bought, stop, and say how to go on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margent.cli.console import say_if_read

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.resume.state import RunState

WAITING = (
    "margent: stopping after this question, so that its answer is not lost; interrupt once more to stop at once (what "
    "the question cost is then lost)"
)


def state_beside(out: Path) -> Path:
    """Where a run keeps its state unless told otherwise: beside OUT.

    >>> str(state_beside(Path("a/OUT")))
    'a/.OUT.margent-run'
    """
    return out.parent / f".{out.name}.margent-run"


@contextmanager
def soft_stops(state: RunState) -> Iterator[None]:
    """Let a first Ctrl-C (or SIGTERM) wait until the question under way is answered and kept; a second does not wait.

    Privacy: what it says is public.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        if state.pause.looking and not state.pause.asked:
            state.pause.asked = True
            say_if_read(WAITING)  # of `2>&1 | tee log`, tee got the signal too
            return
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def resumable(state: RunState, budget: Budget, arguments: Sequence[str] | None) -> Iterator[None]:
    """Where a run ends early with something charged, add to the reason what was charged and how to go on.

    ``arguments``: those of the command, None where they are not known.
    """
    try:
        with soft_stops(state):
            yield
    except BaseException as reason:
        # An attribute and no note: notes of strangers on an exception are never shown.
        from margent.privacy.budget_store import MovedOnError

        if not isinstance(reason, MovedOnError):  # that state is never gone on with
            vars(reason)["margent_advice"] = how_to_go_on(state, budget, arguments)
        raise


def how_to_go_on(state: RunState, budget: Budget, arguments: Sequence[str] | None) -> list[str]:
    """What an interrupted run has charged, and the command that resumes it; nothing where nothing is kept.

    Privacy: charges are public.
    """
    from margent.errors import MargentError
    from margent.resume.told import told
    from margent.tables.address import repeatable

    try:
        if not state.exists:
            return []
        so_far = told(state, budget)
    except MargentError:
        return []  # the reason itself says why the state cannot be used
    given = list(arguments or ["synthesize", "..."])
    command = ["margent", *(repeatable(word, [word]) for word in given)]
    command += [word for word in ["--resume", "--pay-again"][: 1 + so_far.lost] if word not in command]
    spelled = subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
    hint = (
        ""
        if command[1 : len(given) + 1] == given
        else "TABLE stands for the address that you gave: it is not repeated."
    )
    return [*so_far.sentences, f"Go on with: {spelled}", *filter(None, [hint])]
