"""The project's outside: what a visitor looks for is there, agrees with the code, and asks nobody for private data.

Its inside: no module is too long to be read.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from margent.methods import METHODS
from margent.version import VERSION

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")]
LONGEST = 400
"""Lines of a Python module, tests too."""


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


def too_long(root: Path) -> list[str]:
    """Modules of more lines than `LONGEST`, in every folder of the project that holds Python."""
    folders = ("src", "tests", "bench", "distribution", "examples", "docs")
    modules = [path.relative_to(root) for folder in folders for path in (root / folder).rglob("*.py")]
    return sorted(
        path.as_posix()
        for path in modules
        if "_build" not in path.parts and (root / path).read_bytes().count(b"\n") > LONGEST
    )


def test_no_module_is_too_long_to_read() -> None:
    assert too_long(ROOT) == []


def test_a_planted_long_module_is_seen(tmp_path: Path) -> None:
    for name, lines in (
        ("src/long.py", 401),
        ("tests/deep/long.py", 401),
        ("src/short.py", 400),
        ("docs/long.md", 401),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n" * lines)
    assert too_long(tmp_path) == ["src/long.py", "tests/deep/long.py"]
