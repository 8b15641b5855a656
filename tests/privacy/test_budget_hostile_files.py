"""Files that are no budget file, odd names and paths, files that are locked or may not be written to."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import margent
from margent.errors import BudgetError, UsageError
from margent.privacy import budget_disk, budget_store
from margent.privacy.budget import Budget
from margent.privacy.budget_file import BudgetFile
from tests.privacy.budget_entries import edited, reservation, run_id


def hostile_files() -> dict[str, Callable[[Path], object]]:
    def database(*statements: str) -> Callable[[Path], object]:
        def make(path: Path) -> None:
            BudgetFile(path, "people").init(Budget(1))
            edited(path, *statements)

        return make

    def link(path: Path) -> None:
        BudgetFile(path.with_name("real"), "people").init(Budget(1))
        path.symlink_to("real")

    def hard_link(path: Path) -> None:
        BudgetFile(path.with_name("real"), "people").init(Budget(1))
        os.link(path.with_name("real"), path)

    def huge(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        os.truncate(path, budget_disk.MAX_BYTES + 1)

    def cut(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        os.truncate(path, path.stat().st_size // 2)

    def flipped(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        raw = bytearray(path.read_bytes())
        for place in range(100, len(raw), 97):
            raw[place] ^= 0x55
        path.write_bytes(raw)

    def fifo_beside(path: Path) -> None:
        BudgetFile(path, "people").init(Budget(1))
        os.mkfifo(path.with_name(path.name + "-journal"))

    def lost(which: int) -> Callable[[Path], object]:
        """A page of the last entry was not written: 1 is the table's, 2 the index's, by which sums are looked up."""

        def make(path: Path) -> None:
            file = BudgetFile(path, "people")
            file.init(Budget(1))
            file.reserve(Budget("0.1"), "row", run_id())
            before = path.read_bytes()
            file.reserve(Budget("0.99"), "row", run_id())
            after, place = bytearray(path.read_bytes()), slice(4096 * which, 4096 * (which + 1))
            assert len(after) == 3 * 4096
            assert after[place] != before[place]
            after[place] = before[place]
            path.write_bytes(after)

        return make

    return {
        "lost page of the table": lost(1),
        "lost page of the index": lost(2),
        "absent": lambda path: None,
        "empty": lambda path: path.touch(),
        "text": lambda path: path.write_text("epsilon: 100\n" * 500),
        "noise": lambda path: path.write_bytes(random.Random(4).randbytes(20_000)),
        "folder": lambda path: path.mkdir(),
        "fifo": os.mkfifo,
        "fifo for a journal": fifo_beside,
        "dangling link": lambda path: path.symlink_to("nowhere"),
        "link": link,
        "hard link": hard_link,
        "huge": huge,
        "cut": cut,
        "flipped": flipped,
        "another program's": database("PRAGMA application_id = 7"),
        "later version": database("PRAGMA user_version = 3"),
        "a trigger that refunds": database(
            "CREATE TRIGGER t AFTER INSERT ON entries BEGIN UPDATE entries SET body = '' WHERE number = new.number; END"
        ),
        "a view": database("CREATE VIEW v AS SELECT * FROM entries"),
        "another column": database("ALTER TABLE entries ADD COLUMN refunded"),
        "write-ahead log": database("PRAGMA journal_mode = WAL"),
        "no declaration": database("DELETE FROM entries"),
    }


@pytest.mark.parametrize("kind", hostile_files())
def test_hostile_files_are_refused_with_a_typed_error_and_left_alone(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "b"
    hostile_files()[kind](path)
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir() if item.is_file()}
    file = BudgetFile(path, "people")
    for attempt in (file.balance, lambda: file.reserve(Budget(1), "row", run_id()),
                    lambda: budget_store.reserve(path, reservation(Fraction(1, 9)))):  # fmt: skip
        with pytest.raises(BudgetError) as caught:
            attempt()
        assert str(path) in str(caught.value)
    if kind not in ("absent", "empty", "no declaration"):
        with pytest.raises((BudgetError, UsageError)):
            file.init(Budget(5))
    if kind not in ("absent", "empty", "no declaration", "write-ahead log"):
        assert {item.name: item.read_bytes() for item in tmp_path.iterdir() if item.is_file()} == before


@pytest.mark.parametrize("name", [b"tableentries", b"CREATE TABLE entries", b"entriesentries"])
def test_a_complaint_of_sqlite_that_is_no_text_is_damage(name: bytes, people: BudgetFile) -> None:
    people.path.write_bytes(people.path.read_bytes().replace(name, name[:4] + b"\xec\xff" + name[6:]))
    with pytest.raises(BudgetError, match=r"damaged or altered .*nothing was charged"):
        people.balance()


def test_a_name_that_leaves_no_room_for_the_journal_s_is_refused(tmp_path: Path) -> None:
    (tmp_path / ("n" * 250)).touch()
    with pytest.raises(BudgetError, match="take a shorter name"):
        BudgetFile(tmp_path / ("n" * 250), "people").balance()


@pytest.mark.parametrize(
    "name", ["b?mode=memory", "b#x", "b%2e%2e", ":memory:", "file:b", "ü b\u2028", "b';DROP TABLE entries;--"]
)
def test_a_file_name_is_a_file_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = BudgetFile(name, "people")
    file.init(Budget(1))
    file.reserve(Budget(1), "row", run_id())
    assert file.balance().left == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_path_that_is_none(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "b", Path("a\0b")):
        with pytest.raises(BudgetError):
            BudgetFile(path).balance()
        with pytest.raises(UsageError, match="cannot be made"):
            BudgetFile(path, "people").init(Budget(1))
    with pytest.raises(UsageError, match="a budget file is a path, not int"):
        BudgetFile(3)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no such permissions there")
def test_a_file_that_may_not_be_written_to_refuses_every_run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b"
        BudgetFile(path, "people").init(Budget(1))
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        script = (
            "import os, sys, margent\nfrom margent import Budget, BudgetError, BudgetFile\nmargent.__version__\n"
            "file = BudgetFile(sys.argv[1])\n"
            "run = Budget(1)\nassert run.total > 0 == file.balance().spent\n"
            "if os.geteuid() == 0:  # who may write anywhere\n    os.setgid(65534)\n    os.setuid(65534)\n"
            "assert file.balance().spent == 0\n"
            "try:\n    file.reserve(run, 'row', 'ab' * 16)\n"
            "except BudgetError as fault:\n    print(fault)\n"
        )
        environment = os.environ | {"PYTHONPATH": str(Path(margent.__file__).parents[1])}
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, env=environment, check=False
        )
        assert "cannot be written to; nothing was charged" in done.stdout, done.stderr
        Path(folder).chmod(0o755)
        assert BudgetFile(path).balance().spent == 0


def test_a_file_held_by_another_program_refuses_in_time(people: BudgetFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_disk, "WAIT", 0.05)
    holder = sqlite3.connect(people.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(BudgetError, match="other runs held it for"):
        people.reserve(people.budget(1), "row", run_id())
    holder.execute("ROLLBACK")
    holder.close()
    assert people.balance().spent == 0
