"""The project's outside: what a visitor looks for is there, agrees with the code, and asks nobody for private data."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from margent.methods import METHODS
from margent.version import VERSION

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_one_version_everywhere() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
    assert re.search(r"(?m)^version: (.+)$", (ROOT / "CITATION.cff").read_text()).group(1) == VERSION  # type: ignore[union-attr]


def test_every_published_method_is_cited() -> None:
    ours = {"dense", "independent", "laplace", "mst"}
    cited = (ROOT / "CITATION.cff").read_text()
    assert [method.name for method in METHODS if method.name not in ours and f"method {method.name}" not in cited] == []


@pytest.mark.parametrize(
    "template", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").iterdir()), ids=lambda path: path.name
)
def test_templates_warn_against_private_data(template: Path) -> None:
    assert "NEVER paste private data" in template.read_text()
