"""`margent evaluate`: synthetic tables held against the real one; the output is INTERNAL."""

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
    whole_number,
)
from margent.errors import UsageError


@click.command(short_help="How good is a synthetic table? INTERNAL: reads the real one.")
@click.argument("real", type=table_argument)
@click.argument("synthetic", nargs=-1, required=True, type=table_argument, metavar="SYNTH...")
@schema_option
@click.option("--group", default=None, metavar="COLUMN", help="Score each value of this column by itself, too.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="COLUMN",
    help="A column for classifiers to predict (repeatable; default: up to three).",
)
@click.option(
    "--pay-gap", default=None, metavar="P,I,S", help="Columns of place, income and sex, for scores of inequality."
)
@click.option(
    "--tolerance",
    default="2",
    show_default=True,
    metavar="N",
    help="So many records too many or too few in a cell cost nothing in MGD.",
)
@click.option("--no-learning", is_flag=True, help="Leave out the classifiers.")
@click.option("--seed", default=None, metavar="N", help="Seed of the yardsticks and random choices (default: fixed).")
@reading_options
@out_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress bars.")
def evaluate(
    real: str | Path,
    synthetic: tuple[str | Path, ...],
    schema_path: Path,
    group: str | None,
    targets: tuple[str, ...],
    pay_gap: str | None,
    tolerance: str,
    no_learning: bool,
    seed: str | None,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    kind: str | None,
    query_is_row_wise: bool,
    out: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Hold one or more synthetic tables (files or release folders) against the REAL one.

    The folder OUT is INTERNAL: its figures are exact, computed from real rows, and not differentially private.

    \b
    margent evaluate people.csv OUT/ --schema schema.json -o INTERNAL/
    """
    from margent.internal.evaluation import PAGE_FILE
    from margent.internal.evaluation import evaluate as run
    from margent.internal.label import LABEL, WHAT_IT_MEANS, refuse_release
    from margent.metrics.study import Choices
    from margent.schema.read import read_schema

    refuse_release(out)
    own = Choices()
    choices = Choices(
        seed=own.seed if seed is None else whole_number(seed, "--seed") or 0,
        group=group,
        targets=targets,
        pay_gap=_three(pay_gap),
        tolerance=whole_number(tolerance, "--tolerance") or 0,
    )
    schema = read_schema(schema_path)
    _known(schema_path, {field.name for field in schema.modelled}, [group, *targets, *(choices.pay_gap or ())])
    with shown_progress(wanted=not quiet and not as_json) as progress:
        made = run(
            real,
            synthetic,
            schema,
            choices=choices,
            read=read_options(delimiter, quote, encoding, no_header, kind, query_is_row_wise),
            learning=not no_learning,
            progress=progress,
        )
        made.save(out)
    if as_json:
        say_json({"out": str(out), "label": LABEL, "scores": made.scores})
        return
    say(LABEL)
    document = made.document
    names = [table["name"] for table in document["tables"]]
    say(f"The page is {out / PAGE_FILE}. A few of its scores, beside the two yardsticks:")
    wanted = ("tvd-1", "tvd-2", "tvd-3", "range-contiguous-absolute")
    for metric in document["metrics"]:
        if metric["key"] in wanted:
            shown = [
                f"{name} {score['value']:.4g}" if score["status"] == "scored" else f"{name} -"
                for name, score in zip(names, metric["scores"], strict=True)
            ]
            say(f"  {metric['title']}: {'; '.join([*shown[2:], *shown[:2]])}")
    failed = sum(any(each["status"] == "failed" for each in metric["scores"]) for metric in document["metrics"])
    if failed:
        say(f"{failed} metrics failed; the page says which, and the others are not affected.")
    if document["notCompared"]:
        say(f"Not compared, because not every table has them: {', '.join(document['notCompared'])}.")
    say(WHAT_IT_MEANS)


def _three(text: str | None) -> tuple[str, str, str] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 3:
        raise UsageError("--pay-gap takes three column names with commas between them: PLACE,INCOME,SEX")
    return parts[0], parts[1], parts[2]


def _known(schema_path: Path, modeled: set[str], names: list[str | None]) -> None:
    if unknown := [name for name in names if name is not None and name not in modeled]:
        raise UsageError(f"{', '.join(map(repr, unknown))}: not a modeled column of {schema_path}")
