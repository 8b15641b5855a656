"""`margent rehearse`: fake rows from the schema alone."""

from __future__ import annotations

from pathlib import Path

import click

from margent.cli.console import say, say_json
from margent.cli.options import (
    json_option,
    out_option,
    schema_option,
    seed_option,
    whole_number,
)


@click.command(short_help="Fake rows from the schema alone, to try analysis code.")
@schema_option
@click.option("--rows", required=True, metavar="N", help="How many fake rows.")
@seed_option
@click.option(
    "--format",
    "file_format",
    default="csv",
    show_default=True,
    metavar="F",
    help="csv, tsv, parquet, feather (or csv.gz, ...).",
)
@out_option
@json_option
def rehearse(schema_path: Path, rows: str, seed: str | None, file_format: str, out: Path, as_json: bool) -> None:
    """Write fake rows from the schema alone, to try schema and analysis code before any budget is spent.

    Every value is equally likely and no column depends on another: nothing about the real table is in it.

    \b
    margent rehearse --schema schema.json --rows 1000 -o REHEARSAL/
    """
    from margent.pipeline import checked_rows, checked_seed
    from margent.rehearsal import save_rehearsal
    from margent.schema.read import read_schema

    count = checked_rows(whole_number(rows, "--rows"))
    chosen_seed = checked_seed(whole_number(seed, "--seed"))
    schema = read_schema(schema_path)
    path = save_rehearsal(schema, out, rows=count or 0, seed=chosen_seed, file_format=file_format)
    if as_json:
        say_json({"table": str(path), "rows": count, "seed": chosen_seed})
    else:
        say(f"{count:,} fake rows are in {path}. They come from the schema alone; no data was read.")
