"""`margent inspect`: how a real table meets its schema; the output is INTERNAL."""

from __future__ import annotations

from pathlib import Path

import click

from margent.cli.console import say, say_json, shown_progress
from margent.cli.options import (
    json_option,
    out_option,
    read_options,
    reading_options,
    schema_option,
    table_argument,
)


@click.command(short_help="How a table meets its schema. INTERNAL: reads the real rows.")
@click.argument("table", type=table_argument)
@schema_option
@reading_options
@out_option
@json_option
def inspect(
    table: str | Path,
    schema_path: Path,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    kind: str | None,
    query_is_row_wise: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Count what the schema cannot read, clips or calls missing in TABLE, column by column.

    The folder OUT is INTERNAL: its figures are exact, computed from real rows, and not differentially private.

    \b
    margent inspect people.csv --schema schema.json -o INTERNAL/
    """
    from margent.internal.inspection import PAGE_FILE
    from margent.internal.inspection import inspect as run
    from margent.internal.label import LABEL, WHAT_IT_MEANS, refuse_release
    from margent.schema.read import read_schema

    refuse_release(out)
    schema = read_schema(schema_path)
    with shown_progress(wanted=not as_json) as progress:
        made = run(
            table,
            schema,
            read=read_options(delimiter, quote, encoding, no_header, kind, query_is_row_wise),
            progress=progress,
        )
        made.save(out)
    if as_json:
        say_json({"out": str(out)} | made.document)
        return
    say(LABEL)
    say(f"The page is {out / PAGE_FILE}.")
    remarked = [column for column in made.document["columns"] if column["remarks"]]
    say(f"{len(remarked)} of {len(made.document['columns'])} modeled columns are worth a look:")
    for column in remarked:
        say(f"  {column['column']}: {'; '.join(column['remarks'])}")
    say(WHAT_IT_MEANS)
