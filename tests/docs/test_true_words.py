"""Words that promise more than is proved do not come back: in help, docs, pages and whatever the program says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.docs.stage import ROOT
from tests.docs.test_words import COMMANDS

FALSE = {
    "delta is no probability that a promise fails": (
        r"\b(?:probability|chance|likelihood|risk)\b[^.:;]{0,60}\b(?:promise|guarantee)s?\b[^.:;]{0,40}"
        r"\b(?:fail|break|broken|not hold|void)",
        r"\b(?:promise|guarantee)s? (?:may|can|could|might|will) (?:\w+ )?(?:fail|break|not hold)",
        r"\b(?:fails?|breaks?) with (?:a )?(?:probability|chance)",
        r"\bexcept with (?:a )?(?:probability|chance) (?:of )?(?:at most )?(?:delta|δ)\b",
        r"\b(?:delta|δ)\b(?: is|,|:) (?:the|a) (?:probability|chance|likelihood|risk)",
    ),
    "a change of belief is bounded, not ruled out": (
        r"\b(?:nobody|no one|none|no reader|no attacker|impossible|cannot|never)\b[^.:;]{0,40}"
        r"\b(?:tell|learn|know|find out|infer)[^.:;]{0,60}\b(?:was|were|is|are) (?:in|part of) the (?:table|data)",
        r"\b(?:learns?|tells?|reveals?) (?:anybody |a reader )?(?:little|nothing|not much) (?:about|of) "
        r"(?:that|any|a|one|the) (?:\w+ )?(?:unit|person|row|individual)",
        r"\b(?:nobody|no one)\b[^.:;]{0,60}\blearns? much\b",
        r"\b(?:almost|nearly|about) as likely (?:in one|with)",
        r"\b(?:fully|completely|truly|perfectly) (?:anonymous|private|safe)|\banonymi[sz]ed\b",
        r"\bre-?identif\w+ is impossible",
    ),
    "a bought value passed a noisy threshold, and nothing else": (
        r"\bonly (?:if|where|when) (?:many|several|enough) (?:units|people|persons|rows|records)\b",
    ),
    "who does not know the others learns of groups too, so that knowing them is no worst case": (
        r"\beven (?:a reader|somebody|someone|an attacker|to somebody) who knows (?:all|every)",
        r"\bbest[- ]informed reader",
    ),
}
"""What is false, and how it was or might be said."""

WERE_SAID = (
    "The probability with which the promise may fail (default: 1e-9)",
    "delta 1e-3 is above 1/20,000: the promise could fail for somebody.",
    "This holds except with probability delta",
    "Delta is the probability that the promise is broken",
    '`"row"` promises that nobody can tell whether any one row was in the table, or what it said.',
    "If every row is somebody else, nobody can tell from the result whether any one row was in the table.",
    "So whoever reads it can learn little about that unit from its having taken part",
    "So nobody, whatever they know beforehand, can learn much about a unit",
    "Whatever is in a release folder is almost as likely in one world as in the other",
    "A value is told only where many units share it.",
    "even a reader who knows all the others can change their odds",
)


def squeezed(text: str) -> str:
    return re.sub(r"[\s`*_]+", " ", text)


def said_by(module: Path) -> Iterator[str]:
    """The texts of a module, those with gaps too, as they are put together."""
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def texts() -> dict[str, list[str]]:
    """All that readers are told, by where it stands."""
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    # The site's copies of other pages: proofs, and the changelog, which says what had been false.
    pages = [
        page for page in pages if page.relative_to(ROOT).parts[:2] not in (("docs", "proofs"), ("docs", "project"))
    ]
    pages += (ROOT / "src" / "margent").rglob("*.html")
    found = {path.relative_to(ROOT).as_posix(): [path.read_text()] for path in pages if "_build" not in path.parts}
    for words, command in COMMANDS.items():
        found[f"{words} --help"] = [command.get_help(click.Context(command, info_name=words))]
    for module in (ROOT / "src" / "margent").rglob("*.py"):
        found[module.relative_to(ROOT).as_posix()] = list(said_by(module))
    return found


TEXTS = texts()


@pytest.mark.parametrize("fault", FALSE)
def test_no_text_promises_more_than_is_proved(fault: str) -> None:
    found = [
        f"{place}: ...{match[0]}..."
        for place, parts in TEXTS.items()
        for part in parts
        for phrase in FALSE[fault]
        for match in re.finditer(phrase, squeezed(part), re.IGNORECASE)
    ]
    assert found == []


@pytest.mark.parametrize("said", WERE_SAID)
def test_what_was_said_once_would_be_found(said: str) -> None:
    assert any(re.search(phrase, squeezed(said), re.IGNORECASE) for phrases in FALSE.values() for phrase in phrases)


def test_every_kind_of_text_is_read() -> None:
    for place in ("README.md", "docs/choosing.md", "margent plan --help", "src/margent/cli/plan.py",
                  "src/margent/report/templates/statement.html"):  # fmt: skip
        assert TEXTS[place]
    assert any("not how often a release tells more" in squeezed(part) for part in TEXTS["margent synthesize --help"])
