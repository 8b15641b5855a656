"""Pages that live outside docs/: copied in before the build, their links set right, and removed from no place.

The proofs, the changelog and the pages for contributors stand at the top of the repository, where visitors look for
them. A site needs all pages in one tree, so they are copied to docs/proofs and docs/project (both ignored by git).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parent
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
SOURCE = "https://github.com/margent/margent/blob/main/"
OTHERS = "every page that no other list names"
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]*)(#[^)\s]*)?(?=\))")


def place_of(file: Path) -> str | None:
    """Where a file of the repository stands in the site, from its root; None where it is no page of it.

    >>> place_of(ROOT / "proofs" / "person.md"), place_of(HERE / "budget.md"), place_of(ROOT / "LICENSE")
    ('/proofs/person.md', '/budget.md', None)
    """
    if file.parent == ROOT / "proofs" and file.suffix == ".md":
        return f"/proofs/{file.name}"
    if file.name in PROJECT and file.parent == ROOT:
        return f"/project/{file.name.lower()}"
    if file == ROOT / "proofs":
        return "/proofs/index.md"
    if file.is_relative_to(HERE):
        return f"/{file.relative_to(HERE).as_posix()}"
    return None


def rewritten(text: str, folder: Path) -> str:
    """The page with links to files of the repository turned into links of the site.

    >>> rewritten("[proof](../proofs/person.md#who) and [law](https://example.org)", HERE)
    '[proof](/proofs/person.md#who) and [law](https://example.org)'
    """

    def turned(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        if not path:
            return match[0]
        file = (folder / path).resolve()
        if not file.exists():
            return match[0]  # the build then says which page has a dead link
        place = place_of(file)
        return (place or "/" + file.relative_to(ROOT).as_posix()) + anchor

    return LINK.sub(turned, text)


def copied() -> None:
    """Copy the pages, leaving those that have not changed as they are, so that a second build is quick."""
    wanted = {HERE / "project" / name.lower(): ROOT / name for name in PROJECT}
    wanted |= {HERE / "proofs" / page.name: page for page in sorted((ROOT / "proofs").glob("*.md"))}
    texts = {copy: rewritten(page.read_text("utf-8"), page.parent) for copy, page in wanted.items()}
    texts[HERE / "proofs" / "index.md"] = proofs_index()
    for copy, text in texts.items():
        copy.parent.mkdir(exist_ok=True)
        if not copy.exists() or copy.read_text("utf-8") != text:
            copy.write_text(text, "utf-8")
    for folder in ("project", "proofs"):
        for stale in set((HERE / folder).glob("*.md")) - set(texts):
            stale.unlink()


def proofs_index() -> str:
    """One page that lists the proofs by their titles."""
    pages = sorted((ROOT / "proofs").glob("*.md"))
    lines = [f"- [{page.read_text('utf-8').partition(chr(10))[0].lstrip('# ')}](/proofs/{page.name})" for page in pages]
    names = "\n".join(page.stem for page in pages)
    return (
        "# Proofs\n\nEvery figure of the promise rests on one of these pages. They are written for a reader who "
        "wants to check them; each names the tests that check it by enumeration.\n\n"
        + "\n".join(lines)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )


def others(index: str) -> str:
    """The front page with the pages that none of its lists names put where it asks for them."""
    named = {line.strip() for line in index.splitlines()}
    rest = sorted(page.stem for page in HERE.glob("*.md") if page.stem not in {*named, "index"})
    return index.replace(OTHERS, "\n".join(rest))


def on_read(app: Any, name: str, source: list[str]) -> None:
    """Set right the links of pages that were not copied."""
    if name == "index":
        source[0] = others(source[0])
    page = Path(app.srcdir) / f"{name}.md"
    if page.exists() and page.parent.name not in ("project", "proofs"):
        source[0] = rewritten(source[0], page.parent)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry."""
    app.connect("config-inited", lambda app, config: copied())
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True}
