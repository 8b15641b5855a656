"""Code blocks of a Markdown page, and what a reader who follows the page would do with each.

The page itself says it, in words that readers see:

- ``Save this as `NAME` `` before a block: the reader makes that file.
- ``*Not run by the tests: REASON*`` before a block: the reason why nobody but the reader runs it.

and in comments that they do not: ``<!-- beforehand: NAME NAME -->`` at the top names what other pages have made already
(see stage.py), ``<!-- exit: N -->`` before a block that its last command leaves with that exit code, and
``<!-- answers: ONE|TWO -->`` what is typed when a command asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^ *\2[ \t]*$", re.DOTALL | re.MULTILINE)
SHELLS = frozenset({"sh", "shell", "bash", "console"})


@dataclass(frozen=True)
class Snippet:
    """A code block. ``before`` is the paragraph that it follows; ``line`` counts from 1."""

    language: str
    text: str
    before: str
    line: int

    @property
    def file(self) -> str | None:
        """The name under which the reader saves the block."""
        found = re.search(r"[Ss]ave (?:this|it) as `([^`]+)`", self.before)
        return found[1] if found else None

    @property
    def not_run(self) -> str | None:
        """Why the block is not run."""
        found = re.search(r"\*Not run by the tests: (.+?)\*", self.before, re.DOTALL)
        return " ".join(found[1].split()) if found else None

    @property
    def answers(self) -> str | None:
        """What the reader types when asked."""
        found = re.search(r"<!-- answers: (.*?) -->", self.before)
        return "".join(f"{answer}\n" for answer in found[1].split("|")) if found else None

    @property
    def exit_code(self) -> int:
        """How the last command leaves."""
        found = re.search(r"<!-- exit: (\d+) -->", self.before)
        return int(found[1]) if found else 0


def snippets(page: str) -> list[Snippet]:
    """All code blocks of a page, in order; directives of the site (in braces) are none.

    >>> [(each.language, each.text, each.file) for each in snippets("Save this as `a.sh`:\\n\\n```sh\\nls\\n```\\n")]
    [('sh', 'ls\\n', 'a.sh')]
    """
    found = []
    for match in FENCE.finditer(page):
        if match[3].startswith("{"):
            continue
        indent = match[1]
        text = "".join(line.removeprefix(indent) for line in match[4].splitlines(keepends=True))
        before = page[: match.start()].rstrip().rpartition("\n\n")[2]
        before = before.rpartition("```\n")[2]
        found.append(Snippet(match[3].strip(), text, before, page[: match.start()].count("\n") + 1))
    return found


def beforehand(page: str) -> list[str]:
    """What the page takes as made already."""
    found = re.search(r"<!-- beforehand: (.+?) -->", page)
    return found[1].split() if found else []


def commands(text: str) -> str:
    """A shell block without comments alone on a line, and of a console block the lines after a prompt.

    >>> commands("$ ls\\na.csv\\n")
    'ls\\n'
    """
    lines = text.splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return "".join(f"{line}\n" for line in lines if not line.lstrip().startswith("#"))
