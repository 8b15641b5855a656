"""What pages take as made already: the table, schema and release that run through the documentation."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from margent.cli import run

ROOT = Path(__file__).parents[2]


def people_table(folder: Path) -> None:
    """people.csv, for the schema of the README: 3,000 made-up people."""
    rng = np.random.default_rng(3)
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sex", "age", "admitted", "patient"])
        for row in range(3000):
            day = f"{rng.integers(2020, 2025)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
            writer.writerow(["FM"[rng.integers(0, 2)], rng.integers(0, 100), day, f"P{row}"])


def people_schema(folder: Path) -> None:
    """schema.json as the README has it."""
    readme = (ROOT / "README.md").read_text()
    (block,) = [text for text in re.findall(r"```json\n(.*?)```", readme, re.DOTALL) if '"admitted"' in text]
    (folder / "schema.json").write_text(json.dumps(json.loads(block)))


def people_release(folder: Path) -> None:
    """OUT/, a release of people.csv that can answer questions about pairs."""
    run_or_fail(
        "synthesize", "people.csv", "--schema", "schema.json", "--epsilon", "5", "--single-release", "-q", "-o", "OUT"
    )


def second_release(folder: Path) -> None:
    """OUT2/, another table from the same answers."""
    run_or_fail("resample", "OUT", "--seed", "8", "--rows", "2000", "-q", "-o", "OUT2")


MAKERS: dict[str, Callable[[Path], None]] = {
    "people.csv": people_table,
    "schema.json": people_schema,
    "OUT/": people_release,
    "OUT2/": second_release,
}


def run_or_fail(*words: str) -> None:
    """One command that must succeed."""
    assert run(list(words)) == 0, words


def prepared(folder: Path, names: list[str]) -> None:
    """Make each by its name, in order, in ``folder``, which is the current one."""
    for name in names:
        MAKERS[name](folder)
