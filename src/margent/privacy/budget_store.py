"""The budget file's entries on disk: an append-only table, one transaction an entry, safe among processes and crashes.

Nothing is appended that would make the file unreadable: each entry is held against what stands before it, within the
transaction that writes it. How the file is opened and locked: `margent.privacy.budget_disk`. Imports no accounting
and no arrays, so that its crash tests are quick.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

from margent.errors import BudgetError, UsageError
from margent.privacy.budget_chain import (
    GENESIS,
    Balance,
    Declaration,
    Entry,
    Look,
    Reservation,
    balances,
    entry_text,
    is_run_id,
    read_entry,
    seal_of,
)
from margent.privacy.budget_disk import (
    APPLICATION,
    MAX_BYTES,
    MAX_BYTES_FOR_A_RUN,
    OBJECTS,
    VERSION,
    damaged,
    opened,
    require_format,
    require_short_name,
    transaction,
)


class CapReachedError(BudgetError):
    """A run would pass the cap of its data set; nothing was charged. ``balance`` is what there was."""

    def __init__(self, balance: Balance) -> None:
        super().__init__(f"nothing was charged: the budget of {balance.declaration.data_set!r} does not cover this run")
        self.balance = balance


class OtherUnitError(BudgetError):
    """Persons were told apart by another column before: ``recorded``; nothing was charged."""

    def __init__(self, recorded: str) -> None:
        super().__init__("nothing was charged: persons are told apart by another column than in the runs before")
        self.recorded = recorded


class MovedOnError(BudgetError):
    """A run's state is not the one that went on last; nobody may look at rows by it."""


def declare(path: Path, entry: Declaration) -> None:
    """Write a data set's declaration, into a new file (readable by its owner alone) or beside those in the file.

    Raises: UsageError when the data set is declared already, or the file cannot be made; BudgetError when there is
    another file at ``path``.
    """
    require_short_name(path)
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        pass
    except (OSError, ValueError):
        raise UsageError(f"{path}: cannot be made; is its folder there, and may you write to it?") from None
    with opened(path, maybe_empty=True) as file, transaction(file):
        # Nothing at all in the file: it is new, or an earlier init was cut off before its commit.
        if file.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for statement in OBJECTS:
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {APPLICATION}")
            file.execute(f"PRAGMA user_version = {VERSION}")
        require_format(path, file)
        if file.execute("SELECT 1 FROM entries WHERE data_set = ?", (entry.data_set,)).fetchone():
            raise UsageError(
                f"{path}: the data set {entry.data_set!r} is declared already; no budget is changed or reset"
            )
        _append(path, file, entry)


def reserve(path: Path, wanted: Reservation) -> Balance:
    """Reserve a run's whole price, or nothing, in one transaction; the balance after it, on disk when this returns.

    The sums in ``wanted`` are filled in here. Never refunded: there is no code that takes an entry back. A run
    reserves once; what it pays *again* it pays under the same id and data set.

    Raises: CapReachedError when the rest does not cover it; OtherUnitError when the data set's runs told persons apart
        by another column; BudgetError when the run's id is no id or not new, or the file cannot be used.
    """
    if not is_run_id(wanted.run) or wanted.kind not in ("reserve", "again"):
        raise BudgetError("nothing was charged: a run's id is 32 hexadecimal digits in lower case, and drawn at random")
    with opened(path) as file, transaction(file):
        _require_whole(path, file)
        before = _balance(path, file, wanted.data_set)
        if wanted.cost <= 0 or wanted.delta_for_atoms < 0:
            raise BudgetError("nothing was charged: a run's price must be above 0")
        if wanted.kind == "reserve":
            _require_new(path, file, wanted.run)
        elif _last_of(path, file, wanted.data_set, wanted.run) is None:
            raise BudgetError(f"{path}: nothing was charged: no run of this id is in the data set to pay again for it")
        recorded = _unit_field(path, file, before.declaration)
        if recorded not in (None, wanted.unit_field):
            raise OtherUnitError(str(recorded))
        if not before.covers(wanted.cost, wanted.delta_for_atoms):
            raise CapReachedError(before)
        spent, delta_spent = before.spent + wanted.cost, before.delta_spent + wanted.delta_for_atoms
        try:
            after = before.after(replace(wanted, spent=spent, delta_spent=delta_spent))
        except ValueError as fault:
            raise BudgetError(f"{path}: nothing was charged: {fault}") from None
        _append(path, file, after.reservations[-1])
    return after


def look(path: Path, wanted: Look, before: str) -> None:
    """Write that a run is about to look for the ``calls``-th time, if nobody did since ``before``; on disk on return.

    ``before`` is the mark of the look before it as the run's own state has it, empty for the first. Compare and swap
    in one transaction: of all copies of a state exactly one goes on. The sums in ``wanted`` are filled in here.

    Raises: as `require_last`; there must be no look then.
    """
    with opened(path) as file, transaction(file):
        sums = _balance(path, file, wanted.data_set)
        last = _last_of(path, file, wanted.data_set, wanted.run)
        if last is None:
            raise BudgetError(not_in_it(path))
        known = last if isinstance(last, Look) else None
        require_last(path, known, wanted.calls - 1, before)
        _append(path, file, replace(wanted, spent=sums.spent, delta_spent=sums.delta_spent))


def require_last(path: Path, known: Look | None, calls: int, mark: str) -> None:
    """Refuse a run whose state has so many ``calls``, the last of this ``mark``, unless that is its last look.

    ``known`` is the file's last look of the run, None where there is none.

    Privacy: none: how often a run looked is public.
    Raises: MovedOnError where another copy of the state went on, or the state is an older one; BudgetError where the
        file is.
    """
    told = (0, "") if known is None else (known.calls, known.mark)
    if told == (calls, mark):
        return  # marks are drawn at random: the same one stands for the same calls up to here
    if calls > told[0]:
        raise BudgetError(
            f"{path}: it knows fewer looks of the interrupted run than the run's state does: this is an older copy of "
            "the file, which would spend again what was spent: put the latest copy back. Nothing more was spent"
        )
    raise MovedOnError(
        f"{path}: another copy of this run's state went on, or this is an older copy of the state. Nothing was looked "
        "at, and nothing more is spent: go on with the latest state, or delete this one and start a new run (what was "
        "charged stays spent)"
    )


def not_in_it(path: Path) -> str:
    """Why a run that the file does not hold may not go on.

    Privacy: none.
    """
    return (
        f"{path}: the interrupted run is not in it: it was begun with another file, or this is an older copy of the "
        "file, which would spend again what was spent: put the latest copy back"
    )


def read(path: Path) -> tuple[dict[str, Balance], tuple[str, ...]]:
    """Every data set's balance, and the hashes of all entries in order; the whole file is checked.

    Raises: BudgetError naming the first entry that is not as it was written.
    """
    with opened(path) as file:
        _require_whole(path, file)
        rows = file.execute("SELECT number, data_set, body, hash FROM entries ORDER BY number").fetchall()
    try:
        return balances(rows), tuple(row[3] for row in rows)
    except ValueError as fault:
        raise damaged(path, str(fault)) from None


def _require_whole(path: Path, file: sqlite3.Connection) -> None:
    # Not the quick check, which does not hold the index against the table: sums are looked up by the index.
    if file.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise damaged(path, "SQLite finds faults in it")


def _balance(path: Path, file: sqlite3.Connection, name: str) -> Balance:
    """The sums of one data set from its last entry: three look-ups however long the file is."""
    order = "SELECT number FROM entries WHERE data_set = ? ORDER BY number"
    first = file.execute(f"{order} LIMIT 1", (name,)).fetchone()
    last = file.execute(f"{order} DESC LIMIT 1", (name,)).fetchone()
    if first is None:
        raise BudgetError(
            f"{path}: no data set {name!r} is declared in it; `margent budget show` lists those there are"
        )
    declaration, latest = _sealed_entry(path, file, first[0]), _sealed_entry(path, file, last[0])
    if not isinstance(declaration, Declaration) or declaration.data_set != name or latest.data_set != name:
        raise damaged(path, f"entry {first[0]} does not declare its data set")
    if isinstance(latest, Declaration):
        return Balance(latest)
    return Balance(declaration, latest.spent, latest.delta_spent)


def _require_new(path: Path, file: sqlite3.Connection, run: str) -> None:
    """A run id stands for one run of one data set, in all of the file; and those that have begun have room to end."""
    if file.execute("SELECT 1 FROM entries WHERE instr(body, ?) LIMIT 1", (_written_run(run),)).fetchone():
        raise BudgetError(f"{path}: nothing was charged: the run {run} is in it already; a new run draws a new id")
    if _size(file) > MAX_BYTES_FOR_A_RUN:
        raise BudgetError(
            f"{path}: nothing was charged: the file is full ({MAX_BYTES_FOR_A_RUN // 2**20} MiB; runs that have begun "
            "can still end)"
        )


def _last_of(path: Path, file: sqlite3.Connection, name: str, run: str) -> Look | Reservation | None:
    """A run's last look; its reservation where it has not looked; None where it has neither.

    An entry's text is JSON as `entry_text` writes it, in which quotes within a value are escaped: the text looked for
    stands in the entries of this run and in no other.
    """
    rows = file.execute(
        "SELECT number FROM entries WHERE data_set = ? AND instr(body, ?) ORDER BY number DESC",
        (name, _written_run(run)),
    )
    for (number,) in rows:
        entry = _sealed_entry(path, file, number)
        if isinstance(entry, Look) or (isinstance(entry, Reservation) and entry.kind == "reserve"):
            return entry
    return None


def _unit_field(path: Path, file: sqlite3.Connection, terms: Declaration) -> str | None:
    """The column that tells persons apart, as the data set's first run that said it did."""
    if terms.unit == "row":
        return None
    found = file.execute(
        "SELECT number FROM entries WHERE data_set = ? AND instr(body, ?) ORDER BY number LIMIT 1",
        (terms.data_set, '"unit_field": "'),
    ).fetchone()
    if found is None:
        return None
    entry = _sealed_entry(path, file, found[0])
    return entry.unit_field if isinstance(entry, Reservation) else None


def _written_run(run: str) -> str:
    return f'"run": "{run}"'


def _sealed_entry(path: Path, file: sqlite3.Connection, number: int) -> Entry:
    found = file.execute("SELECT body, hash FROM entries WHERE number = ?", (number,)).fetchone()
    try:
        text, seal = found
        if seal_of(_hash_of(path, file, number - 1), text) != seal:
            raise ValueError
        return read_entry(text)
    except (ValueError, TypeError, RecursionError):
        raise damaged(path, f"entry {number} is not as it was written") from None


def _hash_of(path: Path, file: sqlite3.Connection, number: int) -> str:
    if number == 0:
        return GENESIS
    found = file.execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
    if found is None:
        raise damaged(path, f"entry {number} is missing")
    return str(found[0])


def _append(path: Path, file: sqlite3.Connection, entry: Entry) -> None:
    (last,) = file.execute("SELECT coalesce(max(number), 0) FROM entries").fetchone()
    try:
        text = entry_text(entry)
        seal = seal_of(_hash_of(path, file, last), text)
        if read_entry(text) != entry:
            raise ValueError
    except (ValueError, TypeError):
        raise BudgetError(
            f"{path}: nothing was charged: the entry could not be read again as it would be written"
        ) from None
    if file.execute("PRAGMA user_version").fetchone() != (VERSION,):
        file.execute(f"PRAGMA user_version = {VERSION}")
    file.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (last + 1, entry.data_set, text, seal))
    if _size(file) > MAX_BYTES:  # within the transaction: it is undone, and the file can be read as before
        raise BudgetError(
            f"{path}: the file is full ({MAX_BYTES // 2**20} MiB) and takes no entry more: nothing was charged or "
            "looked at, and what was charged before stays spent"
        )


def _size(file: sqlite3.Connection) -> int:
    """Bytes of the file as it will stand."""
    (pages,), (size,) = file.execute("PRAGMA page_count").fetchone(), file.execute("PRAGMA page_size").fetchone()
    return int(pages * size)
