"""Pages for those who listen: the theme's signs, which stand beside words, are hidden; heads of tables say of what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

SIGN = re.compile(r"<svg((?:(?!aria-hidden|role=)[^>])*)>")
HEAD = re.compile(r'<th class="head')


def marked(page: str) -> str:
    """The page with signs and heads marked.

    >>> marked('<svg class="a"><path/></svg><th class="head"><p>epsilon</p></th>')
    '<svg class="a" aria-hidden="true"><path/></svg><th scope="col" class="head"><p>epsilon</p></th>'
    """
    return HEAD.sub('<th scope="col" class="head', SIGN.sub(r'<svg\1 aria-hidden="true">', page))


def on_finished(app: Any, fault: Exception | None) -> None:
    """Mark them in all pages that were written."""
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text("utf-8")
        if (better := marked(text)) != text:
            path.write_text(better, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry."""
    app.connect("build-finished", on_finished)
    return {"parallel_read_safe": True}
