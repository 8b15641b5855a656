"""Docstrings of the house as Sphinx reads them, and types that lead to the page of their public name."""

from __future__ import annotations

import re
from typing import Any

SECTION = re.compile(r"^(Shapes|Units|Privacy|Source|Raises):\s*(.*)$")


def converted(lines: list[str]) -> list[str]:
    """House sections become fields, single backticks code.

    >>> converted(["Count `rows`.", "", "Privacy: none: options only.", "  More."])
    ['Count ``rows``.', '', ':Privacy:', '   none: options only.', '   More.', '']
    """
    out: list[str] = []
    inside = example = False
    for line in lines:
        begun = SECTION.match(line)
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        text = line if example else re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line)
        if begun:
            if out and out[-1] and not inside:
                out.append("")
            out += [f":{begun[1]}:", "   " + re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", begun[2])]
            inside = True
        elif inside and line.strip() and not example:
            out.append("   " + text.strip())
        else:
            inside = inside and not line.strip()
            out.append(text)
            inside = False
    return [*out, ""] if out and out[-1] else out


def on_docstring(app: Any, what: str, name: str, of: object, options: object, lines: list[str]) -> None:
    """Convert in place, as Sphinx wants it."""
    lines[:] = converted(list(lines))


def on_missing(app: Any, env: Any, node: Any, inner: Any) -> Any:
    """A type named by the module that defines it leads to its public name, where it has one."""
    import margent

    target = str(node.get("reftarget", ""))
    name = target.rpartition(".")[2]
    if node.get("refdomain") != "py" or not target.startswith("margent."):
        return None
    if name not in margent.__all__:
        return inner  # an inner type: its name is shown, without a link
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"margent.{name}", node, inner)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry."""
    app.connect("autodoc-process-docstring", on_docstring)
    app.connect("missing-reference", on_missing)
    return {"parallel_read_safe": True}
