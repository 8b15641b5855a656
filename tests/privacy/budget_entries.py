"""Declarations and reservations of our own making, at bare prices."""

from __future__ import annotations

import secrets
from dataclasses import replace
from fractions import Fraction
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
