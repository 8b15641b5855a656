"""The site builds without a warning, and every page of it can be read by ear, walked by keyboard and seen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.stage import ROOT
from tests.report.test_accessibility import contrast, read


def built(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does it."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q", str(source), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(package, reason="the group docs is not installed")
    out = tmp_path_factory.mktemp("site")
    done = built(ROOT / "docs", out)
    assert done.returncode == 0, done.stderr
    return out


def pages(site: Path) -> list[Path]:
    """All pages but those that Sphinx makes of its own accord."""
    own = {"genindex.html", "search.html", "py-modindex.html"}
    return sorted(path for path in site.rglob("*.html") if path.name not in own and "_static" not in path.parts)


def test_every_page_of_the_folder_is_in_the_site(site: Path) -> None:
    made = {path.relative_to(site).with_suffix("").as_posix() for path in pages(site)}
    skipped = {"_build"}
    sources = {
        path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if not skipped & set(path.relative_to(ROOT / "docs").parts)
    }
    assert sources <= made
    assert {f"proofs/{path.stem}" for path in (ROOT / "proofs").glob("*.md")} <= made
    assert {"index", "reference/commands", "project/changelog"} <= made


def test_pages_can_be_read_by_ear_and_walked_by_keyboard(site: Path) -> None:
    faults = {}
    for path in pages(site):
        text = path.read_text()
        found = read(text, theme=True)
        if found.faults:
            faults[path.relative_to(site).as_posix()] = found.faults[:4]
        assert '<article role="main"' in text, path
    assert faults == {}


def test_pictures_on_pages_have_words_that_say_what_they_show(site: Path) -> None:
    words = [
        alt
        for path in pages(site)
        for alt in re.findall(r'<img[^>]*alt="([^"]*)"', path.read_text().split("<article", 1)[1])
    ]
    assert len(words) >= 9
    assert all(len(each) > 40 for each in words)


def test_pictures_have_a_title_of_their_own(site: Path) -> None:
    drawn = [path for path in (ROOT / "docs").rglob("*.svg") if "_build" not in path.parts]
    assert len(drawn) >= 9
    for path in drawn:
        assert re.search(r'<svg [^>]*role="img">\s*<title>[^<]{15,}</title>', path.read_text()), path.name


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for path in pages(site):
        loaded = re.findall(r'(?:src|<link[^>]*href)="([^"]+)"', path.read_text())
        assert [each for each in loaded if each.startswith(("http:", "https:", "//"))] == [], path.name


def colors(sheet: str, rule: str) -> dict[str, str]:
    """The colors that the rules of this name in the theme's style sheet set."""
    bodies = "".join(re.findall(r"(?<![\w)-])" + re.escape(rule) + r"\{([^}]*)\}", sheet))
    found = re.findall(r"--color-([\w-]+):\s*(#[0-9a-f]{3}|#[0-9a-f]{6}|black|white)\b", bodies)
    names = {"black": "#000000", "white": "#ffffff"}
    long = {name: names.get(value, value) for name, value in found}
    return {
        name: "#" + "".join(each * 2 for each in value[1:]) if len(value) == 4 else value
        for name, value in long.items()
    }


def test_the_theme_has_contrast(site: Path) -> None:
    sheet = (site / "_static" / "styles" / "furo.css").read_text()
    light, dark = colors(sheet, "body"), colors(sheet, "body[data-theme=dark]")
    assert {"foreground-primary", "background-primary", "brand-content"} <= set(light) & set(dark)
    for each in (light, light | dark):
        paper, side = each["background-primary"], each["background-secondary"]
        for text in ("foreground-primary", "foreground-secondary", "foreground-muted", "brand-content"):
            if text in each:
                assert contrast(each[text], paper) >= 4.5, text
                assert text == "foreground-muted" or contrast(each[text], side) >= 4.5, text


def test_a_dead_link_and_a_page_in_no_list_are_errors(tmp_path: Path) -> None:
    """Planted: what `make docs` must not let pass."""
    pytest.importorskip("sphinx")
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("conf.py", "extensions", "assets"):
        source = ROOT / "docs" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, docs / name)
    for name in ("proofs", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    for name in ("bench", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    (docs / "reference").mkdir()
    (docs / "index.md").write_text(
        "# Top\n\n```{toctree}\nreference/commands\nproofs/index\n```\n\n[dead](absent.md), [no such part](#nowhere)\n"
    )
    done = built(docs, tmp_path / "out")
    assert done.returncode != 0
    for words in ("absent.md", "nowhere", "project/changelog"):
        assert words in done.stderr, words
