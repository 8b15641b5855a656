"""No message holds a cell: malformed cells by the thousand, each with a secret in it, and faults that quote them.

Looked at: what commands print, warnings, log records at every level, exceptions of the Python interface with all that
hangs on them (text, arguments, notes, causes and contexts, the printed traceback), and what is left in files.
"""

from __future__ import annotations

import csv
import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from margent import Budget, TableSynthesizer, read_schema, synthesize
from margent.cli import run
from margent.counts import kernel
from margent.counts.identity import Identity
from margent.internal.evaluation import evaluate
from margent.internal.inspection import inspect
from margent.metrics.marginals import MarginalDistance
from margent.privacy import curator
from margent.schema import codec
from margent.tables import opened
from tests.hostile.mutations import WORDS
from tests.sizes import rounds

SECRET = "Zq7hivPOSITIVE"
CELLS = rounds(2000, 20_000)
COLUMNS = 8
FIELDS = [
    {"name": "id", "type": "string", "margent": {"role": "identifier"}},
    {"name": "sex", "type": "string", "categories": ["F", "M"], "constraints": {"required": True}},
    {"name": "smoker", "type": "boolean"},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
    {"name": "paid", "type": "number", "constraints": {"minimum": 0, "maximum": 10}, "margent": {"bins": 3}},
    {"name": "day", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
     "margent": {"bins": "quarter"}},
    {"name": "at", "type": "datetime", "constraints": {"minimum": "2020-01-01T00:00", "maximum": "2020-12-31T00:00"},
     "margent": {"bins": "month", "timeZone": "naive"}},
    {"name": "clock", "type": "time", "constraints": {"minimum": "00:00:00", "maximum": "23:59:59"},
     "margent": {"bins": 4}},
]  # fmt: skip


@pytest.fixture(params=["row", {"field": "id", "maxRows": 2}], ids=["rows", "persons"])
def schema_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "s.json"
    unit = request.param
    path.write_text(json.dumps({"name": "t", "fields": FIELDS, "missingValues": ["", "?"], "margent": {"unit": unit}}))
    return path


def malformed(count: int, seed: int) -> list[str]:
    """Cells that parsers trip over, each with the secret in it."""
    rng = np.random.default_rng(seed)
    shapes = [
        "{0}", "{0}1e999", "2020-{0}-01", "99{0}", "-{0}", "25:61:{0}", "{0} ", " {0}", "true{0}", "0x{0}", "1,{0}",
        "2020-02-30T{0}", "{0}" * 40, "NaN{0}", "%s{0}", "{0}\t", "'{0}", '"{0}', "=cmd|{0}", "\ufeff{0}", "漢{0}",
    ]  # fmt: skip
    words = [word.decode("latin-1") for word in WORDS]
    made = []
    for _ in range(count):
        cell = shapes[int(rng.integers(0, len(shapes)))].format(SECRET)
        if rng.random() < 0.4:
            word = words[int(rng.integers(0, len(words)))]
            cell = word + cell if rng.random() < 0.5 else cell + word
        made.append(cell)
    return made


def tables(folder: Path, cells: list[str]) -> Iterator[tuple[str, Any]]:
    """The cells as a text file (well and badly quoted), as Arrow, as pandas objects of mixed kinds."""
    names = [str(field["name"]) for field in FIELDS]
    rows = [cells[first : first + COLUMNS] for first in range(0, len(cells) - COLUMNS + 1, COLUMNS)]
    good = folder / "good.csv"
    with good.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    yield "csv", good
    bad = folder / "bad.csv"
    bad.write_bytes("\n".join([",".join(names), *(",".join(row) for row in rows)]).encode("utf-8", "replace"))
    yield "badly quoted csv", bad
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    yield "arrow", pa.table(columns)
    mixed = {name: [SECRET.encode() if place % 3 else each for place, each in enumerate(column)]
             for name, column in columns.items()}  # fmt: skip
    yield "pandas", pd.DataFrame(mixed)


def hanging(fault: BaseException | None) -> Iterator[BaseException]:
    """An exception with all that hangs on it."""
    seen: set[int] = set()
    waiting = [fault]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


class Listening:
    """Everything that is said while it listens."""

    def __init__(self, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        self.capsys, self.caplog, self.said = capsys, caplog, ""
        self.faults = 0

    def to(self, doing: Callable[[], Any]) -> None:
        """Do something and add all it says."""
        self.capsys.readouterr()
        self.caplog.clear()
        with self.caplog.at_level(logging.NOTSET), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                outcome = doing()
                self.said += repr(outcome)
                self.faults += isinstance(outcome, int) and outcome == 1
            except Exception as fault:
                self.faults += 1
                self.said += "".join(traceback.format_exception(fault))
                for one in hanging(fault):
                    notes = getattr(one, "__notes__", ())
                    self.said += f"{one} {one!r} {one.args!r} {notes!r} {vars(one)!r}"
        self.said += "".join(f"{each.message}{each.message!r}" for each in warned)
        self.said += "".join(f"{record.getMessage()}{record.args!r}{record.exc_text}" for record in self.caplog.records)
        seen = self.capsys.readouterr()
        self.said += seen.out + seen.err


FORMS = (SECRET, SECRET[:9], SECRET.lower(), SECRET.encode().hex(), "".join(map(str, SECRET.encode())))
"""Spellings of the secret, and a piece of it, since messages cut long texts."""


def leaks(said: str) -> list[str]:
    return [form for form in FORMS if form in said]


def use(listening: Listening, table: Any, schema_file: Path, folder: Path) -> None:
    """Everything that reads a table, by command and from Python."""
    schema, budget = read_schema(schema_file), Budget(100)
    if isinstance(table, Path):
        common = [str(table), "--schema", str(schema_file)]
        spend = ["--epsilon", "1", "--single-release", "-o"]
        for place, command in enumerate((
            ["synthesize", *common, *spend, str(folder / "OUT1"), "-q"],
            ["synthesize", *common, *spend, str(folder / "OUT2"), "--json", "--method", "privsyn"],
            ["synthesize", *common, *spend, str(folder / "OUT3"), "--quote", "", "--method", "independent"],
            ["synthesize", *common, *spend, str(folder / "OUT4"), "--encoding", "utf-16"],
            ["schema", "check", str(schema_file), str(table)],
            ["schema", "draft", str(table), "-o", str(folder / "draft.json")],
            ["inspect", *common, "-o", str(folder / "INTERNAL1")],
            ["evaluate", str(table), str(table), "--schema", str(schema_file), "--no-learning", "-o",
             str(folder / "INTERNAL2")],
        )):  # fmt: skip
            assert place >= 0
            listening.to(lambda command=command: run(command))
    listening.to(lambda: synthesize(table, schema, budget=budget, rows=20, seed=1))
    listening.to(lambda: synthesize(table, schema, budget=budget, rows=20, seed=1, method="privsyn").summary)
    listening.to(lambda: TableSynthesizer(schema, epsilon=1, method="independent").fit(table).sample(5))
    listening.to(lambda: inspect(table, schema))
    listening.to(lambda: evaluate(table, [table], schema, metrics=[MarginalDistance(1, "tvd")]))


@pytest.fixture
def listening(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Listening:
    return Listening(capsys, caplog)


def files_with_the_secret(folder: Path, but: set[str]) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name not in but and SECRET.encode() in path.read_bytes()
    ]


def test_no_malformed_cell_is_told_of(listening: Listening, schema_file: Path, tmp_path: Path) -> None:
    for kind, table in tables(tmp_path, malformed(CELLS, 1)):
        folder = tmp_path / kind
        folder.mkdir()
        use(listening, table, schema_file, folder)
        assert leaks(listening.said) == [], kind
    assert listening.faults == 0, "a cell stopped a run"
    assert len(listening.said) > 4000
    assert files_with_the_secret(tmp_path, {"good.csv", "bad.csv"}) == []


def quoting(genuine: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with a bug: it fails and quotes what it was given, as parsers do."""

    def fails(*parts: Any, **named: Any) -> Any:
        try:
            int(SECRET)
        except ValueError as inner:
            raise KeyError(f"could not read {SECRET!r} in row 7", genuine.__name__) from inner

    return fails


class QuotingError(Exception):
    """Of a library that counts rows in its own way: the text is made late."""

    def __str__(self) -> str:
        return f"bad value {SECRET}"


def raising(*_: Any, **__: Any) -> Any:
    raise QuotingError(SECRET, [SECRET])


PLACES: dict[str, tuple[Any, str]] = {
    "codec": (codec.ColumnReader, "codes"),
    "codec of texts": (codec.ColumnReader, "_codes"),
    "counting": (kernel.Tally, "add"),
    "tables of counts": (kernel.Tally, "tables"),
    "scores": (curator, "_score"),
    "sum with noise": (curator, "_checked_sum"),
    "persons": (Identity, "pseudonyms"),
    "reader": (opened, "plain"),
}


@pytest.mark.parametrize("how", [quoting, lambda genuine: raising], ids=["quoting", "late"])
@pytest.mark.parametrize("place", PLACES)
def test_a_fault_inside_keeps_its_text(
    place: str, how: Callable[..., Any], listening: Listening, schema_file: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    owner, name = PLACES[place]
    monkeypatch.setattr(owner, name, how(getattr(owner, name)))
    for kind, table in tables(tmp_path, malformed(20 * COLUMNS, 1)):
        folder = tmp_path / kind
        folder.mkdir()
        use(listening, table, schema_file, folder)
        assert leaks(listening.said) == [], (place, kind)
    if not (place == "persons" and "maxRows" not in schema_file.read_text()):
        assert listening.faults > 0, "the planted fault was never met"
    assert files_with_the_secret(tmp_path, {"good.csv", "bad.csv"}) == []


def test_an_error_that_quotes_is_caught(
    listening: Listening, schema_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness sees a warning, a log record, a printed word, an exception, and one that only hangs on another."""

    def planted(say: Callable[[], None]) -> bool:
        heard = Listening(listening.capsys, listening.caplog)
        genuine = codec.ColumnReader.codes

        def codes(reader: Any, column: Any) -> Any:
            say()
            return genuine(reader, column)

        with monkeypatch.context() as patch:
            patch.setattr(codec.ColumnReader, "codes", codes)
            _, table = next(iter(tables(tmp_path, malformed(8, 1))))
            heard.to(lambda: synthesize(table, read_schema(schema_file), budget=Budget(1), rows=3, seed=1))
        return bool(leaks(heard.said))

    def hidden() -> None:
        from margent.errors import MargentError

        try:
            raise ValueError(SECRET)
        except ValueError:
            raise MargentError("a fixed text") from None

    assert planted(lambda: warnings.warn(f"odd: {SECRET}", stacklevel=1))
    assert planted(lambda: logging.getLogger("x").debug("odd: %s", SECRET))
    assert planted(lambda: print(SECRET))
    assert planted(hidden)
    assert not planted(lambda: None)
