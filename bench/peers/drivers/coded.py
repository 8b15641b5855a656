"""What every driver shares: the coded table it is given, the coded table it writes, one way to be called.

    python DRIVER.py METHOD WORK EPSILON DELTA OUT.csv

WORK holds `coded.csv` (a header, then one code 0..size-1 in every cell) and `domain.json` (name, size and whether its
codes have an order, of every column). Written for every package's own environment: Python and numpy are all it asks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """One synthesis: ``codes`` of shape (rows, columns), all of it public facts but the codes."""

    method: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    codes: Any
    epsilon: float
    delta: float

    @property
    def rows(self) -> int:
        return int(self.codes.shape[0])

    @property
    def domain(self) -> dict[str, int]:
        return dict(zip(self.names, self.sizes, strict=True))


def read_domain(work: Path) -> tuple[tuple[str, ...], tuple[int, ...], tuple[bool, ...]]:
    columns = json.loads((work / "domain.json").read_text())["columns"]
    return (
        tuple(column["name"] for column in columns),
        tuple(int(column["size"]) for column in columns),
        tuple(bool(column["ordered"]) for column in columns),
    )


def read_codes(path: Path, names: tuple[str, ...]) -> Any:
    """The cells as integers, in the order of ``names``; whatever is no whole number is read as -1, no code at all."""
    with path.open() as file:
        header = file.readline().strip().split(",")
        lines = file.read().splitlines()
    body = np.empty((0, len(header)))
    if lines:
        body = np.genfromtxt(lines, delimiter=",", dtype=np.float64, filling_values=np.nan).reshape(len(lines), -1)
    if sorted(header) != sorted(names) or body.shape[1] != len(header):
        raise SystemExit(f"{path.name}: its columns are not those of the domain")
    body = body[:, [header.index(name) for name in names]]
    whole = np.isfinite(body) & (body == np.floor(np.where(np.isfinite(body), body, 0.5)))
    return np.where(whole, body, -1).astype(np.int64)


def write_codes(path: Path, names: tuple[str, ...], codes: Any) -> None:
    np.savetxt(path, codes, fmt="%d", delimiter=",", header=",".join(names), comments="")


def drive(synthesize: Callable[[Task], Any]) -> None:
    """Read what the command line names, synthesize, write; ``synthesize`` gives integers of shape (rows, columns)."""
    method, work, epsilon, delta, out = sys.argv[1:]
    names, sizes, ordered = read_domain(Path(work))
    codes = read_codes(Path(work) / "coded.csv", names)
    task = Task(method, names, sizes, ordered, codes, float(epsilon), float(delta))
    write_codes(Path(out), names, np.asarray(synthesize(task)))
