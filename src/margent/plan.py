"""What a run would buy, cost and need, from schema and options alone: it reads no data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from margent.collectors.purchases import purchases_of, rest_of, shared_out
from margent.collectors.stage import Stage, widest_law
from margent.cost import counting_seconds, memory_bytes, passes
from margent.counts.capacity import TEXT_BYTES, contribution_bytes
from margent.counts.kernel import MAX_CELLS
from margent.errors import PlanError
from margent.fitting import Fitting, listed
from margent.machine import machine_memory
from margent.methods import DEFAULT_METHOD, Method, method_named
from margent.privacy.budget import Budget
from margent.privacy.noise import require_drawable
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.fields import PersonUnit, Schema
from margent.schema.settled import open_columns, planned
from margent.synthesizers.blocks import memory_of

MOST_NOISE = 1e6
"""Records by which the noisy number of records may be off where nobody says how many rows to write."""

ROWS_KEPT = (1, 2, 4, 8)
"""Rows kept of each person whose noise a plan compares."""

MEMORY_SHARE = 0.9
"""Of the machine's memory, what a plan may take."""

COARSE = 0.2
"""Share of the records above which the noise of a single column drowns all but its common values."""

VERDICTS = (
    (0.01, "good: single columns will be close to exact"),
    (0.05, "usable: single columns will be right to a few percent"),
    (COARSE, "coarse: only common values of single columns will be right"),
    (math.inf, "mostly noise: raise epsilon, drop columns, or use much coarser bins"),
)
"""What the noise of an average column, as a share of the records, means in words."""


@dataclass(frozen=True)
class Verdict:
    """What noise does to an average single column, from ``best`` to ``worst``, and the columns it would drown.

    Units: expected total variation between true and noisy one-way table, a share of the records: half of
    a cell's mean absolute noise times its cells. ``worst``: from the first answers alone; ``best``: had the whole
    budget gone into single columns.
    """

    best: float
    worst: float
    words: str
    too_fine: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Plan:
    """The stages of a run and what they need; a function of schema and options.

    ``by_rows_kept``: where the unit is a person, the stages if so many rows of each were kept. ``passes``: how often
    the table is read at most. ``narrow``: why the synthesizer might refuse what is bought. ``remedies`` looks for
    changes that would make the plan fit, where it does not.

    Units: ``memory`` in bytes; stages in shares of the budget, cells, and records squared.
    Privacy: none: no data is read.
    """

    method: str
    budget: Budget
    columns: tuple[tuple[str, int], ...]
    stages: tuple[Stage, ...]
    memory: int
    rows: int | None
    by_rows_kept: tuple[tuple[int, tuple[Stage, ...]], ...] = ()
    passes: int = 0
    narrow: str | None = None
    remedies: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def largest(self) -> int:
        """Cells of the largest table that could be counted."""
        return max((stage.largest for stage in self.stages), default=0)

    def require_fits(self) -> None:
        """Refuse a plan over the cap of one table, over this machine's memory, or of noise wider than 64-bit counts.

        So that nothing is refused after a budget was charged, each is asked of the worst that a run could need.

        Raises: PlanError with the sizes and what would make it fit.
        """
        for stage in self.stages:
            law = widest_law(stage, self.budget)
            if law is not None and self.largest <= MAX_CELLS:
                require_drawable(law)
        if (reason := self.refusal()) is not None:
            found = listed(self.remedies())
            raise PlanError(f"{reason}; {found or 'give the widest columns fewer codes, or role drop'}")

    def refusal(self) -> str | None:
        """Why the plan's tables do not fit, with the sizes; None where they do.

        Privacy: none: public facts, and this machine's memory.
        """
        if self.largest > MAX_CELLS:
            wide = ", ".join(f"{name!r} ({size} codes)" for name, size in self.widest())
            return (
                f"a table of {self.largest:,} cells would be needed, and the cap is {MAX_CELLS:,}; "
                f"the widest columns are {wide}"
            )
        if self.narrow is not None:
            return self.narrow
        have = machine_memory()
        if have is not None and self.memory > MEMORY_SHARE * have:
            return (
                f"the plan needs about {gigabytes(self.memory)} of memory, and this machine (or container) has "
                f"{gigabytes(have)}, of which {MEMORY_SHARE:.0%} may be planned with"
            )
        return None

    def require_known_rows(self) -> None:
        """Refuse to write as many rows as the noisy answers say where they say next to nothing about it.

        Raises: PlanError with the noise and the next step.
        """
        if self.rows is None and self.total_noise > MOST_NOISE:
            raise PlanError(
                f"with so small an epsilon the noisy number of records is off by about {self.total_noise:,.0f}, and so "
                "many rows would be written: say how many you want (--rows, from public knowledge), or raise epsilon"
            )

    @property
    def total_noise(self) -> float:
        """Standard deviation of the noisy number of records after the first tables.

        Units: records; each table's total has (cells) times the variance of one, and totals are weighted by precision.
        """
        sizes = dict(self.columns)
        precision = 0.0
        for stage in self.stages:
            if stage.total is not None:
                precision += 1 / stage.total
            else:
                precision += sum(1 / (sizes[name] * float(law.variance)) for name, law in stage.columns)
        if precision == 0 and (table := self._first_table) is not None:
            return math.sqrt(table.largest * _variance(table))
        return 0.0 if precision == 0 else math.sqrt(1 / precision)

    @property
    def _first_table(self) -> Stage | None:
        """The first stage that buys tables, for plans that buy none of single columns."""
        return next((stage for stage in self.stages if stage.law is not None and not stage.scores), None)

    def counting_seconds(self, rows: int) -> float:
        """About how long counting about so many rows takes (`margent.cost.counting_seconds`)."""
        return counting_seconds(self.stages, len(self.columns), rows)

    def widest(self, count: int = 3) -> tuple[tuple[str, int], ...]:
        """The columns with most codes."""
        return tuple(sorted(self.columns, key=lambda column: (-column[1], column[0]))[:count])

    def verdict(self, expected_rows: int) -> Verdict:
        """What the noise would do to single columns of a table of about so many rows, and what to change.

        Privacy: none: public facts.
        """
        one_way = next((stage for stage in self.stages if stage.columns), self._first_table)
        sizes = [(name, size) for name, size in self.columns if size > 1]
        if one_way is None or not sizes:
            return Verdict(0.0, 0.0, "there is nothing to measure: every column has one possible value", ())
        if one_way.columns:
            laws = dict(one_way.columns)
            noise = [laws[name].mean_absolute * size for name, size in sizes]
        else:  # a code's count is the sum of many cells of a larger table
            noise = [math.sqrt(2 / math.pi * one_way.largest * size * _variance(one_way)) for _, size in sizes]
        first = [0.5 * each / max(expected_rows, 1) for each in noise]
        # The later stages tell more about single columns too: at best as if the whole budget had bought them.
        best = [error * float(one_way.share) ** (1 / self.budget.account.scale_power) for error in first]
        middle = sum(min(1.0, math.sqrt(low * high)) for low, high in zip(best, first, strict=True)) / len(sizes)
        too_fine = [column for column, error in zip(sizes, best, strict=True) if error > COARSE]
        return Verdict(
            sum(min(1.0, error) for error in best) / len(sizes),
            sum(min(1.0, error) for error in first) / len(sizes),
            next(words for limit, words in VERDICTS if middle < limit),
            tuple(sorted(too_fine, key=lambda column: -column[1])),
        )

    def to_json(self, expected_rows: int | None = None) -> dict[str, Any]:
        """The plan as JSON, for a program."""
        document: dict[str, Any] = {
            "method": self.method,
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta),
            "deltaForAtoms": str(self.budget.delta_for_atoms),
            "accountant": self.budget.accountant,
            "relation": self.budget.relation,
            "total": float(self.budget.total),
            "columns": [{"name": name, "codes": size} for name, size in self.columns],
            "stages": [_stage_to_json(stage, expected_rows) for stage in self.stages],
            "memoryBytes": self.memory,
            "machineMemoryBytes": machine_memory(),
            "passes": self.passes,
        }
        if self.by_rows_kept:
            document["personRows"] = self.budget.person_rows
            document["byRowsKept"] = [
                {"maxRows": count, "stages": [_stage_to_json(stage, expected_rows) for stage in stages]}
                for count, stages in self.by_rows_kept
            ]
        if expected_rows is not None:
            verdict = self.verdict(expected_rows)
            document["expectedRows"] = expected_rows
            document["countingSeconds"] = self.counting_seconds(expected_rows)
            document["verdict"] = {
                "oneWayErrorFrom": verdict.best,
                "oneWayErrorTo": verdict.worst,
                "words": verdict.words,
                "tooFine": [name for name, _ in verdict.too_fine],
            }
        return document


def make_plan(
    schema: Schema,
    budget: Budget,
    method: Method | str = DEFAULT_METHOD,
    rows: int | None = None,
    people: int | None = None,
) -> Plan:
    """Plan a run of ``method``, or the one of that name, on any table of this schema.

    Units: ``rows`` to be written, and about so many ``people`` where they are the unit.

    Privacy: none: no data is read.
    Raises: UsageError where the budget's relation does not go with the schema's unit, no method has the name, or the
        method cannot run on these terms; PlanError where its tables are over its own caps.
    """
    method = method_named(method) if isinstance(method, str) else method
    budget = budget.protecting(schema.person_rows)

    def planned_on(domain: Domain, method: Method, rows: int | None) -> Plan:
        return _plan(schema, domain, budget, method, rows, people)

    domain = Codec(planned(schema)).domain
    return replace(planned_on(domain, method, rows), remedies=Fitting(domain, method, rows, planned_on).remedies)


def _plan(schema: Schema, domain: Domain, budget: Budget, method: Method, rows: int | None, people: int | None) -> Plan:
    """The plan on a domain, which may be coarser than the schema's."""
    stages = _stages(schema, domain, budget, method)
    memory = method.memory + memory_bytes(stages, len(domain.names)) + memory_of(rows or 0, len(domain.names))
    looks = passes(stages)
    if open_columns(schema):
        memory += TEXT_BYTES
    by_rows_kept: list[tuple[int, tuple[Stage, ...]]] = []
    if isinstance(schema.unit, PersonUnit):
        memory += contribution_bytes(people)
        looks += 1  # to settle whose rows count
        for count in sorted({*ROWS_KEPT, schema.unit.max_rows}):
            by_rows_kept.append((count, _stages(schema, domain, replace(budget, person_rows=count), method)))
    return Plan(
        by_rows_kept=tuple(by_rows_kept),
        method=method.name,
        budget=budget,
        columns=tuple(zip(domain.names, domain.sizes, strict=True)),
        stages=stages,
        memory=memory,
        rows=rows,
        passes=looks,
        narrow=method.refusal(domain),
    )


def _stages(schema: Schema, domain: Domain, budget: Budget, method: Method) -> tuple[Stage, ...]:
    """What the schema has bought first, then the method's stages."""
    purchases = purchases_of(schema, budget)
    return shared_out(method.collector.stages(domain, rest_of(budget, purchases.share)), purchases)


def gigabytes(count: int) -> str:
    """Bytes as a person reads them.

    >>> gigabytes(3 * 2**29)
    '1.5 GiB'
    """
    return f"{count / 2**30:,.1f} GiB"


def _variance(stage: Stage) -> float:
    return 0.0 if stage.law is None else float(stage.law.variance)


def _stage_to_json(stage: Stage, expected_rows: int | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": stage.name,
        "share": float(stage.share),
        "questions": stage.questions,
        "largestTableCells": stage.largest,
        "cells": stage.cells,
        "note": stage.note,
    }
    if stage.law is not None:
        document["noise"] = stage.law.mechanism
        document["cellErrorRecords"] = stage.law.mean_absolute
        if expected_rows:
            document["cellErrorShare"] = document["cellErrorRecords"] / expected_rows
    return document
