"""The budget file among processes and kills: never above the cap, never fewer entries than were acknowledged.

The processes import the store and nothing of accounting or arrays, so that many fit into a test. Full size with
MARGENT_AUDIT=1: 16 processes of 1,000 requests, 1,000 kills.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import margent
from margent.privacy import budget_store
from margent.privacy.budget_chain import Balance
from tests.privacy.budget_entries import declaration, reservation
from tests.sizes import rounds

PROCESSES, REQUESTS = 16, rounds(50, 1000)
KILLS = rounds(60, 1000)

WORKER = """
import sys, secrets
from fractions import Fraction
from pathlib import Path
from margent.errors import BudgetError
from margent.privacy import budget_store
from margent.privacy.budget_chain import Reservation

def wanted(cost):
    zero = Fraction(0)
    return Reservation("people", secrets.token_hex(16), zero, zero, zero, cost, zero, zero, "now", "test")

path, requests, cost = Path(sys.argv[1]), int(sys.argv[2]), Fraction(sys.argv[3])
{bug}
for _ in range(requests):
    one = wanted(cost)
    try:
        budget_store.reserve(path, one)
    except BudgetError as fault:
        assert type(fault).__name__ == "CapReachedError", fault
    else:
        sys.stdout.write(one.run + "\\n")
        sys.stdout.flush()
"""

NO_LOCK = """
# Planted bug: the balance is read before the write lock is taken.
from contextlib import contextmanager
import time
@contextmanager
def late(file):
    yield
    file.execute("COMMIT")
budget_store.transaction = late
balance = budget_store._balance
def early(*arguments):
    found = balance(*arguments)
    time.sleep(0.002)
    arguments[1].execute("BEGIN IMMEDIATE")
    return found
budget_store._balance = early
"""

EARLY_WORD = """
# Planted bug: the word that it is reserved is given before the commit.
def hasty(path, one, reserve=budget_store.reserve):
    sys.stdout.write(one.run + "\\n")
    sys.stdout.flush()
    reserve(path, one)
    raise budget_store.CapReachedError(budget_store.read(path)[0]["people"])
budget_store.reserve = hasty
"""


def started(path: Path, requests: int, cost: str, bug: str = "") -> subprocess.Popen[str]:
    script = WORKER.replace("{bug}", bug)
    environment = os.environ | {"PYTHONPATH": str(Path(margent.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(requests), cost],
        stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def together(path: Path, cost: str, requests: int, bug: str = "") -> list[str]:
    """The run ids that 16 processes at once were told are reserved."""
    workers = [started(path, requests, cost, bug) for _ in range(PROCESSES)]
    outputs = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    return [line for output in outputs for line in output.split()]


def people(path: Path) -> Balance:
    return budget_store.read(path)[0]["people"]


def test_sixteen_processes_spend_the_cap_exactly_and_never_more(tmp_path: Path) -> None:
    path = tmp_path / "b"
    affordable = PROCESSES * REQUESTS // 4  # most are refused, under the same lock
    budget_store.declare(path, declaration(total=Fraction(affordable)))
    acknowledged = together(path, "1", REQUESTS)
    balance = people(path)
    assert balance.spent == affordable == len(acknowledged)
    assert sorted(acknowledged) == sorted(entry.run for entry in balance.reservations)


def test_planted_bug_a_balance_read_before_the_lock_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "b"
    budget_store.declare(path, declaration(total=Fraction(40)))
    assert len(together(path, "1", 20, NO_LOCK)) > 40
    with pytest.raises(margent.BudgetError, match="damaged or altered"):
        people(path)


def killed(path: Path, delay: float, bug: str = "") -> list[str]:
    """The run ids acknowledged by a process that was killed after ``delay`` seconds of work."""
    worker = started(path, 10**6, "1/1000000", bug)
    assert worker.stdout is not None
    first = worker.stdout.readline()
    time.sleep(delay)
    worker.send_signal(signal.SIGKILL)
    rest = worker.stdout.read()
    assert worker.wait() == -signal.SIGKILL
    worker.stdout.close()
    whole = (first + rest).split("\n")[:-1]
    assert all(len(run) == 32 for run in whole)
    return whole


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
def test_no_kill_loses_what_was_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(9)
    for kill in range(KILLS):
        if kill % 50 == 0:  # a new file: each look reads and checks all entries
            path, told, in_flight = tmp_path / f"b{kill}", set[str](), 0
            budget_store.declare(path, declaration(total=Fraction(10**9)))
        told |= set(killed(path, rng.uniform(0, 0.03)))
        held = {entry.run for entry in people(path).reservations}
        assert told <= held
        assert len(held - told) <= in_flight + 1, "at most the one in flight is charged without a word"
        in_flight = len(held - told)
        if kill % 50 == 49 or kill == KILLS - 1:
            budget_store.reserve(path, reservation(Fraction(1)))


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
def test_planted_bug_a_word_before_the_commit_is_caught(tmp_path: Path) -> None:
    path, rng, lost = tmp_path / "b", random.Random(9), 0
    budget_store.declare(path, declaration(total=Fraction(10**9)))
    for _ in range(60):
        told = set(killed(path, rng.uniform(0, 0.01), EARLY_WORD))
        lost += len(told - {entry.run for entry in people(path).reservations})
        if lost:
            return
    pytest.fail("sixty kills did not catch it")


def test_the_store_imports_neither_accounting_nor_arrays() -> None:
    script = (
        "import sys, margent.privacy.budget_store\n"
        "heavy = {'numpy', 'mpmath', 'pyarrow', 'margent.privacy.accounting', 'click'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(margent.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
