"""The reference is whole, figures on pages are those that were measured, and words of the trade are explained."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import margent
from margent.cli.app import app
from margent.methods import METHODS, SYNTHESIZERS
from tests.docs.snippets import FENCE
from tests.docs.stage import ROOT

DOCS = ROOT / "docs"
TRADE = ("curator", "clique", "marginal", "charge")
"""Words that a data steward need not know; their stems, so that "charged" and "marginals" count as well."""
TECHNICAL = {"theory.md", "architecture.md", "measurements-format.md", "choose-a-method.md", "glossary.md"}
"""Pages for readers who come to know how it works; they explain the words as they go."""


def extension(name: str) -> ModuleType:
    """A module of the site's build."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "extensions" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def commands(command: click.Command = app, words: str = "margent") -> Iterator[tuple[str, click.Command]]:
    """Every command there is, with its words."""
    yield words, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, f"{words} {name}")


COMMANDS = dict(commands())


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "python.md").read_text()
    named = set(re.findall(r"(?:autoclass|autofunction|autoexception|py:data):: margent\.(\w+)", page))
    assert named == set(margent.__all__)


def test_every_command_and_option_is_in_the_reference() -> None:
    page = extension("commands").reference()
    for words, command in COMMANDS.items():
        assert f"`{words}`\n" in page
        section = page[page.index(f"`{words}`\n") :]
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in section, f"{words} {option.opts}"
    assert page.count("| option |") >= len(COMMANDS) - 4


def test_every_method_and_synthesizer_has_its_page() -> None:
    index = (DOCS / "how-it-works" / "index.md").read_text()
    builders = (DOCS / "how-it-works" / "builders.md").read_text()
    assert [method.name for method in METHODS if f"`{method.name}`" not in index] == []
    assert [each.name for each in SYNTHESIZERS if f"| `{each.name}` |" not in builders] == []


def test_tables_of_figures_are_those_measured() -> None:
    choosing = extension("choosing")
    for name in ("choosing.md", "one-row-per-patient.md"):
        page = (DOCS / name).read_text()
        assert "<!-- figures:" in page
        assert choosing.with_tables(page) == page, f"python docs/extensions/choosing.py writes {name} again"
    planted = (DOCS / "choosing.md").read_text().replace("| 60 %", "| 61 %", 1)
    assert choosing.with_tables(planted) != planted, "a changed figure is noticed"


def test_pictures_are_drawn_from_the_figures() -> None:
    choosing = extension("choosing")
    for name, picture in choosing.pictures():
        assert (DOCS / "assets" / "pictures" / f"{name}.svg").read_text() == picture.svg(), name


@pytest.mark.parametrize("words", COMMANDS)
def test_help_does_without_words_of_the_trade(words: str) -> None:
    command = COMMANDS[words]
    context = click.Context(command, info_name=words)
    found = re.findall(rf"\b(?:{'|'.join(TRADE)})\w*", command.get_help(context), re.IGNORECASE)
    assert found == []


def prose(page: Path) -> str:
    """The page without code, headings' anchors and addresses."""
    text = FENCE.sub("", page.read_text())
    return re.sub(r"`[^`\n]*`|<!--.*?-->", "", text, flags=re.DOTALL)


PLAIN = sorted(
    path
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in {"_build", "proofs", "project", "how-it-works", "reference"}
    and path.name not in TECHNICAL
)


@pytest.mark.parametrize("page", PLAIN, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_pages_explain_a_word_of_the_trade_where_they_first_use_it(page: Path) -> None:
    text = prose(page)
    for word in TRADE:
        first = re.search(rf"\b{word}\w*", text, re.IGNORECASE)
        if first and not re.match(r"\w* Difference|\w* distance", text[first.start() :][:30]):
            around = text[max(0, first.start() - 40) : first.end() + 60]
            explained = rf"\*(?:[\w-]+ )*{first[0]}\*|\[[^\]]*{first[0]}[^\]]*\]\((?:\.\./)?glossary\.md"
            assert re.search(explained, around), f"{word!r} is used before it is explained: ...{around}..."


def test_the_glossary_is_in_order_and_holds_the_words_of_the_trade() -> None:
    terms = re.findall(r"^## (.+)$", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert terms == sorted(terms, key=str.lower)
    assert {"Curator", "Clique", "Marginal", "Charge", "Epsilon", "Delta", "Unit", "Schema", "Release"} <= set(terms)
