"""`margent query`: a table over a few columns of a release, with error bars."""

from __future__ import annotations

import csv
import io
from itertools import filterfalse, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.console import say, say_json, visible
from margent.cli.options import json_option, whole_number
from margent.errors import UsageError

if TYPE_CHECKING:
    from margent.answers.answer import AnsweredCell, QueryAnswer

SHOWN = 30
"""Cells shown unless --top or --all says otherwise."""
WIDEST = 40
"""Characters of a label that are shown."""


@click.command(short_help="A table over a few columns, with error bars; free.")
@click.argument("release_folder", type=click.Path(path_type=Path), metavar="RELEASE")
@click.argument("columns", metavar="COLUMN[,COLUMN...]")
@click.option("--top", default=None, metavar="N", help=f"Show the N largest cells (default {SHOWN}).")
@click.option("--all", "everything", is_flag=True, help="Show all cells.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all cells (or --top N) as CSV.")
@json_option
def query(release_folder: Path, columns: str, top: str | None, everything: bool, as_csv: bool, as_json: bool) -> None:
    """Show the table over COLUMNS of RELEASE, from its noisy answers; no data is read and nothing is spent.

    Columns are separated by commas; a name with a comma in it goes between double quotes.

    \b
    margent query OUT/ sex,work
    margent query OUT/ sex,work,age --csv > table.csv
    """
    from margent.answers.query import query as answered

    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    if everything and top is not None:
        raise UsageError("--all and --top exclude each other")
    most = whole_number(top, "--top", least=1)
    answer = answered(release_folder, _names(columns))
    if as_json:
        say_json(answer.to_json(most))
    elif as_csv:
        _show_csv(answer, most)
    else:
        _show(answer, None if everything else most or SHOWN)


def _names(text: str) -> list[str]:
    """The column names in a comma-separated list, spelled as CSV."""
    try:
        rows = list(csv.reader([text], strict=True))
    except csv.Error:
        rows = []
    if len(rows) != 1 or not all(rows[0]):
        raise UsageError("name the columns with commas between them, as in sex,work; quote a name that has a comma")
    return rows[0]


def _show_csv(answer: QueryAnswer, most: int | None) -> None:
    from margent.schema.formulas import formula_warnings

    rows: list[list[str]] = [[*answer.columns, "count", "error", "low", "high", "kind"]]
    for cell in answer.cells(most):
        numbers = (cell.count, cell.error, cell.low, cell.high)
        rows.append([*cell.labels, *(f"{number:.2f}" for number in numbers), answer.kind])
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(row)
        say(line.getvalue())
    for warning in formula_warnings(_formulas(answer), "this CSV"):
        say(f"Warning: {warning}.", err=True)


def _formulas(answer: QueryAnswer) -> list[dict[str, str]]:
    """Names and labels that a spreadsheet may run."""
    from margent.schema.formulas import is_formula

    texts = [
        (name, text) for name, labels in zip(answer.columns, answer.labels, strict=True) for text in (name, *labels)
    ]
    return [{"column": name, "cell": text} for name, text in texts if is_formula(text)]


def _show(answer: QueryAnswer, most: int | None) -> None:
    """A table for people: labels, counts in whole records, bars; then what they mean. All cells with ``most`` None."""
    from margent.schema.labels import UNLISTED_LABEL

    def is_noise(cell: AnsweredCell) -> bool:
        """Whether a cell is of records that do not fit the schema, and its count may as well be 0."""
        return UNLISTED_LABEL in cell.labels and cell.count <= cell.error

    shown = list(answer.cells() if most is None else islice(filterfalse(is_noise, answer.cells()), most))
    lines = [(*map(_short, answer.columns), "count", "±")]
    lines += [(*map(_short, cell.labels), f"{round(cell.count):,}", f"{max(round(cell.error), 1):,}") for cell in shown]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    texts = len(answer.columns)
    for line in lines:
        cells = [
            text.ljust(width) if place < texts else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        say("  ".join(cells).rstrip())
    left = answer.counts.size - len(shown)
    if left:
        noise = sum(map(is_noise, answer.cells()))
        hint = f"; in {noise:,} of them records would not fit the schema, and noise alone explains the count"
        say(f"and {left:,} more cells (--all shows them{hint if noise else ''})")
    for sentence in answer.words:
        say(sentence)


def _short(text: str) -> str:
    safe = visible(text)
    return safe if len(safe) <= WIDEST else safe[: WIDEST - 1] + "…"
