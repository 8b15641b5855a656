"""A run goes on with the rows that it began with: another condition, query or table is refused before any look."""

from __future__ import annotations

import csv
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from margent import Budget, BudgetFile, ReadOptions, RunState, Schema, synthesize
from margent.counts.source import StreamedCounts
from margent.errors import TableError, UsageError
from margent.privacy import budget_store
from margent.resume.journal import FILE, Journal
from margent.resume.table import marks_of, require_same_files
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.resume.interrupting import Cut
from tests.resume.test_interruptions import journaled

PEOPLE: Schema = schema_from_json(SCHEMA)
SECRET = "s3cret"


class Runs:
    """Runs on one database and one budget file, with the state in one folder; ``looks`` counts those at rows."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch, self.looks = folder, monkeypatch, 0
        self.state = folder / "s"
        self.file = BudgetFile(folder / "b.budget", "people")
        self.file.init(Budget(9))
        genuine = StreamedCounts.count

        def count(*given: Any, **options: Any) -> Any:
            self.looks += 1
            return genuine(*given, **options)

        monkeypatch.setattr(StreamedCounts, "count", count)

    def run(self, table: Any, *, row_wise: bool = False, **state: bool) -> Any:
        return synthesize(
            table,
            PEOPLE,
            budget=Budget(1),
            budget_file=self.file,
            method="independent",
            rows=5,
            read=ReadOptions(query_is_row_wise=row_wise),
            state=RunState(self.state, **state),
        )

    def cut(self, table: Any, *, row_wise: bool = False) -> None:
        """A run whose first answer is lost: nothing but words keeps the next one from its look."""

        def answered(*_: Any) -> None:
            raise Cut

        with self.monkeypatch.context() as patch:
            patch.setattr(Journal, "answered", answered)
            with pytest.raises(Cut):
                self.run(table, row_wise=row_wise)

    def refused(self, table: Any, kind: type[Exception], words: str, *, row_wise: bool = False) -> str:
        """That resuming ends so, looks at nothing, charges nothing, reserves nothing and keeps the state."""
        held = journaled(RunState(self.state)), budget_store.read(self.file.path), self.looks
        with pytest.raises(kind, match=words) as refusal:
            self.run(table, row_wise=row_wise, resume=True, pay_again=True)
        assert (journaled(RunState(self.state)), budget_store.read(self.file.path), self.looks) == held
        return str(refusal.value)


@pytest.fixture
def runs(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(scratch, monkeypatch)


@pytest.fixture
def database(scratch: Path) -> str:
    duckdb = pytest.importorskip("duckdb")
    path = scratch / "people.duckdb"
    table = write_csv(scratch / "t.csv", people_rows(300))
    with duckdb.connect(str(path)) as connection:
        for name in ("people", "others"):
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv('{table}', all_varchar = true)")
        connection.execute("CREATE VIEW seen AS SELECT * FROM people")
    return f"duckdb:{path}"


WHOLE, PART = "table=people", f"table=people&where=age <> '{SECRET}'"
QUERY = f"query=SELECT * FROM people WHERE age <> '{SECRET}'"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (PART, PART.replace("<>", "=")),
        (PART, WHOLE),
        (WHOLE, PART),
        (QUERY, QUERY.replace("<>", "=")),
        (QUERY, PART),
        ("table=people", "table=others"),
        ("table=people", "table=seen"),
    ],
)
def test_other_rows_than_then_are_refused(runs: Runs, database: str, before: str, now: str) -> None:
    row_wise = "query" in before + now or "seen" in now
    first, other = f"{database}?{before}", f"{database}?{now}"
    runs.cut(first, row_wise=row_wise)
    said = runs.refused(other, UsageError, "its address names other rows than then", row_wise=row_wise)
    assert SECRET not in said
    assert SECRET.encode() not in (runs.state / FILE).read_bytes()
    runs.run(first, row_wise=row_wise, resume=True, pay_again=True)
    assert runs.looks == 2, "one look was lost, and one bought anew"


def test_the_flags_that_a_release_tells_are_facts_of_the_run(
    runs: Runs, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very same address: a view may become a table, or the reverse, while the run rests."""
    duckdb = pytest.importorskip("duckdb")
    runs.cut(f"{database}?table=people", row_wise=True)
    with duckdb.connect(database.removeprefix("duckdb:")) as connection:
        connection.execute("ALTER TABLE people RENAME TO hidden")
        connection.execute("CREATE VIEW people AS SELECT * FROM hidden")
    runs.refused(f"{database}?table=people", UsageError, "rows/of a query or view: was false, is true", row_wise=True)


def test_an_address_may_be_written_otherwise(runs: Runs, database: str) -> None:
    runs.cut(f"{database}?{PART}")
    runs.run(f"{database}?where={quote(PART.partition('where=')[2])}&table=people", resume=True, pay_again=True)
    assert runs.looks == 2


def test_an_object_is_no_address(runs: Runs, database: str) -> None:
    runs.cut(f"{database}?{WHOLE}")
    text = (runs.folder / "t.csv").read_text()
    frame = pa.table({name: list(cells) for name, *cells in zip(*csv.reader(text.splitlines()), strict=True)})
    runs.refused(frame, UsageError, "its address names other rows than then")


def folder_of(scratch: Path) -> Path:
    """Four files of one table, of which the last is the youngest; what lies beside them is not read."""
    folder = scratch / "parts"
    for number in range(4):
        part = folder / f"part={SECRET}{number % 2}"
        part.mkdir(parents=True, exist_ok=True)
        os.utime(write_csv(part / f"{number}.csv", people_rows(40, number)), ns=(10**18, 10**18 + number * 10**9))
    return folder


CHANGES: dict[str, Callable[[list[Path]], object]] = {
    "an older file gone": lambda files: files[0].unlink(),
    "an older one in place of the youngest": lambda files: os.utime(files[3], ns=(10**18, 10**18 + 2 * 10**9)),
    "one in place of another, younger": lambda files: os.utime(files[1], ns=(10**18, 10**18 + 2 * 10**9)),
    "a copy with the times of another": lambda files: shutil.copy2(files[0], files[1]),
    "an older one added": lambda files: shutil.copy2(files[0], files[0].with_name("more.csv")),
    "two that changed names": lambda files: (
        files[0].rename(files[0].with_suffix(".x")),
        files[2].rename(files[0]),
        files[0].with_suffix(".x").rename(files[2]),
    ),
    "into the folder of another value": lambda files: files[1].rename(files[0].with_name("1.csv")),
    "the youngest written to": lambda files: os.utime(files[3]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_files_than_then_are_refused(runs: Runs, scratch: Path, change: str) -> None:
    folder = folder_of(scratch)
    whole = shutil.copytree(folder, scratch / "whole")
    runs.cut(folder)
    CHANGES[change](sorted(folder.rglob("*.csv"), key=lambda path: path.name))
    assert SECRET not in runs.refused(folder, TableError, "was added or taken away")
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)  # put back, with their times
    runs.run(folder, resume=True, pay_again=True)


def test_what_is_not_read_of_a_folder_may_come_and_go(runs: Runs, scratch: Path) -> None:
    """Such as the state itself, where OUT lies in the table's folder."""
    folder = folder_of(scratch)
    runs.state = folder / ".OUT.margent-run"
    runs.cut(folder)
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").touch()
    runs.run(folder, resume=True, pay_again=True)
    assert runs.looks == 2


def test_no_name_size_or_time_of_a_file_can_be_read_in_a_state(runs: Runs, scratch: Path) -> None:
    folder = folder_of(scratch)
    runs.cut(folder)
    held = (runs.state / FILE).read_bytes()
    for path in folder.rglob("*"):
        for fact in (path.name, str(path.stat().st_mtime_ns)):
            assert fact.encode() not in held
    assert marks_of(folder)["files"] != marks_of(folder)["files"], "each state has its own salt"
    # What comes from rows is in no fingerprint, where a guess at it could be tried: sizes, and values in names.
    marks = marks_of(folder)
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*.csv")}
    for path, written in times.items():
        path.write_text("sex\n")
        os.utime(path, ns=(written, written))
    for number in range(2):
        (folder / f"part={SECRET}{number}").rename(folder / f"part={number + 7}")
    assert marks == marks_of(folder, marks["salt"])


def test_ten_thousand_files_are_looked_at_quickly(scratch: Path) -> None:
    for number in range(10_000):
        (scratch / f"{number}.csv").touch()
    marks = marks_of(scratch)
    started = time.perf_counter()
    require_same_files(marks, scratch)
    assert time.perf_counter() - started < 2
    (scratch / "777.csv").unlink()
    with pytest.raises(TableError, match="taken away"):
        require_same_files(marks, scratch)
