"""One question and how its answers are understood: yes or no, and several texts in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from margent.schema.imports.cells import split

MANUAL = "(from the manual, not from the table)"


@dataclass(frozen=True)
class Question:
    """One question: its words, what explains it, the answer that stands now, and what a new one changes.

    ``suggested``: the answer shown is a proposal that Enter accepts, and not what the field says already.
    ``again``: shorter words, for who has seen the long ones before.
    ``aside``: answers that are given ahead, on one line, pass over it, and it stays as it is.
    ``change`` raises ValueError, with what is expected, where an answer cannot be understood.
    """

    key: str
    words: str
    explained: str
    now: str
    change: Callable[[dict[str, Any], str], None]
    suggested: bool = False
    again: str = ""
    aside: bool = False


def yes_or_no(text: str) -> bool:
    """Whether an answer says yes.

    Raises: ValueError where it says neither.
    """
    word = text.strip().lower()
    if word in ("y", "yes", "true"):
        return True
    if word in ("n", "no", "false"):
        return False
    raise ValueError("answer with yes or no")


def several(text: str) -> list[str]:
    """The texts of an answer, which stand between bars; one at the end changes nothing.

    >>> several("F|M"), several(" NA "), several("yes, always|")
    (['F', 'M'], ['NA'], ['yes, always'])

    Raises: ValueError where commas seem to stand between them, which would make one text of all.
    """
    found = [each.strip() for each in split(text)]
    if len(found) == 1 and ("," in found[0] or ";" in found[0]):
        raise ValueError(
            f"that is one text, {found[0]!r}; put | between several, as in F|M, or at the end if it is one"
        )
    return found[:-1] if len(found) > 1 and not found[-1] else found
