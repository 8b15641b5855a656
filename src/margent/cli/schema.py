"""`margent schema draft` and `margent schema check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.options import json_option, read_options, reading_options
from margent.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from margent.schema.draft import Draft
    from margent.tables.options import ReadOptions


@click.group()
def schema() -> None:
    """Write and check the public schema: columns, values or bins, and who is protected."""


@schema.command()
@click.argument("table", required=False, type=click.Path(path_type=Path))
@click.option("--codebook", default=None, type=click.Path(path_type=Path), metavar="BOOK", help="A codebook CSV.")
@click.option("--public-data", is_flag=True, help="The table is public: read values and bounds from its rows as well.")
@reading_options
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="S",
    help="The schema file to write.",
)
def draft(
    table: Path | None,
    codebook: Path | None,
    public_data: bool,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    out: Path,
) -> None:
    """Begin a schema from a table's header and declared types, or from a codebook.

    Values and bounds are never read from a private table: what only people know is left as "todo".

    \b
    margent schema draft people.parquet -o schema.json
    margent schema draft --codebook codebook.csv -o schema.json
    """
    if (table is None) == (codebook is None):
        raise UsageError("give either a TABLE or --codebook BOOK")
    if out.exists():
        raise UsageError(f"{out} exists already; choose another file or remove it first")
    made = _draft(table, codebook, read_options(delimiter, quote, encoding, no_header), public_data=public_data)
    try:
        out.write_text(made.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
    click.echo(f"A schema with {len(made.document['fields'])} fields is in {out}.")
    if public_data:
        click.echo("Its values and bounds were read from the rows: it is fit for public tables only, and says so.")
    click.echo("Everything in a schema is public by declaration: write nothing into it that only the rows know.")
    if made.todos:
        click.echo(f"{len(made.todos)} questions are left for you; `margent schema check {out}` lists them:")
        for todo in made.todos:
            click.echo(f"  {todo}")


@schema.command()
@click.argument("schema_path", type=click.Path(path_type=Path), metavar="S")
@click.argument("table", required=False, type=click.Path(path_type=Path))
@reading_options
@json_option
def check(
    schema_path: Path,
    table: Path | None,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    as_json: bool,
) -> None:
    """Check a schema, all faults at once, and compare it with TABLE's header. No row is read."""
    from margent.schema.check import unsupported
    from margent.schema.codec import Codec
    from margent.schema.read import read_schema
    from margent.tables.source import open_table

    try:
        read = read_schema(schema_path)
        if table is not None:
            open_table(table, read, read_options(delimiter, quote, encoding, no_header)).close()
    except SchemaError as error:
        if as_json:
            faults = [{"pointer": fault.pointer, "message": fault.message} for fault in error.faults]
            click.echo(json.dumps({"ok": False, "faults": faults}, indent=1))
        raise
    later = unsupported(read)
    domain = None if later else Codec(read).domain
    if as_json:
        sizes = [] if domain is None else list(zip(domain.names, domain.sizes, strict=True))
        document = {
            "ok": True,
            "columns": [{"name": name, "codes": size} for name, size in sizes],
            "unsupported": [{"pointer": fault.pointer, "message": fault.message} for fault in later],
        }
        click.echo(json.dumps(document, indent=1))
        return
    click.echo(f"{schema_path} is a schema of {len(read.fields)} fields, {len(read.modelled)} of them modeled.")
    if domain is not None:
        for name, size in zip(domain.names, domain.sizes, strict=True):
            click.echo(f"  {name}: {size} codes")
    for fault in later:
        click.echo(f"  not yet in this version: {fault}")
    if table is not None:
        click.echo(f"The header of {table} agrees with it. No row was read.")


def _draft(table: Path | None, codebook: Path | None, options: ReadOptions, *, public_data: bool) -> Draft:
    if codebook is not None:
        from margent.schema.codebook import draft_from_codebook

        return draft_from_codebook(codebook)
    assert table is not None
    from margent.tables.declared import declared_columns

    names, declared = declared_columns(table, options)
    if not public_data:
        from margent.schema.draft import draft_from_table

        return draft_from_table(names, declared)
    from margent.schema.fields import Category, Schema
    from margent.schema.public_draft import draft_from_public_data
    from margent.tables.source import open_table

    # Every column is wanted and its cells are looked at as they are: the categories are placeholders.
    every = Schema([Category(name, ["-"]) for name in names], unit="row")
    with open_table(table, every, options) as source:
        return draft_from_public_data(source.batches())
