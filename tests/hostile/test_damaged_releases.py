"""Releases damaged on purpose: what is read back is whole, and what was read can be made into a table or is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from margent import Budget, read_release, synthesize
from margent.errors import MargentError, TranscriptError
from margent.methods import METHODS, method_named
from margent.pipeline import from_transcript
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.hostile.mutations import mutated, rewritten, rounds
from tests.hostile.trials import tried

TRANSCRIPT, ANSWERS, SUMMARY = "measurements/transcript.json", "measurements/answers.i64", "summary.json"
Damage = Callable[[bytes, np.random.Generator], bytes]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("hostile"), "dense")


def released(folder: Path, method: str) -> Path:
    """A release by ``method``."""
    table = write_csv(folder / "t.csv", people_rows(100))
    made = synthesize(table, schema_from_json(SCHEMA), budget=Budget(3), method=method, seed=1, rows=20)
    return made.save(folder / "OUT")


@pytest.mark.parametrize(
    ("victim", "damage", "few", "many"),
    [
        (TRANSCRIPT, mutated, 500, 450_000),
        (ANSWERS, mutated, 500, 150_000),
        (SUMMARY, mutated, 500, 200_000),
        (TRANSCRIPT, rewritten, 200, 75_000),
        (SUMMARY, rewritten, 200, 75_000),
    ],
)
def test_files_of_a_release(victim: str, damage: Damage, few: int, many: int, release: Path, scratch: Path) -> None:
    """In an audit a million releases with one damaged file, with the test that follows."""
    copy = Path(shutil.copytree(release, scratch / "copy"))

    def attempt(data: bytes) -> None:
        (copy / victim).write_bytes(data)
        read_release(copy)

    tried(victim, (copy / victim).read_bytes(), attempt, rounds(few, many), TranscriptError, damage)


def test_answers_whose_checksum_was_forged(release: Path, scratch: Path) -> None:
    copy = Path(shutil.copytree(release, scratch / "copy"))
    original = json.loads((copy / TRANSCRIPT).read_bytes())

    def attempt(data: bytes) -> None:
        (copy / ANSWERS).write_bytes(data)
        (copy / TRANSCRIPT).write_bytes(forged(original, data))
        read_release(copy)

    tried("forged", (copy / ANSWERS).read_bytes(), attempt, rounds(200, 50_000), TranscriptError)


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_what_was_read_is_made_or_refused(method: str, scratch: Path) -> None:
    """By each method's own release, damaged: refused as it is read, or as it is made, or made whole."""
    copy = released(scratch, method)

    def attempt(data: bytes) -> None:
        (copy / TRANSCRIPT).write_bytes(data)
        made_again(copy, method)

    # A library that `pgm` uses compiles its steps for each shape that it meets.
    original = (copy / TRANSCRIPT).read_bytes()
    tried(method, original, attempt, rounds(150, 3000), MargentError, rewritten, seconds=20.0)


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_no_answers_are_too_odd_to_make_a_table_of(method: str, scratch: Path) -> None:
    """Noise can be anything, and a forger's answers all the more: the table is made, or refused in words."""
    copy = released(scratch, method)
    original = json.loads((copy / TRANSCRIPT).read_bytes())

    def attempt(data: bytes) -> None:
        (copy / ANSWERS).write_bytes(data)
        (copy / TRANSCRIPT).write_bytes(forged(original, data))
        made_again(copy, method)

    blob = (copy / ANSWERS).read_bytes()
    tried(method, blob, attempt, rounds(30, 300), MargentError, odd_integers, seconds=20.0, may_all_be_good=True)


def made_again(folder: Path, method: str) -> None:
    """A table from what was read, by the method's own synthesizer."""
    transcript, budget, _ = read_release(folder)
    synthesizer = method_named(method).synthesizer.name
    release = from_transcript(transcript, budget=budget, synthesizer=synthesizer, rows=5, seed=1)
    assert release.table.num_rows == 5


def odd_integers(answers: bytes, rng: np.random.Generator) -> bytes:
    """Answers of which a few, or all, are as large, as small or as alike as integers can be."""
    values = np.frombuffer(answers, dtype="<i8").copy()
    if values.size == 0:
        return answers
    odd = np.array([0, 1, -1, 2**31, -(2**31), 2**53, -(2**53), 2**62, -(2**62), 2**63 - 1, -(2**63)], dtype="<i8")
    count = [1, 3, values.size // 3 + 1, values.size][int(rng.integers(0, 4))]
    places = rng.integers(0, values.size, count)
    values[places] = rng.choice(odd, count) if rng.random() < 0.6 else rng.choice(odd)
    return values.tobytes()


def forged(transcript: dict[str, object], answers: bytes) -> bytes:
    """The transcript's file, as if these had been its answers."""
    stated = {"file": "answers.i64", "count": len(answers) // 8, "sha256": hashlib.sha256(answers).hexdigest()}
    return json.dumps(transcript | {"integers": stated}).encode()
