"""What a terminal gets to see: plain visible characters; progress on a terminal, silence in a pipe."""

from __future__ import annotations

import json
import logging
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import click

from margent.progress import Progress, silent

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's kinds of characters that a terminal obeys instead of showing: controls, formats (bidirectional overrides,
zero width), surrogates (bytes of a file name that are no text), separators of lines and paragraphs."""


def visible(text: str, *, keep: str = "") -> str:
    r"""The text with every character that a terminal would obey, and not show, written as an escape.

    >>> visible("red \x1b[31m, reversed \u202e, next\nline")
    'red \\u001b[31m, reversed \\u202e, next\\u000aline'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in keep or unicodedata.category(char) not in _UNSEEN else _escaped(ord(char)) for char in text
    )


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def say(text: str = "", *, err: bool = False, lines: bool = False, newline: bool = True) -> None:
    """Print one line, or ``lines``; no name in it, whoever chose it, can steer the terminal or stop the message.

    Without ``newline`` the line stays open, for an answer. Characters that the stream cannot encode are escaped as
    well. In ``lines`` names are quoted or went through `visible` before, so that none can begin a line of its own.
    """
    shown = visible(text, keep="\n" if lines else "")
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    click.echo(shown.encode(encoding, "backslashreplace").decode(encoding), err=err, nl=newline)


def say_if_read(text: str) -> None:
    """`say` on standard error, where perhaps nobody reads any more (`2>&1 | head`): that must not cost an answer.

    What is said within a look, after its charge: an error of the pipe's would end the look before its answer is kept.
    """
    with suppress(OSError, ValueError, RuntimeError):  # the last one where a signal comes in the middle of a line
        say(text, err=True)


def say_json(document: Mapping[str, Any] | list[Any]) -> None:
    """Print one JSON object for a program: ASCII only, every control character as JSON escapes it."""
    click.echo(json.dumps(document, indent=1, allow_nan=False).replace("\x7f", "\\u007f"))


class _Lines(logging.Handler):
    """Log records as lines on standard error; only what this program logs itself comes here."""

    def emit(self, record: logging.LogRecord) -> None:
        say_if_read(record.getMessage())


@contextmanager
def logged_steps(*, wanted: bool) -> Iterator[None]:
    """Show on standard error, one line each, what Margent logs, where that is wanted.

    Privacy: public facts only (`margent.progress.logged`).
    """
    if not wanted:
        yield
        return
    from margent.progress import LOGGER

    handler, level = _Lines(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


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
