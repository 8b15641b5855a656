"""The whole flow: a private table and a public schema in, a synthetic table out.

A release is a function of a public schema and a list of noisy answers; privacy is spent only to make that
list. It is spent in two lines of `measure`, marked below. Everything in `from_transcript` is free.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from margent.collectors.purchases import purchases_of, rest_of
from margent.conditions import drawn_under, read_conditions
from margent.counts.capacity import KEPT_CELLS
from margent.counts.engines import PersonRows, counts_of, kept_rows, texts_of
from margent.counts.source import Batches
from margent.errors import UsageError
from margent.methods import DEFAULT_METHOD, Method, method_named, synthesizer_named
from margent.plan import Plan, make_plan
from margent.privacy.budget import Budget
from margent.privacy.budget_file import BudgetFile
from margent.privacy.curator import NO_PUBLIC_NUMBER, DataCurator
from margent.privacy.ledger import Ledger, require_paid
from margent.privacy.merchant import DataMerchant
from margent.progress import Progress, silent
from margent.release.release import Release
from margent.resume.facts import facts_of
from margent.resume.state import RunState, Spending, kept
from margent.schema.codec import Codec
from margent.schema.fields import Schema
from margent.schema.settled import columns_on_grids, grid_schema, readable, settled
from margent.settings import NO_SETTINGS, Settings, configured
from margent.strict import require_listed
from margent.synthesizers.blocks import HeldRecords, Records, records_of
from margent.tables.options import ReadOptions
from margent.tables.source import open_table
from margent.transcript import Transcript

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 10**11
MOST_PEOPLE = 2**36
MOST_ROWS_UNASKED = 10**8
"""Where nobody says how many rows to write, the noisy number of records, but never more than this."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What was bought, and the kind of table it was bought from (so that the same kind can be written).

    ``budget`` is what the release states: the run's, and what was paid again for answers that an interruption lost.
    """

    transcript: Transcript
    budget: Budget
    kind: str
    dialect: ReadOptions
    declared: pa.Schema | None = None


def synthesize(
    table: str | Path | object,
    schema: Schema,
    *,
    budget: Budget,
    budget_file: BudgetFile | None = None,
    method: str = DEFAULT_METHOD,
    settings: Settings = NO_SETTINGS,
    rows: int | None = None,
    seed: int | None = None,
    read: ReadOptions | None = None,
    expect_people: int | None = None,
    strict: bool = False,
    state: RunState | None = None,
    progress: Progress = silent,
) -> Release:
    """Spend ``budget`` on noisy answers about ``table`` and make a synthetic table that agrees with them.

    ``table`` is a path (CSV, TSV, Parquet, Feather, or a folder of such files), the address of a table in a database
    (``duckdb:FILE?table=T``, ``postgresql://HOST/DATABASE?table=S.T``), a table of Spark (a DataFrame, or a name such
    as ``spark:parquet:PATH``) or any object with the Arrow stream interface (pandas, polars, pyarrow, DuckDB).
    ``budget_file`` keeps the sum over all releases about the same people; without
    one the promise counts this release alone. ``settings`` are the method's, by name, as text (`margent methods`).
    ``rows`` defaults to the noisy number of records; ``seed`` (default: a
    fresh random one) governs sampling only and never the privacy noise. Where the schema's unit is a person,
    ``expect_people`` (about how many there are, from public knowledge; default a million) sizes what is held in
    memory. ``strict`` refuses a table with malformed records or cells that the schema does not list, before the charge:
    that refusal, and its absence, depend on the rows and are outside of the promise. ``state`` keeps charges and noisy
    answers on disk, so that an interrupted run can be resumed, until the release is saved (`margent.RunState`).

    Shapes: the release has ``rows`` records and every output column of the schema.
    Privacy: the release is (epsilon, delta)-differentially private for the schema's unit; the charges are in it. All
    releases under a budget file together keep the (epsilon, delta) declared there.
    Raises: UsageError, SchemaError, TableError, BudgetError, PlanError, each before anything is charged; TableError too
        where the rows cannot be read to their end: what was charged stays spent.
    """
    seed, rows = checked_seed(seed), checked_rows(rows)
    measured = measure(
        table,
        schema,
        budget=budget,
        budget_file=budget_file,
        method=method,
        settings=settings,
        rows=rows,
        read=read,
        expect_people=expect_people,
        strict=strict,
        state=state,
        writing=True,
        progress=progress,
    )
    release = from_transcript(
        measured.transcript,
        budget=measured.budget,
        synthesizer=method_named(method).synthesizer.name,
        settings=settings,
        rows=rows,
        seed=seed,
        kind=measured.kind,
        dialect=measured.dialect,
        declared=measured.declared,
        progress=progress,
    )
    return replace(release, state=state)


def measure(
    table: str | Path | object,
    schema: Schema,
    *,
    budget: Budget,
    budget_file: BudgetFile | None = None,
    method: str = DEFAULT_METHOD,
    settings: Settings = NO_SETTINGS,
    rows: int | None = None,
    read: ReadOptions | None = None,
    expect_people: int | None = None,
    strict: bool = False,
    state: RunState | None = None,
    spending: Spending | None = None,
    writing: bool = False,
    progress: Progress = silent,
) -> Measured:
    """The half of `synthesize` that spends: ask the method's questions and return the noisy answers.

    ``spending`` is told before anything is reserved or charged. ``writing``: records follow, as many as the answers
    say where ``rows`` is None, which is refused where noise would say it.

    Privacy: the transcript is (epsilon, delta)-differentially private for the schema's unit.
    Raises: as `synthesize`.
    """
    chosen, read = method_named(method).configured(settings), read or ReadOptions()
    plan = _checked_plan(schema, budget, chosen, rows, expect_people)
    if writing:
        plan.require_known_rows()
    budget = plan.budget
    budget_file = _named(budget_file)
    data_set = None if budget_file is None else budget_file.data_set
    with (
        open_table(table, schema, read) as source,
        kept(state, facts_of(schema, budget, method, settings, read, data_set, source), table, spending) as run,
    ):
        selected = source.from_query or source.filtered
        if selected and chosen.told_records:
            raise UsageError(f"method {method!r}, setting records: {NO_PUBLIC_NUMBER}")
        persons = kept_rows(source, schema, expect_people, read.spool_folder)
        rows_counted = source if persons is None else persons
        purchases = purchases_of(schema, budget)
        if strict:
            progress("checking rows", None)
            require_listed(source, Codec(readable(schema)))  # by request only: the one refusal that depends on rows
        run.reserve(budget_file, budget, schema.unit)  # all of it, on disk, before the first look
        ledger = run.ledger(budget)
        # Privacy is spent here, where the schema has bins or values bought,
        merchant = run.merchant(_merchant(schema, rows_counted, persons, ledger, progress), budget)
        bought = purchases.buy(merchant) if purchases.stage else ()
        fixed = settled(schema, bought)
        exact = counts_of(rows_counted, fixed, KEPT_CELLS)
        curator = DataCurator(fixed, exact, ledger, progress=progress, selected=selected)
        # and here; nowhere else.
        transcript = chosen.collector.collect(run.curator(curator), rest_of(budget, purchases.share))
        if bought:
            transcript = replace(transcript, declared=schema, answers=(*bought, *transcript.answers))
        declared = source.declared if read.container_types else None
        transcript = replace(transcript, run=run.run, from_query=source.from_query, filtered=source.filtered)
        return Measured(transcript, run.paid(budget), source.kind, read, declared)


def from_transcript(
    transcript: Transcript,
    *,
    budget: Budget,
    synthesizer: str,
    settings: Settings = NO_SETTINGS,
    rows: int | None = None,
    where: Sequence[str] = (),
    seed: int | None = None,
    kind: str = "csv",
    dialect: ReadOptions | None = None,
    declared: pa.Schema | None = None,
    progress: Progress = silent,
) -> Release:
    """Make a synthetic table from noisy answers alone; the same transcript, rows and seed give the same bytes.

    ``declared`` are column types to follow in a Parquet or Arrow file (`margent.schema.stored`).

    Privacy: none: post-processing. ``budget`` is what the release states, so it must be one that paid for the answers.
    Of ``settings`` those of the synthesizer count. ``where`` asks for records that meet conditions, such as ``sex=F``
    or ``age=30..39`` (`margent.conditions`); there are then as many as the model's table holds, or ``rows``.
    Raises: UsageError when rows, seed, the synthesizer's name or a condition is off; BudgetError when the answers were
        priced on other terms or cost more than ``budget``.
    """
    seed, rows = checked_seed(seed), checked_rows(rows)
    budget = budget.protecting(transcript.schema.person_rows)
    require_paid(transcript, budget)
    conditions = read_conditions(where, Codec(transcript.schema)) if where else None
    model = configured(synthesizer_named(synthesizer), settings).build(transcript, progress)
    records: Records
    if conditions is None:
        count = min(model.total, MOST_ROWS_UNASKED) if rows is None else rows
        records = records_of(model, count, seed, progress)
    else:
        records = HeldRecords(drawn_under(conditions, model, rows, seed, progress), seed)
    return Release(
        transcript=transcript,
        budget=budget,
        synthesizer=synthesizer,
        settings=settings,
        where=() if conditions is None else conditions.words,
        records=records,
        seed=seed,
        kind=kind,
        dialect=dialect or ReadOptions(),
        declared=declared,
    )


def _merchant(
    schema: Schema, rows: Batches, persons: PersonRows | None, ledger: Ledger, progress: Progress
) -> DataMerchant:
    """Who sells bins, values and how many rows persons have, from the same rows."""
    grids = counts_of(rows, grid_schema(schema)) if columns_on_grids(schema) else None
    return DataMerchant(grids, texts_of(rows, schema), ledger, persons=persons, progress=progress)


def _checked_plan(
    schema: Schema, budget: Budget, chosen: Method, rows: int | None, expect_people: int | None = None
) -> Plan:
    """The plan of a run that could be started: everything that schema and options alone can forbid is refused."""
    chosen.require_package()
    _require_kinds(schema, budget)
    plan = make_plan(schema, budget, chosen, rows, checked_people(expect_people))
    plan.require_fits()
    return plan


def _require_kinds(schema: object, budget: object) -> None:
    """Refuse what is easily given instead of a schema or a budget, with the way to make one."""
    if not isinstance(schema, Schema):
        raise UsageError(
            f"schema must be a Schema, not {type(schema).__name__}: read a schema file with margent.read_schema(path)"
        )
    if not isinstance(budget, Budget):
        raise UsageError(f"budget must be a Budget, not {type(budget).__name__}: margent.Budget(epsilon=1)")


def _named(budget_file: BudgetFile | None) -> BudgetFile | None:
    """The budget file with its data set's name; what is easily given instead of one is refused, with the next step."""
    if budget_file is not None and not isinstance(budget_file, BudgetFile):
        raise UsageError(
            f"budget_file must be a BudgetFile, not {type(budget_file).__name__}: margent.BudgetFile('people.budget')"
        )
    return None if budget_file is None else budget_file.named()


def checked_rows(rows: int | None) -> int | None:
    """Return a number of output rows that makes sense, or None for the noisy total.

    Privacy: none.
    Raises: UsageError when it is not a whole number in 0 .. 10^11.
    """
    if rows is None:
        return None
    if not _is_whole(rows, 0, MAX_ROWS):
        raise UsageError(f"rows must be a whole number from 0 to {MAX_ROWS:,}; leave it out for the noisy total")
    return rows


def checked_people(people: int | None) -> int | None:
    """Return a number of persons that makes sense, or None for the default.

    Privacy: none.
    Raises: UsageError when it is not a whole number in 1 .. 2^36.
    """
    if people is None:
        return None
    if not _is_whole(people, 1, MOST_PEOPLE):
        raise UsageError(f"expect_people must be a whole number from 1 to {MOST_PEOPLE}: about how many there are")
    return people


def checked_seed(seed: int | None) -> int:
    """Return the seed, or a fresh one: it governs sampling only and is published with the release.

    Privacy: none: no seed reaches the privacy noise.
    Raises: UsageError when it is not a whole number in 0 .. 2^63 - 1.
    """
    if seed is None:
        return secrets.randbelow(2**53)
    if not _is_whole(seed, 0, 2**63 - 1):
        raise UsageError("seed must be a whole number from 0 to 2^63 - 1")
    return seed


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
