"""Releases damaged on purpose: what is read back is whole, and what was read can be made into a table or is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import time
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margent import (
    Budget,
    Category,
    DateTime,
    Identifier,
    Integer,
    Number,
    Schema,
    query,
    read_release,
    synthesize,
)
from margent.errors import MargentError, TranscriptError
from margent.methods import METHODS, method_named
from margent.pipeline import from_transcript
from margent.privacy.ledger import MOST_EPSILONS
from margent.release import reading
from margent.release.files import MAX_INTEGERS, MAX_JSON_BYTES
from margent.release.officer import statement
from margent.release.reading import dialect_of, types_of
from margent.release.release import checked_format
from margent.schema.read import schema_from_json
from margent.tables.write import write_table
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.hostile.mutations import mutated, rewritten
from tests.hostile.trials import overwriting, tried
from tests.sizes import rounds

TRANSCRIPT, ANSWERS, SUMMARY = "measurements/transcript.json", "measurements/answers.i64", "summary.json"
Damage = Callable[[bytes, random.Random], bytes]


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
def test_files_of_a_release(
    victim: str, damage: Damage, few: int, many: int, release: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an audit a million releases with one damaged file, with the test that follows."""
    copy = Path(shutil.copytree(release, scratch / "copy"))
    if victim == SUMMARY:  # the measurements are the same, and whole, each time: one reading of them tells all
        monkeypatch.setattr(reading, "read_measurements", cache(reading.read_measurements))
    original = (copy / victim).read_bytes()
    with overwriting(copy / victim) as write:

        def attempt(data: bytes) -> None:
            write(data)
            read_release(copy)

        tried(victim, original, attempt, rounds(few, many), TranscriptError, damage)


def test_answers_whose_checksum_was_forged(release: Path, scratch: Path) -> None:
    copy = Path(shutil.copytree(release, scratch / "copy"))
    original, answers = json.loads((copy / TRANSCRIPT).read_bytes()), (copy / ANSWERS).read_bytes()
    with overwriting(copy / ANSWERS) as write, overwriting(copy / TRANSCRIPT) as state:

        def attempt(data: bytes) -> None:
            write(data)
            state(forged(original, data))
            read_release(copy)

        tried("forged", answers, attempt, rounds(200, 50_000), TranscriptError)


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


@pytest.mark.parametrize("victim", [SUMMARY, TRANSCRIPT])
def test_what_was_read_can_be_told(victim: str, release: Path, scratch: Path) -> None:
    """Whatever is read has all that the statement, a resample and a question need."""
    copy = Path(shutil.copytree(release, scratch / "copy"))

    def attempt(data: bytes) -> None:
        (copy / victim).write_bytes(data)
        transcript, budget, summary = read_release(copy)
        assert "<html" in statement(transcript, budget, summary)
        dialect_of(summary), types_of(summary), checked_format(summary["format"])
        query(copy, ["sex"])

    tried(victim, (copy / victim).read_bytes(), attempt, rounds(150, 5000), MargentError, rewritten)


@pytest.mark.parametrize("damage", [rewritten, "types"])
def test_types_of_a_release_are_followed_or_refused(damage: Any, scratch: Path) -> None:
    """Of a release that holds a Parquet table: its types are anybody's text, and the next table is written in them."""
    fields = [Integer("n", 0, 99), Number("x", 0, 5, bins=5, decimals=1), Category("c", ["a", "b"])]
    fields += [DateTime("t", "2020-01-01", "2020-12-31", bins="month", time_zone="Europe/Berlin"), Identifier("id")]
    kinds = [pa.decimal128(9, 2), pa.decimal256(70, 3), pa.dictionary(pa.int8(), pa.string())]
    kinds += [pa.timestamp("ms", "Europe/Berlin"), pa.int64()]
    cells = [[5, 7], [1, 2], ["a", "b"], [0, 10**12], [1, 2]]
    arrays = [pa.array(list(map(Decimal, column)) if pa.types.is_decimal(kind) else column).cast(kind)
              for column, kind in zip(cells, kinds, strict=True)]  # fmt: skip
    table = scratch / "t.arrow"
    write_table(table, "arrow", iter([pa.table(arrays, names=[field.name for field in fields])]))
    made = synthesize(table, Schema(fields, unit="row"), budget=Budget(3), method="independent", seed=1, rows=3)
    copy = made.save(scratch / "release")
    original = (copy / SUMMARY).read_bytes()
    assert set(json.loads(original)["types"].values()) >= {"decimal128(9, 2)", "decimal256(70, 3)"}

    def attempt(data: bytes) -> None:
        (copy / SUMMARY).write_bytes(data)
        transcript, budget, summary = read_release(copy)
        drawn = from_transcript(
            transcript, budget=budget, synthesizer="independent", rows=2, seed=1, declared=types_of(summary)
        )
        shutil.rmtree(drawn.save(scratch / "again", file_format="parquet"))

    how = retyped if damage == "types" else damage
    tried("types", original, attempt, rounds(60, 1000), MargentError, how)


FILES = [TRANSCRIPT, ANSWERS, SUMMARY]


@pytest.mark.parametrize("victim", FILES)
@pytest.mark.parametrize("what", ["pipe", "device", "folder", "link to nowhere", "sparse"])
def test_what_is_no_file_of_ours_is_refused_unread(what: str, victim: str, release: Path, scratch: Path) -> None:
    """A pipe would wait for ever, /dev/zero and 20 GiB of nothing fill the memory: refused in no time and memory."""
    copy = Path(shutil.copytree(release, scratch / "copy"))
    path = copy / victim
    if what == "sparse":
        with path.open("ab") as file:
            file.truncate(20 * 2**30)
    else:
        path.unlink()
        if what == "pipe":
            os.mkfifo(path)
        elif what == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero" if what == "device" else scratch / "nowhere")
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(TranscriptError, match=path.name) as caught:
        read_release(copy)
    assert time.process_time() - started < 2
    assert tracemalloc.get_traced_memory()[1] < 2 * MAX_JSON_BYTES
    tracemalloc.stop()
    assert "\n" not in str(caught.value)


def test_a_stated_number_of_integers_beyond_the_limit_is_refused_unread(release: Path, scratch: Path) -> None:
    copy = Path(shutil.copytree(release, scratch / "copy"))
    document = json.loads((copy / TRANSCRIPT).read_bytes())
    document["integers"]["count"] = MAX_INTEGERS + 1
    (copy / TRANSCRIPT).write_text(json.dumps(document))
    with (copy / ANSWERS).open("r+b") as file:
        file.truncate(8 * (MAX_INTEGERS + 1))
    with pytest.raises(TranscriptError, match="the most that is read is 268,435,456"):
        read_release(copy)


def test_a_release_is_read_through_links(release: Path, scratch: Path) -> None:
    """To its folder, and of its files: stores that keep files by their content have nothing but links."""
    (scratch / "link").symlink_to(release)
    read_release(scratch / "link")
    copy = Path(shutil.copytree(release, scratch / "copy"))
    for victim in FILES:
        (copy / victim).unlink()
        (copy / victim).symlink_to(release / victim)
    assert read_release(copy)[2] == read_release(release)[2]


@pytest.mark.parametrize("victim", [TRANSCRIPT, SUMMARY])
@pytest.mark.parametrize(
    "added", [b'"run": "x"', b'"x": "\\ud800"', b'"x": 1e999', b'"x": NaN', b'"x": {"a": 1, "a": 1}']
)
def test_json_that_may_be_read_in_two_ways_is_refused(added: bytes, victim: str, release: Path, scratch: Path) -> None:
    """A key given twice, half a letter, a number without end."""
    copy = Path(shutil.copytree(release, scratch / "copy"))
    (copy / victim).write_bytes((copy / victim).read_bytes().rstrip()[:-1] + b", " + added + b"}")
    with pytest.raises(TranscriptError, match="cannot be read as JSON"):
        read_release(copy)


@pytest.mark.parametrize("digits", [12, 100, 1000, 4000])
@pytest.mark.parametrize("field", ["cost", "delta", "sensitivitySquared", "scaleSquared"])
def test_four_megabytes_of_odd_fractions_are_refused_at_once(
    digits: int, field: str, release: Path, scratch: Path
) -> None:
    """Their sum would have a denominator of all their digits together, and take hours."""
    copy = Path(shutil.copytree(release, scratch / "copy"))
    document = json.loads((copy / TRANSCRIPT).read_bytes())
    rng = random.Random(5)
    charge = document["charges"][0]
    for _ in range(4 * 10**6 // (len(json.dumps(charge)) + digits)):
        odd = f"1/{rng.randrange(10 ** (digits - 1), 10**digits) | 1}"
        document["charges"].append(charge | {field: odd})
    content = json.dumps(document).encode()
    assert len(content) > 3 * 10**6
    (copy / TRANSCRIPT).write_bytes(content)
    started = time.process_time()
    with pytest.raises(TranscriptError):
        read_release(copy)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("mechanism", ["exponential", "discrete-laplace"])
def test_a_release_of_many_cheap_prices_is_refused_at_once(mechanism: str, release: Path, scratch: Path) -> None:
    """Each price takes half a millisecond to work out, and 64 MiB have room for 280,000."""
    copy = Path(shutil.copytree(release, scratch / "copy"))
    document = json.loads((copy / TRANSCRIPT).read_bytes())
    facts = {"mechanism": mechanism, "query": "independence", "cliques": [["sex", "work"]], "cost": "1/10000000000000"}
    odd = [
        {"epsilon": f"1/{10**7 + place}", "choices": 1, "sensitivitySquared": "1", "scaleSquared": None}
        if mechanism == "exponential"
        else {"sensitivitySquared": "1", "scaleSquared": str((10**7 + place) ** 2)}
        for place in range(MOST_EPSILONS + 1)
    ]
    document["charges"] += [document["charges"][0] | facts | each for each in odd]
    (copy / TRANSCRIPT).write_text(json.dumps(document))
    started = time.process_time()
    with pytest.raises(TranscriptError, match="too many different epsilons"):
        read_release(copy)
    assert time.process_time() - started < 1.5
    document["charges"] = document["charges"][:-1]
    (copy / TRANSCRIPT).write_text(json.dumps(document))
    read_release(copy)  # one less is read: nothing else was wrong with them


def made_again(folder: Path, method: str) -> None:
    """A table from what was read, by the method's own synthesizer."""
    transcript, budget, _ = read_release(folder)
    synthesizer = method_named(method).synthesizer.name
    release = from_transcript(transcript, budget=budget, synthesizer=synthesizer, rows=5, seed=1)
    assert release.table.num_rows == 5


def retyped(summary: bytes, rng: random.Random) -> bytes:
    """A summary, one of whose columns is of an odd type: other digits, another column's, or text with small damage."""
    document = json.loads(summary)
    name, other = rng.choices(list(document["types"]), k=2)
    kind = document["types"][name if rng.random() < 0.5 else other]
    odd = ["0", "1", "38", "39", "76", "77", "-1", "-77", "2147483648", "3000000000", "9" * 5000, "²", "٣", "", " 2"]
    if rng.random() < 0.7:
        kind = re.sub("[0-9]+", lambda _: rng.choice(odd), kind)
        kind = f"decimal{rng.choice([32, 64, 128, 256])}({rng.choice(odd)}, {rng.choice(odd)})" if "(" in kind else kind
    else:
        kind = mutated(kind.encode(), rng).decode(errors="replace")
    document["types"][name] = kind
    return json.dumps(document).encode()


def odd_integers(answers: bytes, seeds: random.Random) -> bytes:
    """Answers of which a few, or all, are as large, as small or as alike as integers can be."""
    rng = np.random.default_rng(seeds.getrandbits(64))
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
