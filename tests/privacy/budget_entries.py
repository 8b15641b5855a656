"""Declarations and reservations of our own making, at bare prices."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from margent.privacy.budget_chain import Declaration, Reservation

ZERO = Fraction(0)


def declaration(**changes: Any) -> Declaration:
    """A pure data set 'people' with a cap of 1, or as told."""
    plain = Declaration("people", "add-remove", "row", "pure", Fraction(1), ZERO, ZERO, Fraction(1), "now", "test")
    return replace(plain, **changes)


def reservation(cost: Fraction, **changes: Any) -> Reservation:
    """A run at a bare price."""
    plain = Reservation("people", secrets.token_hex(16), cost, ZERO, ZERO, cost, ZERO, ZERO, "now", "test")
    return replace(plain, **changes)


def run_id() -> str:
    """The random number of a run."""
    return secrets.token_hex(16)


def edited(path: Path, *statements: str) -> None:
    """What somebody with a database editor does: triggers away, change, triggers back."""
    with sqlite3.connect(path, isolation_level=None) as file:
        triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            file.execute(statement)
        for _, sql in triggers:
            file.execute(sql)
    file.close()
