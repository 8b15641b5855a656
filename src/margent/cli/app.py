"""The command tree. Command modules import nothing heavy at the top, so that --help is quick."""

from __future__ import annotations

import click

from margent.cli.budget import budget
from margent.cli.completion import completion
from margent.cli.console import say
from margent.cli.demo import demo
from margent.cli.evaluate import evaluate
from margent.cli.inspect import inspect
from margent.cli.methods import methods
from margent.cli.plan import plan
from margent.cli.query import query
from margent.cli.rehearse import rehearse
from margent.cli.runs import resample, synthesize
from margent.cli.schema import schema
from margent.cli.selftest import selftest
from margent.cli.statement import statement
from margent.cli.sweep import sweep


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from margent.version import VERSION

        say(f"margent {VERSION}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version.",
)
def app() -> None:
    """Differentially private synthetic tables.

    A private table and a public schema go in; a synthetic table comes out that may be shown to anybody.

    \b
    Start here:
      margent demo                                        see the whole job on a real public table
      margent schema draft people.csv -o schema.json      begin a schema for your own table
      margent schema edit schema.json                     answer what it leaves open
      margent schema check schema.json people.csv         all faults at once; how cells must be spelled
      margent plan --schema schema.json --epsilon .5,1,2  what a run would buy; reads no data
      margent synthesize people.csv --schema schema.json --epsilon 1 --single-release -o OUT/
    """


for command in (
    schema,
    plan,
    rehearse,
    budget,
    synthesize,
    resample,
    query,
    evaluate,
    inspect,
    sweep,
    methods,
    statement,
    selftest,
    demo,
    completion,
):
    app.add_command(command)
