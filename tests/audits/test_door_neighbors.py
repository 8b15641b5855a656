"""Neighbors by the million, at the door: whatever the rows are, what leaves the curator differs in its answers alone.

All that looks at rows is run: reading, keeping k rows of each person, coding, counting, scoring. What follows is a
function of noisy answers (replay without data), and is held against neighbors more slowly in `test_tiny_neighbors`.
A table comes with every choice of six odd records, or odd persons: of these 64 tables each is compared with all those
that have one more, which are 192 pairs of neighbors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Budget
from margent.counts import capacity
from margent.counts.engines import kept_rows
from margent.counts.source import StreamedCounts
from margent.errors import MargentError
from margent.privacy import curator as door
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.queries import marginal_law, score_law
from margent.privacy.requests import MarginalRequest, ScoreRequest
from margent.schema.codec import Codec
from margent.schema.fields import Schema
from margent.tables.source import open_table
from tests.audits.test_tiny_neighbors import SCHEMAS, drawn_row, pinned, table_of
from tests.sizes import rounds

ODD_UNITS = 6
PAIRS_OF_A_FAMILY = ODD_UNITS * 2 ** (ODD_UNITS - 1)
KEPT_CELLS = 10_000


@dataclass(frozen=True)
class Questions:
    """What is asked of every table of a schema, priced once."""

    schema: Schema
    codec: Codec
    budget: Budget
    marginals: tuple[MarginalRequest, ...]
    scores: ScoreRequest

    @staticmethod
    def of(schema: Schema) -> Questions:
        budget = Budget(1000, "1e-6").protecting(schema.person_rows)
        law = marginal_law(Fraction(1), budget.neighbors, budget.account)
        names = Codec(schema).domain.names
        # Every column is asked for, alone or with another, and one of them both ways.
        cliques = [names[:1], *(names[place : place + 2] for place in range(0, len(names), 2))]
        return Questions(
            schema,
            Codec(schema),
            budget,
            tuple(MarginalRequest(clique, law) for clique in cliques),
            ScoreRequest("indif", (names[:2],), score_law("indif", 1, Fraction(1), budget.neighbors, budget.account)),
        )


def still(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    """Noise that is 0: `pinned` holds its shape against the exact table's, and nothing else of it is used."""
    return np.zeros(count, dtype=np.int64)


def left_the_door(table: object, asked: Questions) -> object:
    """Answers with their charges, or the error's class and words."""
    try:
        with open_table(table, asked.schema) as source:
            rows = kept_rows(source, asked.schema, 1, None) or source
            counts = StreamedCounts(rows, asked.codec, kept_cells=KEPT_CELLS, threads=1)
            curator = DataCurator(asked.schema, counts, Ledger(asked.budget), noise=still)
            answers = curator.measure(asked.marginals, label="tables")
            scores = curator.scores(asked.scores, label="pairs")
    except MargentError as refusal:
        return type(refusal), str(refusal)
    given = [(each.clique, each.counts.tobytes(), each.counts.dtype, each.variance, each.charge) for each in answers]
    return given, (scores.values.tobytes(), scores.variance), curator.charges


def told_apart(pairs: int, folder: Path, seed: int) -> list[tuple[int, int, int]]:
    """Numbers of families of tables, and of two neighbors in each, that anything but the answers tells apart."""
    asked = [Questions.of(schema) for schema in SCHEMAS]
    found: list[tuple[int, int, int]] = []
    for number in range(-(-pairs // PAIRS_OF_A_FAMILY)):
        rng = np.random.default_rng([seed, number])
        schema = SCHEMAS[number % len(SCHEMAS)]
        questions, form = asked[number % len(SCHEMAS)], number // len(SCHEMAS) % 2
        seen = [left_the_door(table_of(rows, schema, folder, form), questions) for rows in family(rng, schema)]
        for one in range(len(seen)):
            for odd in range(ODD_UNITS):
                other = one | 1 << odd
                if other != one and seen[one] != seen[other]:
                    found.append((number, one, other))
    return found


def odd_unit(rng: np.random.Generator, schema: Schema, name: str) -> list[list[str]]:
    """An odd record, or the odd records of a person with a new name."""
    if schema.unit == "row":
        return [drawn_row(rng, schema, odd=True)]
    return [[name, *drawn_row(rng, schema, odd=True)[1:]] for _ in range(int(rng.integers(1, 6)))]


def family(rng: np.random.Generator, schema: Schema) -> list[list[list[str]]]:
    """A table of up to a dozen rows with every choice of the odd units: at each place those of its number's bits."""
    rows = [drawn_row(rng, schema, odd=rng.random() < 0.3) for _ in range(int(rng.integers(0, 13)))]
    units = [odd_unit(rng, schema, f"new {number}") for number in range(ODD_UNITS)]
    places = sorted(int(rng.integers(0, len(rows) + 1)) for _ in units)
    tables = []
    for chosen in range(2**ODD_UNITS):
        table, done = [], 0
        for number, (place, unit) in enumerate(zip(places, units, strict=True)):
            table += rows[done:place] + (unit if chosen >> number & 1 else [])
            done = place
        tables.append(table + rows[done:])
    return tables


@pytest.fixture(autouse=True)
def tables_of_few_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time would go into clearing tables for a hundred thousand persons, of whom a dozen come."""
    monkeypatch.setattr(capacity, "LEAST_PEOPLE", 1)


@pytest.mark.parametrize("tenth", range(10))
def test_nothing_but_the_answers_leaves_the_door(tenth: int, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_checked_sum", pinned)
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    assert told_apart(rounds(1536, 100_000), scratch, seed) == [], f"seed {seed}"


def leaking_rows(genuine: Callable[..., NDArray[np.int64]]) -> Callable[..., NDArray[np.int64]]:
    return lambda exact, noise: genuine(exact, noise) + int(exact.sum() > 6)


def leaking_empty_cells(genuine: Callable[..., NDArray[np.int64]]) -> Callable[..., NDArray[np.int64]]:
    return lambda exact, noise: np.where(exact == 0, 0, genuine(exact, noise))


def leaking_kinds(genuine: Callable[..., NDArray[np.int64]]) -> Callable[..., NDArray[np.int64]]:
    return lambda exact, noise: genuine(exact, noise).astype(np.int64 if exact.max(initial=0) < 5 else np.int32)


@pytest.mark.parametrize("leak", [leaking_rows, leaking_empty_cells, leaking_kinds])
def test_planted_leaks_are_caught(leak: Callable[..., object], scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_checked_sum", leak(pinned))
    assert told_apart(1536, scratch, 7)


def test_a_stop_at_an_odd_row_is_caught(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Codec.encode

    def encode(self: Codec, batch: object) -> object:
        coded = genuine(self, batch)  # type: ignore[arg-type]
        if any(int(column.max(initial=0)) >= size - 1 for column, size in zip(coded, self.domain.sizes, strict=True)):
            raise ValueError("a value that has no code of its own")
        return coded

    monkeypatch.setattr(door, "_checked_sum", pinned)
    monkeypatch.setattr(Codec, "encode", encode)
    assert told_apart(1536, scratch, 7)
