"""How much memory counting takes, from public facts: for blocks of rows, for settling whose rows count, for texts."""

from __future__ import annotations

from margent.machine import CACHED_ROWS, block_rows

EXPECTED_PEOPLE = 1_000_000
"""Persons that the table in memory is sized for where nobody says how many there are."""

LEAST_PEOPLE = 100_000
"""The table is sized for no fewer: it costs little, and where many more come than were expected, a table of a few
would have all pseudonyms read once again for every few persons."""

SLOT_BYTES = 32
FULL = 0.7
"""Share of the table's slots that may be taken: beyond it, searching gets slow."""

ROW_BYTES = 16
ROWS_AT_ONCE = 2**20
IN_MEMORY = 2**26
"""Bytes of pseudonyms held in memory; beyond, they go to a temporary file without a name."""

TEXTS_AT_ONCE = 2**20
"""Texts of an open set counted at a time, each of more than 64 characters counting as several."""
TEXT_BYTES = 420 * 2**20
"""What that many take: about 140 bytes each for the text and its number, and four for each character at worst."""

_WORKING = 8
"""Arrays as long as a block of pseudonyms that are held while it is worked on."""


def slots_for(people: int) -> int:
    """Slots of a table for so many persons: a power of two, at most `FULL` of it taken.

    Privacy: none: public facts.

    >>> slots_for(1_000_000)
    2097152
    """
    return 1 << max(10, int(people / FULL).bit_length())


def table_people(expected: int | None) -> int:
    """Persons that the table in memory is sized for, where about so many are expected.

    Privacy: none: public facts.

    >>> table_people(None), table_people(1), table_people(5_000_000)
    (1000000, 100000, 5000000)
    """
    return max(EXPECTED_PEOPLE if expected is None else expected, LEAST_PEOPLE)


def contribution_bytes(people: int | None, rows: int = 0) -> int:
    """Memory for so many persons (None: `EXPECTED_PEOPLE`): their table, pseudonyms, and a bit a row.

    Privacy: none: public facts.
    """
    slots = slots_for(table_people(people))
    return 2 * SLOT_BYTES * slots + IN_MEMORY + _WORKING * ROW_BYTES * ROWS_AT_ONCE + rows // 8


KEPT_CELLS = 2**25
"""Exact cells kept between requests (256 MiB), so that tables which are asked for again cost no further pass."""

CELL_BYTES = 32
"""What a cell takes from reading to counting: as it is read, as it is coded, and what coding it needs meanwhile."""

READ_AHEAD = 3
"""Blocks of rows that are held beside the one that each thread works on."""

SCRATCH_BYTES = 2**19
"""A thread's lanes and packed codes."""


def counting_bytes(columns: int, threads: int) -> int:
    """Memory of the blocks of rows, of so many columns, that so many threads read, code and count at a time.

    Privacy: none: public facts.

    >>> counting_bytes(16, 2) // 2**20, counting_bytes(1000, 2) // 2**20
    (163, 765)
    """
    blocks = (threads + READ_AHEAD) * block_rows(columns) * columns * CELL_BYTES
    return blocks + threads * (4 * columns * CACHED_ROWS + SCRATCH_BYTES)
