"""Memory for persons, from public facts: what settling which rows of each person are counted will hold at a time."""

from __future__ import annotations

EXPECTED_PEOPLE = 1_000_000
"""Persons that the table in memory is sized for where nobody says how many there are."""

SLOT_BYTES = 32
FULL = 0.7
"""Share of the table's slots that may be taken: beyond it, searching gets slow."""

ROW_BYTES = 16
ROWS_AT_ONCE = 2**20
IN_MEMORY = 2**26
"""Bytes of pseudonyms held in memory; beyond, they go to a temporary file without a name."""

_WORKING = 8
"""Arrays as long as a block of pseudonyms that are held while it is worked on."""


def slots_for(people: int) -> int:
    """Slots of a table for so many persons: a power of two, at most `FULL` of it taken.

    Privacy: none: public facts.

    >>> slots_for(1_000_000)
    2097152
    """
    return 1 << max(10, int(people / FULL).bit_length())


def contribution_bytes(people: int | None, rows: int = 0) -> int:
    """Memory for so many persons (None: `EXPECTED_PEOPLE`): their table, pseudonyms, and a bit a row.

    Privacy: none: public facts.
    """
    slots = slots_for(people or EXPECTED_PEOPLE)
    return 2 * SLOT_BYTES * slots + IN_MEMORY + _WORKING * ROW_BYTES * ROWS_AT_ONCE + rows // 8
