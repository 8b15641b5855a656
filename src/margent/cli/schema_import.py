"""`margent schema import`: a draft from what another tool, dictionary or sheet says of the table."""

from __future__ import annotations

from pathlib import Path

import click

from margent.cli.console import say
from margent.cli.options import new_schema_option
from margent.cli.questions import say_questions

SHOWN = 20
"""Things left out that are shown; `--all` shows every one."""


@click.command("import", short_help="Begin a schema from another tool's description of the table.")
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--format", "file_format", default=None, metavar="F",
              help="nist, sdnist, sdv, redcap, pandera, postgresql or sheet (default: by content).")  # fmt: skip
@click.option("--table", default=None, metavar="T", help="Which of the tables that FILE describes.")
@click.option("--all", "every", is_flag=True, help="Show everything that was left out.")
@new_schema_option
def import_(source: Path, file_format: str | None, table: str | None, every: bool, out: Path) -> None:
    """Begin a schema from FILE: what it says of the columns is taken, what it leaves open is asked ("todo").

    Only descriptions are read, never rows. Who is protected is a question too, unless FILE says it.

    \b
    margent schema import parameters.json -o schema.json
    margent schema import dictionary.csv --format redcap -o schema.json
    margent schema import dump.sql --table patients -o schema.json
    """
    from margent.release.folder import refuse_existing, whole_file
    from margent.schema.imports.sources import import_schema

    refuse_existing(out)
    made = import_schema(source, file_format=file_format, table=table)
    whole_file(out, made.draft.text.encode())
    say(f"A schema is in {out}: {made.taken}")
    if made.left_out:
        say(f"Not taken from {source}, or to be looked at:")
        for note in made.left_out if every else made.left_out[:SHOWN]:
            say(f"  {note}")
        if len(made.left_out) > SHOWN and not every:
            say(f"  ... and {len(made.left_out) - SHOWN} more; --all shows them")
    say("Everything in a schema is public by declaration: check that what was taken may be.")
    say_questions(made.draft, out)
