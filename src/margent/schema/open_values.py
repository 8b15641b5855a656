"""Which texts of an open set may be bought: a question about each text alone, whatever else the column holds."""

from __future__ import annotations

from collections.abc import Collection

MAX_CHARACTERS = 256
"""Longer texts are never kept: they are counted as unlisted."""


def admissible(text: bytes, own: Collection[str]) -> str | None:
    """The text that a cell could be kept as, or None where it never is.

    Kept are texts in UTF-8 of at most 256 printable characters that are not blank and that the schema does not
    already give a meaning (``own``: its missing tokens). Control, formatting and bidirectional characters are not
    printable.

    Privacy: a function of this one text; the text is private until its noisy count passes the threshold.

    >>> admissible("Zoë".encode(), [""]), admissible(b"two\\nlines", []), admissible(b"NA", ["NA"])
    ('Zoë', None, None)
    """
    if len(text) > 4 * MAX_CHARACTERS:
        return None
    try:
        found = text.decode()
    except UnicodeDecodeError:
        return None
    if len(found) > MAX_CHARACTERS or not found.isprintable() or not found.strip() or found in own:
        return None
    return found
