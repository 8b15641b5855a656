"""What a draft leaves open, as the terminal shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from margent.cli.console import say

if TYPE_CHECKING:
    from margent.schema.draft import Draft

SHOWN = 6
"""Open questions that a draft shows; the check shows them all."""


def say_questions(draft: Draft, out: Path) -> bool:
    """Tell the open questions of a draft that lies in a file, and whether there are any."""
    if not draft.todos:
        return False
    many = len(draft.todos) != 1
    say(
        f"{len(draft.todos)} question{'s are' if many else ' is'} left for you; `margent schema edit {out}` asks "
        f"{'them one by one' if many else 'it'}, `margent schema check {out}` lists {'them all' if many else 'it'}:"
    )
    for todo in draft.todos[:SHOWN]:
        say(f"  {todo}")
    if len(draft.todos) > SHOWN:
        say(f"  ... and {len(draft.todos) - SHOWN} more")
    return True
