"""`margent plan`: what a run would buy, cost and need, before any data is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.budget import after_json, after_text
from margent.cli.console import say, say_json, visible
from margent.cli.options import (
    accountant_option,
    atoms_option,
    budget_file_of,
    budget_file_options,
    budget_of,
    delta_option,
    json_option,
    method_option,
    people_option,
    relation_option,
    rows_option,
    schema_option,
    settings_of,
    settings_option,
    whole_number,
)

if TYPE_CHECKING:
    from margent.plan import Plan


@click.command(short_help="What a run would buy, cost and need; reads no data.")
@schema_option
@click.option(
    "--epsilon", default=None, metavar="E[,E...]", help="One epsilon, or several to compare: .5,1,2. Never defaulted."
)
@delta_option
@atoms_option
@accountant_option
@relation_option
@budget_file_options
@method_option
@settings_option
@rows_option
@click.option(
    "--expect-rows",
    default=None,
    metavar="N",
    help="About how many rows the table has, from public knowledge.",
)
@people_option
@json_option
def plan(
    schema_path: Path,
    epsilon: str | None,
    delta: str | None,
    delta_for_atoms: str,
    accountant: str | None,
    relation: str | None,
    budget_path: Path | None,
    data_set: str | None,
    method: str | None,
    settings: tuple[str, ...],
    rows: str | None,
    expect_rows: str | None,
    expect_people: str | None,
    as_json: bool,
) -> None:
    """What a run would buy, cost and need. Reads no data.

    \b
    margent plan --schema schema.json --epsilon .5,1,2 --expect-rows 20000
    margent plan --schema schema.json --epsilon .5,1 --budget people.budget     what would be left
    """
    from margent.methods import DEFAULT_METHOD, method_named
    from margent.pipeline import checked_people
    from margent.plan import make_plan
    from margent.schema.read import read_schema

    expected = whole_number(expect_rows, "--expect-rows", least=1)
    budget_file = budget_file_of(budget_path, data_set)
    budgets = [
        budget_of(part, delta, accountant, relation, budget_file, delta_for_atoms)
        for part in ([None] if epsilon is None else epsilon.split(","))
    ]
    chosen = method_named(method or DEFAULT_METHOD).configured(settings_of(settings))
    schema = read_schema(schema_path)
    people = checked_people(whole_number(expect_people, "--expect-people", least=1))
    plans = [make_plan(schema, budget, chosen, whole_number(rows, "--rows"), people) for budget in budgets]
    balance = None if budget_file is None else budget_file.balance()
    if as_json:
        left = [{} if balance is None else {"budgetFile": after_json(balance, made.budget)} for made in plans]
        listed = [made.to_json(expected) | kept for made, kept in zip(plans, left, strict=True)]
        say_json(listed)
    else:
        for made in plans:
            after = "" if balance is None else after_text(balance, made.budget, schema.unit) + "\n"
            say(plan_text(made, expected) + after, lines=True)
    for made in plans:
        made.require_fits()


def plan_text(made: Plan, expected: int | None) -> str:
    """The plan as a person reads it.

    Privacy: none: a function of schema and options.
    """
    from margent.cost import duration
    from margent.machine import machine_memory
    from margent.plan import MOST_NOISE, gigabytes
    from margent.release.beliefs import number
    from margent.release.promise import spelled

    widest = ", ".join(f"{visible(name)} ({size})" for name, size in made.widest())
    lines = [
        f"Method {made.method}, {spelled(made.budget)}: "
        f"{len(made.columns)} modeled columns; widest (codes): {widest or 'none'}",
        f"{'stage':<28}{'share':>7}{'questions':>11}{'largest':>13}{'all cells':>15}{'error/cell':>12}",
    ]
    for stage in made.stages:
        error = "-"
        if stage.law is not None and stage.questions:
            error = f"{stage.law.mean_absolute:,.1f}"
            if expected:
                error = f"{100 * stage.law.mean_absolute / expected:.3g} %"
        lines.append(
            f"{stage.name:<28}{100 * float(stage.share):>6.0f}%{stage.questions:>11,}{stage.largest:>13,}"
            f"{stage.cells:>15,}{error:>12}"
        )
        if stage.note:
            lines.append(f"    {visible(stage.note)}")  # it may name columns
    unit = f"as a share of {expected:,} rows" if expected else "in records; add --expect-rows for shares"
    have = machine_memory()
    of = "" if have is None else f" of the {gigabytes(have)} this machine has"
    lines.append(f"Errors: mean absolute noise of a cell, {unit}. Memory: about {gigabytes(made.memory)}{of}.")
    reading = f"The table is read at most {made.passes} time{'s' * (made.passes != 1)}"
    if expected:
        reading += f"; counting about {expected:,} rows takes about {duration(made.counting_seconds(expected))}"
        reading += " (an estimate: from Parquet, on this machine's cores; text takes several times as long)"
    lines.append(reading + ".")
    lines += _rows_kept_lines(made, expected)
    if expected:
        verdict = made.verdict(expected)
        lines.append(
            f"Verdict with {expected:,} rows: {verdict.words} (noise of an average column: "
            f"{_percent(verdict.best)} to {_percent(verdict.worst)} % of the rows)."
        )
        if verdict.too_fine:
            shown = ", ".join(f"{visible(name)} ({size:,})" for name, size in verdict.too_fine[:5])
            more = f" and {len(verdict.too_fine) - 5} more" if len(verdict.too_fine) > 5 else ""
            lines.append(
                f"Too fine for so few rows (noise alone above a fifth of the rows; codes in brackets): {shown}{more}: "
                "give them wider bins or fewer categories, or leave them out (`margent schema edit S COLUMN` asks)."
            )
        if made.budget.delta * expected > 1:
            told = number(made.budget.delta)
            lines.append(
                f"Note: delta {told} is above 1/{expected:,}: a promise with so large a delta is kept even by a "
                "release that now and then shows a record as it is; take one far smaller."
            )
    if made.total_noise > MOST_NOISE:
        lines.append(f"Note: say --rows: the noisy number of records is off by about {made.total_noise:,.0f}.")
    lines.extend(f"Note: {advice}" for advice in made.budget.advice)
    return "\n".join(lines) + "\n"


def _rows_kept_lines(made: Plan, expected: int | None) -> list[str]:
    """Where a person is the unit: who that is, and each stage's noise if more or fewer rows of each were kept."""
    if not made.by_rows_kept:
        return []
    lines = [
        f"Protected: persons, at most {made.budget.person_rows} of whose rows are counted; the noise grows with that "
        "number. Error/cell if so many were kept:"
    ]
    for place, stage in enumerate(made.stages):
        if stage.law is None or not stage.questions:
            continue
        shown = []
        for count, stages in made.by_rows_kept:
            law = stages[place].law
            error = 0.0 if law is None else law.mean_absolute
            here = "*" if count == made.budget.person_rows else ""
            shown.append(f"{count}{here}: " + (f"{100 * error / expected:.3g} %" if expected else f"{error:,.1f}"))
        lines.append(f"    {stage.name:<26}{'   '.join(shown)}")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}"
