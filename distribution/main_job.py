"""The main job on a table made here, by the installed `margent` alone: run by the Python of a fresh environment."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import time
from pathlib import Path

SCHEMA = {
    "fields": [
        {"name": "sex", "type": "string", "categories": ["F", "M"]},
        {
            "name": "age",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 99},
            "margent": {"bins": {"width": 10}},
        },
        {"name": "town", "type": "string", "categories": ["Ulm", "Bonn", "Aachen"]},
    ],
    "margent": {"unit": "row"},
}


def main(folder: Path) -> None:
    """Write a table, and run every command that needs no extra."""
    chance = random.Random(1)
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sex", "age", "town"])
        writer.writerows(
            [chance.choice("FM"), chance.randrange(100), chance.choice(["Ulm", "Bonn", "Aachen"])] for _ in range(2000)
        )
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    job = ["people.csv", "--schema", "schema.json", "--epsilon", "1"]
    for words in (
        ["--version"],
        ["--help"],
        ["schema", "check", "schema.json", "people.csv"],
        ["plan", "--schema", "schema.json", "--epsilon", "1"],
        ["budget", "init", "people.budget", "--data-set", "people", "--epsilon", "3"],
        ["synthesize", *job, "--budget", "people.budget", "-o", "OUT", "-q"],
        ["synthesize", *job, "--single-release", "--format", "parquet", "-o", "OUT2", "-q"],
        ["resample", "OUT", "-o", "OUT3", "-q"],
        ["query", "OUT", "age,sex"],
        ["statement", "OUT", "-o", "statement.html"],
        ["evaluate", "people.csv", "OUT", "--schema", "schema.json", "--no-learning", "-o", "INTERNAL"],
        ["budget", "verify", "people.budget", "OUT"],
        ["completion", "bash"],
    ):
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "margent", *words], cwd=folder, text=True, capture_output=True, check=False
        )
        print(f"{time.perf_counter() - started:6.1f} s  margent {' '.join(words[:2])}")
        if done.returncode:
            sys.exit(f"margent {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
