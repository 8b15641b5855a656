"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from margent.errors import UsageError

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.privacy.budget_file import BudgetFile
    from margent.privacy.neighbors import Relation
    from margent.tables.options import ReadOptions

Command = Callable[..., Any]

_MOST_DIGITS = 30


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator that adds all of these options; help lists the last of them first. Privacy: none."""

    def add(command: Command) -> Command:
        for option in options:
            command = option(command)
        return command

    return add


def new_output(metavar: str, what: str) -> Callable[[Command], Command]:
    """The required option for what a command makes. Privacy: none."""
    return click.option(
        "-o",
        "--out",
        required=True,
        type=click.Path(path_type=Path),
        metavar=metavar,
        help=f"{what}; must not exist.",
    )


schema_option = click.option(
    "--schema",
    "schema_path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="S",
    help="The schema file.",
)
new_schema_option = new_output("S", "The schema file to write")
out_option = new_output("OUT", "The folder to write")
rows_option = click.option(
    "--rows", default=None, metavar="N", help="Rows to write (default: the noisy number of records)."
)
seed_option = click.option(
    "--seed",
    default=None,
    metavar="N",
    help="Seed of the sampling, never of the privacy noise (default: random; it is published).",
)
format_option = click.option(
    "--format",
    "file_format",
    default=None,
    metavar="F",
    help="csv, tsv (either with .gz or .zst), parquet, feather or arrow (default: as the input).",
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Log each step on standard error: public facts only, no times, no counts."
)
parts_option = click.option(
    "--rows-per-file",
    default=None,
    metavar="N",
    help="Rows of a file at most; there are several then, in a folder (default: a Parquet or Feather table of more "
    "than one block, about a million rows, has a file for each; text is one file).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")
method_option = click.option(
    "--method", default=None, metavar="M", help="How to spend the budget (default: dense; see `margent methods`)."
)
settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of method or synthesizer, as often as needed (see `margent methods --settings`); it is recorded.",
)
delta_option = click.option(
    "--delta",
    default=None,
    metavar="D",
    help="What may be added to e^epsilon times the probability of anything that a release shows; it is not how often a "
    "release tells more (default: 1e-9, 0 with pure, or the budget file's).",
)
atoms_option = click.option(
    "--delta-for-atoms",
    default="0",
    show_default=True,
    metavar="D",
    help="The part of delta set apart for values that are selected from the data (openSet); with a budget file, taken "
    "from its part.",
)
accountant_option = click.option(
    "--accountant",
    default=None,
    metavar="A",
    help="gdp (tighter), zcdp (the conservative alternative) or pure (delta 0, Laplace noise); "
    "default: gdp, or the budget file's.",
)

relation_option = click.option(
    "--relation",
    default=None,
    metavar="R",
    help="add-remove (one row more or less) or replace (one row changed; the number of rows is then public, unless a "
    "condition or query chose them); default: add-remove, or the budget file's.",
)
people_option = click.option(
    "--expect-people",
    default=None,
    metavar="N",
    help="About how many persons there are, where the schema protects persons (default 1,000,000; sizes memory).",
)


state_options = together(
    click.option(
        "--pay-again",
        is_flag=True,
        help="With --resume: buy anew a question whose answer was lost. It stays spent, so the release's epsilon "
        "is then larger than asked for, by what it says.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Go on with the interrupted run: the same command and this. What was answered is not paid again.",
    ),
    click.option(
        "--state",
        "state_folder",
        default=None,
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Where the run keeps what it bought until it is done, readable by you alone "
        "(default: .OUT.margent-run beside OUT).",
    ),
)
"""The options of a run that may be interrupted and resumed."""


budget_file_options = together(
    click.option(
        "--data-set", default=None, metavar="NAME", help="Whose budget, where the budget file declares several."
    ),
    click.option(
        "--budget",
        "budget_path",
        default=None,
        type=click.Path(path_type=Path),
        metavar="B",
        help="The file that keeps the budget across runs (see `margent budget`).",
    ),
)
"""The options that name a data set's budget in a file."""


reading_options = together(
    click.option(
        "--query-is-row-wise",
        is_flag=True,
        help="Every row of the query= (or view, or of what row-level security shows) of a database comes from one "
        "record, or one person's; the release says so.",
    ),
    click.option("--kind", default=None, metavar="K", help="csv, tsv, parquet, ... where TABLE's name does not say."),
    click.option("--no-header", is_flag=True, help="The first line is a row; columns are the schema's, in order."),
    click.option("--encoding", default="utf-8", show_default=True, help="utf-8, utf-16, latin-1, cp1252, ..."),
    click.option("--quote", default='"', show_default=True, help='The quote character, or "" for none.'),
    click.option("--delimiter", default=None, help='What separates columns (default: "," for CSV, tab for TSV).'),
)
"""The options that say how a table is to be read (nothing is guessed from its rows)."""


def table_argument(text: str) -> str | Path:
    """A TABLE as typed: a database's address (duckdb:, postgresql:) as it is, anything else as a path."""
    from margent.tables.address import table_named

    return table_named(text)


def read_options(
    delimiter: str | None, quote: str, encoding: str, no_header: bool, kind: str | None, query_is_row_wise: bool
) -> ReadOptions:
    """The reading options of a command as the reader wants them."""
    from margent.tables.options import ReadOptions

    return ReadOptions(
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
        header=not no_header,
        kind=kind,
        query_is_row_wise=query_is_row_wise,
    )


def budget_file_of(path: Path | None, data_set: str | None) -> BudgetFile | None:
    """The budget file of a command, or None where none was named.

    Raises: UsageError naming the option.
    """
    if path is None:
        if data_set is not None:
            raise UsageError("--data-set names a data set of a budget file: give the file with --budget")
        return None
    from margent.privacy.budget_file import BudgetFile

    return BudgetFile(path, data_set)


def budget_of(
    epsilon: str | None,
    delta: str | None,
    accountant: str | None,
    relation: str | None = None,
    budget_file: BudgetFile | None = None,
    delta_for_atoms: str = "0",
) -> Budget:
    """The budget of a command, on the terms of the budget file where there is one; epsilon is never defaulted.

    Raises: UsageError naming the option and the next step; BudgetError when the file cannot be used.
    """
    from margent.privacy.budget import Budget

    if epsilon is None:
        raise UsageError(
            "--epsilon is missing and is never defaulted: it is the promise you make. 1 is a common choice; "
            "smaller protects more. See what it would buy with `margent plan`"
        )
    if accountant not in (None, "gdp", "zcdp", "pure"):
        raise UsageError("--accountant must be gdp, zcdp or pure")
    if relation not in (None, "add-remove", "replace"):
        raise UsageError("--relation must be add-remove or replace")
    if budget_file is not None:
        kept = budget_file.budget(epsilon, delta, accountant=accountant, delta_for_atoms=delta_for_atoms)
        if relation not in (None, kept.relation):
            raise UsageError(
                f"--relation {relation} is not what the budget file was made for ({kept.relation}): leave it out, or "
                "use another data set's budget"
            )
        return kept
    known: Relation = "replace" if relation == "replace" else "add-remove"
    return Budget(epsilon, delta, accountant or "gdp", known, delta_for_atoms=delta_for_atoms)


def whole_number(text: str | None, option: str, *, least: int = 0) -> int | None:
    """A whole number from an option's text, or None where it was not given.

    Raises: UsageError naming the option.
    """
    if text is None:
        return None
    # Python itself refuses to read a number of thousands of digits.
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS or int(text) < least:
        raise UsageError(f"{option} must be a whole number of at least {least}, without sign or fraction")
    return int(text)


def settings_of(given: tuple[str, ...]) -> dict[str, str]:
    """The settings given as ``NAME=VALUE``, each at most once.

    Privacy: none.
    Raises: UsageError naming every one that is not of that form.

    >>> settings_of(("gamma=1000",))
    {'gamma': '1000'}
    """
    read = [one.partition("=") for one in given]
    names = [name for name, _, _ in read]
    faults = [repr(one) for one, (name, equals, _) in zip(given, read, strict=True) if not (name and equals)]
    faults += [f"{name!r} (given twice)" for name in sorted({name for name in names if names.count(name) > 1})]
    if faults:
        raise UsageError(f"--set takes NAME=VALUE, each name once, and not {', '.join(faults)}")
    return {name: value for name, _, value in read}
