"""What can go wrong, as a tree a caller can catch at any height.

    MargentError
    ├── UsageError        exit 2   an option or argument is off
    ├── SchemaError       exit 3   the schema file, or a header that differs from it; lists every fault
    ├── TableError        exit 3   a table's container cannot be read or written
    ├── TranscriptError   exit 3   a release folder or measurements file cannot be read
    ├── BudgetError       exit 4   the privacy budget does not allow it
    └── PlanError         exit 5   the public plan is larger than this machine or a stated cap

Every message names the field or file, the limit and the next step. None holds a private value: whoever
raises one of these from code that has seen a cell must build the text from the schema alone and raise
``from None``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

Answer = TypeVar("Answer")


class MargentError(Exception):
    """Root of every error that Margent raises on purpose; ``exit_code`` is what the command line returns."""

    exit_code: ClassVar[int] = 1


class UsageError(MargentError):
    """An option or argument is missing, malformed or contradicts another."""

    exit_code = 2


def on_one_line(name: str) -> str:
    """A name that somebody else chose, in quotes with escapes where it could begin a line of its own, or shows nothing.

    Privacy: none: names are public.

    >>> print(on_one_line("age"), on_one_line("all is well\\nage"))
    age 'all is well\\nage'
    """
    return name if name.isprintable() else repr(name)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a schema: where (a JSON pointer, or a column's name) and what, with the next step."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{on_one_line(self.pointer) or '/'}: {self.message}"  # a column's name may stand in for a pointer


MOST_SHOWN = 100
"""Faults that the text of one error lists; a damaged file can have a hundred thousand."""
MOST_LETTERS = 2_000
"""Letters that the text of one error spends on a fault; a name in a file can have a million."""


class SchemaError(MargentError):
    """A schema, or a table's header against it, has one or more faults: ``faults`` are all, the text lists 100."""

    exit_code = 3

    def __init__(self, faults: Sequence[Fault], subject: str = "the schema") -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        heading = f"{subject} has {count} fault{'s' if count != 1 else ''}:"
        lines = [f"  {_shortened(str(fault))}" for fault in self.faults[:MOST_SHOWN]]
        if count > MOST_SHOWN:
            lines.append(f"  and {count - MOST_SHOWN:,} more; correct these first")
        super().__init__("\n".join([heading, *lines]))


def _shortened(text: str) -> str:
    """A long text without its middle: it begins with the place and ends with the next step."""
    half = MOST_LETTERS // 2
    return text if len(text) <= MOST_LETTERS else f"{text[:half]} ... {text[-half:]}"


class TableError(MargentError):
    """A table's container cannot be opened, read or written; the text never depends on a row."""

    exit_code = 3


class TranscriptError(MargentError):
    """A release folder or measurements file is absent, damaged or of an unknown version."""

    exit_code = 3


class BudgetError(MargentError):
    """The privacy budget does not allow what was asked."""

    exit_code = 4


class PlanError(MargentError):
    """The plan, made from public facts alone, needs more than a stated cap or this machine has."""

    exit_code = 5


def sealed(doing: str, look: Callable[[], Answer]) -> Answer:
    """``look()``, where a fault of this program, or of one below it, keeps its kind and loses its text.

    Such a text may hold a cell or an exact count. The new error is raised outside the handler, so that not even its
    context carries the old one.

    Privacy: what it raises says what was being done, and the name of the fault's class.
    Raises: MargentError; those that ``look`` raises itself pass, and so does an interrupt.
    """
    try:
        return look()
    except MargentError:
        raise
    except Exception as error:
        fault = type(error).__name__
    raise MargentError(f"internal fault: {doing} ({fault}); please report it, without your table")
