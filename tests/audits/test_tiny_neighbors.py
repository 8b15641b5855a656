"""Neighbors by the thousand, in a tiny mode: with the noisy answers pinned, nothing else may tell two tables apart.

Tables of up to a dozen rows, text and typed, of rows and of persons; the odd record out is as odd as can be. What is
compared: every file of the release byte for byte (but for its random number), the charges, and any error's words.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from margent import Budget, read_schema
from margent.errors import MargentError
from margent.methods import METHODS, method_named
from margent.pipeline import from_transcript, measure
from margent.privacy import curator as door
from margent.release.measurements import measurement_files
from margent.schema.fields import Schema
from margent.schema.read import schema_from_json
from tests.hostile.mutations import WORDS
from tests.sizes import rounds

UNITS = ("row", {"field": "id", "maxRows": 2})
FIELDS = [
    {"name": "id", "type": "string", "margent": {"role": "identifier"}},
    {"name": "sex", "type": "string", "categories": ["F", "M"], "constraints": {"required": True}},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 3}},
    {"name": "paid", "type": "number", "constraints": {"minimum": 0, "maximum": 10}, "margent": {"bins": 3}},
    {"name": "day", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
     "margent": {"bins": "quarter"}},
]  # fmt: skip
SCHEMAS = [
    schema_from_json({"name": "t", "fields": FIELDS[: 3 + wide], "missingValues": ["", "?"], "margent": {"unit": unit}})
    for unit in UNITS
    for wide in (0, 2)
]
ODD = [
    "", "?", "F", "M", "X", "f ", "-1", "4", "1e400", "nan", "99999999999999999999", "2020-02-30", "2020-05-05",
    "1850-01-01", "\x00", "ﬀ", "漢", "=1+1", "'", '"', " " * 40, "x" * 300,
    *(word.decode("latin-1") for word in WORDS[:8]),
]  # fmt: skip


def pinned(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """An answer that knows its shape and nothing else."""
    assert exact.shape == noise.shape
    return _answer(exact.shape).copy()


@cache
def _answer(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.random.default_rng(math.prod(shape)).integers(2, 40, shape)


def drawn_row(rng: np.random.Generator, schema: Schema, odd: bool) -> list[str]:
    usual = [str(rng.integers(0, 4)), "FM"[rng.integers(0, 2)], str(rng.integers(0, 4)), "2.5", "2020-07-01"]
    row = usual[: len(schema.fields)]
    if odd:
        for place in range(len(row)):
            if rng.random() < 0.6:
                row[place] = ODD[int(rng.integers(0, len(ODD)))]
        if rng.random() < 0.2:
            row = row[: int(rng.integers(0, len(row)))] if rng.random() < 0.5 else [*row, "extra"]
    return row


def table_of(rows: list[list[str]], schema: Schema, folder: Path, form: int) -> object:
    names = [field.name for field in schema.fields]
    if form == 0:
        path = folder / "t.csv"
        lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
        path.write_bytes("\n".join([",".join(names), *lines, ""]).encode("utf-8", "surrogatepass"))
        return path
    full = [(row + [""] * len(names))[: len(names)] for row in rows]
    columns = {name: [row[place] or None for row in full] for place, name in enumerate(names)}
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})


def seen(table: object, schema: Schema, method: str, synthesizer: str) -> object:
    """Everything that leaves a run."""
    budget = Budget(2, "1e-6")
    try:
        measured = measure(table, schema, budget=budget, method=method, rows=5, expect_people=1)
        release = from_transcript(measured.transcript, budget=budget, synthesizer=synthesizer, rows=5, seed=1)
    except MargentError as refusal:
        return type(refusal), str(refusal)
    files = measurement_files(replace(measured.transcript, run=""))
    summary = {key: value for key, value in release.summary.items() if key != "run"}
    return files, summary, release.table.to_pylist(), measured.kind


def different_pairs(count: int, folder: Path, seed: int) -> list[int]:
    """Numbers of the neighbor pairs that anything but the answers tells apart."""
    found = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        schema = SCHEMAS[number % len(SCHEMAS)]
        # The dearer methods have the same door; a quarter of the pairs goes through all of them in turn.
        place = number // len(SCHEMAS) % (4 * len(METHODS))
        method = METHODS[place] if place < len(METHODS) else method_named("independent")
        rows = [drawn_row(rng, schema, odd=rng.random() < 0.3) for _ in range(int(rng.integers(0, 13)))]
        place = int(rng.integers(0, len(rows) + 1))
        strange = [drawn_row(rng, schema, odd=True)]
        if schema.unit != "row":
            # A whole person: many rows, all with one id that nobody else has.
            strange = [["new", *row[1:]] for row in strange * int(rng.integers(1, 6))]
        other = rows[:place] + strange + rows[place:]
        form = int(rng.integers(0, 2))
        views = [
            seen(table_of(each, schema, folder, form), schema, method.name, method.synthesizer.name)
            for each in (rows, other)
        ]
        if views[0] != views[1]:
            found.append(number)
    return found


def test_neighbors_cannot_be_told_apart_but_by_the_answers(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_checked_sum", pinned)
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    found = different_pairs(rounds(2000, 5000), scratch, seed)
    assert found == [], f"seed {seed}"


@pytest.mark.parametrize("leak", ["rows", "stop", "domain"])
def test_planted_leaks_are_caught(leak: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_checked_sum", pinned)
    if leak == "rows":  # the number of records decides what is asked for
        monkeypatch.setattr(door, "_checked_sum", lambda exact, noise: pinned(exact, noise) + int(exact.sum() > 6))
    elif leak == "stop":  # a strange cell stops the run
        from margent.schema.codec import Codec

        genuine = Codec.encode

        def encode(self: Codec, batch: pa.RecordBatch) -> object:
            if any("1e400" in str(cell) for column in batch.columns for cell in column.to_pylist()):
                raise ValueError("1e400")
            return genuine(self, batch)

        monkeypatch.setattr(Codec, "encode", encode)
    else:  # the last value that anybody has decides the size
        monkeypatch.setattr(
            door, "_checked_sum", lambda exact, noise: pinned(exact, noise) * (1 + (exact[-1:].sum() > 0))
        )
    assert different_pairs(120, scratch, 7)


def test_the_schemas_are_what_a_file_would_give(tmp_path: Path) -> None:
    from margent.schema.write import schema_text

    for schema in SCHEMAS:
        (tmp_path / "s.json").write_text(schema_text(schema))
        assert read_schema(tmp_path / "s.json") == schema
