"""The command reference, written from the commands' own help each time the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

PAGE = Path(__file__).resolve().parents[1] / "reference" / "commands.md"

BEGIN = """# Commands

Every command and option, as `margent COMMAND --help` prints them; this page is made from the same text. Names in
capitals are yours to replace. Exit codes: 0 done, 1 a bug, 2 usage, 3 a schema or file that cannot be read or written,
4 budget refused, 5 plan too large, 130 interrupted.
"""


def walked(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, in the order of the help."""
    yield words, command
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from walked(child, (*words, name))


def prose(text: str) -> list[str]:
    r"""Help text as Markdown: what stands after click's \b is shown as it is.

    >>> prose("Say it.\n\n\b\n  margent say it\n  margent say more\n\nDone.")
    ['Say it.', '```text\nmargent say it\nmargent say more\n```', 'Done.']
    """
    import inspect

    parts = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            lines = paragraph.removeprefix("\b").strip("\n")
            parts.append(f"```text\n{inspect.cleandoc(lines)}\n```")
        else:
            parts.append(" ".join(paragraph.split()))
    return parts


def options(command: click.Command, context: click.Context) -> list[str]:
    """The options as a table, words and defaults as the help gives them."""
    records = [
        record
        for each in command.params
        if isinstance(each, click.Option) and (record := each.get_help_record(context))
    ]
    if not records:
        return []
    cells = [(f"`{name}`", text.replace("|", "\\|").replace("<", "&lt;")) for name, text in records]
    return ["| option | what it does |\n|---|---|\n" + "\n".join(f"| {name} | {text} |" for name, text in cells)]


def reference() -> str:
    """The whole page."""
    from margent.cli.app import app

    parts = [BEGIN.rstrip()]
    for words, command in walked(app, ("margent",)):
        context = click.Context(command, info_name=" ".join(words), help_option_names=["-h", "--help"])
        usage = " ".join([" ".join(words), *command.collect_usage_pieces(context)])
        level = "##" if len(words) <= 2 else "###"
        parts += [f"{level} `{' '.join(words)}`", f"```text\n{usage}\n```", *prose(command.help or "")]
        if isinstance(command, click.Group):
            below = [f"[`{name}`](#{'-'.join([*words, name])})" for name in sorted(command.commands)]
            parts.append("Commands: " + ", ".join(below) + ".")
        parts += options(command, context)
    return "\n\n".join(parts) + "\n"


def written() -> None:
    """Write the page, unless it stands there already."""
    text = reference()
    if not PAGE.exists() or PAGE.read_text("utf-8") != text:
        PAGE.write_text(text, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry."""
    app.connect("config-inited", lambda app, config: written())
    return {"parallel_read_safe": True}
