"""`margent schema export` and `margent schema json-schema`: the schema in forms that others read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from margent.cli.console import say
from margent.errors import UsageError


@click.command(short_help="Write a schema as a sheet, a Table Schema or a Croissant description.")
@click.argument("source", type=click.Path(path_type=Path), metavar="S")
@click.option("--csv", "sheet", default=None, type=click.Path(path_type=Path), metavar="SHEET.csv",
              help="One line a column, to fill in with a spreadsheet; `schema import` reads it back.")  # fmt: skip
@click.option("--table-schema", "plain", default=None, type=click.Path(path_type=Path), metavar="OUT.json",
              help="A plain Table Schema of the released table, without Margent's own block.")  # fmt: skip
@click.option("--croissant", default=None, type=click.Path(path_type=Path), metavar="OUT.json",
              help="A Croissant 1.0 description (JSON-LD) of the released table.")  # fmt: skip
def export(source: Path, sheet: Path | None, plain: Path | None, croissant: Path | None) -> None:
    """Write the schema S, or that of a release folder, in another form. A draft can become a sheet, too.

    \b
    margent schema export schema.json --csv sheet.csv
    margent schema export OUT/ --table-schema table.json --croissant croissant.json
    """
    from margent.release.folder import refuse_existing, whole_file

    outs = [out for out in (sheet, plain, croissant) if out is not None]
    if not outs:
        raise UsageError("say what to write: --csv SHEET.csv, --table-schema OUT.json or --croissant OUT.json")
    if len({out.absolute() for out in outs}) < len(outs):
        raise UsageError("give every form a file of its own")
    for out in outs:
        refuse_existing(out)
        if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
            raise UsageError(f"{out} is inside the release, which is published as it was made; write beside it")
    for out, text in _texts(source, sheet, plain, croissant):
        whole_file(out, text.encode())
    if sheet is not None:
        say(f"The sheet is in {sheet}, one line a column; `margent schema import {sheet} -o S` makes a schema of it.")
    if plain is not None:
        say(f"The Table Schema of the released table is in {plain}.")
    if croissant is not None:
        say(f"The Croissant description is in {croissant}; add license, creator, url and datePublished.")
        if not source.is_dir():
            say("It names no SHA-256, because there is no released file yet: export from the release folder for that.")


def _texts(source: Path, sheet: Path | None, plain: Path | None, croissant: Path | None) -> list[tuple[Path, str]]:
    """What is to be written, all of it made before anything is."""
    from margent.schema.exports.croissant import croissant as described_as_croissant
    from margent.schema.exports.document import described
    from margent.schema.exports.sheet import sheet_text
    from margent.schema.exports.table_schema import table_schema

    found = described(source, drafts=plain is None and croissant is None)
    texts = []
    if sheet is not None:
        texts.append((sheet, sheet_text(found.document)))
    if plain is not None:
        texts.append((plain, _json(table_schema(found.document))))
    if croissant is not None:
        made = described_as_croissant(found.document, promise=found.promise, file=found.file, content=found.content)
        texts.append((croissant, _json(made)))
    return texts


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


@click.command("json-schema", short_help="Print the JSON Schema of schema files, for editors.")
def json_schema() -> None:
    """Print the JSON Schema (draft 2020-12) of schema files. Editors check and complete with it as you type.

    It knows keys and forms; what they mean together (bounds in order, bins that fit) `margent schema check` says.

    \b
    margent schema json-schema > schema-file.json
    """
    from margent.schema.json_schema import schema_file_text

    say(schema_file_text().rstrip("\n"), lines=True)
