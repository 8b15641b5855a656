"""The entries of a budget file: what each says, exactly, and the chain of hashes that ties it to all before it.

An entry is one line of JSON. Its hash covers the hash of the entry before it, so nobody changes, drops or
reorders an entry by accident without every later hash being wrong. An older copy of the whole file is a chain
without a fault; only releases made since show it (`margent.privacy.budget_file`). No file, no data here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from margent.errors import BudgetError

GENESIS = "0" * 64
"""What stands for the hash before the first entry."""

MOST_DIGITS = 1500
"""Digits of a numerator or denominator in an entry; sums with odd denominators would grow without end."""

_EXACT = re.compile(rf"(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})(/[1-9][0-9]{{0,{MOST_DIGITS - 1}}})?", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{32}", re.ASCII)
_COUNT = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is fixed for ever about one data set: whose privacy, between which neighbors, and how much of it.

    Units: ``total`` is the cap in the account's unit (mu^2/2, rho or epsilon) that epsilon and
    delta - delta_for_atoms amount to; ``unit`` is "row" or "person:k".
    """

    data_set: str
    relation: str
    unit: str
    accountant: str
    epsilon: Fraction
    delta: Fraction
    delta_for_atoms: Fraction
    total: Fraction
    when: str
    margent: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """One run's whole price, written before it looked at the data, and the data set's sums after it.

    ``kind`` "again": what a run that had reserved before pays once more, since an interruption lost answers.
    ``unit_field``: the column that tells persons apart; None where rows are protected, and in entries of before it
    was kept.

    Units: ``cost`` and ``spent`` in the account's unit; ``delta_for_atoms`` and ``delta_spent`` are parts of delta.
    """

    data_set: str
    run: str
    epsilon: Fraction
    delta: Fraction
    delta_for_atoms: Fraction
    cost: Fraction
    spent: Fraction
    delta_spent: Fraction
    when: str
    margent: str
    kind: str = "reserve"
    unit_field: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """That a run whose state can be copied is about to look at rows for the ``calls``-th time; it costs nothing more.

    ``mark`` is a random number that this call's charges hold in the run's journal: two copies of one state that each
    go on do not hold the same one (`margent.resume`). The sums are those before it, unchanged.
    """

    data_set: str
    run: str
    calls: int
    mark: str
    spent: Fraction
    delta_spent: Fraction
    when: str
    margent: str


Entry = Declaration | Reservation | Look
_KINDS: Mapping[str, type[Declaration] | type[Reservation] | type[Look]] = {
    "declare": Declaration,
    "reserve": Reservation,
    "again": Reservation,
    "look": Look,
}
_EXACT_FIELDS = ("epsilon", "delta", "delta_for_atoms", "total", "cost", "spent", "delta_spent")


@dataclass(frozen=True, slots=True)
class Balance:
    """A data set's declaration, the exact sums of all that was reserved under it, and each run's last look."""

    declaration: Declaration
    spent: Fraction = Fraction(0)
    delta_spent: Fraction = Fraction(0)
    reservations: tuple[Reservation, ...] = ()
    looks: Mapping[str, Look] = field(default_factory=dict)

    @property
    def left(self) -> Fraction:
        """What may still be reserved, in the account's unit; never negative."""
        return self.declaration.total - self.spent

    @property
    def delta_left(self) -> Fraction:
        """What is left of the part of delta for atoms; never negative."""
        return self.declaration.delta_for_atoms - self.delta_spent

    def covers(self, cost: Fraction, delta_for_atoms: Fraction) -> bool:
        """Whether a run at this price stays within the cap."""
        return cost <= self.left and delta_for_atoms <= self.delta_left

    def of_run(self, run: str) -> tuple[Reservation, ...]:
        """What was reserved under one run's id: its price, and what it paid again."""
        return tuple(entry for entry in self.reservations if entry.run == run)

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return len({entry.run for entry in self.reservations})

    @property
    def unit_field(self) -> str | None:
        """The column that tells persons apart, as the first run that said it did; None as long as none has."""
        return next((entry.unit_field for entry in self.reservations if entry.unit_field is not None), None)

    def after(self, entry: Reservation) -> Balance:
        """The balance once ``entry`` stands.

        Raises: ValueError when the entry passes the cap, its sums are not these sums, or rows have a column.
        """
        spent, delta_spent = self.spent + entry.cost, self.delta_spent + entry.delta_for_atoms
        if not self.covers(entry.cost, entry.delta_for_atoms) or entry.cost <= 0:
            raise ValueError("a price that the cap does not allow")
        if (spent, delta_spent) != (entry.spent, entry.delta_spent):
            raise ValueError("sums that do not add up")
        if self.declaration.unit == "row" and entry.unit_field is not None:
            raise ValueError("a column that tells persons apart, where rows are protected")
        return replace(self, spent=spent, delta_spent=delta_spent, reservations=(*self.reservations, entry))


def entry_text(entry: Entry) -> str:
    """One line of JSON; fractions exact, as "p/q".

    Raises: BudgetError when a fraction has more digits than a file can hold.
    """
    kind = entry.kind if isinstance(entry, Reservation) else "look" if isinstance(entry, Look) else "declare"
    fields = {name: getattr(entry, name) for name in type(entry).__slots__}
    told = {name: _written(value) for name, value in fields.items() if value is not None}
    return json.dumps({"kind": kind} | told, ensure_ascii=False)


def read_entry(text: str) -> Entry:
    """The entry that `entry_text` wrote.

    Raises: ValueError, TypeError or RecursionError for anything that it would not have written.
    """
    document: Any = json.loads(text)
    if not isinstance(document, dict) or document.get("kind") not in _KINDS:
        raise ValueError("no entry")
    made = _KINDS[document["kind"]]
    if made is not Reservation:
        del document["kind"]
    if not all(isinstance(value, str) for value in document.values()):
        raise ValueError("not text")
    exact: dict[str, Any] = {name: _fraction(value) for name, value in document.items() if name in _EXACT_FIELDS}
    if made is Look:
        exact["calls"] = _count(document.get("calls", ""))
    entry: Entry = made(**(document | exact))
    words = (entry.data_set, entry.when, entry.margent)
    if not all(plain_name(word) for word in words) or entry_text(entry) != text:
        raise ValueError("not as it was written")
    if not isinstance(entry, Declaration) and not is_run_id(entry.run):
        raise ValueError("no run id")
    if isinstance(entry, Look) and not is_run_id(entry.mark):
        raise ValueError("no mark")
    return entry


def is_run_id(text: object) -> bool:
    """Whether this is a run's random number: 32 hexadecimal digits in lower case."""
    return isinstance(text, str) and bool(_HEX.fullmatch(text))


def seal_of(previous: str, text: str) -> str:
    """The hash of an entry that follows one with the hash ``previous``: SHA-256 over both."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def balances(rows: Iterable[tuple[int, str, str, str]]) -> dict[str, Balance]:
    """Every data set's balance from all entries (number, data set, text, hash), each of them checked.

    Raises: ValueError, saying which entry and why, where the file is not one that this module wrote.
    """
    found: dict[str, Balance] = {}
    held: dict[str, _Held] = {}
    previous, known = GENESIS, dict[str, str]()
    for expected, (number, name, text, seal) in enumerate(rows, start=1):
        try:
            if number != expected or seal_of(previous, text) != seal:
                raise ValueError("its hash or place differs from what the entry before it says")
            entry = read_entry(text)
            if entry.data_set != name:
                raise ValueError("it is filed under another data set")
            if isinstance(entry, Declaration):
                if name in found:
                    raise ValueError("a data set declared twice")
                found[name], held[name] = Balance(entry), _Held()
            elif name not in found or known.get(entry.run) != (None if _first(entry) else name):
                raise ValueError("no such data set, a run id for the second time, or a run that is not known")
            elif isinstance(entry, Look):
                held[name].look(entry, found[name])
            else:
                held[name].reserve(entry)
                found[name] = replace(found[name].after(entry), reservations=())
                known[entry.run] = name
        except (ValueError, TypeError, RecursionError) as fault:
            why = str(fault) if type(fault) is ValueError else "it cannot be read"
            raise ValueError(f"entry {expected}: {why}") from None
        previous = seal
    return {
        name: replace(balance, reservations=tuple(held[name].reservations), looks=held[name].looks)
        for name, balance in found.items()
    }


@dataclass
class _Held:
    """What one data set's entries said so far; lists, so that reading a long file takes time along its length."""

    reservations: list[Reservation] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)
    unit_field: str | None = None

    def reserve(self, entry: Reservation) -> None:
        if self.unit_field not in (None, entry.unit_field):
            raise ValueError("persons told apart by another column than before")
        self.unit_field = entry.unit_field
        self.reservations.append(entry)

    def look(self, entry: Look, sums: Balance) -> None:
        before = self.looks.get(entry.run)
        if entry.calls != (before.calls if before else 0) + 1:
            raise ValueError("a look out of turn")
        if (entry.spent, entry.delta_spent) != (sums.spent, sums.delta_spent):
            raise ValueError("a look that changes sums")
        self.looks[entry.run] = entry


def _first(entry: Reservation | Look) -> bool:
    """Whether the run's id must not have been in the file before."""
    return isinstance(entry, Reservation) and entry.kind == "reserve"


def plain_name(name: object) -> bool:
    """Whether a name can stand in a file and on a terminal: 1 to 100 printable characters, no space at an end."""
    return isinstance(name, str) and 1 <= len(name) <= 100 and name.isprintable() and name == name.strip()


def _written(value: str | int | Fraction) -> str:
    if isinstance(value, str | int):
        return str(value)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 3.32 * MOST_DIGITS:
        raise BudgetError(
            "nothing was charged: the sum of such fractions has more digits than a budget file keeps: "
            "give epsilon and delta as short decimals"
        )
    return str(value)


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError("not a count")
    return int(text)


def _fraction(text: str) -> Fraction:
    if not _EXACT.fullmatch(text):  # never Fraction('1e999999999')
        raise ValueError("not an exact fraction")
    return Fraction(text)
