"""What a run costs beside privacy: passes over the table, memory, and about how long counting takes.

All of it follows from schema, options and the machine; nothing is read. The factors were measured by
``bench/scale.py``; what they say about a machine that nobody measured is an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

from margent.collectors.stage import Stage
from margent.counts.capacity import KEPT_CELLS, counting_bytes
from margent.machine import threads
from margent.privacy.curator import CELLS_AT_ONCE

BASE_BYTES = 350 * 2**20
"""What the libraries and the compiled code take before the first cell."""
BYTES_PER_CELL = 40
"""Exact counts, a block's counts, noise bits, noise and their sum: five 8-byte integers a cell."""
BYTES_PER_TABLE = 1600
"""What is written down of each table beside its cells: its columns, charge and answer, and a synthesizer's notes."""
BYTES_PER_SCORE = 3500
"""What a collector holds of each score while it divides its budget: expected counts, variances and slopes."""

READ_SECONDS = 15e-9
"""To read and code a cell of a column, from Parquet; of text, five to ten times as much."""
COUNT_SECONDS = 0.8e-9
"""To count a row in one table."""
CELL_SECONDS = 250e-9
"""To make the answer of a cell: exact count, noise, sum."""


def passes(stages: Sequence[Stage]) -> int:
    """How often the table is read, at most: once a stage, unless its tables are kept or do not fit all at once.

    Privacy: none: public facts.

    >>> from fractions import Fraction
    >>> first = Stage("one-ways", Fraction(1, 2), 3, 20, 40, None)
    >>> passes([first, Stage("the same again", Fraction(1, 2), 3, 20, 40, None, new=0)])
    1
    """
    found, asked = 0, 0
    for stage in stages:
        asked += stage.cells if stage.new else 0
        looks = stage.new if asked <= KEPT_CELLS else stage.looks
        found += looks + _further_groups(stage)
    return found


def _further_groups(stage: Stage) -> int:
    """Passes beyond the first that a stage's tables need, as they are not all in memory at once."""
    if stage.cells <= CELLS_AT_ONCE:
        return 0
    # Two groups next to each other hold more than fits, and so does a group with the next table.
    room = max(CELLS_AT_ONCE - stage.largest, CELLS_AT_ONCE // 2)
    return min(stage.questions if not stage.scores else stage.cells, stage.cells // room)


def memory_bytes(stages: Sequence[Stage], columns: int) -> int:
    """Memory of counting, and of the tables that are held, answered and kept.

    Units: bytes.
    Privacy: none: public facts.
    """
    held = max((min(stage.cells, max(CELLS_AT_ONCE, stage.largest)) for stage in stages), default=0)
    kept = min(sum(stage.cells for stage in stages if stage.new), KEPT_CELLS)
    answers = sum(stage.questions if stage.scores else stage.cells for stage in stages)
    tables = sum(stage.questions for stage in stages if not stage.scores)
    scores = max((stage.questions for stage in stages if stage.scores), default=0)
    return (
        BASE_BYTES
        + counting_bytes(columns, threads())
        + BYTES_PER_CELL * held
        + 8 * kept
        + 8 * min(answers, 2**40)
        + BYTES_PER_TABLE * min(tables, 2**32)
        + BYTES_PER_SCORE * min(scores, 2**32)
    )


def counting_seconds(stages: Sequence[Stage], columns: int, rows: int) -> float:
    """About how long it takes to count and answer everything of ``rows`` records, on the threads there are.

    t = passes (a rows columns) / threads + sum over stages (b rows tables) / threads + c cells. A stage that asks
    scores counts one table a score, and is not told how many tables a choice is made among: these take longer.

    Units: seconds; an estimate, from Parquet, on a machine like the one that was measured.
    Privacy: none: public facts.
    """
    reading = READ_SECONDS * passes(stages) * rows * columns
    counting = COUNT_SECONDS * rows * sum(stage.questions for stage in stages if stage.new)
    answering = CELL_SECONDS * sum(stage.cells for stage in stages)
    return (reading + counting) / threads() + answering


def duration(seconds: float) -> str:
    """A time as a person reads it.

    >>> duration(0.2), duration(50), duration(400), duration(9000), duration(400_000)
    ('a second', '50 seconds', '7 minutes', '2.5 hours', '4.6 days')
    """
    if seconds < 100:
        return "a second" if seconds < 1.5 else f"{seconds:.0f} seconds"
    if seconds < 6000:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86400 else f"{seconds / 86400:.1f} days"
