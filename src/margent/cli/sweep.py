"""`margent sweep`: error against epsilon on a public table."""

from __future__ import annotations

from pathlib import Path

import click

from margent.cli.console import say, say_json, shown_progress
from margent.cli.options import (
    delta_option,
    json_option,
    out_option,
    read_options,
    reading_options,
    schema_option,
    table_argument,
    whole_number,
)
from margent.errors import UsageError


@click.command(short_help="Error against epsilon, on a PUBLIC table only.")
@click.argument("table", type=table_argument)
@schema_option
@click.option("--epsilon", "epsilons", required=True, metavar="E,E,...", help="The budgets to try, with commas.")
@delta_option
@click.option(
    "--method", "methods", default=None, metavar="M,M,...", help="Methods to compare (see `margent methods`)."
)
@click.option("--draws", default="1", show_default=True, metavar="N", help="Runs of each method at each epsilon.")
@click.option("--on-public-data", is_flag=True, help="I say that TABLE is public: nothing in it needs protection.")
@reading_options
@out_option
@json_option
def sweep(
    table: str | Path,
    schema_path: Path,
    epsilons: str,
    delta: str | None,
    methods: str | None,
    draws: str,
    on_public_data: bool,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    kind: str | None,
    query_is_row_wise: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Draw error against epsilon for a PUBLIC table, to choose method and budget before the private one is touched.

    \b
    margent sweep public.csv --schema schema.json --epsilon .1,.2,.5,1,2,5 --on-public-data -o SWEEP/
    """
    from margent.internal.label import LABEL, refuse_release
    from margent.internal.sweep import PAGE_FILE
    from margent.internal.sweep import sweep as run
    from margent.methods import DEFAULT_METHOD
    from margent.schema.read import read_schema

    refuse_release(out)
    wanted = [part.strip() for part in epsilons.split(",")]
    if not all(wanted):
        raise UsageError("--epsilon takes one or more numbers with commas between them")
    with shown_progress(wanted=not as_json) as progress:
        made = run(
            table,
            read_schema(schema_path),
            epsilons=wanted,
            methods=(methods or DEFAULT_METHOD).split(","),
            on_public_data=on_public_data,
            delta=delta,
            draws=whole_number(draws, "--draws", least=1) or 1,
            read=read_options(delimiter, quote, encoding, no_header, kind, query_is_row_wise),
            progress=progress,
        )
        made.save(out)
    if as_json:
        say_json({"out": str(out)} | made.document)
        return
    say(LABEL)
    say(f"The page is {out / PAGE_FILE}.")
    say(made.document["meaning"])
