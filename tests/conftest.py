"""Small tables of our own making, and where the shared real tables would be."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start what runs in the background so; tests that interrupt, and the programs they start, would go on.
    signal.signal(signal.SIGINT, signal.default_int_handler)

SCHEMA: dict[str, Any] = {
    "name": "people",
    "missingValues": ["", "?"],
    "fields": [
        {"name": "sex", "type": "string", "categories": ["F", "M"], "constraints": {"required": True}},
        {
            "name": "work",
            "type": "string",
            "categories": ["office", "field, remote", 'the "lab"', "none"],
        },
        {
            "name": "age",
            "type": "integer",
            "constraints": {"required": True, "minimum": 0, "maximum": 99},
            "margent": {"bins": {"width": 10}},
        },
        {
            "name": "since",
            "type": "date",
            "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"},
            "margent": {"bins": "quarter"},
        },
        {"name": "id", "type": "string", "margent": {"role": "identifier"}},
    ],
    "margent": {"unit": "row", "provenance": "made up for the tests"},
}


def people_rows(rows: int, seed: int = 1) -> list[list[str]]:
    """Rows of the table that `SCHEMA` describes: work depends on sex, some cells are missing."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, rows)
    work = (2 * sex + rng.integers(0, 2, rows)) % 4
    age = rng.integers(0, 100, rows)
    months = rng.integers(0, 24, rows)
    names = ["office", "field, remote", 'the "lab"', "none"]
    return [
        [
            "FM"[sex[row]],
            "?" if row % 17 == 0 else names[work[row]],
            str(age[row]),
            "" if row % 11 == 0 else f"{2020 + months[row] // 12}-{months[row] % 12 + 1:02d}-15",
            f"P{row:05d}",
        ]
        for row in range(rows)
    ]


def write_csv(path: Path, rows: list[list[str]], header: list[str] | None = None) -> Path:
    """Write rows as CSV the way the standard library does."""
    import csv

    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header or [field["name"] for field in SCHEMA["fields"]])
        writer.writerows(rows)
    return path


@pytest.fixture
def people_csv(tmp_path: Path) -> Path:
    """A CSV of 400 made-up people."""
    return write_csv(tmp_path / "people.csv", people_rows(400))


@pytest.fixture
def people_schema(tmp_path: Path) -> Path:
    """The schema file of the made-up people."""
    path = tmp_path / "people.schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """An empty folder in memory where there is one: tests that write a file thousands of times would wait for disks."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def shared() -> Path:
    """The folder of shared real tables; skips where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared real tables are not beside this checkout")
    return SHARED


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of the tests' own; skips, and says why, where none can be started."""
    from tests.postgres_server import server_or_skip

    with server_or_skip() as server:
        yield server


def quick(method: Any) -> Any:
    """The method with a builder that compiles nothing, where its collector has one: for what does not depend on it."""
    from margent.synthesizers.independent import IndependentColumns

    if not hasattr(method.collector, "builder"):
        return method
    return replace(method, collector=replace(method.collector, builder=IndependentColumns()))


TOGETHER = ("docs", "spark")
"""Folders whose tests share a thing that is made once: the site's pages, a Spark session."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file run in one process, where several run side by side, and those of a folder in `TOGETHER`."""
    for item in items:
        file = item.path.relative_to(Path(__file__).parent)
        group = file.parts[0] if file.parts[0] in TOGETHER else file.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that take every method or synthesizer in turn skip those whose package is not installed, and say so."""
    from margent.methods import METHODS

    needs = {method.name: method.package for method in METHODS} | {
        method.synthesizer.name: method.package for method in METHODS if method.package
    }
    for value in getattr(getattr(item, "callspec", None), "params", {}).values():
        package = needs.get(value if isinstance(value, str) else getattr(value, "name", ""), "")
        if package and find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
