"""Made-up tables, their public schemas, what their cells must look like, and how a test runs one."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from margent.cli import run

REPEATS = 60
"""How often the few records of a case stand in its table, so that the noise does not drown them."""

Cells = str | frozenset[str] | Callable[[str], bool]


def listed(name: str, values: Sequence[Any] | Mapping[str, str], **keys: Any) -> dict[str, Any]:
    kind = "integer" if all(isinstance(value, int) for value in values) else "string"
    return {"name": name, "type": kind, "categories": list(values), **keys}


def ranged(name: str, kind: str, low: Any, high: Any, **block: Any) -> dict[str, Any]:
    keys = {key: block.pop(key) for key in ("format", "decimalChar", "groupChar") if key in block}
    required = {"required": True} if block.pop("required", False) else {}
    made = {"name": name, "type": kind, "constraints": {"minimum": low, "maximum": high, **required}, **keys}
    return made | ({"margent": block} if block else {})


def role(name: str, what: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "margent": {"role": what}}


def one_of(*texts: str) -> frozenset[str]:
    return frozenset(texts)


def whole(low: int, high: int, *others: str) -> Cells:
    return lambda cell: cell in others or (re.fullmatch(r"-?\d+", cell) is not None and low <= int(cell) <= high)


def instant(low: str, high: str) -> Cells:
    bounds = datetime.fromisoformat(low), datetime.fromisoformat(high)
    return lambda cell: cell == "" or bounds[0] <= datetime.fromisoformat(cell) <= bounds[1]


REQUIRED = {"required": True}


@dataclass(frozen=True)
class Case:
    """A small table, its public schema, and what each written cell must look like."""

    name: str
    header: str
    records: Sequence[str | bytes]
    fields: Sequence[Mapping[str, Any]]
    cells: Mapping[str, Cells]
    options: Sequence[str] = ()
    encoding: str = "utf-8"
    newline: str = "\n"
    seen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values that must turn up: they were in the table often enough."""
    secrets: Sequence[str] = ()
    """Texts of the table that may stand in no file and no message."""

    def content(self, repeats: int = REPEATS) -> bytes:
        lines = [self.header.encode(self.encoding)]
        raw = [record if isinstance(record, bytes) else record.encode(self.encoding) for record in self.records]
        return self.newline.encode().join([*lines, *(raw * repeats), b""])


def schema_file(folder: Path, fields: Sequence[Mapping[str, Any]], **keys: Any) -> Path:
    path = folder / "schema.json"
    path.write_text(json.dumps({"fields": list(fields), "margent": {"unit": "row"}, **keys}))
    return path


def synthesize(table: Path, schema: Path, out: Path, *options: str, epsilon: str = "6") -> int:
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", epsilon, "--single-release"]
    return run([*arguments, "-o", str(out), *options])


def rows_of(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def as_float(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


SMALL = [
    listed("sex", ["F", "M"], constraints=REQUIRED),
    ranged("age", "integer", 0, 110, bins={"width": 10}, required=True),
]


def small_table(folder: Path, rows: int = 40) -> Path:
    lines = [f"{'FM'[place % 2]},{20 + place % 50}" for place in range(rows)]
    (folder / "t.csv").write_text("\n".join(["sex,age", *lines, ""]))
    return folder / "t.csv"
