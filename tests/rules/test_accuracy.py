"""Rules cost no accuracy: tables of records that obey them are met as closely with the rules as without."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Category, Integer, Schema
from margent.methods import synthesizer_named
from margent.progress import silent
from margent.schema.codec import Codec
from margent.synthesizers.columns import counted
from margent.transcript import NoisyMarginal, Transcript
from tests.synthesizers.made import TAKING_ANY

ROWS = 20_000
ZIPS = [f"z{number}" for number in range(12)]
COUNTIES = ["north", "south", "west"]
RULES = [
    {"if": {"age": {"below": 15}}, "then": {"status": {"missing": True}, "job": "none"}},
    {"if": {"age": {"atLeast": 15}}, "then": {"status": {"missing": False}}},
    {"determines": ["zip"], "column": "county", "mapping": {name: COUNTIES[i % 3] for i, name in enumerate(ZIPS)}},
    {"order": ["age", "oldest"]},
    {"never": {"status": "widowed", "age": {"below": 20}}},
]
PAIRS = [
    ("age", "status"),
    ("age", "job"),
    ("job", "status"),
    ("county", "zip"),
    ("age", "oldest"),
    ("county", "job"),
    ("job", "zip"),
    ("county", "status"),
]


def schema(rules: bool) -> Schema:
    fields = [
        Integer("age", 0, 29, required=True),
        Category("status", ["single", "married", "widowed"]),
        Category("job", ["none", "a", "b", "c"], required=True),
        Category("zip", ZIPS, required=True),
        Category("county", COUNTIES, required=True),
        Integer("oldest", 0, 29, bins=10, required=True),
    ]
    return Schema(fields, unit="row", rules=RULES if rules else ())


def records() -> NDArray[np.int32]:
    """Codes of rows that obey every rule, with dependence between all columns."""
    rng = np.random.default_rng(4)
    age = rng.integers(0, 30, ROWS)
    adult = age >= 15
    widowed = (age >= 20) & (rng.random(ROWS) < 0.1)
    status = np.where(adult, np.where(widowed, 2, (rng.random(ROWS) < age / 40).astype(int)), 3)
    job = np.where(adult, np.minimum(3, rng.poisson(0.5 + 0.5 * status)), 0)
    code = rng.integers(0, 12, ROWS)
    place = np.where(rng.random(ROWS) < 0.5, code, (job * 3 + code % 3) % 12)
    oldest = np.minimum(29, age + rng.integers(0, 12, ROWS))
    return np.stack([age, status, job, place, place % 3, oldest // 3], axis=1).astype(np.int32)


def mean_distance(rules: bool, synthesizer: str) -> float:
    """Mean total variation between true tables and those of synthetic records, over the pairs that were measured."""
    own = schema(rules)
    domain = Codec(own).domain
    # Neighbors of the code of missing cells: all but status are required, so they have a last code of their own.
    true = counted(records(), domain, [*((name,) for name in domain.names), *PAIRS])
    cliques = [*((name,) for name in domain.names), *PAIRS]
    answers = tuple(
        NoisyMarginal(names, table.astype(np.int64), Fraction(1, 4), 0, False)
        for names, table in zip(cliques, true, strict=True)
    )
    transcript = Transcript(own, domain, "made", (), answers, {})
    codes = synthesizer_named(synthesizer).build(transcript, silent).sample(ROWS, 7, silent)
    if rules:
        Codec(own).decode(codes, 1)  # raises where a row breaks a rule
    made = counted(codes, domain, PAIRS)
    pairs = zip(made, true[len(domain.names) :], strict=True)
    return float(np.mean([0.5 * np.abs(one - other).sum() / ROWS for one, other in pairs]))


@pytest.mark.parametrize("synthesizer", [each.name for each in TAKING_ANY])
def test_tables_that_obey_are_met_as_closely_with_rules_as_without(synthesizer: str) -> None:
    without, within = mean_distance(False, synthesizer), mean_distance(True, synthesizer)
    print(synthesizer, round(without, 4), round(within, 4))
    assert within < without + 0.01
