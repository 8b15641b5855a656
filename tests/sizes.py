"""How many inputs a test tries: few at each commit, many in `make audit`, which sets MARGENT_AUDIT=1."""

from __future__ import annotations

import os

LONG_AUDIT = os.environ.get("MARGENT_AUDIT") == "1"


def rounds(every_commit: int, audit: int) -> int:
    """The number for this run."""
    return audit if LONG_AUDIT else every_commit
