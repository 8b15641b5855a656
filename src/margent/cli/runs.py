"""`margent synthesize` and `margent resample`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.budget import rest_after
from margent.cli.console import logged_steps, say, say_json, shown_progress
from margent.cli.interrupts import resumable, state_beside
from margent.cli.options import (
    accountant_option,
    atoms_option,
    budget_file_of,
    budget_file_options,
    budget_of,
    delta_option,
    format_option,
    json_option,
    method_option,
    out_option,
    parts_option,
    people_option,
    read_options,
    reading_options,
    relation_option,
    rows_option,
    schema_option,
    seed_option,
    settings_of,
    settings_option,
    state_options,
    table_argument,
    verbose_option,
    whole_number,
)
from margent.errors import UsageError

if TYPE_CHECKING:
    from margent.privacy.budget_file import BudgetFile
    from margent.release.release import Release
    from margent.resume.state import RunState


@click.command(short_help="Make a synthetic table that may be published.")
@click.argument("table", type=table_argument)
@schema_option
@click.option(
    "--epsilon", default=None, metavar="E", help="The privacy budget; smaller protects more. Never defaulted."
)
@delta_option
@atoms_option
@accountant_option
@relation_option
@click.option("--single-release", is_flag=True, help="Promise for this release alone; no budget is kept across runs.")
@budget_file_options
@method_option
@settings_option
@rows_option
@seed_option
@format_option
@parts_option
@people_option
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse, before anything is spent, a table with malformed records or cells that the schema does not list. "
    "DATA-DEPENDENT: the refusal tells something of the rows that no budget pays for.",
)
@click.option(
    "--schema-types",
    is_flag=True,
    help="Write the schema's own column types even where a Parquet or Arrow TABLE declares others that fit.",
)
@reading_options
@state_options
@out_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress bars.")
@verbose_option
@click.pass_context
def synthesize(
    context: click.Context,
    table: str | Path,
    schema_path: Path,
    epsilon: str | None,
    delta: str | None,
    delta_for_atoms: str,
    accountant: str | None,
    relation: str | None,
    single_release: bool,
    budget_path: Path | None,
    data_set: str | None,
    method: str | None,
    settings: tuple[str, ...],
    rows: str | None,
    seed: str | None,
    file_format: str | None,
    rows_per_file: str | None,
    expect_people: str | None,
    strict: bool,
    schema_types: bool,
    delimiter: str | None,
    quote: str,
    encoding: str,
    no_header: bool,
    kind: str | None,
    query_is_row_wise: bool,
    state_folder: Path | None,
    resume: bool,
    pay_again: bool,
    out: Path,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Make a synthetic table of TABLE that may be published.

    An interrupted run (Ctrl-C, a crash, a power cut) leaves no partial output. What it had bought is kept: the same
    command with --resume goes on, and pays for no question twice unless its answer was lost.

    \b
    margent synthesize people.csv --schema schema.json --epsilon 1 --budget people.budget -o OUT/
    margent synthesize people.csv --schema schema.json --epsilon 1 --single-release -o OUT/
    margent synthesize people.csv --schema schema.json --epsilon 1 --budget people.budget -o OUT/ --resume
    margent synthesize "postgresql:?service=ward&table=public.stays" --schema schema.json --epsilon 1 ... -o OUT/
    """
    from margent.methods import DEFAULT_METHOD, method_named
    from margent.pipeline import checked_people, checked_rows, checked_seed
    from margent.pipeline import synthesize as run
    from margent.progress import logged
    from margent.release.folder import refuse_existing
    from margent.release.release import checked_format
    from margent.release.room import require_room
    from margent.resume.state import RunState
    from margent.schema.read import read_schema
    from margent.tables.options import kind_by_suffix

    if (budget_path is None) != single_release:
        raise UsageError(
            "say either --budget B, the file that keeps one budget for all releases about the same people (make it "
            "with `margent budget init`), or --single-release: then the promise counts this release alone, and every "
            "further run on the same people adds to it"
        )
    budget_file = budget_file_of(budget_path, data_set)
    budget = budget_of(epsilon, delta, accountant, relation, budget_file, delta_for_atoms)
    chosen, given = method_named(method or DEFAULT_METHOD), settings_of(settings)
    chosen.configured(given)
    count, sampling_seed = (
        checked_rows(whole_number(rows, "--rows")),
        checked_seed(whole_number(seed, "--seed")),
    )
    if file_format is not None:
        checked_format(file_format)
    file_rows = whole_number(rows_per_file, "--rows-per-file", least=1)
    people = checked_people(whole_number(expect_people, "--expect-people", least=1))
    if pay_again and not resume:
        raise UsageError("--pay-again goes with --resume: it is for a question whose answer an interruption lost")
    state = RunState(state_folder or state_beside(out), resume, pay_again)
    if resume and finished(state, out, as_json=as_json):
        return
    refuse_existing(out)
    state.require_usable()
    schema = read_schema(schema_path)
    if count is not None:
        require_room(out, schema, count, checked_format(file_format or kind or kind_by_suffix(str(table)) or "parquet"))
    shown = shown_progress(wanted=not (quiet or as_json or verbose))
    with resumable(state, budget, context.obj), logged_steps(wanted=verbose), shown as bars:
        progress = logged(bars)
        release = run(
            table,
            schema,
            budget=budget,
            budget_file=budget_file,
            method=chosen.name,
            settings=given,
            rows=count,
            seed=sampling_seed,
            read=replace(
                read_options(delimiter, quote, encoding, no_header, kind, query_is_row_wise),
                container_types=not schema_types,
            ),
            expect_people=people,
            strict=strict,
            state=state,
            progress=progress,
        )
        release.save(out, file_format=file_format, rows_per_file=file_rows, progress=progress)
    report(release, out, as_json=as_json, spent=True, budget_file=budget_file)
    if state.exists:
        say(f"{state.folder} could not be removed; it is not needed any more: delete it.", err=True)
    if strict:
        from margent.strict import PASSED

        say(f"DATA-DEPENDENT: {PASSED}.", err=True)


def finished(state: RunState, out: Path, *, as_json: bool) -> bool:
    """Whether the interrupted run had written all of OUT already: then only its state is left, and is removed."""
    from margent.errors import MargentError
    from margent.release.files import read_json
    from margent.release.measurements import read_measurements
    from margent.resume.told import run_of

    if not state.exists or not out.is_dir():
        return False
    try:
        same = read_measurements(out / "measurements").run == run_of(state)
        summary = read_json(out / "summary.json")
    except MargentError:
        return False
    if not same:
        return False
    state.remove()
    if as_json:
        say_json({"out": str(out)} | summary)
    else:
        say(f"{out}/ was complete already: the run had been interrupted after its last step. Nothing was charged.")
    return True


@click.command(short_help="Another table from the same noisy answers, free.")
@click.argument("release_folder", type=click.Path(path_type=Path), metavar="RELEASE")
@rows_option
@seed_option
@click.option("--synthesizer", default=None, metavar="Y", help="Build the table another way (see `margent methods`).")
@settings_option
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help='Only records with this value, label or LOW..HIGH, several parted by commas: --where "sex=F,age=30..39".',
)
@format_option
@parts_option
@out_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress bars.")
def resample(
    release_folder: Path,
    rows: str | None,
    seed: str | None,
    synthesizer: str | None,
    settings: tuple[str, ...],
    where: tuple[str, ...],
    file_format: str | None,
    rows_per_file: str | None,
    out: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw another table from a release's noisy answers. Free: no data is needed and nothing is spent.

    With the seed, rows, synthesizer and settings of the release (in its summary.json) the table is the same,
    byte for byte. With --where the records follow what the model holds given the condition; a condition that no
    record meets is refused.

    \b
    margent resample OUT/ -o OUT2/
    margent resample OUT/ --where "sex=F,region=North" --rows 1000 -o OUT3/
    """
    from margent.methods import synthesizer_named
    from margent.pipeline import checked_rows, checked_seed, from_transcript
    from margent.release.folder import refuse_existing
    from margent.release.reading import dialect_of, read_release, types_of
    from margent.release.release import checked_format
    from margent.settings import require_known

    count, sampling_seed = (
        checked_rows(whole_number(rows, "--rows")),
        checked_seed(whole_number(seed, "--seed")),
    )
    given = settings_of(settings)
    if file_format is not None:
        checked_format(file_format)
    file_rows = whole_number(rows_per_file, "--rows-per-file", least=1)
    refuse_existing(out)
    transcript, budget, summary = read_release(release_folder)
    own = summary["settings"] if synthesizer in (None, summary["synthesizer"]) else {}
    chosen = synthesizer_named(synthesizer or summary["synthesizer"])
    require_known(given, [(chosen.name, chosen)])
    with shown_progress(wanted=not quiet and not as_json) as progress:
        release = from_transcript(
            transcript,
            budget=budget,
            synthesizer=chosen.name,
            settings=own | given,
            rows=count,
            where=where,
            seed=sampling_seed,
            kind=summary["format"],
            dialect=dialect_of(summary),
            declared=types_of(summary),
            progress=progress,
        )
        release.save(out, file_format=file_format, rows_per_file=file_rows, progress=progress)
    report(release, out, as_json=as_json, spent=False)


def report(release: Release, out: Path, *, as_json: bool, spent: bool, budget_file: BudgetFile | None = None) -> None:
    """Say at the end of a run who is protected, what was spent, what may be published and what to do next.

    Privacy: synthetic against noisy only; nothing here was computed from rows without a charge.
    """
    from margent.release.promise import (
        IF_NOT_GOOD_ENOUGH,
        SINGLE_RELEASE,
        schema_warnings,
        what_a_row_is,
        what_epsilon_means,
        what_may_be_published,
        what_was_asked_for,
        what_was_coarsened,
        what_was_spent,
        who_is_protected,
    )

    summary = release.summary
    if as_json:
        kept = {} if budget_file is None else {"budgetFile": rest_after(budget_file)}
        say_json({"out": str(out)} | summary | kept)
        return
    mean = 100 * summary["oneWays"]["meanDistance"]
    noise = [entry["noiseAlone"] for entry in summary["oneWays"]["columns"]]
    say(f"{release.rows:,} synthetic rows are in {out}/ (page: {out / 'release.html'})")
    say(who_is_protected(release.transcript.schema, release.budget, release.transcript.selected))
    if release.transcript.schema.person_rows is not None and spent:
        say("So fewer rows may be counted than there are; `margent resample` with --rows writes as many as you like.")
    for sentence in what_a_row_is(release.transcript):
        say(sentence)
    say(what_epsilon_means(release.transcript.schema.unit, release.budget))
    if spent:
        say(what_was_spent(release.transcript, release.budget))
        say(SINGLE_RELEASE if budget_file is None else rest_after(budget_file))
    else:
        say("Spent: nothing; this table comes from the noisy answers of the earlier release.")
    for sentence in what_was_asked_for(release.where):
        say(sentence)
    if noise:
        say(
            f"Close to the noisy answers: single columns differ from them by {mean:.2f} % of the records on "
            f"average; the noise itself accounts for about {100 * sum(noise) / len(noise):.2f} %."
        )
    if coarsened := what_was_coarsened(summary):
        say(coarsened)
    say(what_may_be_published(f"{out}/"))
    for warning in schema_warnings(summary):
        say(f"Warning: {warning}.")
    for advice in release.budget.advice:
        say(f"Note: {advice}")
    say(IF_NOT_GOOD_ENOUGH)
