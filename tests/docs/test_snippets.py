"""Every command and snippet of the pages, done in order in an empty folder, as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from margent.cli import run
from tests.docs.snippets import SHELLS, Snippet, beforehand, commands, snippets
from tests.docs.stage import ROOT, prepared

PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if not {"_build", "proofs", "project"} & set(path.relative_to(ROOT / "docs").parts) and path.name != "commands.md"
)
NAMES = {path: path.relative_to(ROOT / "docs").as_posix() for path in PAGES}
MOST_NOT_RUN = 12
SHOWN = frozenset({"text", "json", "csv", "sql", "sas", "r"})
"""Languages that are shown and not run, unless they are saved under a name."""


def is_python_to_run(snippet: Snippet) -> bool:
    """Blocks with a prompt are doctests, which `make test` runs from the same page."""
    return snippet.language in ("python", "py") and ">>>" not in snippet.text


def simple(text: str) -> list[list[str]] | None:
    """The commands as words where all are margent's own and use nothing of the shell; else None."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>$*`")
        lexer.whitespace_split = True
        words = list(lexer)
        if any(set(word) <= set("|&;<>$*`") for word in words) or (words and words[0] != "margent"):
            return None
        found += [words] if words else []
    return found


def shim(folder: Path) -> dict[str, str]:
    """An environment in which `margent` and `python` are those under test."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, words in (("margent", "-m margent"), ("python", ""), ("python3", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (tools / name).chmod(0o755)
    return os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}


def run_shell(snippet: Snippet, folder: Path, tools: Path) -> None:
    """All commands of a block; each must succeed, but the last leaves as the page says."""
    text = commands(snippet.text)
    words = simple(text)
    if words is None or snippet.answers is not None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=shim(tools), input=snippet.answers or "",
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == snippet.exit_code, f"line {snippet.line}: {text}{done.stdout}{done.stderr}"
        return
    for place, each in enumerate(words, 1):
        expected = snippet.exit_code if place == len(words) else 0
        assert run(each[1:]) == expected, f"line {snippet.line}: {shlex.join(each)}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES.values())
def test_what_the_page_says_can_be_done(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    tools = tmp_path_factory.mktemp("path")
    todo = [
        each
        for each in snippets(text)
        if not each.not_run and (each.file or each.language in SHELLS or is_python_to_run(each))
    ]
    if not todo:
        return
    prepared(tmp_path, beforehand(text))
    names: dict[str, Any] = {"__name__": "page"}
    for snippet in todo:
        if snippet.file:
            (tmp_path / snippet.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / snippet.file).write_text(snippet.text)
        elif snippet.language in SHELLS:
            run_shell(snippet, tmp_path, tools)
        else:
            exec(compile("\n" * snippet.line + snippet.text, str(page), "exec"), names)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    reasons = [each.not_run for page in PAGES for each in snippets(page.read_text()) if each.not_run]
    assert len(reasons) <= MOST_NOT_RUN
    assert all(len(reason) > 10 for reason in reasons)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_no_command_hides_in_a_block_that_is_only_shown(page: Path) -> None:
    known = SHELLS | SHOWN | {"python", "py", ""}
    for snippet in snippets(page.read_text()):
        assert snippet.language in known, f"line {snippet.line}: {snippet.language}"
        if snippet.language in {"", *SHOWN} and not snippet.file:
            hidden = [line for line in snippet.text.splitlines() if re.match(r"\$ |(margent|make|pip) [a-z]", line)]
            allowed = page.name in ("README.md", "CONTRIBUTING.md")  # their own tests run those
            assert allowed or not hidden, f"line {snippet.line}: {hidden}"


def test_a_page_that_does_not_work_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a misspelled option, and a command that fails inside a pipe."""
    monkeypatch.chdir(tmp_path)
    (wrong,) = snippets("Do:\n\n```sh\nmargent methods --settigns\n```\n")
    with pytest.raises(AssertionError, match="line 3"):
        run_shell(wrong, tmp_path, tmp_path)
    (piped,) = snippets("Do:\n\n```sh\nmargent plan --schema absent.json --epsilon 1 | cat\n```\n")
    with pytest.raises(AssertionError, match=r"absent\.json"):
        run_shell(piped, tmp_path, tmp_path)


def test_what_is_parsed() -> None:
    page = "A.\n\n<!-- exit: 4 -->\n```sh\n# why\nmargent x\n```\n\n"
    page += "*Not run by the tests: it needs a server of yours.*\n\n```sh\npsql\n```\n"
    first, second = snippets(page)
    assert (first.exit_code, commands(first.text), first.not_run) == (4, "margent x\n", None)
    assert second.not_run == "it needs a server of yours."
