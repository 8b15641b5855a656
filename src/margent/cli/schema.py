"""`margent schema`: its commands, `draft` and `check` among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.console import say, say_json
from margent.cli.options import (
    json_option,
    new_schema_option,
    read_options,
    reading_options,
    table_argument,
)
from margent.cli.questions import say_questions
from margent.cli.schema_edit import edit
from margent.cli.schema_export import export, json_schema
from margent.cli.schema_import import import_
from margent.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from margent.schema.draft import Draft
    from margent.schema.fields import Schema
    from margent.tables.options import ReadOptions

EXAMPLES = (
    '{"name": "sex", "type": "string", "categories": ["F", "M"]}',
    '{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110}}',
    '{"name": "weight", "type": "number", "constraints": {"minimum": 0, "maximum": 300}, "margent": {"bins": 30}}',
    '{"name": "seen", "type": "date", "format": "%d/%m/%Y", '
    '"constraints": {"minimum": "2020-01-01", "maximum": "2024-12-31"}, "margent": {"bins": "month"}}',
    '{"name": "smoker", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]}',
    '{"name": "patient", "type": "string", "margent": {"role": "identifier"}}   (fresh ids are written)',
    '{"name": "comment", "type": "string", "margent": {"role": "drop"}}   (free text is left out)',
)
"""A field of every kind, as an answer to a draft's questions (a test reads them)."""

MANY = 20
"""From so many columns on, a draft speaks of spreadsheets."""


@click.group(short_help="Write and check the public schema.")
def schema() -> None:
    """Write and check the public schema: columns, values or bins, and who is protected.

    \b
    margent schema draft people.csv -o schema.json
    margent schema edit schema.json
    margent schema check schema.json people.csv
    """


for command in (import_, edit, export, json_schema):
    schema.add_command(command)


@schema.command(short_help="Begin a schema from a header, declared types or a codebook.")
@click.argument("table", required=False, type=table_argument)
@click.option("--codebook", default=None, type=click.Path(path_type=Path), metavar="BOOK",
              help="A codebook as CSV, instead of TABLE (docs/schema.md says which columns it may have).")  # fmt: skip
@click.option("--public-data", is_flag=True, help="The table is public: read values and bounds from its rows as well.")
@reading_options
@new_schema_option
def draft(
    table: str | Path | None,
    codebook: Path | None,
    public_data: bool,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    kind: str | None,
    query_is_row_wise: bool,
    out: Path,
) -> None:
    """Begin a schema from a table's header and declared types, or from a codebook.

    Values and bounds are never read from a private table: what only people know is left as "todo".

    \b
    margent schema draft people.parquet -o schema.json
    margent schema draft --codebook codebook.csv -o schema.json
    """
    from margent.release.folder import refuse_existing, whole_file

    if (table is None) == (codebook is None):
        raise UsageError("give either a TABLE or --codebook BOOK")
    refuse_existing(out)
    made = _draft(
        table,
        codebook,
        read_options(delimiter, quote, encoding, no_header, kind, query_is_row_wise),
        public_data=public_data,
    )
    whole_file(out, made.text.encode())
    say(f"A schema with {len(made.document['fields'])} fields is in {out}.")
    if public_data:
        say("Its values and bounds were read from the rows: it is fit for public tables only, and says so.")
    say("Everything in a schema is public by declaration: write nothing into it that only the rows know.")
    if say_questions(made, out):
        say(f"Answer them in {out}, one line a column, from documentation and never from the rows. Examples:")
        for line in EXAMPLES:
            say(f"  {line}")
        say('Texts that mean "no value" (NA, ?) go into missingValues. Every key: docs/schema.md.')
        if len(made.document["fields"]) >= MANY:
            say(
                f"So many columns are quicker in a spreadsheet: `margent schema export {out} --csv sheet.csv` writes "
                "one line a column to fill in, and `margent schema import sheet.csv -o S` reads it (docs/importing.md)."
            )


@schema.command(short_help="Check a schema, and hold a table's header against it.")
@click.argument("schema_path", type=click.Path(path_type=Path), metavar="S")
@click.argument("table", required=False, type=table_argument)
@reading_options
@json_option
def check(
    schema_path: Path,
    table: str | Path | None,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    kind: str | None,
    query_is_row_wise: bool,
    as_json: bool,
) -> None:
    """Check a schema, all faults at once, and compare it with TABLE's header. No row is read.

    It also shows how the schema spells cells, for you to compare with the table: a date format or a word for
    "yes" that differs makes every cell of a column unreadable, and only you may look at the rows to see it.

    \b
    margent schema check schema.json people.csv
    """
    from margent.schema.codec import Codec
    from margent.schema.examples import example_cells
    from margent.schema.formulas import formula_cells, formula_warnings
    from margent.schema.read import read_schema
    from margent.schema.settled import asks_to_buy, open_columns, planned
    from margent.tables.address import shown
    from margent.tables.source import open_table

    if schema_path.suffix.lower() != ".json" and str(table).lower().endswith(".json"):
        raise UsageError(f"the schema comes first, then the table: margent schema check {table} {schema_path}")
    try:
        read = read_schema(schema_path)
        if table is not None:
            open_table(
                table, read, read_options(delimiter, quote, encoding, no_header, kind, query_is_row_wise)
            ).close()
    except SchemaError as error:
        if as_json:
            faults = [{"pointer": fault.pointer, "message": fault.message} for fault in error.faults]
            say_json({"ok": False, "faults": faults})
        raise
    codec = Codec(planned(read))
    bought = [field.name for field in read.modelled if asks_to_buy(field)]
    cells = dict(example_cells(codec)) | {field.name: () for field in open_columns(read)}
    sizes = dict(zip(codec.domain.names, codec.domain.sizes, strict=True))
    if as_json:
        document = {
            "ok": True,
            "columns": [{"name": name, "codes": sizes[name], "examples": cells[name]} for name in sizes],
            "bought": bought,
            "warnings": formula_warnings(formula_cells(read)),
        }
        say_json(document)
        return
    say(f"{schema_path} is a schema of {len(read.fields)} fields, {len(read.modelled)} of them modeled.")
    if sizes:
        say("Codes of each column (its values or bins, and one for each kind of other cells), and cells as the schema")
        say("spells them: compare them with your table's.")
        widest = min(max(len(name) for name in sizes), 40)
        for name, size in sizes.items():
            say(f"  {name:<{widest}}  {size:>7,}  {'   '.join(map(repr, cells[name]))}")
        if bought:
            names = ", ".join(map(repr, bought))
            say(f"Bought during a run are the bins or values of {names}: the codes shown are the most there can be.")
        tokens = " or ".join(repr(token.text) for token in read.missing) or "in no way"
        say(f"Missing cells are spelled {tokens}, where a column does not say otherwise.")
    for sentence in _told(read):
        say(sentence)
    for warning in formula_warnings(formula_cells(read)):
        say(f"Warning: {warning}.")
    if table is not None:
        say(f"The header of {shown(table)} agrees with it. No row was read.")


def _told(read: Schema) -> Iterator[str]:
    """What becomes of the columns that are not modeled, who is protected, and dates whose order nothing keeps."""
    from margent.schema.fields import PersonUnit

    for role, words in (("identifier", "Fresh ids are written for"), ("drop", "Not in the result:")):
        if names := [field.name for field in read.fields if field.role == role]:
            yield f"{words} {', '.join(map(repr, names))}."
    if isinstance(read.unit, PersonUnit):
        rows = f"{read.unit.max_rows} row{'s' if read.unit.max_rows > 1 else ''} of each"
        yield f"Protected: every person, as told apart by {read.unit.field!r}; at most {rows} are counted."
    else:
        yield "Protected: every single row. Where somebody can have several, see docs/one-row-per-patient.md."
    days = [field.name for field in read.modelled if field.type in ("date", "datetime") and field.relative_to is None]
    if len(days) > 1 and not read.rules:
        yield (
            f"Note: {', '.join(map(repr, days))} are drawn each for itself: an end may be written before its "
            "beginning. `margent schema edit S COLUMN` asks which other date a column follows (relativeTo in "
            "docs/schema.md)."
        )


def _draft(table: str | Path | None, codebook: Path | None, options: ReadOptions, *, public_data: bool) -> Draft:
    if codebook is not None:
        from margent.schema.codebook import draft_from_codebook

        return draft_from_codebook(codebook)
    assert table is not None
    from margent.tables.declared import declared_columns

    names, declared = declared_columns(table, options)
    if not public_data:
        from margent.schema.draft import draft_from_table

        return draft_from_table(names, declared)
    from margent.schema.container import container_faults
    from margent.schema.draft import Draft
    from margent.schema.fields import Category, Dropped, Schema
    from margent.schema.public_draft import draft_from_public_data
    from margent.tables.source import open_table

    # Every column is wanted and its cells are looked at as they are: the categories are placeholders.
    every = Schema([Category(name, ["-"]) for name in names], unit="row")
    odd = {fault.pointer for fault in container_faults(every, declared)} if declared is not None else set()
    read = Schema([Dropped(name) if name in odd else Category(name, ["-"]) for name in names], unit="row")
    with open_table(table, read, options) as source:
        made = draft_from_public_data(source.batches())
    found = {field["name"]: field for field in made.document["fields"]}
    fields = [found.get(name, {"name": name, "type": "string", "margent": {"role": "drop"}}) for name in names]
    return Draft(made.document | {"fields": fields})
